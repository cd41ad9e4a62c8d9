//! `osvc-net setup`: makes networks what their configurations ask for, before a container does.

use std::collections::BTreeSet;
use std::fmt::Write;

use osvc_cni::network::NetworkRecord;
use osvc_cni::network::setup::Wanted;
use osvc_cni::plugin::bridge;
use osvc_cni::plugin::routed::How;
use osvc_cni::portmap::config::Options;
use osvc_cni::portmap::{self, Reconfigured};
use osvc_cni::{Host, NetworkName, firewall, spoof};

use crate::conf::{BRIDGE, PORTMAP};
use crate::error::Error;
use crate::networks::{Network, Networks};
use crate::nodes::ROUTED;
use crate::waiting::Waiting;
use crate::{interrupt, output, routed_setup, teardown};

pub mod detached;
mod establish;

/// Sets up the named networks, or all that osvc-bridge serves, and prints what it found.
/// With `quiet` what is in place is not told.
pub fn run(host: &Host, networks: Networks, names: &[String], how: How, quiet: bool) -> Result<(), Vec<Error>> {
    let dry_run = how.dry_run;
    let (chosen, mut errors) = networks.choose(names);
    let mut text = String::new();
    let (mut rules_wanted, mut warnings) = (Vec::new(), Vec::new());
    let waiting = Waiting::new("setup");
    for network in &chosen {
        waiting.at(network.name.as_str());
        if let Err(stopped) = interrupt::check() {
            errors.push(stopped);
            break;
        }
        match one(host, network, how, quiet) {
            Ok(Some(Found { line, changed, rules, faults, warnings: more })) => {
                warnings.extend(more.into_iter().map(|warning| (&network.name, warning)));
                if changed || !quiet {
                    text += &line;
                }
                errors.extend(faults);
                rules_wanted.extend((!rules).then_some(&network.name));
            }
            Ok(None) => {
                match teardown::report(host, network) {
                    Ok(told) => text += &told.filter(|_| !quiet).unwrap_or_default(),
                    // What is known of it is not known to be all.
                    Err(error) => {
                        errors.push(error);
                        continue;
                    }
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
    waiting.at("firewall rules and host ports");
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
    let (lines, found) = ports(host, &chosen, dry_run, quiet);
    text += &lines;
    errors.extend(found);
    match source_checks(host, dry_run, quiet) {
        Ok(told) => text += &told,
        Err(error) => errors.push(error),
    }
    for network in &chosen {
        match detached::look(host, network) {
            Ok(found) => {
                errors.extend(found.detached.into_iter().map(|(address, record)| Error::Detached {
                    network: network.name.clone(),
                    address,
                    holder: record.holder(),
                }));
                errors.extend(found.faults);
            }
            Err(error) => errors.push(error),
        }
    }
    drop(waiting);
    once(&mut errors);
    for (network, warning) in warnings {
        output::complain(&format_args!("network {network}: {warning}"));
    }
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// What several steps came upon is told once.
fn once(errors: &mut Vec<Error>) {
    let mut told = BTreeSet::new();
    errors.retain(|error| told.insert(error.to_string()));
}

/// Host ports of all networks, which are one ruleset too, with what the configurations of these say of them now.
fn ports(host: &Host, networks: &[Network], dry_run: bool, quiet: bool) -> (String, Vec<Error>) {
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
        Ok(found) if found.is_whole() && (quiet || found.ports == 0) => {}
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
fn source_checks(host: &Host, dry_run: bool, quiet: bool) -> Result<String, Error> {
    let found = spoof::mend(host, dry_run).map_err(osvc_cni::Error::from)?;
    let containers = found.attachments;
    let what = match found.rules {
        true => "the table".to_owned(),
        false => format!("{} elements", found.wrong),
    };
    let done = if dry_run { "would be" } else { "were" };
    Ok(match (containers, found.is_whole()) {
        (_, true) if quiet || containers == 0 => String::new(),
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
    /// Something was not as it should be.
    pub changed: bool,
    /// Its firewall rules are there.
    pub rules: bool,
    /// What of it does not work although the rest does.
    pub faults: Vec<Error>,
    /// What should be known although it works.
    pub warnings: Vec<String>,
}

impl Found {
    /// Something was done, and is told, although the rest of it went wrong.
    pub fn halfway(host: &Host, name: &NetworkName, line: String, fault: Error) -> Self {
        // Rules are made for what is set up of it by now, and there may be nothing.
        let record = NetworkRecord::load(host, name).ok().flatten().filter(|record| record.boot == host.boot);
        let rules = record.is_none_or(|record| firewall::in_place(host, &record).unwrap_or(true));
        Self { line, changed: true, rules, faults: vec![fault], warnings: Vec::new() }
    }
}

/// Sets one network up; `None` if no plugin of ours does that.
fn one(host: &Host, network: &Network, how: How, quiet: bool) -> Result<Option<Found>, Error> {
    if let Some((definition, plugin)) = network.plugin(ROUTED) {
        return routed_setup::run(host, network, definition, plugin, how, quiet).map(Some);
    }
    let Some(definition) = &network.definition else { return Ok(None) };
    let Some(plugin) = definition.plugins.iter().find(|plugin| plugin.kind == BRIDGE) else { return Ok(None) };
    let misconfigured =
        |source| Error::Config { place: plugin.place.clone(), network: network.name.clone(), source: Box::new(source) };
    let call = definition.call(plugin, host).map_err(misconfigured)?;
    let Some(wanted) = bridge::wanted(&call).map_err(misconfigured)? else {
        let ipam = plugin.ipam().unwrap_or_default();
        let line = format!("{}: left to its first container, since {ipam} knows its addresses\n", network.name);
        return Ok(Some(Found { line, changed: false, rules: true, faults: Vec::new(), warnings: Vec::new() }));
    };
    let failed = |source| Error::Network { network: network.name.clone(), source: Box::new(source) };
    let mut told = String::new();
    if let Some(record) = teardown::former(host, &wanted)? {
        establish::refuse_move(host, &wanted, &record).map_err(failed)?;
        told = teardown::leave_bridge(host, &wanted, &record, how.dry_run)?;
        if how.dry_run {
            let line = told + &line(&wanted, "would be set up", None);
            return Ok(Some(Found { line, changed: true, rules: false, faults: Vec::new(), warnings: Vec::new() }));
        }
    }
    match establish::establish(host, &wanted, how.dry_run, &mut told) {
        Ok(found) => Ok(Some(found)),
        Err(error) if told.is_empty() => Err(failed(error)),
        Err(error) => Ok(Some(Found::halfway(host, &network.name, told, failed(error)))),
    }
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
