//! What the kernel should have for a routed network.

mod routes;

use std::collections::BTreeMap;

use ipnet::IpNet;
pub(super) use routes::{Devices, WantedRoute};
use sha2::{Digest, Sha256};

use super::config::{Address, Mode, Node as Configured, Policy};
use super::mode::Family;
use super::path::Paths;
use super::peers::{Node, Peers, Rules, Way};
use super::record::{Awaited, PeerRecord, WayRecord};
use super::resolution::Resolution;
use super::ways::ways;
use super::{Plan, RoutedConfig, mtu};
use crate::attachment::hex;
use crate::netlink::Link;

/// What a network's records are made from, as a hash: as long as it is the same, nobody has edited anything.
pub(super) fn basis(config: &RoutedConfig, plan: &Plan) -> String {
    let nodes = config.nodes.iter().filter(|node| !node.retired);
    let nodes: Vec<_> = nodes.map(|node| (&node.name, &node.addresses, &node.public_key)).collect();
    let tunnel = (config.tunnel, config.mode, config.port, &config.tables);
    let all = format!("{:?}", (&config.this_node().name, nodes, tunnel, plan.networks(), &config.bridge.bridge));
    hex(&Sha256::digest(all)[..16])
}

/// What is wanted of a network.
pub(super) struct Wanted<'a> {
    config: &'a RoutedConfig,
    /// The subnets of the whole cluster.
    pub networks: Vec<IpNet>,
    /// The segments of this node.
    pub here: Vec<IpNet>,
    /// The peers as they are seen.
    pub nodes: Vec<Node>,
    /// How they are reached.
    pub peers: Peers,
}

/// The names of all nodes that have to be looked up.
pub(super) fn names(config: &RoutedConfig) -> impl Iterator<Item = &str> {
    let nodes = config.nodes.iter().filter(|node| !node.retired);
    nodes.flat_map(|node| &node.addresses).filter_map(|address| match address {
        Address::Name(name) => Some(name.as_str()),
        Address::Ip(_) => None,
    })
}

fn node(configured: &Configured, plan: &Plan, resolution: &Resolution) -> Node {
    let (addresses, unresolved) = resolution.of(configured);
    let literal = configured.addresses.iter().filter_map(|address| match address {
        Address::Ip(ip) => Some(*ip),
        Address::Name(_) => None,
    });
    let Configured { name, public_key, .. } = configured;
    Node {
        name: name.clone(),
        addresses,
        literal: literal.collect(),
        unresolved,
        segments: plan.of(name).collect(),
        public_key: *public_key,
    }
}

impl<'a> Wanted<'a> {
    /// What is wanted of a network. The kernel is asked for its ways, and nothing is changed.
    pub fn new(config: &'a RoutedConfig, plan: &Plan, resolution: &Resolution, paths: &mut impl Paths) -> Self {
        let networks: Vec<IpNet> = plan.networks().iter().map(|planned| planned.network).collect();
        let here = node(config.this_node(), plan, resolution);
        let nodes: Vec<Node> = config.peers().map(|peer| node(peer, plan, resolution)).collect();
        let peers = ways(&rules(config, &networks), &here, &nodes, paths);
        Self { config, here: here.segments, nodes, peers, networks }
    }

    /// The MTU of the network, in bytes, on a host that has this one.
    pub fn mtu(&self, host: u32) -> u32 {
        let wanted = || mtu::of_network(&rules(self.config, &self.networks), &self.peers, host);
        self.config.bridge.mtu.unwrap_or_else(wanted)
    }

    /// What would make the way to a peer another one.
    pub fn awaited(&self) -> Vec<Awaited> {
        let is_auto = self.config.tunnel == Policy::Auto && self.config.mode != Mode::Wireguard;
        let of_way = |family: Family, way: &Way| match way {
            Way::Direct { via, device, .. } => Some(Awaited::Leave(*via, *device)),
            Way::Tunnel { remote, routed: false, .. } => Some(Awaited::Route(*remote)),
            // IPv6 is never without a tunnel over IPv4.
            Way::Tunnel { remote, .. } if is_auto && (family == Family::V4 || remote.is_ipv6()) => {
                Some(Awaited::Link(*remote))
            }
            _ => None,
        };
        let ways = self.peers.peers.iter().flat_map(|peer| peer.ways.iter());
        let mut awaited: Vec<Awaited> = ways.filter_map(|(family, way)| of_way(family, way.as_ref().ok()?)).collect();
        awaited.extend(self.peers.faults().filter_map(|(_, _, fault)| fault.awaits()));
        awaited.sort_unstable();
        awaited.dedup();
        awaited
    }

    /// Each peer with a way that there is.
    fn ways(&self) -> impl Iterator<Item = (&Node, &Way)> {
        let peers = self.nodes.iter().zip(&self.peers.peers);
        peers.flat_map(|(node, peer)| peer.ways.iter().filter_map(move |(_, way)| Some((node, way.as_ref().ok()?))))
    }

    /// The names of the peers to which packets leave by a tunnel.
    pub fn senders(&self, tunnel: &str) -> Vec<String> {
        let by = |way: &Way| matches!(way, Way::Tunnel { device, .. } if device == tunnel);
        let mut names: Vec<String> =
            self.ways().filter(|(_, way)| by(way)).map(|(node, _)| node.name.clone()).collect();
        names.dedup();
        names
    }

    /// The numbers of the underlay's devices by which peers are reached without a tunnel.
    pub fn underlay(&self) -> impl Iterator<Item = u32> {
        self.ways().filter_map(|(_, way)| match way {
            Way::Direct { device, .. } => Some(*device),
            Way::Tunnel { .. } => None,
        })
    }

    /// The devices by which packets of IPv4 would come from peers that send without a tunnel.
    pub fn plain_devices(&self) -> impl Iterator<Item = &str> {
        let each = self.peers.peers.iter().filter_map(|peer| peer.ways.v4.as_ref()?.as_ref().ok());
        each.filter_map(|way| match way {
            Way::Direct { name, .. } => Some(name.as_str()),
            Way::Tunnel { .. } => None,
        })
    }

    /// The peers as they are recorded; `faults` are those that came up on the way. Segments without a way have that
    /// of `former`.
    pub fn records(
        &self,
        faults: &[(String, String)],
        tunnels: &BTreeMap<String, Link>,
        former: &[&PeerRecord],
    ) -> Vec<PeerRecord> {
        let record = |(node, peer): (&Node, &super::peers::PeerWays)| {
            let ways = peer.ways.iter().flat_map(|(family, way)| {
                let segments = node.segments.iter().filter(move |segment| Family::of(segment.addr()) == family);
                segments.filter_map(move |segment| way_record(way.as_ref().ok()?, *segment, tunnels))
            });
            let former = former.iter().filter(|peer| peer.name == node.name).flat_map(|peer| &peer.ways);
            let mut ways: Vec<WayRecord> = ways.collect();
            let is_known = |ways: &[WayRecord], way: &WayRecord| ways.iter().any(|known| known.segment == way.segment);
            let more: Vec<_> = former.filter(|way| !is_known(&ways, way)).cloned().collect();
            ways.extend(more);
            let faults = faults.iter().filter(|(name, _)| *name == node.name).map(|(_, text)| text.clone()).collect();
            PeerRecord {
                name: node.name.clone(),
                addresses: node.addresses,
                segments: node.segments.clone(),
                ways,
                faults,
            }
        };
        self.nodes.iter().zip(&self.peers.peers).map(record).collect()
    }
}

fn rules<'a>(config: &'a RoutedConfig, networks: &'a [IpNet]) -> Rules<'a> {
    Rules { network: &config.name, networks, policy: config.tunnel, mode: config.mode, port: config.port }
}

/// None for a tunnel that could not be made.
fn way_record(way: &Way, segment: IpNet, tunnels: &BTreeMap<String, Link>) -> Option<WayRecord> {
    let (remote, device, tunnel, mtu) = match way {
        Way::Direct { via, name, mtu, .. } => (*via, name.clone(), false, *mtu),
        Way::Tunnel { device, remote, mtu, .. } => (*remote, tunnels.get(device)?.name.clone(), true, *mtu),
    };
    Some(WayRecord { segment, remote, device, tunnel, mtu })
}
