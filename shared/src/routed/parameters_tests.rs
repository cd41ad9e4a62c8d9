use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn of(network: &str, mode: Mode) -> Parameters {
    Parameters::of(&network.parse().unwrap(), mode, None)
}

#[test]
fn the_formulas_are_these_for_ever() {
    assert_eq!(of("prod", Mode::Ipip), Parameters::Ipip);
    // printf 'gre\0prod' | sha256sum, and so on.
    assert_eq!(of("prod", Mode::Gre), Parameters::Gre { key: 0x0f02_9218 });
    assert_eq!(of("prod", Mode::Vxlan), Parameters::Vxlan { vni: 0x5e_f9af, port: 4779 });
    assert_eq!(of("prod", Mode::Wireguard), Parameters::Wireguard { port: 63828 });
    let configured = Parameters::of(&"prod".parse().unwrap(), Mode::Wireguard, Some(51820));
    assert_eq!(configured.port(), Some(51820));
}

#[test]
fn what_two_networks_of_a_node_cannot_share() {
    let (a, b): (NetworkName, NetworkName) = ("a".parse().unwrap(), "b".parse().unwrap());
    let with = |name: &NetworkName, mode, port| Parameters::of(name, mode, port);
    let (vxlan, wireguard) = (with(&a, Mode::Vxlan, Some(7)), with(&b, Mode::Wireguard, Some(7)));
    assert_eq!(vxlan.clash(with(&b, Mode::Vxlan, Some(7))), None, "one port serves all numbers");
    assert_eq!(vxlan.clash(wireguard), Some(Clash::Port(7)));
    assert_eq!(wireguard.clash(with(&a, Mode::Wireguard, Some(7))), Some(Clash::Port(7)));
    assert_eq!(wireguard.clash(with(&a, Mode::Wireguard, Some(8))), None);
    assert!(matches!(vxlan.clash(vxlan), Some(Clash::Vni { port: 7, .. })));
    assert_eq!(vxlan.clash(Parameters::Vxlan { vni: 1, port: 7 }), None);
    let gre = with(&a, Mode::Gre, None);
    assert!(matches!(gre.clash(gre), Some(Clash::Key(_))));
    assert_eq!(Parameters::Ipip.clash(Parameters::Ipip), None, "they share the tunnel");
    let text = Clash::Vni { vni: 5, port: 7 }.to_string();
    assert!(text.contains("`port`") && text.contains('5'), "{text}");
}

/// Hashes are as good as chance: 30 000 names, and no more equal pairs than twice what is expected.
#[test]
fn names_of_networks_are_spread_evenly() {
    let names = || (0..30_000_u32).map(|n| format!("net-{n}").parse::<NetworkName>().unwrap());
    let pairs = |mode: Mode| -> u64 {
        let mut seen: HashMap<String, u64> = HashMap::new();
        names().for_each(|name| *seen.entry(format!("{:?}", Parameters::of(&name, mode, None))).or_default() += 1);
        seen.values().map(|n| n * (n - 1) / 2).sum()
    };
    let all = 30_000_u64 * 29_999 / 2;
    assert!(pairs(Mode::Gre) <= 3);
    assert!(pairs(Mode::Vxlan) <= 2 * all / (1 << 24) + 3, "{}", pairs(Mode::Vxlan));
    assert!(pairs(Mode::Wireguard) <= all / 4536 * 21 / 20, "{}", pairs(Mode::Wireguard));
    for name in names() {
        let Parameters::Vxlan { vni, .. } = Parameters::of(&name, Mode::Vxlan, None) else { panic!() };
        assert!((1..1 << 24).contains(&vni));
        let Some(port) = Parameters::of(&name, Mode::Wireguard, None).port() else { panic!() };
        assert!(port >= WIREGUARD_FIRST);
    }
}

#[test]
fn macs_of_nodes_differ_in_all_segments_of_a_network() {
    let network: NetworkName = "prod".parse().unwrap();
    let v4 = |n: u32| IpNet::new(Ipv4Addr::from(0x0a0b_0000 + n * 4).into(), 30).unwrap();
    let v6 = |n: u128| IpNet::new(Ipv6Addr::from((0xfd00_u128 << 112) + (n << 64)).into(), 64).unwrap();
    let (mut seen4, mut seen6) = (HashSet::new(), HashSet::new());
    for n in 0..16384 {
        assert!(seen4.insert(vtep(&network, &[v6(n.into()), v4(n)]).0), "{n}");
        assert!(seen6.insert(vtep(&network, &[v6(n.into())]).0), "{n}");
    }
    assert!(seen4.is_disjoint(&seen6));
    assert!(seen4.iter().chain(&seen6).all(|mac| mac[0] & 3 == 2), "unicast, locally administered");
    assert_eq!(vtep(&network, &[v4(1)]).to_string(), "0a:4f:0a:0b:00:04");
}

proptest! {
    #[test]
    fn every_node_derives_the_mac_that_a_node_has(base: u32, prefix in 8_u8..=32, host: u32, v6: u128) {
        let network: NetworkName = "prod".parse().unwrap();
        let segment = IpNet::new(Ipv4Addr::from(base).into(), prefix).unwrap().trunc();
        let mask = u32::from(match segment { IpNet::V4(net) => net.hostmask(), IpNet::V6(_) => unreachable!() });
        // Written with host bits, or beside an IPv6 segment: the node is the same.
        let IpAddr::V4(first) = segment.network() else { unreachable!() };
        let other = IpNet::new(Ipv4Addr::from(u32::from(first) | (host & mask)).into(), prefix).unwrap();
        let beside = IpNet::new(Ipv6Addr::from(v6).into(), 64).unwrap();
        let mac = vtep(&network, &[segment]);
        prop_assert_eq!(vtep(&network, &[other]), mac);
        prop_assert_eq!(vtep(&network, &[segment, beside]), mac);
        prop_assert_eq!(vtep(&network, &[beside, segment]), mac);
    }
    #[test]
    fn next_hops_lie_in_their_segments_or_on_the_link(v4: bool, bits: u128, prefix in 0_u8..=128) {
        let base = if v4 { IpAddr::V4((bits as u32).into()) } else { IpAddr::V6(bits.into()) };
        let max = if v4 { 32 } else { 128 };
        let segment = IpNet::new(base, prefix.min(max)).unwrap();
        match hop(&segment) {
            IpAddr::V4(hop) => prop_assert!(segment.contains(&IpAddr::V4(hop))),
            IpAddr::V6(hop) => prop_assert_eq!(&hop.segments()[..4], [0xfe80, 0, 0, 0]),
        }
        prop_assert_eq!(hop(&segment), hop(&segment.trunc()));
    }
}
