//! Who reaches a published port, and whom the container sees.

use integration::{Family, Sandbox, port};
use serde_json::json;

use crate::{DUAL, HOST4, HOST6, machine, machine_and_outside, net1, noted, set_bridge_netfilter};

/// The protocols that can be talked here.
fn protocols(sandbox: &Sandbox) -> Vec<&'static str> {
    let protocols = ["tcp", "udp", "sctp"];
    protocols.into_iter().filter(|protocol| sandbox.has_sockets(protocol)).collect()
}

/// From outside, from the machine, from the container itself, from its neighbour and from another network.
fn everybody_reaches(family: Family, bridge_netfilter: u8, prepare: &str) {
    let (sandbox, outside) = machine_and_outside();
    sandbox.sh(prepare).ok();
    set_bridge_netfilter(&sandbox, bridge_netfilter);
    let protocols = if family.is_ours() { protocols(&sandbox) } else { vec!["tcp", "udp"] };
    let network = sandbox.network_of(family, "net1", &DUAL);
    let (a, b) = (network.container("a"), network.container("b"));
    let c = sandbox.network_of(family, "net2", &["10.10.0.0/24", "fd10::/64"]).container("c");
    a.publish(protocols.iter().map(|protocol| port(8080, 80, protocol)).collect());
    sandbox.serve(Some(&a.netns), &protocols.join(","), "[::]:80", "a");
    let (gateway4, gateway6) = ("10.9.0.1", "fd09::1");
    let mut cases = vec![
        (Some(&outside), HOST4, "192.0.2.1"),
        (Some(&outside), HOST6, "2001:db8:ffff::1"),
        (None, "127.0.0.1", gateway4),
        (None, HOST4, "192.0.2.2"),
        (None, HOST6, "2001:db8:ffff::2"),
        (None, "10.9.0.1", gateway4),
        (None, "[fd09::1]", gateway6),
    ];
    for netns in [&a.netns, &b.netns] {
        cases.extend([
            (Some(netns), HOST4, gateway4),
            (Some(netns), HOST6, gateway6),
            (Some(netns), "10.9.0.1", gateway4),
            (Some(netns), "[fd09::1]", gateway6),
        ]);
    }
    if family.is_ours() {
        // The reference masquerades between networks.
        cases.extend([(Some(&c.netns), HOST4, c.v4.as_str()), (Some(&c.netns), HOST6, c.v6.as_str())]);
    }
    for protocol in protocols {
        for (from, to, seen) in &cases {
            let from_whom = from.map_or("the host", |netns| &netns.name);
            let what = format!("{protocol} from {from_whom} to {to}, br_netfilter {bridge_netfilter}, {family:?}");
            assert_eq!(sandbox.ask(*from, protocol, &format!("{to}:8080")), format!("a {seen}"), "{what}");
        }
    }
    noted(&format!("published port from everywhere, IPv4 and IPv6, br_netfilter {bridge_netfilter}, {family:?}"));
}

#[test]
fn everybody_reaches_a_published_port_with_br_netfilter() {
    everybody_reaches(Family::Osvc, 1, "true");
}

#[test]
fn everybody_reaches_a_published_port_without_br_netfilter() {
    everybody_reaches(Family::Osvc, 0, "true");
}

/// As docker leaves forwarding, and as a cautious administrator leaves reverse paths.
#[test]
fn everybody_reaches_a_published_port_past_a_foreign_drop_and_strict_reverse_paths() {
    let prepare = "iptables -P FORWARD DROP && ip6tables -P FORWARD DROP &&
        sysctl -q -w net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.default.rp_filter=1";
    everybody_reaches(Family::Osvc, 1, prepare);
}

/// Proves the case itself.
#[test]
fn everybody_reaches_a_port_that_the_reference_published() {
    everybody_reaches(Family::Reference, 1, "true");
    everybody_reaches(Family::Reference, 0, "true");
}

#[test]
fn sctp_is_published_whether_or_not_the_kernel_has_sockets_for_it() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    a.publish(json!([port(8080, 80, "sctp")]));
    for (family, address) in [("ip", &a.v4), ("ip6", &a.v6)] {
        let map = sandbox.sh(&format!("nft -n list map {family} osvc-cni-portmap any")).ok();
        assert!(map.contains("132 . 8080 ") || map.contains("sctp . 8080 "), "{map}");
        assert!(map.contains(&format!("{address} . 80")), "{map}");
    }
    assert!(!crate::tables_mention(&sandbox, " 6 . 8080 "), "and tcp is not");
    if !sandbox.has_sockets("sctp") {
        noted("sctp traffic was NOT run: this kernel has no SCTP sockets; its elements are in the maps");
    }
}

#[test]
fn the_same_port_of_another_host_is_not_intercepted() {
    let (sandbox, outside) = machine_and_outside();
    let far = sandbox.netns("far");
    sandbox
        .sh("set -e
            ip link add up1 type veth peer name eth0 netns far
            ip addr add 203.0.113.1/24 dev up1
            ip addr add 2001:db8:fa::1/64 dev up1 nodad
            ip link set up1 up
            ip -n far addr add 203.0.113.9/24 dev eth0
            ip -n far addr add 2001:db8:fa::9/64 dev eth0 nodad
            ip -n far link set eth0 up
            ip -n far route add default via 203.0.113.1
            ip -n far -6 route add default via 2001:db8:fa::1
            ip -n outside route add 203.0.113.0/24 via 192.0.2.2
            ip -n outside -6 route add 2001:db8:fa::/64 via 2001:db8:ffff::2")
        .ok();
    let a = net1(&sandbox).container("a");
    a.publish(json!([port(8080, 80, "tcp"), port(8080, 80, "udp")]));
    sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
    sandbox.serve(Some(&far), "tcp,udp", "[::]:8080", "far");
    for protocol in ["tcp", "udp"] {
        for (from, to, answer) in [
            (Some(&outside), "203.0.113.9", "far 192.0.2.1"),
            (Some(&outside), "[2001:db8:fa::9]", "far 2001:db8:ffff::1"),
            (Some(&a.netns), "203.0.113.9", "far 203.0.113.1"),
            (Some(&a.netns), "[2001:db8:fa::9]", "far 2001:db8:fa::1"),
            (None, "203.0.113.9", "far 203.0.113.1"),
            (None, "[2001:db8:fa::9]", "far 2001:db8:fa::1"),
            (Some(&outside), HOST4, "a 192.0.2.1"),
            (Some(&outside), HOST6, "a 2001:db8:ffff::1"),
        ] {
            assert_eq!(sandbox.ask(from, protocol, &format!("{to}:8080")), answer, "{protocol} to {to}");
        }
    }
    noted("forwarded traffic to the same port of another host passes");
}

#[test]
fn a_port_that_is_not_published_is_closed() {
    let (sandbox, outside) = machine_and_outside();
    let a = net1(&sandbox).container("a");
    a.publish(json!([port(8080, 80, "tcp")]));
    sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
    for host in [HOST4, HOST6] {
        sandbox.ask(Some(&outside), "tcp", &format!("{host}:8080"));
        sandbox.ask_in_vain(Some(&outside), "udp", &format!("{host}:8080"));
        sandbox.ask_in_vain(Some(&outside), "tcp", &format!("{host}:80"));
    }
}

/// Without br_netfilter the neighbour's answer does not pass the host, which could put it right.
#[test]
fn without_snat_the_outside_works_and_hairpin_and_localhost_do_not() {
    let (sandbox, outside) = machine_and_outside();
    set_bridge_netfilter(&sandbox, 0);
    let network = net1(&sandbox).with("snat", json!(false));
    let (a, b) = (network.container("a"), network.container("b"));
    a.publish(json!([port(8080, 80, "tcp"), port(8080, 80, "udp")]));
    sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
    for protocol in ["tcp", "udp"] {
        assert_eq!(sandbox.ask(Some(&outside), protocol, &format!("{HOST4}:8080")), "a 192.0.2.1");
        assert_eq!(sandbox.ask(Some(&outside), protocol, &format!("{HOST6}:8080")), "a 2001:db8:ffff::1");
        assert_eq!(sandbox.ask(None, protocol, &format!("{HOST4}:8080")), "a 192.0.2.2");
        sandbox.ask_in_vain(None, protocol, "127.0.0.1:8080");
        for netns in [&a.netns, &b.netns] {
            sandbox.ask_in_vain(Some(netns), protocol, &format!("{HOST4}:8080"));
            sandbox.ask_in_vain(Some(netns), protocol, &format!("{HOST6}:8080"));
        }
    }
    assert_eq!(crate::route_localnet(&sandbox), "0", "nothing is opened that is not needed");
    noted("snat false");
}

#[test]
fn with_masq_all_the_container_sees_the_host() {
    let (sandbox, outside) = machine_and_outside();
    let network = net1(&sandbox).with("masqAll", json!(true));
    let (a, b) = (network.container("a"), network.container("b"));
    a.publish(json!([port(8080, 80, "tcp"), port(8080, 80, "udp")]));
    sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
    for protocol in ["tcp", "udp"] {
        for from in [Some(&outside), None, Some(&a.netns), Some(&b.netns)] {
            assert_eq!(sandbox.ask(from, protocol, &format!("{HOST4}:8080")), "a 10.9.0.1");
            assert_eq!(sandbox.ask(from, protocol, &format!("{HOST6}:8080")), "a fd09::1");
        }
        assert_eq!(sandbox.ask(None, protocol, "127.0.0.1:8080"), "a 10.9.0.1");
    }
    noted("masqAll");
}
