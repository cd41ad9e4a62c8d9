//! A network leaves a node: its configuration is gone, the node is retired or not listed any more, or the name is
//! another kind's network now. Nothing of it is left in the kernel, and nobody who uses it loses anything.

use integration::cluster::{Cluster, Node, Underlay, all_talk};
use serde_json::{Value, json};

use crate::{contains, network, noted, vm, vxlan};

const PEERS: &str = "/run/osvc-cni/peers/net.json";

fn nodes(config: &Value) -> &Vec<Value> {
    config["nodes"].as_array().unwrap()
}

/// What there is on a node, without what comes with forwarding, which is never switched off again.
#[track_caller]
fn found(node: &Node) -> String {
    let everything = node.everything();
    everything.lines().filter(|line| !line.starts_with("anycast ")).collect::<Vec<_>>().join("\n")
}

/// Segments as they are, fixed: any node may go.
fn pinned(cluster: &Cluster) -> Value {
    let mut config = vxlan(cluster);
    for index in 0..nodes(&config).len() {
        let (v4, v6) = (format!("10.11.{}.0/22", 4 * index), format!("fd11:0:0:{index}::/64"));
        config["nodes"][index]["subnet"] = json!([v4, v6]);
    }
    config
}

#[track_caller]
fn nothing_changes(node: &Node, words: &[&str]) -> String {
    let files = "find /var/lib/cni /run/osvc-cni -printf '%p %T@ %s\n' | sort";
    let before = (node.everything(), node.sandbox.sh(files).ok());
    let output = node.osvc_net(words);
    assert_eq!((node.everything(), node.sandbox.sh(files).ok()), before, "after {output}");
    format!("{}{}", output.stdout, output.stderr)
}

#[test]
fn a_conflist_that_is_gone_is_told_and_the_network_goes_by_teardown_alone() {
    let cluster = Cluster::three();
    let config = pinned(&cluster);
    let node = &cluster.nodes[0];
    let fresh = found(node);
    let mut pods = cluster.start_everywhere(&config);
    cluster.install(&config);
    node.osvc_net(&["setup"]).ok();
    node.sandbox.sh("rm /etc/cni/net.d/net.conflist").ok();
    let told = nothing_changes(node, &["setup"]);
    contains(&told, &["net: set up here, but it has no configuration any more", "osvc-net teardown net"]);
    let running = node.everything();
    node.osvc_net(&["gc"]).ok();
    assert_eq!(
        node.everything(),
        running,
        "a configuration that somebody took away under a container is no death of it"
    );
    all_talk(&pods);
    for words in [&["teardown", "net"][..], &["teardown", "net", "--dry-run"]] {
        let refused = node.osvc_net(words);
        contains(
            &refused.stderr,
            &["network net is in use", "container a", &pods[0].addresses[0].to_string(), "--force"],
        );
        assert_eq!((refused.rc, node.everything()), (1, running.clone()));
    }
    let address = pods[0].addresses.clone();
    pods.remove(0).end();
    let told = nothing_changes(node, &["teardown", "net", "--dry-run"]);
    contains(&told, &["net: would remove tunnel ot", "would remove route 10.11.8.0/22", "would remove bridge obr_net"]);
    let done = node.osvc_net(&["teardown", "net"]).ok();
    contains(&done, &["net: removed tunnel ot", "net: removed bridge obr_net", "net: removed firewall rules"]);
    assert_eq!(found(node), fresh);
    assert!(!node.sandbox.exists(PEERS));
    assert_eq!(node.osvc_net(&["teardown", "net"]).ok(), "net: nothing of it is set up\n");
    assert_eq!(node.osvc_net(&["setup"]).ok(), "", "there is nothing to tell any more");
    let again = node.start(&config, "a");
    assert_eq!(again.addresses, address, "what comes back is what it was");
    pods.push(again);
    all_talk(&pods);
    noted("a network whose conflist is gone: told by setup, removed by teardown");
}

#[test]
fn nothing_is_left_of_any_mode() {
    vm().test(|| {
        let cluster = Cluster::new(&[0, 1], &[]);
        let node = &cluster.nodes[0];
        let modes =
            [("ipip", Underlay::V4), ("gre", Underlay::V6), ("wireguard", Underlay::Both), ("ipip", Underlay::V6)];
        for (mode, underlay) in modes {
            let config = network(&cluster, "net", mode, underlay);
            let before = found(node);
            node.start(&config, "a").end();
            assert!(!node.tunnels().is_empty(), "{mode} over {underlay:?}");
            node.osvc_net(&["teardown", "net"]).ok();
            assert_eq!((found(node), node.tunnels()), (before, vec![]), "{mode} over {underlay:?}");
        }
        noted("teardown of each mode");
    });
}

#[test]
fn by_force_a_network_goes_while_it_is_used_and_its_bridge_when_that_is_over() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    let node = &cluster.nodes[0];
    let fresh = found(node);
    let pod = node.start(&config, "a");
    let done = node.osvc_net(&["teardown", "net", "--force"]).ok();
    contains(&done, &["net: removed tunnel", "net: bridge obr_net stays: it has 1 ports"]);
    assert_eq!((node.tunnels(), node.routes()), (vec![], vec![]));
    pod.end();
    contains(&node.osvc_net(&["teardown", "net"]).ok(), &["net: removed bridge obr_net"]);
    assert_eq!(found(node), fresh);
    noted("teardown --force");
}

#[test]
fn a_retired_node_loses_the_network_once_no_container_is_on_it() {
    let cluster = Cluster::three();
    let mut config = pinned(&cluster);
    let node = &cluster.nodes[0];
    let fresh = found(node);
    let mut pods = cluster.start_everywhere(&config);
    config["nodes"][0]["retired"] = json!(true);
    cluster.install(&config);
    let told = nothing_changes(node, &["setup"]);
    contains(&told, &["net: this node, node1, is retired, but it is in use by", "container a"]);
    nothing_changes(node, &["gc"]);
    pods.remove(0).end();
    let told = nothing_changes(node, &["setup", "--dry-run"]);
    contains(&told, &["node1, is retired: it would be taken off this node", "net: would remove tunnel"]);
    // An ADD fails, and is no order to remove anything.
    let running = node.everything();
    let (code, message) = node.call(&config, &node.sandbox.netns("b"), "eth0").add_fails();
    assert_eq!((code, node.everything()), (7, running), "{message}");
    let done = node.osvc_net(&["setup"]).ok();
    contains(&done, &["node1, is retired: it was taken off this node", "net: removed bridge obr_net"]);
    assert_eq!(found(node), fresh);
    assert_eq!(node.osvc_net(&["setup"]).ok(), "net: this node, node1, is retired: nothing is set up\n");
    for other in &cluster.nodes[1..] {
        other.osvc_net(&["setup"]).ok();
    }
    all_talk(&pods);
    noted("a node that is retired loses the network");
}

#[test]
fn a_node_that_is_not_listed_any_more_loses_the_network_but_no_name_of_a_day_does_that() {
    let cluster = Cluster::three();
    let mut config = pinned(&cluster);
    let node = &cluster.nodes[1];
    let fresh = found(node);
    let mut pods = cluster.start_everywhere(&config);
    pods.remove(1).end();
    cluster.install(&config);
    let running = node.everything();
    node.sandbox.sh("echo dhcp-17 > /proc/sys/kernel/hostname").ok();
    for words in ["setup", "gc"] {
        let output = node.osvc_net(&[words]);
        assert_eq!((output.rc, node.everything()), (i32::from(words == "setup"), running.clone()), "{output}");
    }
    node.sandbox.sh("echo node2 > /proc/sys/kernel/hostname").ok();
    config["nodes"].as_array_mut().unwrap().remove(1);
    cluster.install(&config);
    let told = nothing_changes(node, &["gc", "--dry-run"]);
    contains(&told, &["node2, is not in the list any more: it would be taken off this node"]);
    let done = node.osvc_net(&["gc"]).ok();
    contains(&done, &["node2, is not in the list any more: it was taken off this node"]);
    assert_eq!(found(node), fresh);
    let output = node.osvc_net(&["setup"]);
    assert_eq!(output.rc, 1, "{output}");
    contains(&output.stderr, &["node2", "node1, node3"]);
    for other in [&cluster.nodes[0], &cluster.nodes[2]] {
        other.osvc_net(&["setup"]).ok();
    }
    all_talk(&pods);
    noted("a node that is not listed any more loses the network");
}

/// The same name, with another plugin.
fn bridge(subnet: &str) -> Value {
    json!({"cniVersion": "1.1.0", "name": "net", "type": "osvc-bridge", "network": subnet})
}

#[track_caller]
fn is_no_cluster(node: &Node) {
    assert_eq!((node.tunnels(), node.routes()), (vec![], vec![]));
    assert!(!node.sandbox.exists(PEERS) && !node.sandbox.exists("/var/lib/cni/osvc/routed/net.json"));
    let rules = node.sandbox.sh("nft list ruleset").ok();
    assert!(!rules.contains("10.11.0.0/16") && !rules.contains("vxlan") && !rules.contains("\"ot"), "{rules}");
}

#[test]
fn a_bridge_of_the_same_name_takes_its_place() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    // By ADD: in a part of what the cluster had.
    let node = &cluster.nodes[0];
    node.start(&config, "a").end();
    let other = bridge("10.11.128.0/20");
    node.sandbox.plugin("osvc-bridge").config(other.clone()).call("STATUS").done();
    let pod = node.start(&other, "b");
    is_no_cluster(node);
    pod.check();
    assert_eq!(cluster.outside_sees(&pod)[0], node.v4, "it is masqueraded");
    // By setup.
    let node = &cluster.nodes[1];
    node.start(&config, "a").end();
    node.install(&bridge("10.30.0.0/24"));
    let told = nothing_changes(node, &["setup", "--dry-run"]);
    contains(&told, &["net: would remove tunnel ot", "net: would be set up", "net: firewall rules would be made"]);
    contains(&node.osvc_net(&["setup"]).ok(), &["net: removed tunnel ot", "net: firewall rules made"]);
    is_no_cluster(node);
    // By gc.
    let node = &cluster.nodes[2];
    node.start(&config, "a").end();
    node.install(&bridge("10.30.0.0/24"));
    contains(&node.osvc_net(&["gc"]).ok(), &["net: removed tunnel ot"]);
    is_no_cluster(node);
    noted("a bridge in the place of a routed network of its name");
}
