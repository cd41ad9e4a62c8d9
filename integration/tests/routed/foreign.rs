//! What somebody else made is left alone, however much it looks like ours.

use integration::cluster::{Cluster, Underlay, all_talk};
use serde_json::json;

use crate::{V4, noted, vm, vxlan};

/// Devices and routes of others, as `ip` shows them, without what the kernel counts.
const SHOW: &str = "ip -o -d link show | grep -E 'foreign|ot0000000000000|tun192|other0' |
        sed 's/ state .* mode / mode /; s/^[0-9]*: //; s/_timer  *[0-9.]*//g'
    ip -4 route show proto static; ip -4 route show 10.77.0.0/16; ip -4 addr show dev other0 | grep inet";

/// A bridge and routes of somebody else, and a device with a name such as ours are.
const OTHERS: &str = "set -e
    ip link add other0 type bridge; ip addr add 10.88.0.1/24 dev other0; ip link set other0 up
    ip link add ot0000000000000 type vxlan id 4711 dstport 4799 dev eth0
    ip link add foreign type vxlan id 77 dstport 8472 local 192.168.1.1 nolearning; ip link set foreign up
    ip route add 10.77.0.0/16 via 192.168.1.254 proto static
    ip route add unreachable 10.78.0.0/16 proto static";

#[test]
fn what_looks_like_ours() {
    let cluster = Cluster::three();
    let one = &cluster.nodes[0].sandbox;
    one.sh(OTHERS).ok();
    let before = one.sh(SHOW).ok();
    let config = vxlan(&cluster);
    let pods = cluster.start_everywhere(&config);
    all_talk(&pods);
    cluster.install(&config);
    cluster.nodes[0].osvc_net(&["setup", "--prune"]).ok();
    assert_eq!(one.sh(SHOW).ok(), before);
    noted("foreign vxlan devices, routes and bridges are left alone");
}

#[test]
fn tunnels_with_the_same_ends() {
    vm().test(|| {
        let cluster = Cluster::three();
        let one = &cluster.nodes[0].sandbox;
        one.sh(OTHERS).ok();
        let ends = format!("local {} remote {}", cluster.nodes[0].v4, cluster.nodes[2].v4);
        one.sh(&format!(
            "set -e
            ip link add tun19216823 type ipip {ends} pmtudisc; ip link set tun19216823 mtu 1480 up
            ip link add foreign1 type gre {ends} key 99; ip link set foreign1 up"
        ))
        .ok();
        let before = one.sh(SHOW).ok();
        for mode in ["ipip", "gre"] {
            let mut config = cluster.network(mode, Underlay::V4, &[V4]);
            config["tunnelMode"] = json!(mode);
            if mode == "gre" {
                config["network"] = json!(["10.12.0.0/16"]);
            }
            let names = ["p", "q", "r"];
            let pods: Vec<_> = cluster
                .nodes
                .iter()
                .zip(names)
                .map(|(node, name)| node.start(&config, &format!("{name}{mode}")))
                .collect();
            all_talk(&pods);
            pods.iter().for_each(|pod| pod.check());
            cluster.install(&config);
            cluster.nodes[0].osvc_net(&["setup", "--prune"]).ok();
            assert_eq!(one.sh(SHOW).ok(), before, "{mode}");
            pods.into_iter().for_each(|pod| pod.end());
        }
        noted("a foreign tunnel with the same ends is used, and not ours");
    });
}
