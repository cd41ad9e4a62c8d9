//! UDP has no end: a client that goes on sending must reach whoever has the port now.

use integration::{Flow, Sandbox, port};
use serde_json::{Value, json};

use crate::{HOST4, HOST6, kill, machine_and_outside, net1, noted};

fn ports() -> Value {
    json!([port(5353, 53, "udp")])
}

fn flows(sandbox: &Sandbox) -> [(Flow<'_>, &'static str); 3] {
    let outside = integration::Netns { name: "outside".into(), path: String::new() };
    [
        (sandbox.flow(Some(&outside), &format!("{HOST4}:5353")), "192.0.2.1"),
        (sandbox.flow(Some(&outside), &format!("{HOST6}:5353")), "2001:db8:ffff::1"),
        (sandbox.flow(None, "127.0.0.1:5353"), "10.9.0.1"),
    ]
}

fn reach(flows: &[(Flow<'_>, &str)], name: &str) {
    for (flow, client) in flows {
        flow.reaches(&format!("{name} {client}"));
    }
}

#[test]
fn a_flow_moves_to_the_new_container_and_stops_after_del() {
    let (sandbox, _) = machine_and_outside();
    let network = net1(&sandbox);
    let flows = flows(&sandbox);
    // It began before anybody listened: what the kernel remembers of that must go as well.
    flows.iter().for_each(|(flow, _)| flow.reaches_nobody());
    let (old, new) = (network.container("old"), network.container("new"));
    for container in [&old, &new] {
        sandbox.serve(Some(&container.netns), "udp", "[::]:53", &container.netns.name);
    }
    old.publish(ports());
    reach(&flows, "old");
    old.withdraw();
    new.publish(ports());
    reach(&flows, "new");
    // The server still runs: only the port is closed.
    new.withdraw();
    flows.iter().for_each(|(flow, _)| flow.reaches_nobody());
    old.publish(ports());
    reach(&flows, "old");
    noted("a UDP flow moves to the new container and stops after DEL, IPv4 and IPv6");
}

#[test]
fn a_flow_moves_from_a_container_that_died_without_del() {
    let (sandbox, _) = machine_and_outside();
    let network = net1(&sandbox);
    let (old, new) = (network.container("old"), network.container("new"));
    for container in [&old, &new] {
        sandbox.serve(Some(&container.netns), "udp", "[::]:53", &container.netns.name);
    }
    old.publish(ports());
    let flows = flows(&sandbox);
    reach(&flows, "old");
    // The server holds its namespace.
    sandbox.end_server("old");
    kill(&sandbox, &old.netns);
    new.publish(ports());
    reach(&flows, "new");
}

#[test]
fn a_flow_follows_a_container_whose_port_is_changed_by_another_add() {
    let (sandbox, _) = machine_and_outside();
    let a = net1(&sandbox).container("a");
    sandbox.serve(Some(&a.netns), "udp", "[::]:53", "first");
    sandbox.serve(Some(&a.netns), "udp", "[::]:54", "second");
    a.publish(ports());
    let flows = flows(&sandbox);
    reach(&flows, "first");
    a.publish(json!([port(5353, 54, "udp")]));
    reach(&flows, "second");
    a.publish(json!([]));
    flows.iter().for_each(|(flow, _)| flow.reaches_nobody());
}

/// While the tables are gone the kernel remembers the flow as one to the host itself.
#[test]
fn a_flow_that_goes_on_while_the_tables_are_gone_comes_back_with_them() {
    for damage in [
        "nft delete table ip osvc-cni-portmap; nft delete table ip6 osvc-cni-portmap",
        "nft flush ruleset",
        "nft flush table ip osvc-cni-portmap; nft flush table ip6 osvc-cni-portmap",
    ] {
        let (sandbox, outside) = machine_and_outside();
        let network = net1(&sandbox);
        let a = network.container("a");
        sandbox.serve(Some(&a.netns), "udp", "[::]:53", "a");
        a.publish(ports());
        sandbox.sh(damage).ok();
        let flows = [
            (sandbox.flow(Some(&outside), &format!("{HOST4}:5353")), "192.0.2.1"),
            (sandbox.flow(Some(&outside), &format!("{HOST6}:5353")), "2001:db8:ffff::1"),
        ];
        flows.iter().for_each(|(flow, _)| flow.reaches_nobody());
        network.container("b");
        reach(&flows, "a");
    }
    noted("a UDP flow that went on without the tables reaches its container again with them");
}

/// Other ports, other protocols and forwarded traffic keep what the kernel remembers of them.
#[test]
fn only_the_flows_of_the_port_are_forgotten() {
    let (sandbox, outside) = machine_and_outside();
    let network = net1(&sandbox);
    let (a, b) = (network.container("a"), network.container("b"));
    a.publish(json!([port(5353, 53, "udp"), port(5354, 53, "udp"), port(5353, 53, "tcp")]));
    b.publish(json!([port(5355, 53, "udp")]));
    sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:53", "a");
    sandbox.serve(Some(&b.netns), "udp", "[::]:53", "b");
    for (protocol, number) in [("udp", 5353), ("udp", 5355), ("tcp", 5353)] {
        sandbox.ask(Some(&outside), protocol, &format!("{HOST4}:{number}"));
    }
    let remembered = || {
        let count = |protocol: &str, number: u16| {
            let text = sandbox.sh("cat /proc/net/nf_conntrack").stdout;
            text.lines().filter(|l| l.contains(protocol) && l.contains(&format!("dport={number} "))).count()
        };
        (count("udp", 5353), count("udp", 5355), count("tcp", 5353))
    };
    let before = remembered();
    if before == (0, 0, 0) {
        noted("what else conntrack remembers was NOT looked at: this kernel has no /proc/net/nf_conntrack");
        return;
    }
    a.withdraw();
    let after = remembered();
    assert_eq!(after.0, 0, "{before:?} -> {after:?}");
    assert_eq!((after.1, after.2), (before.1, before.2));
}
