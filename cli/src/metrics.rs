//! `osvc-net metrics`: figures of all networks in the text format of Prometheus.
//!
//! Nothing is locked or changed: whoever asks every few seconds keeps nobody waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;

use osvc_cni::ipam::claims::Claims;
use osvc_cni::ipam::liveness::{Census, Liveness, Witness};
use osvc_cni::ipam::record::{Record, State};
use osvc_cni::ipam::{folders, history, snapshot};
use osvc_cni::routed::RoutedRecord;
use osvc_cni::{Host, portmap};

use crate::args::Metrics;
use crate::error::Error;
use crate::networks::{Network, Networks};
use crate::shape::Shape;
use crate::{document, output};
use text::Text;

mod handshakes;
mod text;

/// Prints the figures, or writes them to a file. A network of which they cannot be told is told to be so.
pub fn run(host: &Host, networks: Networks, arguments: &Metrics) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(&[]);
    let mut text = Text::default();
    text.add("osvc_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    text.add("osvc_configuration_errors", &[], errors.len() as u128);
    let ports = portmap::list(host).map_err(|error| errors.push(osvc_cni::Error::from(error).into())).ok();
    let mut census = Census::new(host);
    for network in &chosen {
        // Figures of half a network would be taken for those of a whole one.
        let mut part = Text::default();
        let found = of_network(host, network, &mut census, &mut part);
        let is_whole = found.as_ref().is_ok_and(Vec::is_empty);
        text.add("osvc_network_error", &[("network", network.name.as_str())], u128::from(!is_whole));
        match found {
            Ok(faults) => {
                text.append(part);
                let failed = |fault: osvc_cni::ipam::Error| Error::Network {
                    network: network.name.clone(),
                    source: Box::new(fault.into()),
                };
                errors.extend(faults.into_iter().map(failed));
            }
            Err(error) => errors.push(error),
        }
        if let Some((list, records)) = &ports {
            of_ports(network, list, records, &mut text);
        }
    }
    let text = text.print();
    let done = match arguments.textfile.as_ref().filter(|_| !arguments.dry_run) {
        Some(path) => document::write(path, &text).and_then(|()| {
            // The collector is not root.
            let readable = std::fs::set_permissions(path, Permissions::from_mode(0o644));
            readable.map_err(|source| Error::Write { path: path.clone(), source })
        }),
        None => output::print(&text),
    };
    errors.extend(done.err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The figures of a network's addresses, claims and peers. Returns what of its records cannot be read.
fn of_network(
    host: &Host,
    network: &Network,
    census: &mut Census,
    text: &mut Text,
) -> Result<Vec<osvc_cni::ipam::Error>, Error> {
    let failed = |source: osvc_cni::Error| Error::Network { network: network.name.clone(), source: Box::new(source) };
    let shape = network.shape(host)?;
    let configured = network.address_folders(host).map(|folders| folders.ours);
    let snapshot = snapshot::take(host, &network.name, configured.as_deref()).map_err(|error| failed(error.into()))?;
    let mut judged = |record: &Record| record.is_held() && census.judge(record) == Liveness::Dead;
    let addresses = shape.as_ref().and_then(|shape| shape.addresses.as_ref());
    let others = addresses.map(|config| config.others(host, &snapshot)).transpose();
    let others = others.map_err(|error| failed(error.into()))?.unwrap_or_default();
    let records: Vec<(IpAddr, Record, bool)> = snapshot
        .records
        .into_iter()
        .map(|(address, record)| {
            let dead = judged(&record);
            (address, record, dead)
        })
        .collect();
    let name = network.name.as_str();
    for (family, is_v4) in [("ipv4", true), ("ipv6", false)] {
        of_family(name, family, is_v4, shape.as_ref(), (&records, &others), text);
    }
    let mut totals = history::Totals::default();
    for folder in folders::known(host, &network.name, configured.as_deref()).map_err(|error| failed(error.into()))? {
        let more = history::totals(&folder).map_err(|error| failed(error.into()))?;
        totals.allocations += more.allocations;
        totals.conflicts += more.conflicts;
    }
    text.add("osvc_network_allocations_total", &[("network", name)], totals.allocations.into());
    text.add("osvc_network_conflicts_total", &[("network", name)], totals.conflicts.into());
    of_claims(host, network, &records, text).map_err(failed)?;
    if let Some(record) = RoutedRecord::load(host, &network.name).map_err(|error| failed(error.into()))? {
        of_peers(name, &record, text);
    }
    Ok(snapshot.faults)
}

/// How many addresses of a family there are, and what they are.
fn of_family(
    network: &str,
    family: &str,
    is_v4: bool,
    shape: Option<&Shape>,
    (records, others): (&[(IpAddr, Record, bool)], &[IpAddr]),
    text: &mut Text,
) {
    let sets = shape.and_then(|shape| shape.addresses.as_ref()).map(|addresses| addresses.sets.as_slice());
    let sets: Vec<_> = sets.unwrap_or_default().iter().filter(|set| set.is_ipv4() == is_v4).collect();
    let records: Vec<_> = records.iter().filter(|(address, ..)| address.is_ipv4() == is_v4).collect();
    if sets.is_empty() && records.is_empty() {
        return;
    }
    // As `osvc-net ls`: what is outside of the ranges, or excluded from them, takes no room in them.
    let inside = |address: &IpAddr| {
        sets.is_empty() || sets.iter().any(|set| set.0.iter().any(|range| range.allocatable(*address)))
    };
    let count = |wanted: &dyn Fn(&Record, bool) -> bool| {
        let of = |(address, record, dead): &&&(IpAddr, Record, bool)| inside(address) && wanted(record, *dead);
        records.iter().filter(of).count() as u128
    };
    let mut add = |kind: &str, value: u128| {
        text.add("osvc_network_addresses", &[("network", network), ("family", family), ("type", kind)], value);
    };
    let others: BTreeSet<&IpAddr> = others.iter().filter(|at| at.is_ipv4() == is_v4 && inside(at)).collect();
    let used = count(&|record, _| record.state != State::Released) + others.len() as u128;
    add("used", used);
    add("reserved", count(&|record, _| record.state == State::Reserved));
    add("released", count(&|record, _| record.state == State::Released));
    add("dead", count(&|_, dead| dead));
    add("others", others.len() as u128);
    let outside = records.iter().filter(|(address, record, _)| record.state != State::Released && !inside(address));
    add("outside", outside.count() as u128);
    if !sets.is_empty() {
        let size = sets.iter().fold(0_u128, |sum, set| sum.saturating_add(set.size()));
        add("size", size);
        add("free", size.saturating_sub(used));
    }
}

/// What namespaces may hold, and hold: as `osvc-net claim ls`.
fn of_claims(
    host: &Host,
    network: &Network,
    records: &[(IpAddr, Record, bool)],
    text: &mut Text,
) -> Result<(), osvc_cni::Error> {
    let Some(call) = network.address_call(host).transpose()? else { return Ok(()) };
    let claims = Claims::of_call(&call)?;
    if claims == Claims::default() {
        return Ok(());
    }
    let mut held: BTreeMap<&str, u128> = claims.names().map(|name| (name, 0)).collect();
    for (_, record, _) in records.iter().filter(|(_, record, dead)| record.is_held() && !dead) {
        *held.entry(record.key.namespace()).or_default() += 1;
    }
    for (namespace, held) in held {
        let labels = [("network", network.name.as_str()), ("namespace", namespace)];
        text.add("osvc_claim_held", &labels, held);
        if let Some(limit) = claims.limit(namespace) {
            text.add("osvc_claim_limit", &labels, limit.into());
        }
    }
    Ok(())
}

fn of_peers(network: &str, record: &RoutedRecord, text: &mut Text) {
    text.add("osvc_network_peers", &[("network", network)], record.peers.len() as u128);
    let faulty = record.peers.iter().filter(|peer| !peer.faults.is_empty()).count();
    text.add("osvc_network_peers_faulty", &[("network", network)], faulty as u128);
    for (peer, seconds) in handshakes::of(record) {
        let labels = [("network", network), ("peer", peer.as_str())];
        text.add("osvc_peer_last_handshake_seconds", &labels, seconds.into());
    }
}

fn of_ports(network: &Network, list: &[portmap::Port], records: &[std::rc::Rc<portmap::Record>], text: &mut Text) {
    let of_network = |port: &&portmap::Port| records.get(port.record).is_some_and(|r| r.network == network.name);
    let mut counts: BTreeMap<&str, u128> =
        [portmap::State::Published, portmap::State::Standby, portmap::State::Dead].map(|s| (s.name(), 0)).into();
    for port in list.iter().filter(of_network) {
        *counts.entry(port.state.name()).or_default() += 1;
    }
    for (state, count) in counts {
        text.add("osvc_network_host_ports", &[("network", network.name.as_str()), ("state", state)], count);
    }
}
