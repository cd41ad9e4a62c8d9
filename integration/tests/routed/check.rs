//! CHECK finds what is missing between the nodes, and the next ADD or setup mends it.

use integration::cluster::{Cluster, Underlay};
use serde_json::Value;

use crate::{contains, network, noted, vm};

/// CHECK passes; after each damage (a script, and what is to be named) it fails; and after a setup it passes.
#[track_caller]
fn finds(cluster: &Cluster, config: &Value, damages: &[(String, &[&str])]) {
    let pods = cluster.start_everywhere(config);
    cluster.install(config);
    let pod = &pods[0];
    pod.check();
    for (damage, words) in damages {
        pod.node.sandbox.sh(damage).ok();
        contains(&pod.check_fails(), words);
        pod.node.osvc_net(&["setup", "net"]).ok();
        pod.check();
        assert!(pods[1..].iter().all(|peer| pod.reaches(peer)), "after `{damage}` and setup");
        // CHECK itself mends nothing, an ADD does.
        pod.node.sandbox.sh(damage).ok();
        pod.check_fails();
        pod.check_fails();
        pod.node.start(config, "mender").end();
        pod.check();
    }
    noted(&format!("CHECK: {} damages found and mended, {}", damages.len(), config["tunnelMode"]));
}

#[test]
fn of_plain_routes_and_vxlan() {
    let cluster = Cluster::three();
    let config = network(&cluster, "net", "vxlan", Underlay::V4);
    cluster.nodes[0].start(&config, "first").end();
    let device = cluster.nodes[0].tunnels().remove(0).name;
    let far = cluster.nodes[2].v4;
    finds(
        &cluster,
        &config,
        &[
            ("ip route del 10.11.4.0/22".into(), &["10.11.4.0/22", "node2"]),
            ("ip route del 10.11.8.0/22".into(), &["10.11.8.0/22", "node3"]),
            ("ip -6 route del fd11:0:0:2::/64".into(), &["fd11:0:0:2::/64", "node3"]),
            ("ip route replace 10.11.4.0/22 via 192.168.1.254 proto 79".into(), &["10.11.4.0/22", "node2"]),
            ("ip route del unreachable 10.11.0.0/16".into(), &["10.11.0.0/16"]),
            (format!("ip link del {device}"), &[&device]),
            (format!("ip link set {device} down"), &[&device]),
            (
                format!(
                    "mac=$(bridge fdb show dev {device} | grep 'dst {far}' | head -n1 | cut -d' ' -f1); \
                    bridge fdb replace $mac dev {device} dst 192.168.9.9 self permanent"
                ),
                &["node3"],
            ),
            (format!("ip neigh del 10.11.8.1 dev {device}"), &["node3"]),
        ],
    );
}

#[test]
fn of_other_tunnels() {
    vm().test(|| {
        for mode in ["ipip", "gre"] {
            let cluster = Cluster::three();
            let config = network(&cluster, "net", mode, Underlay::V4);
            cluster.nodes[0].start(&config, "first").end();
            let far = cluster.nodes[2].v4.to_string();
            let found = cluster.nodes[0]
                .tunnels()
                .into_iter()
                .find(|tunnel| tunnel.kind == mode && tunnel.remote.as_deref() == Some(far.as_str()));
            let device = found.expect("a tunnel to the third node").name;
            let ends = format!("local {} remote 192.168.9.9", cluster.nodes[0].v4);
            finds(
                &cluster,
                &config,
                &[
                    (format!("ip link del {device}"), &["node3"]),
                    (format!("ip link change {device} type {mode} {ends}"), &["node3"]),
                    ("ip route del 10.11.8.0/22".into(), &["10.11.8.0/22", "node3"]),
                ],
            );
        }
        let cluster = Cluster::three();
        let config = network(&cluster, "net", "wireguard", Underlay::V4);
        cluster.nodes[0].start(&config, "first").end();
        let device = cluster.nodes[0].tunnels().remove(0).name;
        let key = config["nodes"][2]["publicKey"].as_str().unwrap();
        finds(
            &cluster,
            &config,
            &[
                (format!("wg set {device} peer {key} remove"), &["node3"]),
                (format!("wg set {device} peer {key} allowed-ips 10.11.8.0/24"), &["node3"]),
                // With a session it would have been heard of from there.
                (
                    format!(
                        "wg set {device} peer {key} remove; wg set {device} peer {key} endpoint 192.168.9.9:7 \
                        allowed-ips 10.11.8.0/22,fd11:0:0:2::/64"
                    ),
                    &["node3"],
                ),
                (format!("ip link del {device}"), &["wireguard"]),
            ],
        );
    });
}
