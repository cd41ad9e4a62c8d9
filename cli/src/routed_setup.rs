//! `osvc-net setup` for routed networks.

use std::fmt::Write;

use osvc_cni::plugin::routed::{self, Departed, How};
use osvc_cni::routed::RoutedConfig;
use osvc_cni::{Host, firewall};

use crate::conf::{Definition, Plugin};
use crate::error::Error;
use crate::networks::Network;
use crate::setup::{Found, line};
use crate::teardown;

/// Sets up one network, and says what was done.
/// With `quiet` what the setup before warned of is not told again.
pub fn run(
    host: &Host,
    network: &Network,
    definition: &Definition,
    plugin: &Plugin,
    how: How,
    quiet: bool,
) -> Result<Found, Error> {
    let name = &network.name;
    let misconfigured =
        |source| Error::Config { place: plugin.place.clone(), network: name.clone(), source: Box::new(source) };
    let call = definition.call(plugin, host).map_err(misconfigured)?;
    if let Some(why) = routed::departed(&call).map_err(misconfigured)? {
        let told = teardown::departed(host, network, &why, how.dry_run)?;
        let changed = told.is_some();
        let line = told.unwrap_or_else(|| format!("{name}: {why}: nothing is set up\n"));
        // A list without this node has no use here, and may be wrong.
        let unlisted = RoutedConfig::from_call(&call).err().filter(|_| matches!(why, Departed::Unlisted(_)));
        let faults = unlisted.map(|error| misconfigured(error.into()));
        return Ok(Found { line, changed, rules: true, faults: faults.into_iter().collect(), warnings: Vec::new() });
    }
    let failed = |source| Error::Network { network: name.clone(), source: Box::new(source) };
    let mut text = String::new();
    if let Some(wanted) = routed::wanted(&call).map_err(misconfigured)?
        && let Some(record) = teardown::former(host, &wanted)?
    {
        routed::refuse_move(&call, &record).map_err(failed)?;
        text = teardown::leave_bridge(host, &wanted, &record, how.dry_run)?;
        if how.dry_run {
            text += &line(&wanted, "would be set up", None);
            return Ok(Found { line: text, changed: true, rules: false, faults: Vec::new(), warnings: Vec::new() });
        }
    }
    let found = match routed::setup(&call, how) {
        Ok(found) => found,
        Err(error) if text.is_empty() => return Err(failed(error)),
        Err(error) => return Ok(Found::halfway(host, name, text, failed(error))),
    };
    let state = match (how.dry_run, found.changes.is_empty()) {
        (_, true) => "in place",
        (true, false) => "would be set up",
        (false, false) => "set up",
    };
    text += &line(&found.wanted, state, found.record.as_ref());
    for change in &found.changes {
        let _ = writeln!(text, "{name}: {change}");
    }
    let is_known = |warning: &&String| quiet && found.warned.contains(warning);
    let warnings = found.warnings.iter().filter(|warning| !is_known(warning)).cloned().collect();
    let peer = |(node, fault)| Error::Peer { network: name.clone(), node, fault };
    let mut faults: Vec<Error> = found.faults.into_iter().map(peer).collect();
    faults.extend(found.refused.map(|source| Error::Routed { network: name.clone(), source: Box::new(source) }));
    faults.extend(found.failed.map(failed));
    let rules = match &found.record {
        Some(_) if found.rules => false,
        Some(record) => firewall::in_place(host, record).unwrap_or_else(|error| {
            faults.push(failed(error.into()));
            true
        }),
        None => false,
    };
    Ok(Found { line: text, changed: !found.changes.is_empty(), rules, faults, warnings })
}
