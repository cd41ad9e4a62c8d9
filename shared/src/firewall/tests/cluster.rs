//! Routed networks: what comes out of tunnels.

mod far;
mod translated;

use std::net::UdpSocket;
use std::time::Duration;

use far::Far;

use super::*;
use crate::netlink::Mac;
use crate::netlink::testing::in_new_netns;
use crate::routed::RoutedRecord;
use crate::routed::config::Mode;
use crate::routed::devices::{Ends, Kind, PeerLink, TunnelPeer};
use crate::routed::record::{FORMAT, TunnelRecord};

/// A peer with these segments; with an Ethernet address in a VXLAN.
fn peer(remote: &str, mac: Option<&str>, segments: &[&str]) -> TunnelPeer {
    let link = match mac {
        Some(mac) => PeerLink::Vxlan { mac: mac.parse().unwrap(), hops: Vec::new() },
        None => PeerLink::Ends,
    };
    let segments = segments.iter().map(|segment| segment.parse().unwrap()).collect();
    TunnelPeer { name: "peer".into(), remote: remote.parse().unwrap(), segments, link }
}

fn tunnel(name: &str, kind: Kind, peers: Vec<TunnelPeer>) -> TunnelRecord {
    TunnelRecord {
        name: name.into(),
        index: 7,
        kind,
        mtu: 1450,
        wanted_mtu: 1450,
        address: None,
        owned: true,
        sends: true,
        refused: false,
        kept: None,
        peers,
    }
}

/// The tunnel `ot1` to 192.0.2.2, which networks share.
fn ipip(segments: &[&str]) -> TunnelRecord {
    let ends = Ends { local: "192.0.2.1".parse().unwrap(), remote: "192.0.2.2".parse().unwrap() };
    tunnel("ot1", Kind::Ip6tnl(ends), vec![peer("192.0.2.2", None, segments)])
}

/// The VXLAN `otv`.
fn vxlan(vni: u32, peers: Vec<TunnelPeer>) -> TunnelRecord {
    let kind = Kind::Vxlan { local: "192.0.2.1".parse().unwrap(), vni, port: 4779, mac: Mac([2; 6]) };
    tunnel("otv", kind, peers)
}

/// Records what was set up of a routed network with these subnets.
fn join(place: &Place, name: &str, networks: &[&str], tunnels: Vec<TunnelRecord>) {
    let record = RoutedRecord {
        v: FORMAT,
        name: name.parse().unwrap(),
        basis: String::new(),
        complete: true,
        refused: None,
        mode: Mode::Ipip,
        networks: networks.iter().map(|network| network.parse().unwrap()).collect(),
        here: Vec::new(),
        peers: Vec::new(),
        tunnels,
        routes: Vec::new(),
        awaited: Vec::new(),
        warned: Vec::new(),
        boot: place.host.boot.clone(),
        netns: host_id().unwrap(),
    };
    record.save(&place.host).unwrap();
}

/// A node of a routed network: 10.11.0.0/22 of 10.11.0.0/16.
fn node(place: &Place, name: &str, tunnels: Vec<TunnelRecord>) {
    place.set_up(name, &["10.11.0.0/22"], |record| record.gateways = vec!["10.11.0.1/22".parse().unwrap()]);
    join(place, name, &["10.11.0.0/16"], tunnels);
}

fn ruleset() -> String {
    run("nft", &["list", "ruleset"])
}

#[test]
fn tunnels_that_networks_share_let_the_segments_of_all_of_them_in() {
    in_new_netns(|| {
        let place = Place::new(&[]);
        node(&place, "r", vec![ipip(&["10.11.4.0/22"])]);
        place.set_up("s", &["10.12.0.0/24", "fd12::/64"], |_| {});
        join(&place, "s", &["10.12.0.0/16", "fd12::/48"], vec![ipip(&["10.12.1.0/24", "fd12:0:0:1::/64"])]);
        place.apply();
        let rules = ruleset();
        for mark in ["osvc:r", "osvc:s"] {
            let text = format!("iifname \"ot1\" ip saddr != {{ 10.11.4.0/22, 10.12.1.0/24 }} drop comment \"{mark}\"");
            assert!(rules.contains(&text), "{text} in {rules}");
        }
        assert!(rules.contains("iifname \"ot1\" ip6 saddr != fd12:0:0:1::/64 drop comment \"osvc:s\""), "{rules}");
        assert!(place.is_in_place("r") && place.is_in_place("s"));
        place.passes("r");
        nft("flush chain ip osvc-cni prerouting");
        assert!(!place.is_in_place("r"));
        assert!(place.fault("r").contains("chain ip osvc-cni prerouting has 0 of its 1 rules"), "{}", place.fault("r"));
        place.apply();
        assert_eq!(ruleset(), rules);
        // Lost records: the rules stay as they are, sets and all.
        place.lose("r");
        RoutedRecord::remove(&place.host, &"r".parse().unwrap()).unwrap();
        place.set_up("a", A.1, |_| {});
        place.apply();
        let after = ruleset();
        for kept in ["{ 10.11.4.0/22, 10.12.1.0/24 } drop comment \"osvc:r\"", "snat to 10.11.0.1", "set local"] {
            assert!(after.contains(kept), "{kept} in {after}");
        }
        assert!(place.is_in_place("a") && place.is_in_place("s"));
    });
}

#[test]
fn a_network_whose_cluster_cannot_be_read_keeps_its_rules_and_is_none_of_this_node_alone() {
    in_new_netns(|| {
        let place = Place::new(&[A]);
        node(&place, "r", vec![ipip(&["10.11.4.0/22"])]);
        join_other(&place);
        place.apply();
        let of_r = || ruleset().lines().filter(|line| line.contains("\"osvc:r\"")).count();
        let before = (of_r(), ruleset());
        // Of a later version, before a downgrade.
        let path = RoutedRecord::path(&place.host, &"r".parse().unwrap());
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, good.replace("\"v\":1", "\"v\":99")).unwrap();
        for _ in 0..2 {
            place.set_up("c", &["10.3.0.0/24"], |_| {});
            place.apply();
            assert_eq!(of_r(), before.0, "{}", ruleset());
            place.lose("c");
            forget(&place.host, &"c".parse().unwrap()).unwrap();
            assert_eq!(ruleset(), before.1);
        }
        // An ADD that fails for it.
        forget(&place.host, &"r".parse().unwrap()).unwrap();
        assert_eq!(ruleset(), before.1);
        place.passes("a");
        std::fs::write(&path, good).unwrap();
        place.apply();
        assert!(place.is_in_place("r") && place.is_in_place("a"));
        assert_eq!(ruleset(), before.1);
    });
}

/// Another routed network, towards which `r` is translated.
fn join_other(place: &Place) {
    place.set_up("q", &["10.12.0.0/24"], |record| record.gateways = vec!["10.12.0.1/24".parse().unwrap()]);
    join(place, "q", &["10.12.0.0/16"], Vec::new());
}

#[test]
fn packets_with_a_source_of_somebody_else_are_dropped() {
    in_new_netns(|| {
        let place = Place::new(&[]);
        node(&place, "r", vec![ipip(&["10.11.4.0/22"])]);
        let far = Far::new("ot1");
        assert!(far.reaches("10.11.8.1"), "without rules everything arrives");
        place.apply();
        assert!(far.reaches("10.11.5.6"), "the peer's own");
        for stranger in ["10.11.8.1", "10.11.0.9", "192.0.2.9", "10.22.0.7"] {
            assert!(!far.reaches(stranger), "{stranger}");
        }
    });
}

#[test]
fn a_foreign_tunnel_with_the_same_ends_keeps_its_other_uses() {
    in_new_netns(|| {
        let place = Place::new(&[]);
        node(&place, "r", vec![TunnelRecord { owned: false, ..ipip(&["10.11.4.0/22"]) }]);
        place.apply();
        place.passes("r");
        let rules = ruleset();
        for end in ["saddr", "daddr"] {
            let text = format!("iifname \"ot1\" ip {end} 10.11.0.0/16 ip saddr != 10.11.4.0/22 drop");
            assert!(rules.contains(&text), "{text} in {rules}");
        }
        let far = Far::new("ot1");
        assert!(far.reaches("10.11.5.6"), "the peer's own");
        assert!(!far.reaches("10.11.8.1") && !far.reaches("192.0.2.9"), "towards the network");
    });
}

#[test]
fn peers_of_a_vxlan_are_told_by_their_ethernet_addresses() {
    in_new_netns(|| {
        let place = Place::new(&[]);
        let far = Far::new("otv");
        let peers = vec![
            peer("192.0.2.2", Some(&far.mac), &["10.11.4.0/22"]),
            peer("192.0.2.4", Some("0a:4f:0a:0b:08:00"), &["10.11.8.0/22"]),
        ];
        node(&place, "r", vec![vxlan(7, peers)]);
        place.apply();
        assert!(far.reaches("10.11.5.6"), "its own");
        assert!(!far.reaches("10.11.8.1"), "that of another peer");
        node(&place, "r", vec![vxlan(7, Vec::new())]);
        place.apply();
        assert!(!far.reaches("10.11.5.6"), "nobody is a peer");
    });
}

#[test]
fn a_vxlan_takes_packets_of_its_peers_only() {
    in_new_netns(|| {
        let place = Place::new(&[]);
        let peers = vec![
            peer("192.0.2.2", Some("0a:4f:0a:0b:04:00"), &["10.11.4.0/22"]),
            peer("192.0.2.4", Some("0a:4f:0a:0b:08:00"), &["10.11.8.0/22"]),
        ];
        node(&place, "r", vec![vxlan(0x0a_bc_de, peers)]);
        place.apply();
        place.passes("r");
        let rules = ruleset();
        for text in [
            "udp dport 4779 @th,96,24 0xabcde ip saddr != { 192.0.2.2, 192.0.2.4 } fib daddr type local drop comment \"osvc:r\"",
            "iifname \"otv\" ether saddr != { 0a:4f:0a:0b:04:00, 0a:4f:0a:0b:08:00 } drop comment \"osvc:r\"",
            "iifname \"otv\" ether saddr 0a:4f:0a:0b:08:00 ip saddr != 10.11.8.0/22 drop comment \"osvc:r\"",
        ] {
            assert!(rules.contains(text), "{text} in {rules}");
        }
        // In the underlay: told by its number, so that others may have the port too.
        run("ip", &["link", "set", "lo", "up"]);
        for address in ["192.0.2.1", "192.0.2.2", "192.0.2.9"] {
            run("ip", &["addr", "add", &format!("{address}/32"), "dev", "lo"]);
        }
        let socket = UdpSocket::bind("192.0.2.1:4779").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let arrives = |from: &str, vni: [u8; 3]| {
            let sender = UdpSocket::bind((from, 0)).unwrap();
            let packet = [8, 0, 0, 0, vni[0], vni[1], vni[2], 0, 1, 2, 3, 4];
            sender.send_to(&packet, "192.0.2.1:4779").unwrap();
            socket.recv(&mut [0; 64]).is_ok()
        };
        assert!(arrives("192.0.2.2", [0x0a, 0xbc, 0xde]), "a peer");
        assert!(!arrives("192.0.2.9", [0x0a, 0xbc, 0xde]), "a stranger");
        assert!(arrives("192.0.2.9", [0x0a, 0xbc, 0xdf]), "of another network");
    });
}
