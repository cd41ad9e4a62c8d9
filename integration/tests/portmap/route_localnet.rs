//! What opens a device for 127.0.0.1, and what does not: an uplink would let its neighbours in.

use integration::{Plugin, Sandbox, port, port_on};
use serde_json::{Value, json};

use crate::{machine, net1, noted, osvc_net, route_localnet};

fn of(sandbox: &Sandbox, device: &str) -> String {
    sandbox.sh(&format!("cat /proc/sys/net/ipv4/conf/{device}/route_localnet")).ok().trim().to_owned()
}

/// Devices that may be the way out of a machine; of the first, the kernel has one or the other. A pair's end is that in a
/// machine that is a container itself.
const UPLINKS: [&str; 2] = [
    "ip link add up9 type dummy || ip link add up9 type ifb || ip tuntap add up9 mode tap",
    "ip link add up9 type veth peer name peer9 && ip link set peer9 up",
];

/// An uplink on whose link all of 10.9.0.0/16 is.
fn uplink(sandbox: &Sandbox, make: &str) {
    sandbox.sh(&format!("set -e; {{ {make}; }}; ip addr add 10.9.200.1/16 dev up9; ip link set up9 up")).ok();
}

/// Everything that looks after ports: each may open devices.
fn look_after(sandbox: &Sandbox, turn: &str) {
    osvc_net(sandbox, "setup");
    sandbox.sh("nft flush ruleset").ok();
    net1(sandbox).container(&format!("one-{turn}")).publish(json!([]));
    sandbox.sh("nft flush ruleset").ok();
    sandbox.network("net8", &["10.8.0.0/24"]).container(&format!("two-{turn}"));
    osvc_net(sandbox, "setup");
}

#[test]
fn the_record_of_another_network_namespace_opens_nothing_here() {
    for kind in UPLINKS {
        let sandbox = machine();
        sandbox.netns("elsewhere");
        let (netns, nsenter) = (sandbox.netns("z"), ["nsenter", "--net=/run/netns/elsewhere"]);
        let plugin = |name: &str| -> Plugin<'_> {
            let config = json!({"cniVersion": "1.0.0", "name": "far", "type": name});
            sandbox.plugin(name).config(config).container("z").netns(&netns).named("z").through(&nsenter)
        };
        let result = plugin("osvc-bridge").with("network", json!("10.9.7.0/24")).add();
        let portmap = plugin("osvc-portmap").with("prevResult", result);
        portmap.with("runtimeConfig", json!({"portMappings": [port(8080, 80, "tcp")]})).add();
        let there =
            sandbox.sh("nsenter --net=/run/netns/elsewhere sysctl -n net.ipv4.conf.obr_far.route_localnet").ok();
        assert_eq!(there.trim(), "1", "the case is real");
        uplink(&sandbox, kind);
        osvc_net(&sandbox, "setup");
        sandbox.network("net8", &["10.8.0.0/24"]).container("b").publish(json!([port(9090, 80, "tcp")]));
        sandbox.sh("nft flush ruleset").ok();
        sandbox.network("net8", &["10.8.0.0/24"]).container("c");
        osvc_net(&sandbox, "setup");
        assert_eq!(of(&sandbox, "up9"), "0", "`{kind}`");
        assert_eq!(of(&sandbox, "obr_net8"), "1");
    }
    noted("route_localnet is not set for the record of another network namespace");
}

#[test]
fn a_port_on_ipv6_alone_opens_nothing() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    let rows: [Value; 3] = [
        json!([port_on("::", 8080, 80, "tcp")]),
        json!([port_on("2001:db8::1", 8080, 80, "tcp")]),
        json!([port_on("192.0.2.2", 8080, 80, "tcp"), port_on("::", 8081, 80, "udp")]),
    ];
    for (turn, mappings) in rows.into_iter().enumerate() {
        a.publish(mappings.clone());
        assert_eq!(route_localnet(&sandbox), "0", "{mappings}");
        look_after(&sandbox, &turn.to_string());
        assert_eq!(route_localnet(&sandbox), "0", "{mappings} looked after");
        a.ports(mappings).check(&a.result);
    }
    a.publish(json!([port_on("127.0.0.1", 8080, 80, "tcp")]));
    assert_eq!(route_localnet(&sandbox), "1");
}

/// macvlan: the container is on the link of the uplink itself.
fn macvlan(make: &str) {
    let sandbox = machine();
    uplink(&sandbox, make);
    let netns = sandbox.netns("m");
    let ipam = json!({"type": "host-local", "ranges": [[{"subnet": "10.9.0.0/16", "rangeStart": "10.9.3.1"}]]});
    let config = json!({"cniVersion": "1.0.0", "name": "mac", "type": "macvlan", "master": "up9", "mode": "bridge", "ipam": ipam});
    let result = sandbox.plugin("macvlan").config(config).container("m").netns(&netns).add();
    let call = sandbox.network("mac", &[]).portmap().container("m").netns(&netns).named("m");
    let call = call.with("prevResult", result);
    call.with("runtimeConfig", json!({"portMappings": [port(8080, 80, "tcp")]})).add();
    assert_eq!(of(&sandbox, "up9"), "0", "ADD");
    osvc_net(&sandbox, "setup");
    assert_eq!(of(&sandbox, "up9"), "0", "setup");
    sandbox.sh("nft flush ruleset").ok();
    sandbox.network("net8", &["10.8.0.0/24"]).container("c");
    assert_eq!(of(&sandbox, "up9"), "0", "restore");
    noted("route_localnet is not set on the parent of a macvlan");
}

#[test]
fn the_parent_of_a_macvlan_is_not_opened() {
    macvlan(UPLINKS[0]);
}

/// The uplink of a machine that is a container itself is the end of a pair, as that of a container of ours is.
#[test]
fn the_parent_of_a_macvlan_in_a_nested_machine_is_not_opened() {
    macvlan(UPLINKS[1]);
}
