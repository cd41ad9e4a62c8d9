//! osvc-routed on two nodes that are on one link: plain routes, and all that osvc-bridge does on each node's segment.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;

use integration::{Family, Netns, Plugin, Sandbox, addresses_of, report};
use serde_json::{Value, json};

const NETWORK: &str = "net1";
const BRIDGE: &str = "obr_net1";

fn config() -> Value {
    json!({"cniVersion": "1.1.0", "name": NETWORK, "type": "osvc-routed", "tunnel": "never",
        "network": ["10.11.0.0/16", "fd11::/48"], "maskPerNode": [22, 64],
        "nodes": [{"name": "n1", "addr": ["192.0.2.1", "2001:db8::1"]}, {"name": "n2", "addr": ["192.0.2.2", "2001:db8::2"]}]})
}

/// The same on a node.
fn on(node: usize) -> Value {
    let mut config = config();
    config["node"] = json!(format!("n{node}"));
    config
}

/// Two machines with a wire between them.
fn nodes() -> [Sandbox; 2] {
    let nodes = [Sandbox::new(), Sandbox::new()];
    let pid = |node: &Sandbox| node.path("/").components().nth(2).unwrap().as_os_str().to_str().unwrap().to_owned();
    let mut wire = Command::new("nsenter");
    wire.args(["-t", &pid(&nodes[0]), "-n", "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0"]);
    assert!(wire.args(["netns", &pid(&nodes[1])]).status().unwrap().success());
    for (index, node) in nodes.iter().enumerate() {
        let number = index + 1;
        node.sh(&format!(
            "set -e
            echo 0 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv6/conf/all/forwarding
            # Neighbours are asked for from the link-local address, which is tentative for some seconds when a device has
            # just come up: packets for them wait for so long, in each direction.
            echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
            ip addr add 192.0.2.{number}/24 dev eth0
            ip addr add 2001:db8::{number}/64 dev eth0 nodad
            ip link set eth0 up"
        ))
        .ok();
    }
    nodes
}

fn call<'a>(sandbox: &'a Sandbox, config: &Value, netns: &Netns) -> Plugin<'a> {
    sandbox
        .plugin(config["type"].as_str().unwrap())
        .config(config.clone())
        .container(&netns.name)
        .netns(netns)
        .named(&netns.name)
}

/// A container: its namespace, result, and addresses without prefix length.
fn start(sandbox: &Sandbox, config: &Value, name: &str) -> (Netns, Value, Vec<String>) {
    let netns = sandbox.netns(name);
    let result = call(sandbox, config, &netns).add();
    let bare = |address: String| address.split('/').next().unwrap().to_owned();
    let addresses = addresses_of(&result).into_iter().map(bare).collect();
    (netns, result, addresses)
}

fn is_in(address: &str, segment: &str) -> bool {
    segment.parse::<ipnet::IpNet>().unwrap().contains(&address.parse::<std::net::IpAddr>().unwrap())
}

#[test]
fn containers_of_two_nodes_reach_each_other_without_a_tunnel() {
    let nodes = nodes();
    let (a, result, a_has) = start(&nodes[0], &on(1), "a");
    let (b, _, b_has) = start(&nodes[1], &on(2), "b");
    for (has, segments) in [(&a_has, ["10.11.0.0/22", "fd11::/64"]), (&b_has, ["10.11.4.0/22", "fd11:0:0:1::/64"])] {
        assert!(has.iter().zip(segments).all(|(address, segment)| is_in(address, segment)), "{has:?} in {segments:?}");
    }
    assert_eq!(nodes[1].addresses(BRIDGE), ["10.11.4.1/22", "fd11:0:0:1::1/64"]);
    let routes = result["routes"].to_string();
    for route in [
        r#"{"dst":"0.0.0.0/0","gw":"10.11.0.1"}"#,
        r#"{"dst":"10.11.0.0/16","gw":"10.11.0.1"}"#,
        r#"{"dst":"fd11::/48","gw":"fd11::1"}"#,
    ] {
        assert!(routes.contains(route), "{route} in {routes}");
    }
    for (node, from, to) in [(0, &a, &b_has), (1, &b, &a_has)] {
        for address in to {
            assert!(nodes[node].ping(from, address), "{} to {address}", from.name);
        }
    }
    // The other end sees the real address.
    for (client, server, from, to, own, other) in [(0, 1, &a, &b, &a_has, &b_has), (1, 0, &b, &a, &b_has, &a_has)] {
        let _server = nodes[server].answer(&to.path, 80, "server");
        for (mine, theirs) in own.iter().zip(other) {
            let target = if theirs.contains(':') { format!("[{theirs}]:80") } else { format!("{theirs}:80") };
            let answer = nodes[client].connect_to(Some(&from.path), &target);
            let answer = answer.unwrap_or_else(|| panic!("{target} does not answer {}", from.name));
            assert_eq!(answer.client.to_string(), *mine);
        }
    }
    let kinds = nodes[0].sh("ip -j -d link show group 79 | jq -r '.[].linkinfo.info_kind // empty'").ok();
    assert!(kinds.split_whitespace().all(|kind| ["bridge", "veth"].contains(&kind)), "no tunnel: {kinds}");
    report::ran(&report::kernel(), "osvc-routed: two nodes on one link, ping and tcp in both families");
}

#[test]
fn an_add_on_a_network_in_place_starts_no_program_and_changes_nothing() {
    let nodes = nodes();
    start(&nodes[0], &on(1), "a");
    let before = (nodes[0].ip("route show table all proto 79"), nodes[0].ruleset());
    let netns = nodes[0].netns("c");
    let traced = call(&nodes[0], &on(1), &netns).through(&["strace", "-f", "-e", "trace=execve", "-o", "/run/trace"]);
    traced.add();
    assert_eq!((nodes[0].ip("route show table all proto 79"), nodes[0].ruleset()), before);
    assert_eq!(nodes[0].read("/run/trace").matches("execve(").count(), 1, "{}", nodes[0].read("/run/trace"));
    let (c, b) = (netns, start(&nodes[1], &on(2), "b").2);
    assert!(nodes[0].ping(&c, &b[0]), "the new container reaches the other node");
}

#[test]
fn check_finds_what_is_missing_and_the_next_add_brings_it_back() {
    let nodes = nodes();
    let (a, result, _) = start(&nodes[0], &on(1), "a");
    let (_, _, b) = start(&nodes[1], &on(2), "b");
    let attached = call(&nodes[0], &on(1), &a);
    attached.check(&result);
    attached.clone().without("prevResult").call("STATUS").done();
    nodes[0].ip("route del 10.11.4.0/22 proto 79");
    let (code, message) = attached.check_fails(&result);
    assert!(code == 100 && message.contains("10.11.4.0/22"), "{message}");
    assert!(!nodes[0].ping(&a, &b[0]), "the unreachable route keeps it from leaving by any other");
    start(&nodes[0], &on(1), "c");
    attached.check(&result);
    assert!(nodes[0].ping(&a, &b[0]));
}

#[test]
fn a_node_that_vanishes_from_the_list_moves_nobody_and_it_is_told() {
    let nodes = nodes();
    let (b, result, has) = start(&nodes[1], &on(2), "b");
    let mut edited = on(2);
    edited["nodes"].as_array_mut().unwrap().remove(0);
    let (_, _, also) = start(&nodes[1], &edited, "c");
    assert!(is_in(&has[0], "10.11.4.0/22") && is_in(&also[0], "10.11.4.0/22"), "ADD goes on: {has:?}, {also:?}");
    let attached = call(&nodes[1], &edited, &b);
    for (code, message) in [attached.call("STATUS").error(), attached.check_fails(&result)] {
        assert!(code == 7 && message.contains("set its `subnet` to 10.11.4.0/22"), "{code}: {message}");
    }
    edited["nodes"][0]["subnet"] = json!(["10.11.4.0/22", "fd11:0:0:1::/64"]);
    let pinned = call(&nodes[1], &edited, &b);
    pinned.call("STATUS").done();
    pinned.check(&result);
}

#[test]
fn del_and_gc_are_osvc_bridges_and_the_network_stays() {
    let nodes = nodes();
    let (a, _, _) = start(&nodes[0], &on(1), "a");
    let c = nodes[0].netns("c");
    let before = nodes[0].leftovers();
    call(&nodes[0], &on(1), &c).add();
    call(&nodes[0], &on(1), &c).del();
    nodes[0].leftovers().assert_same_as(&before, "DEL");
    call(&nodes[0], &on(1), &c).del();
    assert_eq!(nodes[0].held(Family::Osvc, NETWORK).len(), 2);
    let list = json!([{"containerID": a.name, "ifname": "eth0"}]);
    call(&nodes[0], &on(1), &a).with("cni.dev/valid-attachments", list).call("GC").done();
    assert_eq!(nodes[0].held(Family::Osvc, NETWORK).len(), 2);
    nodes[0].delete_netns(&a);
    call(&nodes[0], &on(1), &a).with("cni.dev/valid-attachments", json!([])).call("GC").done();
    assert_eq!(nodes[0].held(Family::Osvc, NETWORK).len(), 0);
    assert!(nodes[0].links().contains(BRIDGE));
}

#[test]
fn an_add_that_fails_leaves_nothing_of_a_new_network() {
    let nodes = nodes();
    let netns = nodes[0].netns("a");
    let before = (nodes[0].leftovers(), nodes[0].ip("route show table all proto 79"));
    nodes[0].ip("-n a link add eth0 type bridge");
    call(&nodes[0], &on(1), &netns).add_fails();
    nodes[0].ip("-n a link del eth0");
    // The route cannot be made when all else is: its gateway is not on the link.
    let mut config = on(1);
    config["ipam"] = json!({"routes": [{"dst": "203.0.113.0/24", "gw": "198.51.100.9"}]});
    call(&nodes[0], &config, &netns).add_fails();
    nodes[0].leftovers().assert_same_as(&before.0, "failed ADDs");
    assert_eq!(nodes[0].ip("route show table all proto 79"), before.1);
    start(&nodes[0], &on(1), "c");
}

#[test]
fn what_cannot_be_is_refused_by_name_and_changes_nothing() {
    let nodes = nodes();
    let netns = nodes[0].netns("a");
    let before = (nodes[0].leftovers(), nodes[0].list("/var/lib/cni/osvc/segments"));
    let with = |key: &str, value: Value| {
        let mut config = on(1);
        config[key] = value;
        config
    };
    let mut twice = on(1);
    twice["nodes"][1]["addr"] = json!("192.0.2.1");
    let mut host_bits = on(1);
    host_bits["nodes"][1]["subnet"] = json!("10.11.4.1/22");
    for (config, code, words) in [
        (with("node", json!("n9")), 7, &["n9", "n1, n2"][..]),
        (twice, 7, &["192.0.2.1", "n1", "n2"]),
        (host_bits, 2, &["10.11.4.1/22", "10.11.4.0/22"]),
        (with("maskPerNode", json!([15, 64])), 2, &["maskPerNode", "15"]),
        (with("maskPerNode", json!([16, 64])), 7, &["10.11.0.0/16", "maskPerNode"]),
        (with("tunnelMode", json!("carrier pigeon")), 2, &["carrier pigeon"]),
        (with("tunnelMode", json!("wireguard")), 7, &["never"]),
        (with("tables", json!(["nowhere"])), 2, &["nowhere"]),
    ] {
        let (found, message) = call(&nodes[0], &config, &netns).add_fails();
        assert_eq!(found, code, "{message}");
        for word in words {
            assert!(message.contains(word), "`{word}` is not named: {message}");
        }
    }
    // Addresses of another node that this host has a route to already.
    nodes[0].ip("route add 10.11.200.0/24 via 192.0.2.9");
    let (code, message) = call(&nodes[0], &on(1), &netns).add_fails();
    assert!(code == 7 && message.contains("10.11.200.0/24") && message.contains("eth0"), "{message}");
    let (code, message) = call(&nodes[0], &on(1), &netns).call("STATUS").error();
    assert!(code == 50 && message.contains("10.11.200.0/24"), "{code} {message}");
    nodes[0].leftovers().assert_same_as(&before.0, "refusals");
    assert_eq!(nodes[0].list("/var/lib/cni/osvc/segments"), before.1, "no plan is recorded");
    nodes[0].ip("route del 10.11.200.0/24");
    start(&nodes[0], &on(1), "c");
}

#[test]
fn a_kernel_without_the_tunnels_kind_is_told_and_nothing_is_made() {
    let keys = ["hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=", "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg="]
        .map(|key| json!(key));
    let mut told = Vec::new();
    for (mode, module, device) in [
        ("ipip", "ipip", "ipip local 192.0.2.1 remote 192.0.2.2"),
        ("gre", "ip_gre", "gre local 192.0.2.1 remote 192.0.2.2 key 7"),
        ("vxlan", "vxlan", "vxlan id 7 dstport 4779"),
        ("wireguard", "wireguard", "wireguard"),
    ] {
        let [node, _other] = nodes();
        let netns = node.netns("a");
        let has_kind = node.sh(&format!("ip link add name try0 type {device} && ip link del try0")).rc == 0;
        let mut config = on(1);
        (config["tunnel"], config["tunnelMode"]) = (json!("always"), json!(mode));
        (config["network"], config["maskPerNode"]) = (json!("10.11.0.0/16"), json!(22));
        for (index, address) in ["192.0.2.1", "192.0.2.2"].into_iter().enumerate() {
            config["nodes"][index]["addr"] = json!(address);
            config["nodes"][index]["publicKey"] = keys[index].clone();
        }
        let before = (node.leftovers(), node.list("/var/lib/cni/osvc/segments"));
        let called = call(&node, &config, &netns);
        if has_kind {
            called.call("STATUS").done();
            called.add();
        } else {
            for verb in ["STATUS", "ADD"] {
                let (code, message) = called.call(verb).error();
                assert!(code == 50 && message.contains(module) && message.contains(NETWORK), "{verb} {code} {message}");
            }
            node.leftovers().assert_same_as(&before.0, mode);
            assert_eq!(node.list("/var/lib/cni/osvc/segments"), before.1, "no plan is recorded");
        }
        told.push(format!("{mode} {}", if has_kind { "there" } else { "missing" }));
    }
    report::ran(&report::kernel(), &format!("osvc-routed: kinds of tunnels: {}", told.join(", ")));
}

#[test]
fn the_whole_network_is_taken_and_not_only_this_nodes_segment() {
    let [node, _other] = nodes();
    start(&node, &on(1), "a");
    let netns = node.netns("b");
    for (plugin, network) in
        [("osvc-bridge", "10.11.200.0/24"), ("osvc-bridge", "10.11.4.0/24"), ("osvc-routed", "10.0.0.0/8")]
    {
        let mut config = on(1);
        (config["name"], config["type"], config["network"]) = (json!("net2"), json!(plugin), json!(network));
        config["maskPerNode"] = json!(22);
        let (code, message) = call(&node, &config, &netns).add_fails();
        assert!(code == 7 && message.contains(network) && message.contains(NETWORK), "{plugin} {network}: {message}");
    }
}
