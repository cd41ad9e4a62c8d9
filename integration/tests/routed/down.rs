//! What the host does to the network under the containers: devices that go down, a reboot, a lost folder.

use integration::cluster::{Cluster, Underlay, all_talk};
use serde_json::Value;

use crate::{contains, network, noted, vm, vxlan};

/// After the underlay's device was down on each of the nodes, one `mend` on each brings all pairs together again.
#[track_caller]
fn comes_back(cluster: &Cluster, config: &Value, mend: impl Fn(&Cluster, usize)) {
    let pods = cluster.start_everywhere(config);
    all_talk(&pods);
    for node in &cluster.nodes {
        node.sandbox.sh("ip link set eth0 down; ip link set eth0 up").ok();
        node.default_routes();
    }
    for index in 0..cluster.nodes.len() {
        mend(cluster, index);
    }
    all_talk(&pods);
    pods.iter().for_each(|pod| pod.check());
}

fn by_add(config: &Value) -> impl Fn(&Cluster, usize) {
    |cluster, index| {
        let node = &cluster.nodes[index];
        node.call(config, &node.sandbox.netns("more"), "eth0").add();
    }
}

fn by_setup(config: &Value) -> impl Fn(&Cluster, usize) {
    |cluster, index| {
        cluster.nodes[index].install(config);
        cluster.nodes[index].osvc_net(&["setup", "net"]).ok();
    }
}

#[test]
fn the_underlay_was_down_and_one_add_mends_it() {
    for underlay in [Underlay::V4, Underlay::Both] {
        let cluster = Cluster::three();
        let config = network(&cluster, "net", "vxlan", underlay);
        comes_back(&cluster, &config, by_add(&config));
    }
    noted("`ip link set eth0 down; up` on all nodes, then one ADD on each");
}

#[test]
fn the_underlay_was_down_and_setup_mends_it() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    comes_back(&cluster, &config, by_setup(&config));
    noted("`ip link set eth0 down; up` on all nodes, then one setup on each");
}

#[test]
fn the_underlay_of_other_tunnels_was_down() {
    vm().test(|| {
        let cluster = Cluster::three();
        let config = network(&cluster, "net", "ipip", Underlay::V4);
        comes_back(&cluster, &config, by_add(&config));
        noted("`ip link set eth0 down; up`, then one ADD: ipip over IPv4");
    });
}

#[test]
fn a_tunnel_or_bridge_taken_away_is_back_with_the_next_add() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    let pods = cluster.start_everywhere(&config);
    let one = &cluster.nodes[0];
    let device = one.tunnels().remove(0).name;
    for damage in [
        format!("ip link del {device}"),
        format!("ip link set {device} down"),
        "ip route flush proto 79; ip -6 route flush proto 79".to_owned(),
        format!("ip neigh flush nud permanent dev {device}; ip -6 neigh flush nud permanent dev {device}"),
        format!("bridge fdb show dev {device} | while read mac _ dst rest; do bridge fdb del $mac dev {device}; done"),
        "nft flush ruleset".to_owned(),
        "rm -rf /run/osvc-cni".to_owned(),
        "rm -rf /var/lib/cni/osvc/routed".to_owned(),
    ] {
        one.sandbox.sh(&damage);
        let pod = one.start(&config, "next");
        for peer in &pods[1..] {
            assert!(pod.reaches(peer) && pods[0].reaches(peer) && peer.reaches(&pods[0]), "after `{damage}`");
        }
        assert_eq!(cluster.outside_sees(&pod), [one.v4, one.v6], "after `{damage}`");
        contains(&one.sandbox.read("/run/osvc-cni/peers/net.json"), &["node2", "node3"]);
        pod.check();
        pod.end();
    }
    noted("tunnel, routes, neighbours, rules, records taken away: back with the next ADD");
}

#[test]
fn a_rebooted_node_is_in_the_cluster_with_its_first_container() {
    let mut cluster = Cluster::three();
    let config = vxlan(&cluster);
    drop(cluster.start_everywhere(&config));
    cluster.reboot(0);
    // The others' containers ended with nothing; theirs are still there, by other ids.
    let pods: Vec<_> = cluster.nodes.iter().map(|node| node.start(&config, "again")).collect();
    assert!(pods[0].addresses[0].to_string().starts_with("10.11."));
    all_talk(&pods);
    noted("a node reboots");
}
