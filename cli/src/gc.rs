//! `osvc-net gc`: gives back the addresses and host ports of what is provably dead, leftover host ends, and what a node
//! keeps of networks that it has left.

use std::collections::BTreeSet;

use osvc_cni::netlink::RouteSocket;
use osvc_cni::network::{alias, names, port};
use osvc_cni::plugin::routed::departed;
use osvc_cni::{Host, NetworkName, firewall, ipam, portmap, spoof};

use crate::conf::BRIDGE;
use crate::error::Error;
use crate::networks::{Network, Networks};
use crate::nodes::ROUTED;
use crate::progress::Progress;
use crate::{interrupt, output, teardown};

/// What looks for one kind of leftovers, and tells what it found.
type Sweep<'a> = dyn Fn(&Host, &Network, bool) -> Result<Vec<String>, Error> + 'a;

/// Sweeps the named networks, or all, and prints what was given back; unless it is to be `quiet`, also where that was
/// nothing.
pub fn run(host: &Host, networks: Networks, names: &[String], dry_run: bool, quiet: bool) -> Result<(), Vec<Error>> {
    let (mut chosen, mut errors) = networks.choose(names);
    if names.is_empty() {
        match strays(&chosen) {
            Ok(strays) => chosen.extend(strays),
            Err(error) => errors.push(error),
        }
    }
    let mut progress = Progress::new("networks swept", Some(chosen.len() as u64));
    for network in &chosen {
        if let Err(stopped) = interrupt::check() {
            errors.push(stopped);
            break;
        }
        let mut told = Vec::new();
        let before = errors.len();
        // As DEL does: first the link, and the address last. So it is not waited for links that are on their way out.
        let addresses = |host: &Host, network: &Network, dry_run| addresses(host, network, dry_run, &progress);
        let sweeps: [&Sweep<'_>; 5] = [&host_ends, &source_checks, &host_ports, &addresses, &outlived];
        for sweep in sweeps {
            match sweep(host, network, dry_run) {
                Ok(lines) => told.extend(lines),
                Err(error) => errors.push(error),
            }
        }
        if told.is_empty() && errors.len() == before && !quiet {
            told.push("nothing to give back".to_owned());
        }
        // At once: whoever interrupts is told what is done.
        let text: String = told.iter().map(|line| format!("{}: {line}\n", network.name)).collect();
        errors.extend(progress.hidden(|| output::print(&text)).err());
        progress.step();
    }
    drop(progress);
    if chosen.is_empty() && errors.is_empty() && !quiet {
        errors.extend(output::print("there is no network: nothing to give back\n").err());
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Networks of which nothing is left but host ends.
fn strays(known: &[Network]) -> Result<Vec<Network>, Error> {
    let links = RouteSocket::open().and_then(|mut socket| socket.links()).map_err(osvc_cni::Error::from)?;
    let names: BTreeSet<NetworkName> = links
        .iter()
        .filter(|link| names::is_ours(link) && link.is_a("veth"))
        .filter_map(|link| link.alias.as_deref().and_then(alias::network)?.parse().ok())
        .collect();
    let is_known = |name: &NetworkName| known.iter().any(|network| network.name == *name);
    Ok(names.into_iter().filter(|name| !is_known(name)).map(|name| Network { name, definition: None }).collect())
}

fn failed(network: &Network) -> impl Fn(osvc_cni::Error) -> Error + '_ {
    |source| Error::Network { network: network.name.clone(), source: Box::new(source) }
}

/// "… given back", or what a dry run says.
fn given_back(dry_run: bool) -> &'static str {
    if dry_run { "would be given back" } else { "given back" }
}

fn addresses(host: &Host, network: &Network, dry_run: bool, progress: &Progress) -> Result<Vec<String>, Error> {
    let told = |more| progress.records(more);
    let folder = network.address_folders(host).map(|folders| folders.ours);
    let freed = if dry_run {
        ipam::garbage(host, &network.name, folder.as_deref(), &told).map(|snapshot| {
            snapshot.faults.iter().for_each(|fault| output::complain(fault));
            snapshot.records
        })
    } else {
        ipam::gc_watched(host, &network.name, folder.as_deref(), None, &told)
    };
    let freed = freed.map_err(|error| failed(network)(error.into()))?;
    let line = |(address, record): &(std::net::IpAddr, ipam::record::Record)| {
        format!(
            "{address} of {} (container {} {}, since {}) {}",
            record.key.text.escape_debug(),
            record.container,
            record.ifname,
            record.since,
            given_back(dry_run)
        )
    };
    Ok(freed.iter().map(line).collect())
}

fn host_ports(host: &Host, network: &Network, dry_run: bool) -> Result<Vec<String>, Error> {
    let swept = portmap::sweep(host, Some(&network.name), None, dry_run);
    let swept = swept.map_err(|error| failed(network)(error.into()))?;
    let line = |record: &std::rc::Rc<portmap::Record>| {
        let ports: Vec<_> = record.mappings.iter().map(ToString::to_string).collect();
        format!(
            "host ports {} of {} (container {} {}, since {}) {}",
            ports.join(", "),
            record.key.text.escape_debug(),
            record.container,
            record.ifname,
            record.since,
            given_back(dry_run)
        )
    };
    Ok(swept.iter().map(line).collect())
}

fn source_checks(host: &Host, network: &Network, dry_run: bool) -> Result<Vec<String>, Error> {
    let swept = spoof::sweep(host, &network.name, None, dry_run).map_err(|error| failed(network)(error.into()))?;
    let done = if dry_run { "would be ended" } else { "ended" };
    let line = |record: &spoof::Record| {
        let (container, ifname, since) = (&record.container, &record.ifname, &record.since);
        format!("source checks of container {container} {ifname} (since {since}) {done}")
    };
    Ok(swept.iter().map(line).collect())
}

/// A host end outlives its container when the runtime died between the two.
fn host_ends(_: &Host, network: &Network, dry_run: bool) -> Result<Vec<String>, Error> {
    let swept = RouteSocket::open().map_err(osvc_cni::Error::from).and_then(|mut socket| {
        Ok(match dry_run {
            true => port::leftovers(&mut socket, &network.name)?,
            false => port::sweep(&mut socket, &network.name, None)?,
        })
    });
    let done = if dry_run { "would be removed" } else { "removed" };
    let line = |name: &String| format!("host end {name} without a container {done}");
    let mut swept = swept.map_err(failed(network))?;
    swept.sort();
    Ok(swept.iter().map(line).collect())
}

/// What is set up of a network that this node has left, or that is no routed one any more.
fn outlived(host: &Host, network: &Network, dry_run: bool) -> Result<Vec<String>, Error> {
    let lines = |told: String| told.lines().map(|line| unprefixed(line, network)).collect();
    if let Some((definition, plugin)) = network.plugin(ROUTED) {
        // What else is wrong with a configuration is none of a sweep's business.
        let why = definition.call(plugin, host).ok().and_then(|call| departed(&call).ok().flatten());
        return match why {
            Some(why) => Ok(lines(teardown::departed(host, network, &why, dry_run)?.unwrap_or_default())),
            None => Ok(Vec::new()),
        };
    }
    if network.plugin(BRIDGE).is_none() {
        return Ok(Vec::new());
    }
    let told = teardown::leave(host, &network.name, dry_run).map_err(failed(network))?;
    if !told.is_empty() && !dry_run {
        firewall::apply(host).map_err(|error| failed(network)(error.into()))?;
    }
    Ok(lines(told))
}

/// A line of a teardown names its network already.
fn unprefixed(line: &str, network: &Network) -> String {
    line.strip_prefix(&format!("{}: ", network.name)).unwrap_or(line).to_owned()
}
