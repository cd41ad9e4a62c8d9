//! The cluster of the harness itself: what is asked of routed networks, asked of one that is made by hand.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::IpAddr;

use integration::Vm;
use integration::cluster::{Cluster, Pod, all_ping, all_talk, fragments, talk};
use serde_json::{Value, json};

/// A node's own part, with this MTU.
fn part(index: usize, mtu: u32) -> Value {
    let subnets = json!([format!("10.11.{}.0/22", 4 * index), format!("fd11:0:0:{index:x}::/64")]);
    json!({"cniVersion": "1.1.0", "name": "net", "type": "osvc-bridge", "network": subnets, "mtu": mtu,
        "ipMasq": false})
}

fn start(cluster: &Cluster, mtu: u32) -> Vec<Pod<'_>> {
    let nodes = cluster.nodes.iter().enumerate();
    nodes.map(|(index, node)| node.start(&part(index, mtu), ["a", "b", "c"][index])).collect()
}

/// Routes from each node to the others' parts, by a device of one peer or by the peer's address.
fn lead(cluster: &Cluster, tunnel: impl Fn(usize, usize) -> Option<String>) {
    for (from, node) in cluster.nodes.iter().enumerate() {
        for (to, peer) in cluster.nodes.iter().enumerate().filter(|(to, _)| *to != from) {
            let (way4, way6) = match tunnel(from, to) {
                Some(script) => {
                    node.sandbox.sh(&script).ok();
                    (format!("dev t{to} mtu 1450"), format!("dev t{to} mtu 1450"))
                }
                None => (format!("via {}", peer.v4), format!("via {}", peer.v6)),
            };
            node.sandbox.ip(&format!("route add 10.11.{}.0/22 {way4}", 4 * to));
            node.sandbox.ip(&format!("-6 route add fd11:0:0:{to:x}::/64 {way6}"));
        }
    }
}

fn by_hand(kind: &str) {
    let cluster = Cluster::three();
    let pods = start(&cluster, 1450);
    lead(&cluster, |from, to| {
        let (local, remote) = (cluster.nodes[from].v4, cluster.nodes[to].v4);
        // The third one is behind a router, which knows no way to anybody's part.
        (from == 2 || to == 2).then(|| {
            let ends = format!("local {local} remote {remote}");
            let device = match kind {
                "gre" => format!("ip link add t{to} type gre {ends}"),
                _ => format!("ip link add t{to} type vxlan id {} dstport 4779 {ends}", 7 + from + to),
            };
            let mac = |index: usize| format!("02:00:00:00:00:0{index}");
            let neighbours: String = ["10.11", "fd11"]
                .iter()
                .map(|family| {
                    let pod =
                        pods[to].addresses.iter().find(|address| address.to_string().starts_with(family)).unwrap();
                    format!("ip neigh add {pod} lladdr {} dev t{to}; ", mac(to))
                })
                .collect();
            match kind {
                "gre" => format!("set -e; {device}; ip link set t{to} up"),
                _ => format!("set -e; {device}; ip link set t{to} address {} up; {neighbours}", mac(from)),
            }
        })
    });
    let capture = cluster.world.capture(None);
    all_ping(&pods);
    all_talk(&pods);
    let seen = capture.end();
    assert_eq!(fragments(&cluster), 0);
    let number = if kind == "gre" { 47 } else { 17 };
    let ends = |a: usize, b: usize| -> [IpAddr; 2] { [cluster.nodes[a].v4, cluster.nodes[b].v4] };
    assert!(seen.between(ends(0, 2), number) > 10, "the tunnel is seen");
    assert_eq!(seen.between(ends(0, 1), number), 0, "the direct pair needs none");
    assert!(seen.with_address(pods[0].addresses[0]) > 10);
    assert_ne!(cluster.nodes[0].way_to(pods[2].addresses[0]), "eth0");
    // Who is not masqueraded gets no answer from outside.
    assert!(pods[0].ask("198.51.100.1".parse().unwrap()).is_none());
    let mut masqueraded = part(0, 1450);
    (masqueraded["ipMasq"], masqueraded["name"]) = (json!(true), json!("other"));
    masqueraded["network"] = json!(["10.22.0.0/24", "fd22::/64"]);
    let pod = cluster.nodes[0].start(&masqueraded, "m");
    assert_eq!(cluster.outside_sees(&pod), [cluster.nodes[0].v4, cluster.nodes[0].v6]);
}

#[test]
fn a_network_made_by_hand() {
    by_hand("vxlan");
}

#[test]
fn a_network_made_by_hand_in_the_vm() {
    Vm::new().test(|| by_hand("gre"));
}

#[test]
#[should_panic(expected = "with 1500")]
fn what_is_too_long_for_the_way_is_found_out() {
    let cluster = Cluster::new(&[0, 0], &[]);
    let pods = start(&cluster, 1500);
    lead(&cluster, |_, _| None);
    cluster.nodes[1].sandbox.ip("link set eth0 mtu 1400");
    cluster.nodes[0].sandbox.ip("link set eth0 mtu 1400");
    talk(&pods[0], &pods[1]);
}

#[test]
fn a_rebooted_node_is_on_its_link_again() {
    let mut cluster = Cluster::new(&[0, 1], &[]);
    cluster.reboot(0);
    let target = cluster.nodes[1].v4.to_string();
    assert_eq!(cluster.nodes[0].sandbox.run(&["ping", "-n", "-c", "1", "-W", "2", &target]).rc, 0);
    assert_eq!(cluster.nodes[0].sandbox.sh("cat /proc/sys/kernel/hostname").ok().trim(), "node1");
}
