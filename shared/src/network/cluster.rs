//! What of a routed network lies beyond this host, as far as firewall rules depend on it.
//!
//! It is recorded with the network's tunnels ([`RoutedRecord`]), and joined to the network's own record where rules are
//! made ([`join`]): so the rules are never others than what was set up asks for, wherever that has stopped.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use super::NetworkRecord;
use crate::Host;
use crate::netlink::{Mac, NetnsId};
use crate::routed::devices::{Kind, PeerLink, TunnelPeer};
use crate::routed::record::TunnelRecord;
use crate::routed::{Error, RoutedRecord};

/// What of a routed network lies beyond this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The subnets of the whole cluster, without host bits.
    pub networks: Vec<IpNet>,
    /// The tunnels by which packets of peers come in, in order of their names.
    pub entrances: Vec<Entrance>,
    /// The tunnels of ours, those of WireGuard too, in order of their names.
    pub devices: Vec<String>,
    /// The segments of peers whose packets come by a device that is not ours, in order.
    pub plain: Vec<IpNet>,
}

/// A tunnel by which packets of peers come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entrance {
    /// The name of the device.
    pub device: String,
    /// It is ours. One of somebody else with the same ends may have other uses too.
    pub owned: bool,
    /// Whose packets come by it: one, but for vxlan.
    pub peers: Vec<Sender>,
    /// What packets of a VXLAN are told by in the underlay. The kernel takes them from everybody, and from the other
    /// end only with the other kinds.
    pub vxlan: Option<Vxlan>,
}

/// How the packets of a VXLAN are told in the underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vxlan {
    /// VXLAN Network Identifier.
    pub vni: u32,
    /// UDP port.
    pub port: u16,
}

/// A peer that sends by a tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// Its address in the underlay.
    pub remote: IpAddr,
    /// Its address in the VXLAN.
    pub mac: Option<Mac>,
    /// Its segments: what it sends has a source in one of them.
    pub segments: Vec<IpNet>,
}

impl Cluster {
    /// That of a network as it was set up: with all tunnels that receive, those of a former mode too.
    pub fn of(record: &RoutedRecord) -> Self {
        let (own, foreign): (Vec<_>, Vec<_>) = record.tunnels.iter().partition(|tunnel| tunnel.owned);
        let of_foreign = foreign.iter().flat_map(|tunnel| &tunnel.peers).flat_map(|peer| &peer.segments);
        let direct = record.peers.iter().flat_map(|peer| &peer.ways).filter(|way| !way.tunnel).map(|way| &way.segment);
        let mut entrances: Vec<Entrance> = record.tunnels.iter().filter_map(Entrance::of).collect();
        crate::order::sort_by(&mut entrances, |a, b| a.device.cmp(&b.device));
        Self {
            networks: record.networks.iter().map(IpNet::trunc).collect(),
            entrances,
            devices: sorted(own.iter().map(|tunnel| tunnel.name.clone())),
            plain: sorted(of_foreign.chain(direct).map(IpNet::trunc)),
        }
    }
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.collect::<BTreeSet<T>>().into_iter().collect()
}

impl Entrance {
    /// A tunnel. None for one of WireGuard: the kernel drops what comes from a peer with a source outside of its
    /// AllowedIPs.
    fn of(tunnel: &TunnelRecord) -> Option<Self> {
        let vxlan = match tunnel.kind {
            Kind::Wireguard { .. } => return None,
            Kind::Vxlan { vni, port, .. } => Some(Vxlan { vni, port }),
            _ => None,
        };
        let sender = |peer: &TunnelPeer| {
            let mac = match &peer.link {
                PeerLink::Vxlan { mac, .. } => Some(*mac),
                _ => None,
            };
            Sender { remote: peer.remote, mac, segments: peer.segments.clone() }
        };
        let peers = tunnel.peers.iter().map(sender).collect();
        Some(Self { device: tunnel.name.clone(), owned: tunnel.owned, peers, vxlan })
    }
}

/// Adds to the record of a network what is recorded of its other nodes, if it is a routed one.
///
/// # Errors
/// That record cannot be read.
pub fn join(host: &Host, netns: &NetnsId, record: &mut NetworkRecord) -> Result<(), Error> {
    let found = RoutedRecord::load(host, &record.name)?.filter(|found| found.is_of(host, netns));
    record.cluster = found.as_ref().map(Cluster::of);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routed::config::Mode;
    use crate::routed::devices::Ends;
    use crate::routed::mode::Addresses;
    use crate::routed::record::{FORMAT, PeerRecord, WayRecord};

    fn tunnel(name: &str, kind: Kind, link: PeerLink) -> TunnelRecord {
        let segments = vec!["10.11.4.0/22".parse().unwrap()];
        let peer = TunnelPeer { name: "n2".into(), remote: "192.0.2.2".parse().unwrap(), segments, link };
        TunnelRecord {
            name: name.into(),
            index: 7,
            kind,
            mtu: 1400,
            wanted_mtu: 1400,
            address: None,
            owned: name != "tun0",
            sends: true,
            refused: false,
            kept: None,
            peers: vec![peer],
        }
    }

    fn way(segment: &str, tunnel: bool) -> WayRecord {
        let (segment, remote) = (segment.parse().unwrap(), "192.0.2.3".parse().unwrap());
        WayRecord { segment, remote, device: "eth0".into(), tunnel, mtu: 1500 }
    }

    fn cluster() -> Cluster {
        let mac = Mac([0x0a, 0x4f, 10, 11, 4, 0]);
        let ends = Ends { local: "192.0.2.1".parse().unwrap(), remote: "192.0.2.2".parse().unwrap() };
        let vxlan = Kind::Vxlan { local: ends.local, vni: 7, port: 4779, mac };
        let peer = PeerRecord {
            name: "n3".into(),
            addresses: Addresses::default(),
            segments: Vec::new(),
            ways: vec![way("10.11.8.0/22", false), way("fd11:0:0:2::/64", true)],
            faults: Vec::new(),
        };
        Cluster::of(&RoutedRecord {
            v: FORMAT,
            name: "net".parse().unwrap(),
            basis: String::new(),
            complete: true,
            refused: None,
            mode: Mode::Ipip,
            networks: vec!["10.11.0.1/16".parse().unwrap()],
            here: Vec::new(),
            peers: vec![peer],
            tunnels: vec![
                tunnel("tun0", Kind::Ipip(ends), PeerLink::Ends),
                tunnel("otw", Kind::Wireguard { port: 61000 }, PeerLink::Ends),
                tunnel("otv", vxlan, PeerLink::Vxlan { mac, hops: Vec::new() }),
                tunnel("oti", Kind::Ipip(ends), PeerLink::Ends),
            ],
            routes: Vec::new(),
            awaited: Vec::new(),
            warned: Vec::new(),
            boot: String::new(),
            netns: NetnsId { cookie: None, dev: 0, ino: 0, ctime: None },
        })
    }

    #[test]
    fn what_receives_and_is_not_checked_by_the_kernel_is_in_it() {
        let cluster = cluster();
        assert_eq!(cluster.networks, ["10.11.0.0/16".parse().unwrap()]);
        let devices: Vec<_> = cluster.entrances.iter().map(|entrance| entrance.device.as_str()).collect();
        assert_eq!(devices, ["oti", "otv", "tun0"]);
        let vxlan = &cluster.entrances[1];
        assert_eq!((vxlan.vxlan, vxlan.peers[0].mac.is_some()), (Some(Vxlan { vni: 7, port: 4779 }), true));
    }

    #[test]
    fn what_comes_in_by_devices_of_ours_and_by_others() {
        let cluster = cluster();
        assert_eq!(cluster.devices, ["oti", "otv", "otw"]);
        let plain: Vec<String> = cluster.plain.iter().map(ToString::to_string).collect();
        assert_eq!(plain, ["10.11.4.0/22", "10.11.8.0/22"], "by the tunnel of somebody else, and without one");
    }
}
