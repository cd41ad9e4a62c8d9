//! `osvc-net setup`: makes networks what their configurations ask for, before a container does.

use std::fmt::Write;

use osvc_cni::netlink::RouteSocket;
use osvc_cni::netlink::netns::host_id;
use osvc_cni::network::NetworkRecord;
use osvc_cni::network::setup::{Site, Wanted};
use osvc_cni::plugin::bridge;
use osvc_cni::{Host, firewall};

use crate::error::Error;
use crate::networks::{Network, Networks};
use crate::output;

/// Sets up the named networks, or all that osvc-bridge serves, and prints what it found.
pub fn run(host: &Host, networks: Networks, names: &[String], dry_run: bool) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(names);
    let mut text = String::new();
    let mut rules_wanted = Vec::new();
    for network in &chosen {
        match one(host, network, dry_run) {
            Ok(Some(Found { line, rules })) => {
                text += &line;
                rules_wanted.extend((!rules).then_some(&network.name));
            }
            // Somebody else's network, which was not asked for by name.
            Ok(None) if names.is_empty() => {}
            Ok(None) => errors.push(match &network.definition {
                Some(definition) => Error::NotOurs { file: definition.file.clone(), network: network.name.clone() },
                None => Error::Unconfigured(network.name.clone()),
            }),
            Err(error) => errors.push(error),
        }
    }
    // The rules of all networks are one ruleset: swapped once.
    if !rules_wanted.is_empty() {
        let applied = if dry_run { Ok(()) } else { firewall::apply(host) };
        match applied {
            Ok(()) => {
                let done = if dry_run { "firewall rules would be made" } else { "firewall rules made" };
                for name in rules_wanted {
                    let _ = writeln!(text, "{name}: {done}");
                }
            }
            Err(error) => errors.push(error.into()),
        }
    }
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// What a network was found to be.
struct Found {
    /// What to tell of it.
    line: String,
    /// Its firewall rules are there.
    rules: bool,
}

/// Sets one network up; `None` if no plugin of ours does that.
fn one(host: &Host, network: &Network, dry_run: bool) -> Result<Option<Found>, Error> {
    let Some(definition) = &network.definition else { return Ok(None) };
    let Some(plugin) = definition.plugins.iter().find(|plugin| plugin.kind == "osvc-bridge") else { return Ok(None) };
    let misconfigured =
        |source| Error::Config { place: plugin.place.clone(), network: network.name.clone(), source: Box::new(source) };
    let call = definition.call(plugin, host).map_err(misconfigured)?;
    let Some(wanted) = bridge::wanted(&call).map_err(misconfigured)? else {
        let ipam = plugin.ipam().unwrap_or_default();
        let line = format!("{}: left to its first container, since {ipam} knows its addresses\n", network.name);
        return Ok(Some(Found { line, rules: true }));
    };
    let failed = |source| Error::Network { network: network.name.clone(), source: Box::new(source) };
    establish(host, &wanted, dry_run).map(Some).map_err(failed)
}

fn establish(host: &Host, wanted: &Wanted, dry_run: bool) -> Result<Found, osvc_cni::Error> {
    let netns = host_id()?;
    let mut socket = RouteSocket::open()?;
    let mut site = Site { host, netns: &netns, socket: &mut socket };
    let found = site.in_place(wanted)?;
    let mut state = if found.is_some() { "in place" } else { "set up" };
    let mut setup = match found {
        Some(setup) => setup,
        None if dry_run => {
            site.refuse(wanted)?;
            return Ok(Found { line: line(wanted, "would be set up", None), rules: false });
        }
        None => site.establish(wanted)?,
    };
    if !dry_run && site.rejoin(wanted, &setup.bridge)? > 0 {
        state = "set up";
    }
    let mut note = None;
    if let Some(mtu) = site.other_mtu(wanted, &setup)? {
        if dry_run {
            note = Some(format!("{}: MTU would become {mtu}\n", wanted.name));
        } else {
            site.change_mtu(&mut setup, mtu)?;
            state = "set up";
        }
    }
    let rules = firewall::in_place(host, &setup.record)?;
    Ok(Found { line: line(wanted, state, Some(&setup.record)) + &note.unwrap_or_default(), rules })
}

/// `podnet: in place, bridge obr_podnet with 10.22.0.1/16, MTU 1500`
fn line(wanted: &Wanted, state: &str, record: Option<&NetworkRecord>) -> String {
    let gateways = wanted.gateways.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut line = format!("{}: {state}, bridge {}", wanted.name, wanted.bridge.name);
    if !gateways.is_empty() {
        let _ = write!(line, " with {gateways}");
    }
    if let Some(record) = record {
        let _ = write!(line, ", MTU {}", record.mtu);
    }
    line.push('\n');
    line
}
