use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::network::names::BridgeName;

fn ends(local: &str, remote: &str) -> Ends {
    Ends { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
}

fn network(name: &str) -> NetworkName {
    name.parse().unwrap()
}

fn all_kinds(ends: Ends) -> Vec<Kind> {
    let mut kinds = vec![Kind::ipip(Family::V4, ends), Kind::ipip(Family::V6, ends), Kind::gre(7, ends)];
    kinds.push(Kind::Vxlan { local: ends.local, vni: 1, port: 2, mac: Mac([2; 6]) });
    kinds.push(Kind::Wireguard { port: 3 });
    kinds
}

#[test]
fn the_kind_follows_both_families() {
    let v4 = ends("192.0.2.1", "192.0.2.2");
    let v6 = ends("2001:db8::1", "2001:db8::2");
    let of = |kind: Kind| (kind.name(), kind.kind().module());
    assert_eq!(of(Kind::ipip(Family::V4, v4)), ("ipip", "ipip"));
    assert_eq!(of(Kind::ipip(Family::V6, v4)), ("sit", "sit"));
    for inside in Family::BOTH {
        assert_eq!(of(Kind::ipip(inside, v6)), ("ip6tnl", "ip6_tunnel"));
    }
    assert_eq!(of(Kind::gre(7, v4)), ("gre", "ip_gre"));
    assert_eq!(of(Kind::gre(7, v6)), ("ip6gre", "ip6_gre"));
}

#[test]
fn the_names_are_these_for_ever() {
    let ends = ends("192.0.2.1", "192.0.2.2");
    // printf 'ipip\000192.0.2.1\000192.0.2.2' | sha256sum, and so on.
    let name = |kind: Kind| kind.device_name(&network("prod"));
    assert_eq!(name(Kind::Ipip(ends)), "ot1626f74cf25e6");
    assert_eq!(name(Kind::Gre { ends, key: 7 }), "otb9f3cf6537326");
    assert_eq!(name(Kind::Vxlan { local: ends.local, vni: 1, port: 2, mac: Mac([0; 6]) }), "ot4f110f80df0ef");
    assert_eq!(name(Kind::Wireguard { port: 3 }), "ot9b1437b499557");
}

/// Weak point 8 of OpenSVC's networks: `tun` and the digits of the address.
#[test]
fn addresses_with_the_same_digits_have_different_tunnels() {
    let local = "10.0.0.1";
    for (a, b) in [("10.1.11.1", "10.11.1.1"), ("1.11.1.1", "11.1.1.1"), ("fd00::1:11", "fd00::11:1")] {
        assert_ne!(
            Kind::Ipip(ends(local, a)).device_name(&network("n")),
            Kind::Ipip(ends(local, b)).device_name(&network("n"))
        );
    }
}

#[test]
fn ipip_is_shared_and_the_rest_is_not() {
    let ends = ends("192.0.2.1", "192.0.2.2");
    for (a, b) in all_kinds(ends).into_iter().zip(all_kinds(ends)) {
        let same = a.device_name(&network("a")) == b.device_name(&network("b"));
        assert_eq!(same, a.is_shared(), "{a:?}");
    }
    let wireguard =
        Tunnel { name: "ot".into(), kind: Kind::Wireguard { port: 1 }, mtu: 1420, sends: true, peers: Vec::new() };
    assert_eq!(wireguard.to_string(), "ot (wireguard)");
    let peer = TunnelPeer { name: "n2".into(), remote: ends.remote, segments: Vec::new(), link: PeerLink::Ends };
    let ipip = Tunnel { kind: Kind::Ipip(ends), peers: vec![peer], ..wireguard };
    assert_eq!(ipip.to_string(), "ot (ipip 192.0.2.1 to 192.0.2.2 of n2)");
}

/// Every device of 300 networks between one node and 300 peers: half a million names, all different, all of one form.
#[test]
fn names_are_different_and_of_one_form() {
    let mut seen: HashMap<String, (usize, u32)> = HashMap::new();
    let local: IpAddr = "192.168.1.1".parse().unwrap();
    let mut count = 0;
    for n in 0..300 {
        let network = network(&format!("net{n}"));
        for peer in 0..300_u32 {
            let remote = IpAddr::V4((0x0a00_0000 + (peer << 4)).into());
            let ends = Ends { local, remote };
            for kind in all_kinds(ends) {
                let shared = kind.is_shared() && n > 0;
                let per_network = kind.ends().is_none() && peer > 0;
                if shared || per_network {
                    continue;
                }
                let name = kind.device_name(&network);
                assert!(name.len() == 15 && name.starts_with("ot"), "{name}");
                assert!(name[2..].bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)), "{name}");
                count += 1;
                assert_eq!(seen.insert(name, (n, peer)), None, "{kind:?}");
            }
        }
    }
    assert_eq!(seen.len(), count);
    assert!(count > 90_000, "{count}");
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|n| IpAddr::V4(n.into())),
        // Few and near to each other: what differs is one digit, or its place.
        (0_u32..256, 0_u32..32).prop_map(|(b, c)| IpAddr::V4((0x0a00_0000 + (b << 16) + (c << 8) + 1).into())),
        any::<u128>().prop_map(|n| IpAddr::V6(n.into())),
    ]
}

proptest! {
    #[test]
    fn a_name_is_that_of_one_device(
        a in ("[a-z0-9]{1,3}", address(), address()),
        b in ("[a-z0-9]{1,3}", address(), address()),
    ) {
        let of = |(name, local, remote): &(String, IpAddr, IpAddr)| {
            let network = network(name);
            let kinds = all_kinds(Ends { local: *local, remote: *remote });
            kinds.into_iter().map(|kind| {
                let identity = match (kind.is_shared(), kind.ends()) {
                    (true, ends) => (kind.name(), String::new(), ends, None),
                    (false, Some(ends)) => (kind.name(), name.clone(), Some(ends), None),
                    (false, None) => {
                        let family = matches!(kind, Kind::Vxlan { .. }).then_some(local.is_ipv4());
                        (kind.name(), name.clone(), None, family)
                    }
                };
                (kind.device_name(&network), identity)
            }).collect::<Vec<_>>()
        };
        let all: Vec<_> = of(&a).into_iter().chain(of(&b)).collect();
        for (name, identity) in &all {
            for (other_name, other) in &all {
                prop_assert_eq!(name == other_name, identity == other, "{:?} {:?}", identity, other);
            }
            prop_assert_ne!(name.clone(), BridgeName::of(&network(&a.0)).name);
        }
    }
}
