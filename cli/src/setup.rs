//! `osvc-net setup`: makes networks what their configurations ask for, before a container does.

use std::fmt::Write;

use osvc_cni::netlink::RouteSocket;
use osvc_cni::netlink::netns::host_id;
use osvc_cni::network::NetworkRecord;
use osvc_cni::network::setup::{Site, Wanted};
use osvc_cni::plugin::bridge;
use osvc_cni::portmap::config::Options;
use osvc_cni::portmap::{self, Mended, Reconfigured};
use osvc_cni::{Host, firewall};

use crate::conf::PORTMAP;
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
            Ok(None) if publishes(network) => {}
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
    let (lines, found) = ports(host, &chosen, dry_run);
    text += &lines;
    errors.extend(found);
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Host ports of all networks, which are one ruleset too, with what the configurations of these say of them now.
fn ports(host: &Host, networks: &[Network], dry_run: bool) -> (String, Vec<Error>) {
    let (mut text, mut errors) = (String::new(), Vec::new());
    for network in networks {
        match reconfigure(host, network, dry_run) {
            Ok(Reconfigured { changed, refused }) => {
                if changed > 0 {
                    let done = if dry_run { "would be" } else { "were" };
                    let _ = writeln!(text, "{}: host ports of {changed} containers {done} reconfigured", network.name);
                }
                errors.extend(refused.into_iter().map(|holder| Error::Ports { network: network.name.clone(), holder }));
            }
            Err(error) => errors.push(error),
        }
    }
    match portmap::mend(host, dry_run).map_err(osvc_cni::Error::from) {
        Ok(found @ Mended { ports: 0, .. }) if found.is_whole() => {}
        Ok(found) if found.is_whole() => {
            let _ = writeln!(text, "host ports: in place, {} published", found.ports);
        }
        Ok(found) => {
            let what = match found.rules {
                true => "their tables".to_owned(),
                false => format!("{} elements", found.wrong),
            };
            let done = if dry_run { "would be" } else { "were" };
            let _ = writeln!(text, "host ports: {what} {done} put right, {} published", found.ports);
        }
        Err(error) => errors.push(error.into()),
    }
    (text, errors)
}

/// Gives a network's published ports the options that its configuration has now.
fn reconfigure(host: &Host, network: &Network, dry_run: bool) -> Result<Reconfigured, Error> {
    let Some(definition) = &network.definition else { return Ok(Reconfigured::default()) };
    let Some(plugin) = definition.plugins.iter().find(|plugin| plugin.kind == PORTMAP) else {
        return Ok(Reconfigured::default());
    };
    let options = definition
        .call(plugin, host)
        .and_then(|call| Options::from_call(&call).map_err(|error| osvc_cni::Error::from(portmap::Error::from(error))));
    let misconfigured =
        |source| Error::Config { place: plugin.place.clone(), network: network.name.clone(), source: Box::new(source) };
    let options = options.map_err(misconfigured)?;
    Ok(portmap::reconfigure(host, &network.name, &options, dry_run).map_err(osvc_cni::Error::from)?)
}

/// True if another plugin sets the network up, and ours publishes its ports.
fn publishes(network: &Network) -> bool {
    network.definition.iter().flat_map(|definition| &definition.plugins).any(|plugin| plugin.kind == PORTMAP)
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
