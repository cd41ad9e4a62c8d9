//! `osvc-net setup` for routed networks.

use std::fmt::Write;

use osvc_cni::plugin::routed::{self, Departed, How};
use osvc_cni::routed::RoutedConfig;
use osvc_cni::{Host, firewall};

use crate::conf::{Definition, Plugin};
use crate::error::Error;
use crate::networks::Network;
use crate::setup::{Found, line};
use crate::{output, teardown};

/// Sets up one network, and says what was done.
pub fn run(host: &Host, network: &Network, definition: &Definition, plugin: &Plugin, how: How) -> Result<Found, Error> {
    let name = &network.name;
    let misconfigured =
        |source| Error::Config { place: plugin.place.clone(), network: name.clone(), source: Box::new(source) };
    let call = definition.call(plugin, host).map_err(misconfigured)?;
    if let Some(why) = routed::departed(&call).map_err(misconfigured)? {
        let nothing = || format!("{name}: {why}: nothing is set up\n");
        let line = teardown::departed(host, network, &why, how.dry_run)?.unwrap_or_else(nothing);
        // A list without this node has no use here, and may be wrong.
        let unlisted = RoutedConfig::from_call(&call).err().filter(|_| matches!(why, Departed::Unlisted(_)));
        let faults = unlisted.map(|error| misconfigured(error.into()));
        return Ok(Found { line, rules: true, faults: faults.into_iter().collect() });
    }
    let failed = |source| Error::Network { network: name.clone(), source: Box::new(source) };
    let found = routed::setup(&call, how).map_err(failed)?;
    let state = match (how.dry_run, found.changes.is_empty()) {
        (_, true) => "in place",
        (true, false) => "would be set up",
        (false, false) => "set up",
    };
    let mut text = line(&found.wanted, state, found.record.as_ref());
    for change in &found.changes {
        let _ = writeln!(text, "{name}: {change}");
    }
    for warning in &found.warnings {
        output::complain(&format_args!("network {name}: {warning}"));
    }
    let peer = |(node, fault)| Error::Peer { network: name.clone(), node, fault };
    let mut faults: Vec<Error> = found.faults.into_iter().map(peer).collect();
    faults.extend(found.refused.map(|source| Error::Routed { network: name.clone(), source: Box::new(source) }));
    let rules = match &found.record {
        Some(_) if found.rules => false,
        Some(record) => firewall::in_place(host, record).map_err(|error| failed(error.into()))?,
        None => false,
    };
    Ok(Found { line: text, rules, faults })
}
