//! `osvc-net setup`: makes networks what their configurations ask for, before a container does.

use std::fmt::Write;

use osvc_cni::netlink::RouteSocket;
use osvc_cni::netlink::netns::host_id;
use osvc_cni::network::NetworkRecord;
use osvc_cni::network::setup::{Site, Wanted};
use osvc_cni::plugin::bridge;
use osvc_cni::plugin::routed::How;
use osvc_cni::portmap::config::Options;
use osvc_cni::portmap::{self, Mended, Reconfigured};
use osvc_cni::{Host, firewall, spoof};

use crate::conf::{BRIDGE, PORTMAP};
use crate::error::Error;
use crate::networks::{Network, Networks};
use crate::nodes::ROUTED;
use crate::{output, routed_setup, teardown};

/// Sets up the named networks, or all that osvc-bridge serves, and prints what it found.
pub fn run(host: &Host, networks: Networks, names: &[String], how: How) -> Result<(), Vec<Error>> {
    let dry_run = how.dry_run;
    let (chosen, mut errors) = networks.choose(names);
    let mut text = String::new();
    let mut rules_wanted = Vec::new();
    for network in &chosen {
        match one(host, network, how) {
            Ok(Some(Found { line, rules, faults })) => {
                text += &line;
                errors.extend(faults);
                rules_wanted.extend((!rules).then_some(&network.name));
            }
            Ok(None) => {
                match teardown::report(host, network) {
                    Ok(told) => text += &told.unwrap_or_default(),
                    Err(error) => errors.push(error),
                }
                // Somebody else's network is wrong only where it was asked for by name.
                if !names.is_empty() && !publishes(network) {
                    errors.push(match &network.definition {
                        Some(definition) => {
                            Error::NotOurs { file: definition.file.clone(), network: network.name.clone() }
                        }
                        None => Error::Unconfigured(network.name.clone()),
                    });
                }
            }
            Err(error) => errors.push(error),
        }
    }
    // The rules of all networks are one ruleset: swapped once.
    if !rules_wanted.is_empty() {
        let applied = if dry_run { firewall::available() } else { firewall::apply(host) };
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
    match source_checks(host, dry_run) {
        Ok(told) => text += &told,
        Err(error) => errors.push(error),
    }
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

/// Source checks of all networks: they are one table too.
fn source_checks(host: &Host, dry_run: bool) -> Result<String, Error> {
    let found = spoof::mend(host, dry_run).map_err(osvc_cni::Error::from)?;
    let containers = found.attachments;
    let what = match found.rules {
        true => "the table".to_owned(),
        false => format!("{} elements", found.wrong),
    };
    let done = if dry_run { "would be" } else { "were" };
    Ok(match (containers, found.is_whole()) {
        (0, true) => String::new(),
        (_, true) => format!("source checks: in place, {containers} containers\n"),
        (_, false) => format!("source checks: {what} {done} put right, {containers} containers\n"),
    })
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
pub struct Found {
    /// What to tell of it.
    pub line: String,
    /// Its firewall rules are there.
    pub rules: bool,
    /// What of it does not work although the rest does.
    pub faults: Vec<Error>,
}

/// Sets one network up; `None` if no plugin of ours does that.
fn one(host: &Host, network: &Network, how: How) -> Result<Option<Found>, Error> {
    if let Some((definition, plugin)) = network.plugin(ROUTED) {
        return routed_setup::run(host, network, definition, plugin, how).map(Some);
    }
    let Some(definition) = &network.definition else { return Ok(None) };
    let Some(plugin) = definition.plugins.iter().find(|plugin| plugin.kind == BRIDGE) else { return Ok(None) };
    let misconfigured =
        |source| Error::Config { place: plugin.place.clone(), network: network.name.clone(), source: Box::new(source) };
    let call = definition.call(plugin, host).map_err(misconfigured)?;
    let Some(wanted) = bridge::wanted(&call).map_err(misconfigured)? else {
        let ipam = plugin.ipam().unwrap_or_default();
        let line = format!("{}: left to its first container, since {ipam} knows its addresses\n", network.name);
        return Ok(Some(Found { line, rules: true, faults: Vec::new() }));
    };
    let failed = |source| Error::Network { network: network.name.clone(), source: Box::new(source) };
    establish(host, &wanted, how.dry_run).map(Some).map_err(failed)
}

fn establish(host: &Host, wanted: &Wanted, dry_run: bool) -> Result<Found, osvc_cni::Error> {
    let left = teardown::leave(host, &wanted.name, dry_run)?;
    let netns = host_id()?;
    let mut socket = RouteSocket::open()?;
    let mut site = Site { host, netns: &netns, socket: &mut socket };
    let found = site.in_place(wanted)?;
    let mut state = if found.is_some() { "in place" } else { "set up" };
    let mut setup = match found {
        Some(setup) => setup,
        None if dry_run => {
            site.refuse(wanted)?;
            // Its rules may be there all the same.
            let recorded = if site.is_recorded(wanted)? { NetworkRecord::load(host, &wanted.name)? } else { None };
            let rules = match recorded {
                Some(record) => left.is_empty() && firewall::in_place(host, &record)?,
                None => false,
            };
            let line = left + &line(wanted, "would be set up", None);
            return Ok(Found { line, rules, faults: Vec::new() });
        }
        None => site.establish(wanted)?,
    };
    let mut note = None;
    if dry_run {
        let strays = site.strays(wanted, Some(&setup.bridge))?.len();
        if strays > 0 {
            note = Some(format!("{}: {strays} containers would be put back into the bridge\n", wanted.name));
        }
    } else if site.rejoin(wanted, &setup.bridge)? > 0 {
        state = "set up";
    }
    if let Some(mtu) = site.other_mtu(wanted, &setup)? {
        if dry_run {
            *note.get_or_insert_default() += &format!("{}: MTU would become {mtu}\n", wanted.name);
        } else {
            site.change_mtu(&mut setup, mtu)?;
            state = "set up";
        }
    }
    let rules = left.is_empty() && firewall::in_place(host, &setup.record)?;
    let line = left + &line(wanted, state, Some(&setup.record)) + &note.unwrap_or_default();
    Ok(Found { line, rules, faults: Vec::new() })
}

/// `podnet: in place, bridge obr_podnet with 10.22.0.1/16, MTU 1500`
pub fn line(wanted: &Wanted, state: &str, record: Option<&NetworkRecord>) -> String {
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
