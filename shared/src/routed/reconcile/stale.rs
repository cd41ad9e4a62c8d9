//! What was made for a network and is not wanted any more. Nothing is removed that is not ours, or that another network
//! needs.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{Kernel, Verb};
use crate::netlink::{Error, HostRoute, RouteEntry, TunnelDevice, TunnelKind};
use crate::routed::RoutedRecord;
use crate::routed::config::Mode;
use crate::routed::record::TunnelRecord;
use crate::routed::wanted::Wanted;

/// What is left of the devices of older modes: those that go on receiving from peers that have not been changed yet.
pub(in crate::routed) fn kept(
    old: &RoutedRecord,
    wanted: &Wanted<'_>,
    mode: Mode,
    there: &[TunnelDevice],
    now: u64,
) -> Vec<TunnelRecord> {
    let is_wanted = |name: &str| wanted.peers.tunnels.iter().any(|tunnel| tunnel.name == name);
    let ports: Vec<u16> = wanted.peers.tunnels.iter().filter_map(|tunnel| tunnel.kind.port()).collect();
    let mut kept = Vec::new();
    for tunnel in &old.tunnels {
        let record = TunnelRecord { kept: Some(tunnel.kept.unwrap_or(now)), sends: false, ..tunnel.clone() };
        let apart = tunnel.kind.port().is_none_or(|port| !ports.contains(&port));
        let is_there = there.iter().any(|found| (&found.link.name, found.link.index) == (&tunnel.name, tunnel.index));
        let of_old_mode = tunnel.owned && tunnel.kind.mode() != mode && !record.is_over(now);
        if !of_old_mode || !is_there || !apart || is_wanted(&tunnel.name) {
            continue;
        }
        // A peer that has gone, or is elsewhere, sends nothing.
        let is_peer = |name: &str, remote| {
            let family = crate::routed::mode::Family::of(remote);
            wanted.nodes.iter().any(|node| node.name == name && node.addresses.get(family) == Some(remote))
        };
        let peers: Vec<_> = record.peers.iter().filter(|peer| is_peer(&peer.name, peer.remote)).cloned().collect();
        if !peers.is_empty() {
            kept.push(TunnelRecord { peers, ..record });
        }
    }
    kept
}

impl Kernel<'_> {
    /// Removes the routes of ours inside these networks that are not among the wanted ones, nor of another network. What
    /// the kernel refuses is told: packets go on leaving by it.
    pub fn stale_routes(
        &mut self,
        networks: &[IpNet],
        wanted: &[HostRoute],
        ours: &[RouteEntry],
        others: &[RoutedRecord],
    ) -> Vec<Error> {
        let inside = |found: &RouteEntry| networks.iter().any(|network| network.contains(&found.dst));
        let is_wanted = |found: &RouteEntry| wanted.iter().any(|route| route.is_in_place_of(found));
        let of_others =
            |found: &RouteEntry| others.iter().flat_map(|other| &other.routes).any(|route| route.is_in_place_of(found));
        let stale = ours.iter().filter(|found| inside(found) && !is_wanted(found) && !of_others(found));
        let each = stale.filter_map(|found| {
            let what = format_args!("route {} in table {}", found.dst, found.table);
            self.step(Verb::Remove, what, |socket| socket.remove_route(found)).err()
        });
        each.collect()
    }

    /// Removes tunnels of a record that are not among those still needed, nor of another network.
    pub fn stale_tunnels<'a>(
        &mut self,
        old: &[TunnelRecord],
        needed: impl Fn(&str) -> bool,
        others: &'a [RoutedRecord],
    ) -> Vec<TunnelRecord> {
        let of_others = |name: &str| {
            others.iter().flat_map(|other| &other.tunnels).any(|tunnel: &'a TunnelRecord| tunnel.name == name)
        };
        let stale = old.iter().filter(|tunnel| tunnel.owned && !needed(&tunnel.name) && !of_others(&tunnel.name));
        let mut left = Vec::new();
        for tunnel in stale {
            if let Err(error) = self.stale_tunnel(tunnel) {
                tracing::warn!("tunnel {} stays: {error}", tunnel.name);
                left.push(tunnel.clone());
            }
        }
        left
    }

    /// Takes this node's address in the network from tunnels that are left to other networks, unless those have it too.
    pub fn stale_addresses(
        &mut self,
        old: &[TunnelRecord],
        now: &[TunnelRecord],
        others: &[RoutedRecord],
    ) -> Result<(), Error> {
        for tunnel in old {
            let Some(address) = tunnel.address else { continue };
            let users = now.iter().chain(others.iter().flat_map(|other| &other.tunnels));
            let mut users = users.filter(|other| other.name == tunnel.name).peekable();
            // With nobody left the device went, and its address with it.
            if users.peek().is_none() || users.any(|other| other.address == tunnel.address) {
                continue;
            }
            let Some(found) = self.socket.tunnel_by_name(&tunnel.name)?.filter(TunnelDevice::is_ours) else { continue };
            let bare = IpNet::from(IpAddr::V4(address));
            if self.socket.addresses(&found.link)?.iter().any(|have| have.address == bare) {
                let what = format_args!("address {address} of {}", tunnel.name);
                self.step(Verb::Remove, what, |socket| socket.remove_address(&found.link, bare))?;
            }
        }
        Ok(())
    }

    fn stale_tunnel(&mut self, tunnel: &TunnelRecord) -> Result<(), Error> {
        let Some(found) = self.socket.tunnel_by_name(&tunnel.name)? else { return Ok(()) };
        let kind: TunnelKind = tunnel.kind.kind();
        if !found.is_ours() || found.tunnel.kind != kind {
            return Ok(());
        }
        let what = format_args!("tunnel {} ({})", tunnel.name, kind.name());
        self.step(Verb::Remove, what, |socket| socket.delete_link(&found.link)).map(drop)
    }
}
