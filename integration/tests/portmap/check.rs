//! CHECK, GC and STATUS.

use integration::{Netns, Sandbox, port, port_on};
use serde_json::{Value, json};

use crate::{HOST4, STORE, everything, kill, leads_to, machine, net1, noted};

const VALID: &str = "cni.dev/valid-attachments";

fn ports() -> Value {
    json!([port(8080, 80, "tcp"), port_on(HOST4, 8081, 80, "udp")])
}

#[test]
fn check_fails_before_add_passes_after_it_and_fails_after_del() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    assert_eq!(a.ports(ports()).check_fails(&a.result).0, 100);
    a.publish(ports());
    let before = everything(&sandbox);
    a.ports(ports()).check(&a.result);
    a.ports(ports()).with("snat", json!(true)).check(&a.result);
    assert_eq!(everything(&sandbox), before, "CHECK changes nothing");
    a.withdraw();
    assert_eq!(a.ports(ports()).check_fails(&a.result).0, 100);
    a.ports(json!([])).check(&a.result);
    a.portmap.check(&a.result);
}

/// Each row: what somebody takes away.
#[test]
fn check_finds_whatever_is_gone() {
    let damages = [
        ("an element of any", "nft flush map ip osvc-cni-portmap any"),
        ("one element of any", "nft delete element ip osvc-cni-portmap any '{ tcp . 8080 }'"),
        ("an element of any, IPv6", "nft flush map ip6 osvc-cni-portmap any"),
        ("an element of host", "nft flush map ip osvc-cni-portmap host"),
        (
            "another's address",
            "nft 'delete element ip osvc-cni-portmap any { tcp . 8080 }; add element ip osvc-cni-portmap any { tcp . 8080 : 10.9.0.77 . 80 }'",
        ),
        (
            "another's port",
            "nft 'delete element ip osvc-cni-portmap any { tcp . 8080 }; add element ip osvc-cni-portmap any { tcp . 8080 : 10.9.0.2 . 81 }'",
        ),
        ("hairpin", "nft flush set ip osvc-cni-portmap hairpin"),
        ("hairpin, IPv6", "nft flush set ip6 osvc-cni-portmap hairpin"),
        ("the hairpin element", "nft delete element ip osvc-cni-portmap hairpin '{ 10.9.0.0/24 . 10.9.0.0/24 }'"),
        ("the localhost element", "nft delete element ip osvc-cni-portmap hairpin '{ 127.0.0.0/8 . 10.9.0.0/24 }'"),
        ("the rules of a chain", "nft flush chain ip osvc-cni-portmap prerouting"),
        ("the rules of mapped", "nft flush chain ip6 osvc-cni-portmap mapped"),
        ("masquerading", "nft flush chain ip osvc-cni-portmap postrouting"),
        ("the protection of localhost", "nft flush chain ip osvc-cni-portmap localhost"),
        ("all rules", "nft flush table ip osvc-cni-portmap"),
        ("the table", "nft delete table ip osvc-cni-portmap"),
        ("the table, IPv6", "nft delete table ip6 osvc-cni-portmap"),
        ("the ruleset", "nft flush ruleset"),
        ("route_localnet", "echo 0 > /proc/sys/net/ipv4/conf/obr_net1/route_localnet"),
        ("the record", "rm /var/lib/cni/osvc/ports/attachments/*"),
        ("the store", "rm -r /var/lib/cni/osvc/ports"),
    ];
    for (what, damage) in damages {
        let sandbox = machine();
        let a = net1(&sandbox).container("a");
        a.publish(ports());
        a.ports(ports()).check(&a.result);
        sandbox.sh(damage).ok();
        let reply = a.ports(ports()).with("prevResult", a.result.clone()).call("CHECK");
        assert!(reply.output.rc != 0, "CHECK does not see that {what} is gone");
        let (code, message) = reply.error();
        assert_eq!(code, 100, "{what} is gone: {message}");
        a.publish(ports());
        a.ports(ports()).check(&a.result);
    }
    noted("CHECK finds whatever part of a published port is gone");
}

/// What is published is not what is asked about.
#[test]
fn check_finds_other_ports_than_the_configuration_s() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    a.publish(ports());
    for other in [
        json!([port(8080, 81, "tcp")]),
        json!([port(8080, 80, "udp")]),
        json!([port(8080, 80, "tcp"), port(9, 9, "tcp")]),
    ] {
        let (code, message) = a.ports(other.clone()).check_fails(&a.result);
        assert_eq!(code, 100, "{other}: {message}");
    }
    let closed = a.ports(ports()).with("allowFrom", json!(["10.0.0.0/8"]));
    assert_eq!(closed.check_fails(&a.result).0, 100, "others may connect than it is said now");
}

/// A network with a container that will live, one that will die, and one that will die but is known to the runtime: the
/// namespaces of the last two.
fn three(sandbox: &Sandbox, network: &str, subnet: &str, first: u16) -> Vec<Netns> {
    let network = sandbox.network(network, &[subnet]);
    let start = |(id, number): (&str, u16)| {
        let netns = sandbox.netns(&format!("{id}-{first}"));
        network.attach(&netns, id, "eth0", id).publish(json!([port(number, 80, "tcp")]));
        (id != "alive").then_some(netns)
    };
    [("alive", first), ("dead", first + 1), ("listed", first + 2)].into_iter().filter_map(start).collect()
}

#[test]
fn gc_takes_the_ports_of_the_dead_that_are_not_listed_in_its_network_only() {
    for (valid, left) in [
        (Some(json!([{"containerID": "listed", "ifname": "eth0"}])), 2),
        (Some(json!([{"containerID": "listed", "ifname": "eth1"}])), 1),
        (Some(json!([])), 1),
        (Some(Value::Null), 1),
        (None, 1),
    ] {
        let sandbox = machine();
        let mut dead = three(&sandbox, "net1", "10.9.0.0/24", 1000);
        dead.extend(three(&sandbox, "net2", "10.10.0.0/24", 2000));
        dead.iter().for_each(|netns| kill(&sandbox, netns));
        let mut gc = net1(&sandbox).portmap().with("cniVersion", json!("1.1.0"));
        if let Some(valid) = &valid {
            gc = gc.with(VALID, valid.clone());
        }
        for turn in 0..2 {
            gc.call("GC").done();
            let records = sandbox.sh(&format!("cat {STORE}/attachments/*")).ok();
            let of = |network: &str| records.matches(&format!("\"network\":\"{network}\"")).count();
            assert_eq!(of("net1"), left, "turn {turn}, {valid:?}: {records}");
            assert_eq!(of("net2"), 3, "turn {turn}, {valid:?}: net2 is not its affair: {records}");
            assert!(leads_to(&sandbox, "ip", 1000).is_some(), "what lives keeps its port, {valid:?}");
            assert_eq!(leads_to(&sandbox, "ip", 1001), None, "turn {turn}, {valid:?}");
            assert!(leads_to(&sandbox, "ip", 2000).is_some(), "{valid:?}");
        }
    }
    noted("GC with and without a list");
}

#[test]
fn gc_and_status_of_nothing_make_nothing() {
    let sandbox = machine();
    let before = sandbox.leftovers();
    let call = net1(&sandbox).portmap().with("cniVersion", json!("1.1.0"));
    call.call("GC").done();
    call.clone().with(VALID, json!([])).call("GC").done();
    call.call("STATUS").done();
    sandbox.leftovers().assert_same_as(&before, "GC and STATUS");
    assert!(!sandbox.exists(STORE));
    for version in ["0.4.0", "1.0.0"] {
        for verb in ["GC", "STATUS"] {
            let (code, message) = call.clone().with("cniVersion", json!(version)).call(verb).error();
            assert_eq!(code, 1, "{version} has no {verb}: {message}");
        }
    }
}

#[test]
fn status_fails_when_an_add_would() {
    let sandbox = machine();
    let call = net1(&sandbox).portmap().with("cniVersion", json!("1.1.0"));
    call.call("STATUS").done();
    sandbox.sh("mkdir -p /var/lib/cni/osvc; mount -t tmpfs -o ro tmpfs /var/lib/cni/osvc").ok();
    let (code, message) = call.call("STATUS").error();
    assert_eq!(code, 50, "{message}");
    assert!(message.contains("/var/lib/cni/osvc"), "{message}");
    sandbox.sh("umount /var/lib/cni/osvc").ok();
    call.call("STATUS").done();
    let (code, message) = call.with("backend", json!("iptables")).call("STATUS").error();
    assert!(code == 2 || code == 50, "a configuration that no ADD would take: {code} {message}");
}

#[test]
fn version_answers_and_needs_nothing() {
    let sandbox = machine();
    let answer = sandbox.plugin("osvc-portmap").config(json!({"cniVersion": "1.0.0"})).call("VERSION").result();
    let versions: Vec<_> = answer["supportedVersions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        assert!(versions.contains(&version), "{answer}");
    }
}
