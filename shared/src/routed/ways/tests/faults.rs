//! What cannot be, and whom it costs what.

use super::super::super::mode::Addresses;
use super::*;

#[test]
fn a_fault_costs_one_peer_only() {
    let mut case = case(Policy::Auto, Mode::Ipip);
    let all = case.texts();
    case.nodes[1].addresses = Addresses::default();
    case.nodes[1].unresolved = vec!["node2.lan".into()];
    case.nodes[2].addresses = [ip("192.0.2.99")].into_iter().collect();
    case.nodes[3].addresses = [ip("10.11.3.3")].into_iter().collect();
    case.nodes[4].addresses = [ip("192.168.1.1"), ip("fd05::5")].into_iter().collect();
    let peers = case.solve();
    let wanted = [["NoAddress"; 2], ["Kernel"; 2], ["Inside"; 2], ["OwnAddress", "ip6tnl fd05::5"]];
    assert_eq!(texts(&peers)[..4], wanted.map(|pair| pair.map(str::to_owned)));
    assert_eq!(texts(&peers)[4], all[4]);
    let (name, _, fault) = peers.faults().next().unwrap();
    assert_eq!(format!("{name}: {fault}"), "node2: no address is known (node2.lan did not resolve)");
}

#[test]
fn addresses_that_cannot_be_a_peers() {
    let mut case = case(Policy::Always, Mode::Gre);
    case.nodes[1].addresses = [ip("127.0.1.1"), ip("fe80::2")].into_iter().collect();
    case.nodes[2].addresses = case.nodes[5].addresses;
    // The kernel says that it is ours, whatever the configuration does.
    case.kernel.0.get_mut(&ip("172.16.0.5")).unwrap().local = true;
    let wanted = [["Unusable"; 2], ["SameAddress"; 2], ["ip6gre fd01::4"; 2], ["OwnAddress", "ip6gre fd05::5"]];
    assert_eq!(case.texts()[..4], wanted.map(|pair| pair.map(str::to_owned)));
    assert_eq!(case.texts()[4], ["gre 172.16.0.6"; 2], "the address is this one's by the configuration");
}

#[test]
fn a_name_that_resolves_to_anothers_address_costs_nobody_else() {
    let mut case = case(Policy::Always, Mode::Gre);
    let taken = |case: &Case| [0, 1].map(|index| case.texts()[index][0].clone());
    let (first, last, none) = (case.nodes[1].addresses, case.nodes[2].addresses, Addresses::default());
    // node2 is a name, node3 an address.
    (case.nodes[1].addresses, case.nodes[1].literal) = (last, none);
    assert_eq!(taken(&case), ["SameAddress", "gre 192.168.1.3"]);
    // Two names: all nodes have the same list.
    case.nodes[2].literal = none;
    assert_eq!(taken(&case), ["gre 192.168.1.3", "SameAddress"]);
    // This node's own name is as wrong, but no device has that address.
    case.nodes[1].addresses = first;
    (case.nodes[0].addresses, case.nodes[0].literal) = (last, none);
    assert_eq!(taken(&case), ["NotHere"; 2]);
    case.policy = Policy::Auto;
    assert_eq!(taken(&case), ["direct 192.168.1.2", "direct 192.168.1.3"]);
    // One that the configuration gives is this node's, be it on a device or not.
    case.nodes[0].literal = last;
    assert_eq!(taken(&case), ["direct 192.168.1.2", "OwnAddress"]);
}

#[test]
fn a_tunnel_starts_outside_of_the_network() {
    let mut case = case(Policy::Auto, Mode::Vxlan);
    let bridge = ip("10.11.4.1");
    case.nodes[0].addresses.v4 = Some(Ipv4Addr::new(10, 11, 4, 1));
    case.kernel.0.insert(bridge, Path { local: true, ..path(true) });
    let texts = case.texts();
    assert_eq!((texts[0][0].as_str(), texts[3][0].as_str()), ("direct 192.168.1.2", "StartsInside"));
}

#[test]
fn a_tunnel_starts_at_an_address_of_this_node() {
    let mut elsewhere = case(Policy::Auto, Mode::Gre);
    elsewhere.nodes[0].addresses = [ip("203.0.113.1"), ip("fd01::1")].into_iter().collect();
    let texts = elsewhere.texts();
    assert_eq!(texts[0], ["direct 192.168.1.2", "direct fd01::2"], "a plain route needs none");
    assert_eq!(texts[3], ["NotHere", "ip6gre fd05::5"]);
    let mut v6_only = case(Policy::Auto, Mode::Gre);
    v6_only.nodes[0].addresses.v4 = None;
    let texts = v6_only.texts();
    assert_eq!(texts[0], ["direct fd01::2", "direct fd01::2"]);
    assert_eq!(texts[3], ["ip6gre fd05::5", "ip6gre fd05::5"]);
    assert_eq!(texts[4], ["NoLocal", "NoLocal"]);
}

#[test]
fn a_tunnel_waits_for_its_route() {
    let mut case = case(Policy::Auto, Mode::Ipip);
    case.kernel.0.remove(&ip("172.16.0.5"));
    case.kernel.0.remove(&ip("192.168.1.3"));
    let peers = case.solve();
    assert_eq!(texts(&peers)[3][0], "ipip 172.16.0.5");
    assert_eq!(texts(&peers)[1][0], "ipip 192.168.1.3");
    let Some(Ok(way)) = &peers.peers[3].ways.v4 else { panic!() };
    assert!(matches!(way, Way::Tunnel { routed: false, mtu: 1480, onlink: false, .. }), "{way:?}");
    case.policy = Policy::Never;
    assert_eq!(case.texts()[1][0], "NoRoute");
}
