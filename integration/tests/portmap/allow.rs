//! allowFrom: which clients from elsewhere may connect.

use integration::{Netns, Sandbox, port};
use serde_json::{Value, json};

use crate::{DUAL, HOST4, HOST6, machine_and_outside, net1, noted, set_bridge_netfilter};

const PORTS: [&str; 2] = ["tcp", "udp"];

/// A second client from elsewhere: 198.18.0.1 and 2001:db8:5::1.
fn stranger(sandbox: &Sandbox) -> Netns {
    let netns = sandbox.netns("stranger");
    sandbox
        .sh("set -e
            ip link add up2 type veth peer name eth0 netns stranger
            ip addr add 198.18.0.2/24 dev up2
            ip addr add 2001:db8:5::2/64 dev up2 nodad
            ip link set up2 up
            ip -n stranger addr add 198.18.0.1/24 dev eth0
            ip -n stranger addr add 2001:db8:5::1/64 dev eth0 nodad
            ip -n stranger link set eth0 up
            ip -n stranger route add default via 198.18.0.2
            ip -n stranger -6 route add default via 2001:db8:5::2")
        .ok();
    netns
}

fn both() -> Value {
    PORTS.iter().map(|protocol| port(8080, 80, protocol)).collect()
}

#[test]
fn listed_clients_connect_others_do_not_the_host_and_neighbours_do() {
    for bridge_netfilter in [0, 1] {
        let (sandbox, outside) = machine_and_outside();
        set_bridge_netfilter(&sandbox, bridge_netfilter);
        let stranger = stranger(&sandbox);
        let network = net1(&sandbox).with("allowFrom", json!(["192.0.2.0/24", "2001:db8:ffff::1"]));
        let (a, b) = (network.container("a"), network.container("b"));
        let open = sandbox.network("net2", &["10.10.0.0/24", "fd10::/64"]).container("open");
        a.publish(both());
        open.publish(PORTS.iter().map(|protocol| port(9090, 80, protocol)).collect());
        sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
        sandbox.serve(Some(&open.netns), "tcp,udp", "[::]:80", "open");
        for protocol in PORTS {
            for host in [HOST4, HOST6] {
                for from in [Some(&outside), None, Some(&a.netns), Some(&b.netns)] {
                    let answer = sandbox.ask(from, protocol, &format!("{host}:8080"));
                    assert!(answer.starts_with("a "), "{answer}");
                }
                sandbox.ask_in_vain(Some(&stranger), protocol, &format!("{host}:8080"));
                sandbox.ask_in_vain(Some(&open.netns), protocol, &format!("{host}:8080"));
                for from in [&stranger, &outside] {
                    sandbox.ask(Some(from), protocol, &format!("{host}:9090"));
                }
            }
            assert_eq!(sandbox.ask(Some(&outside), protocol, &format!("{HOST4}:8080")), "a 192.0.2.1");
            assert_eq!(sandbox.ask(Some(&outside), protocol, &format!("{HOST6}:8080")), "a 2001:db8:ffff::1");
            sandbox.ask(None, protocol, "127.0.0.1:8080");
        }
    }
    noted("allowFrom, IPv4 and IPv6, br_netfilter on and off");
}

/// A list of one family says nothing good about the clients of the other.
#[test]
fn a_list_of_one_family_lets_nobody_in_by_the_other() {
    let (sandbox, outside) = machine_and_outside();
    let a = net1(&sandbox).with("allowFrom", json!(["192.0.2.1/32"])).container("a");
    a.publish(both());
    sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
    for protocol in PORTS {
        sandbox.ask(Some(&outside), protocol, &format!("{HOST4}:8080"));
        sandbox.ask_in_vain(Some(&outside), protocol, &format!("{HOST6}:8080"));
        sandbox.ask(None, protocol, &format!("{HOST6}:8080"));
    }
}

#[test]
fn a_changed_list_holds_from_the_next_add() {
    let (sandbox, outside) = machine_and_outside();
    let stranger = stranger(&sandbox);
    let closed = net1(&sandbox).with("allowFrom", json!(["192.0.2.1", "198.51.100.0/24"])).container("a");
    closed.publish(both());
    sandbox.serve(Some(&closed.netns), "tcp", "[::]:80", "a");
    let to = format!("{HOST4}:8080");
    sandbox.ask(Some(&outside), "tcp", &to);
    sandbox.ask_in_vain(Some(&stranger), "tcp", &to);
    // Another attachment of the network with another list: its own is its own.
    closed.ports(both()).with("allowFrom", json!(["198.18.0.0/16"])).add();
    sandbox.ask_in_vain(Some(&outside), "tcp", &to);
    sandbox.ask(Some(&stranger), "tcp", &to);
    closed.ports(both()).without("allowFrom").add();
    sandbox.ask(Some(&outside), "tcp", &to);
    sandbox.ask(Some(&stranger), "tcp", &to);
}

/// Takes a network with a list away: its containers, its bridge and its records of addresses.
fn forget_network(sandbox: &Sandbox, list: Value) {
    let old = net1(sandbox).with("allowFrom", list).with("masqAll", json!(true)).container("a");
    old.publish(both());
    old.remove();
    sandbox.sh("ip link del obr_net1; rm -rf /var/lib/cni/osvc/ipam/net1").ok();
}

/// It is the network's, not the subnet's: another network has the subnet now, or the network has a part of it.
#[test]
fn a_list_does_not_outlive_its_network() {
    for (name, subnets) in [("net3", DUAL), ("net1", ["10.9.0.0/25", "fd09::/80"])] {
        let (sandbox, outside) = machine_and_outside();
        forget_network(&sandbox, json!(["198.18.0.0/16"]));
        let new = sandbox.network(name, &subnets).container("b");
        new.publish(both());
        sandbox.serve(Some(&new.netns), "tcp,udp", "[::]:80", "new");
        for protocol in PORTS {
            let answer = sandbox.ask(Some(&outside), protocol, &format!("{HOST4}:8080"));
            assert_eq!(answer, "new 192.0.2.1", "{name}");
            let answer = sandbox.ask(Some(&outside), protocol, &format!("{HOST6}:8080"));
            assert_eq!(answer, "new 2001:db8:ffff::1", "{name}");
        }
    }
}

#[test]
fn a_list_of_a_network_that_is_gone_lets_nobody_in() {
    let (sandbox, outside) = machine_and_outside();
    forget_network(&sandbox, json!(["192.0.2.0/24", "2001:db8::/32"]));
    let new = sandbox.network("net3", &DUAL).with("allowFrom", json!(["198.18.0.0/16"])).container("b");
    new.publish(both());
    sandbox.serve(Some(&new.netns), "tcp,udp", "[::]:80", "new");
    for protocol in PORTS {
        sandbox.ask_in_vain(Some(&outside), protocol, &format!("{HOST4}:8080"));
        sandbox.ask_in_vain(Some(&outside), protocol, &format!("{HOST6}:8080"));
    }
}

/// The kernel takes no overlapping elements.
#[test]
fn lists_may_overlap_themselves_and_the_subnet() {
    let (sandbox, outside) = machine_and_outside();
    let stranger = stranger(&sandbox);
    let list =
        json!(["10.0.0.0/8", "10.9.0.0/24", "10.9.0.7", "192.0.2.1", "192.0.2.0/25", "192.0.2.0/25", "fd09::/16"]);
    let a = net1(&sandbox).with("allowFrom", list).container("a");
    a.publish(both());
    a.ports(both()).check(&a.result);
    sandbox.serve(Some(&a.netns), "tcp", "[::]:80", "a");
    sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:8080"));
    sandbox.ask_in_vain(Some(&stranger), "tcp", &format!("{HOST4}:8080"));
    sandbox.ask_in_vain(Some(&stranger), "tcp", &format!("{HOST6}:8080"));
    a.ports(both()).with("allowFrom", json!(["0.0.0.0/0", "::/0", "10.0.0.0/8"])).add();
    sandbox.ask(Some(&stranger), "tcp", &format!("{HOST4}:8080"));
    sandbox.ask(Some(&stranger), "tcp", &format!("{HOST6}:8080"));
}

#[test]
fn a_list_that_cannot_be_read_is_refused() {
    let sandbox = crate::machine();
    let a = sandbox.network("net1", &DUAL).container("a");
    let before = crate::everything(&sandbox);
    for (list, word) in [
        (json!(["banana"]), "banana"),
        (json!(["10.0.0.0/33"]), "10.0.0.0/33"),
        (json!(["10.0.0.0/8", "0.0.0.0/0 }; flush ruleset"]), "flush ruleset"),
        (json!([""]), "allowFrom"),
        (json!("10.0.0.0/8;"), "allowFrom"),
        (json!([7]), ""),
    ] {
        let (_, message) = a.ports(both()).with("allowFrom", list.clone()).add_fails();
        assert!(message.contains(word), "{list}: {message}");
        assert_eq!(crate::everything(&sandbox), before, "{list}");
    }
}
