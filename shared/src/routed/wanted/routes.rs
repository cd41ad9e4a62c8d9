//! The routes of a network.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::Wanted;
use crate::netlink::{HostRoute, Link, RouteTarget};
use crate::routed::config::{MAIN, is_v6};
use crate::routed::mode::Family;
use crate::routed::mtu;
use crate::routed::parameters::hop;
use crate::routed::peers::Way;

/// Metric of the route that ends what no peer has: whatever else leads there is better.
const LAST: u32 = 0xff00_0000;

/// A route, and the peer that it leads to.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::routed) struct WantedRoute {
    pub peer: Option<String>,
    pub route: HostRoute,
}

/// What of this node's devices the routes need.
pub(in crate::routed) struct Devices<'a> {
    /// The tunnels, by the names that the ways have.
    pub tunnels: &'a BTreeMap<String, Link>,
    /// The underlay's devices.
    pub underlay: &'a BTreeMap<u32, Link>,
    /// The network's bridge, if it is there.
    pub bridge: Option<&'a Link>,
    /// This node's addresses in the network.
    pub gateways: &'a [IpAddr],
}

impl Wanted<'_> {
    /// All routes, as far as their devices are there, in the order in which they are to be made: before there is a way
    /// to a peer, nothing for it leaves by the default route.
    pub fn routes(&self, devices: &Devices<'_>) -> Vec<WantedRoute> {
        let mut routes = Vec::new();
        for &table in &self.config.tables {
            for network in &self.networks {
                let route =
                    HostRoute { dst: *network, target: RouteTarget::Unreachable, table, metric: LAST, mtu: None };
                routes.push(WantedRoute { peer: None, route });
            }
            // In the main table the kernel has it by the bridge's address.
            for segment in self.here.iter().filter(|_| table != MAIN) {
                routes.extend(devices.own(*segment, table).map(|route| WantedRoute { peer: None, route }));
            }
            for (node, peer) in self.nodes.iter().zip(&self.peers.peers) {
                for (family, way) in peer.ways.iter() {
                    let segments = node.segments.iter().filter(|segment| Family::of(segment.addr()) == family);
                    let Ok(way) = way else { continue };
                    let made = segments.filter_map(|segment| devices.route(way, *segment, table));
                    routes.extend(made.map(|route| WantedRoute { peer: Some(node.name.clone()), route }));
                }
            }
        }
        routes
    }
}

impl Devices<'_> {
    /// This node's address in the network, of a family.
    fn gateway(&self, v6: bool) -> Option<IpAddr> {
        self.gateways.iter().find(|gateway| gateway.is_ipv6() == v6).copied()
    }

    /// The route to this node's own segment.
    fn own(&self, segment: IpNet, table: u32) -> Option<HostRoute> {
        let bridge = self.bridge?;
        let (index, name) = (bridge.index, bridge.name.clone());
        let source = self.gateway(is_v6(&segment));
        let target = RouteTarget::Device { index, name, gateway: None, onlink: false, source };
        Some(HostRoute { dst: segment, target, table, metric: 0, mtu: None })
    }

    fn route(&self, way: &Way, segment: IpNet, table: u32) -> Option<HostRoute> {
        let (link, gateway, onlink) = match way {
            Way::Direct { via, device, .. } => (self.underlay.get(device)?, Some(*via), false),
            Way::Tunnel { device, onlink, .. } => (self.tunnels.get(device)?, onlink.then(|| hop(&segment)), *onlink),
        };
        let (index, name) = (link.index, link.name.clone());
        let target = RouteTarget::Device { index, name, gateway, onlink, source: self.gateway(is_v6(&segment)) };
        Some(HostRoute { dst: segment, target, table, metric: 0, mtu: mtu::of_route(way, link.mtu, &segment) })
    }
}
