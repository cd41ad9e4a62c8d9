//! DEL: knowing the id alone it removes what is its own and nothing else.

use integration::{Plugin, port, port_on};
use serde_json::{Value, json};

use crate::{HOST4, everything, kill, leads_to, machine, machine_and_outside, net1, noted, ruleset_in_order, store};

fn three() -> Value {
    json!([port(8001, 80, "tcp"), port(8001, 80, "udp"), port_on(HOST4, 8003, 80, "tcp")])
}

fn others() -> Value {
    json!([port(9001, 80, "tcp"), port(9001, 80, "udp"), port_on(HOST4, 9003, 80, "tcp")])
}

/// Each row: how the DEL differs from the ADD.
#[test]
fn every_kind_of_del_removes_exactly_its_own() {
    type Change = fn(Plugin<'_>) -> Plugin<'_>;
    let changes: [(&str, Change); 13] = [
        ("as the ADD", |del| del),
        ("with the id alone", |del| del.without("runtimeConfig").without("prevResult").no_netns().no_args()),
        ("without runtimeConfig", |del| del.without("runtimeConfig")),
        ("with null for runtimeConfig", |del| del.with("runtimeConfig", Value::Null)),
        ("with other ports", |del| del.with("runtimeConfig", json!({"portMappings": [port(9001, 80, "tcp")]}))),
        ("with ports that cannot be", |del| del.with("runtimeConfig", json!({"portMappings": [port(0, 0, "icmp")]}))),
        ("without prevResult", |del| del.without("prevResult")),
        ("with an empty prevResult", |del| del.with("prevResult", json!({"cniVersion": "1.0.0"}))),
        ("without netns", |del| del.no_netns()),
        ("with a netns path that is gone", |del| del.netns_path("/run/netns/gone")),
        ("without arguments", |del| del.no_args()),
        ("with malformed arguments", |del| del.args("x=;=;;K8S_POD_NAME")),
        ("without snat", |del| del.with("snat", json!(false))),
    ];
    let sandbox = machine();
    let network = net1(&sandbox);
    let neighbour = network.container("neighbour");
    neighbour.publish(others());
    let elsewhere = sandbox.network("net2", &["10.10.0.0/24"]).container("elsewhere");
    elsewhere.publish(json!([port(9002, 80, "tcp")]));
    let a = network.container("a");
    // The network's own elements come and go with its first and last port: they are there.
    let state = || (ruleset_in_order(&sandbox), store(&sandbox));
    let before = state();
    for (what, change) in changes {
        a.publish(three());
        change(a.ports(three())).del();
        assert_eq!(state(), before, "after a DEL {what}");
        change(a.ports(three())).del();
        assert_eq!(state(), before, "after a second DEL {what}");
    }
    noted("DEL with the id alone removes exactly this attachment's ports");
}

#[test]
fn the_last_del_leaves_no_element_behind() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    a.publish(three());
    a.withdraw();
    let left = everything(&sandbox);
    // What says how connections to the network's subnets are masqueraded is the network's, and may stay.
    for text in [" 8001 ", " 8003 ", &format!(": {} .", a.v4), &format!(": {} .", a.v6)] {
        let tables = sandbox.sh("nft list table ip osvc-cni-portmap; nft list table ip6 osvc-cni-portmap").stdout;
        assert!(!tables.contains(text), "{text} is left: {tables}");
    }
    assert!(sandbox.list(&format!("{}/attachments", crate::STORE)).is_empty(), "{left}");
    for folder in ["by-port", "by-address"] {
        assert!(sandbox.list(&format!("{}/{folder}", crate::STORE)).is_empty(), "{folder}: {left}");
    }
}

#[test]
fn del_of_another_network_or_interface_leaves_the_ports() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    a.publish(three());
    let before = everything(&sandbox);
    let net2 = sandbox.network("net2", &["10.10.0.0/24"]);
    for del in [
        net2.portmap().container("a").netns(&a.netns),
        net2.portmap().container("a"),
        net1(&sandbox).portmap().container("a").ifname("eth1"),
        net1(&sandbox).portmap().container("a2"),
        a.bare().container("a.b"),
    ] {
        del.del();
        assert_eq!(everything(&sandbox), before);
    }
}

#[test]
fn del_of_what_was_never_added_succeeds_and_makes_nothing() {
    let sandbox = machine();
    let before = sandbox.leftovers();
    for del in [net1(&sandbox).portmap(), net1(&sandbox).portmap().container(&"x".repeat(300))] {
        del.clone().del();
        del.without("capabilities")
            .with("prevResult", json!({"cniVersion": "1.0.0", "ips": [{"address": "x"}]}))
            .call("DEL");
    }
    sandbox.leftovers().assert_same_as(&before, "a DEL of nothing");
    assert!(!sandbox.exists(crate::STORE), "no folder is made for nothing");
}

#[test]
fn a_late_del_of_a_predecessor_leaves_the_successor_s_ports() {
    let (sandbox, outside) = machine_and_outside();
    let network = net1(&sandbox);
    let old = network.named("old", "web");
    old.publish(three());
    kill(&sandbox, &old.netns);
    let new = network.named("new", "web");
    assert_eq!(new.v4, old.v4, "the successor has the address");
    new.publish(three());
    sandbox.serve(Some(&new.netns), "tcp,udp", "[::]:80", "web");
    old.ports(three()).call("DEL").done();
    old.remove();
    // The path may be the successor's by now.
    old.ports(three()).netns(&new.netns).del();
    for (protocol, number) in [("tcp", 8001), ("udp", 8001), ("tcp", 8003)] {
        assert_eq!(sandbox.ask(Some(&outside), protocol, &format!("{HOST4}:{number}")), "web 192.0.2.1");
    }
    assert_eq!(leads_to(&sandbox, "ip6", 8001), Some(format!("{} . 80", new.v6)));
    noted("a late DEL of a predecessor leaves its successor's ports");
}

/// Its bridge, its namespace and its addresses are gone already.
#[test]
fn del_of_the_bridge_first_is_no_hindrance() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    a.publish(three());
    a.bridge.del();
    sandbox.delete_netns(&a.netns);
    a.withdraw();
    assert_eq!(leads_to(&sandbox, "ip", 8001), None);
    net1(&sandbox).container("b").publish(three());
}
