//! Looking shortly whether a routed network is as it was set up, for an ADD.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;

use super::apply::our_routes;
use crate::Host;
use crate::netlink::route::NextHop;
use crate::netlink::{Link, NetnsId, RouteEntry, RouteSocket, TunnelDevice, TunnelKind};
use crate::routed::devices::Kind;
use crate::routed::path::Paths;
use crate::routed::reconcile::{Kernel, is_strict};
use crate::routed::record::{Awaited, TunnelRecord, now};
use crate::routed::wanted::basis;
use crate::routed::{Error, Plan, RoutedConfig, RoutedRecord};

/// True if the network was set up from this configuration and plan, and is still there, as far as a few netlink
/// requests tell: devices, their parameters and peers, routes. Nobody is waited for.
///
/// # Errors
/// The record cannot be read, or the kernel does not answer.
pub fn in_place(
    host: &Host,
    netns: &NetnsId,
    socket: &mut RouteSocket,
    config: &RoutedConfig,
    plan: &Plan,
) -> Result<bool, Error> {
    let Some(record) = RoutedRecord::load(host, &config.name)? else { return Ok(false) };
    let now = now();
    let is_it = record.is_of(host, netns)
        && record.is_done(now)
        && record.basis == basis(config, plan)
        && !record.tunnels.iter().any(|tunnel| tunnel.is_over(now));
    Ok(is_it
        && are_there(socket, &record)?
        && know_their_peers(host, socket, &record)
        && has_routes(socket, &record)?
        && !has_come(socket, &record)?)
}

/// The tunnels by which the network sends and receives as it is configured.
fn in_use(record: &RoutedRecord) -> impl Iterator<Item = &TunnelRecord> {
    record.tunnels.iter().filter(|tunnel| tunnel.kept.is_none())
}

fn are_there(socket: &mut RouteSocket, record: &RoutedRecord) -> Result<bool, Error> {
    let tunnels: Vec<&TunnelRecord> = in_use(record).collect();
    let kinds: BTreeSet<&str> = tunnels.iter().map(|tunnel| tunnel.kind.name()).collect();
    let mut there: Vec<TunnelDevice> = Vec::new();
    for kind in kinds.into_iter().filter_map(TunnelKind::of) {
        there.extend(socket.tunnels_of(kind)?);
    }
    let there: HashMap<&str, &TunnelDevice> = there.iter().map(|found| (found.link.name.as_str(), found)).collect();
    if !tunnels.iter().all(|tunnel| there.get(tunnel.name.as_str()).is_some_and(|found| is(tunnel, found))) {
        return Ok(false);
    }
    let mut addresses =
        tunnels.iter().filter_map(|tunnel| Some((tunnel.index, IpAddr::V4(tunnel.address?)))).peekable();
    if addresses.peek().is_none() {
        return Ok(true);
    }
    let have = socket.all_addresses(Some(false))?;
    let have: BTreeSet<(u32, IpAddr)> = have.iter().map(|found| (found.index, found.address.addr())).collect();
    Ok(addresses.all(|wanted| have.contains(&wanted)))
}

/// True if nothing was taken from what the devices with several peers were told. What cannot be asked is not there.
fn know_their_peers(host: &Host, socket: &mut RouteSocket, record: &RoutedRecord) -> bool {
    let mut kernel = Kernel::look(socket);
    for tunnel in in_use(record).filter(|tunnel| !tunnel.refused) {
        let link = Link { index: tunnel.index, name: tunnel.name.clone(), ..Link::default() };
        let looked = match tunnel.kind {
            Kind::Vxlan { .. } => kernel.vxlan(&link, &tunnel.peers).is_ok(),
            Kind::Wireguard { port } => {
                kernel.wireguard(&link, host, &record.name, port, &tunnel.peers, &tunnel.peers).is_ok()
            }
            _ => true,
        };
        if !looked || !kernel.changes.is_empty() {
            return false;
        }
    }
    true
}

fn is(wanted: &TunnelRecord, found: &TunnelDevice) -> bool {
    let same = (found.link.index, found.is_ours(), found.link.up) == (wanted.index, wanted.owned, true);
    let as_made = || {
        let mac = wanted.kind.mac().map(|mac| mac.0);
        found.tunnel == wanted.kind.tunnel() && found.link.mtu == wanted.mtu && (mac.is_none() || found.link.mac == mac)
    };
    same && (!wanted.owned || (as_made() && !(wanted.address.is_some() && is_strict(found))))
}

fn has_routes(socket: &mut RouteSocket, record: &RoutedRecord) -> Result<bool, Error> {
    let ours = our_routes(socket)?;
    let mut by_place: HashMap<(IpNet, u32), Vec<&RouteEntry>> = HashMap::with_capacity(ours.len());
    for found in &ours {
        by_place.entry((found.dst, found.table)).or_default().push(found);
    }
    let has = |place, is: &dyn Fn(&RouteEntry) -> bool| {
        by_place.get(&place).is_some_and(|found| found.iter().any(|found| is(found)))
    };
    Ok(record.routes.iter().all(|route| has((route.dst, route.table), &|found| route.is(found))))
}

/// True if something has come that makes the way to a peer another one.
fn has_come(socket: &mut RouteSocket, record: &RoutedRecord) -> Result<bool, Error> {
    for awaited in &record.awaited {
        let has_come = match *awaited {
            Awaited::Route(address) => socket.route_taken_to(address)?.is_some(),
            Awaited::Leave(address, device) => {
                let here = [NextHop { gateway: None, device: Some(device) }];
                socket.route_taken_to(address)?.is_none_or(|route| route.next_hops != here)
            }
            Awaited::Own(address) => socket.route_taken_to(address)?.is_some_and(|route| route.is_local()),
            Awaited::Link(address) => match socket.route_taken_to(address)? {
                // Most are behind a router, and the device need not be asked for.
                Some(route) if route.is_default() || route.next_hops.iter().any(|hop| hop.gateway.is_some()) => false,
                _ => Paths::path_to(socket, address)?.is_some_and(|path| path.is_direct()),
            },
        };
        if has_come {
            return Ok(true);
        }
    }
    Ok(false)
}
