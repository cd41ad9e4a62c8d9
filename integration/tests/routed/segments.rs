//! Which node has which segment of a new network, and what happens when one joins it.

use integration::cluster::{Cluster, Node, Underlay, all_talk};
use serde_json::{Value, json};

use crate::{V4, V6, contains, noted, vxlan};

/// The subnets of a node's bridge.
#[track_caller]
pub fn segments(node: &Node, network: &str) -> Vec<String> {
    let bridge = format!("obr_{network}");
    let mut found = node.sandbox.addresses(&bridge);
    for address in &mut found {
        // The gateway is the first address.
        *address = address.replace("::1/", "::/").replace(".1/", ".0/");
    }
    found
}

/// Starts and ends a container: where it was, the network is in place.
#[track_caller]
pub fn set_up(node: &Node, config: &Value) {
    let netns = node.sandbox.netns("probe");
    let call = node.call(config, &netns, "eth0");
    call.add();
    call.del();
    node.sandbox.delete_netns(&netns);
}

#[test]
fn the_documented_example() {
    let cluster = Cluster::three();
    let mut config = cluster.network("net", Underlay::V4, &[V4]);
    // As the documentation has it: one value, not a list.
    config["network"] = json!("10.11.0.0/16");
    config["maskPerNode"] = json!(22);
    config["tunnelMode"] = json!("vxlan");
    config["nodes"][1]["subnet"] = json!("10.11.4.0/22");
    for (node, segment) in cluster.nodes.iter().zip(["10.11.0.0/22", "10.11.4.0/22", "10.11.8.0/22"]) {
        set_up(node, &config);
        assert_eq!(segments(node, "net"), [segment], "{}", node.name);
    }
    let pods = cluster.start_everywhere(&config);
    for (pod, gateway) in pods.iter().zip(["10.11.0.1", "10.11.4.1", "10.11.8.1"]) {
        assert_eq!(pod.result["ips"][0]["gateway"], gateway);
        assert!(pod.result["ips"][0]["address"].as_str().unwrap().ends_with("/22"), "{}", pod.result);
        let routes = pod.node.sandbox.ip_json(&format!("-n {} route show 10.11.0.0/16", pod.netns.name));
        assert_eq!(routes[0]["gateway"], gateway, "the whole network, beside the default route: {routes:?}");
    }
    all_talk(&pods);
    noted("10.11.0.0/16 with maskPerNode 22: 10.11.0.0/22, 10.11.4.0/22, 10.11.8.0/22");
}

#[test]
fn the_former_key_for_the_size_of_a_segment() {
    let cluster = Cluster::new(&[0, 0], &[]);
    let mut config = cluster.network("net", Underlay::V4, &[V4]);
    config.as_object_mut().unwrap().shift_remove("maskPerNode");
    config["tunnelMode"] = json!("vxlan");
    config["ipsPerNode"] = json!(256);
    set_up(&cluster.nodes[1], &config);
    assert_eq!(segments(&cluster.nodes[1], "net"), ["10.11.1.0/24"]);
    config["maskPerNode"] = json!(24);
    config["ipsPerNode"] = json!(1024);
    set_up(&cluster.nodes[0], &config);
    assert_eq!(segments(&cluster.nodes[0], "net"), ["10.11.0.0/24"], "maskPerNode wins");
}

#[test]
fn a_joined_node_has_the_lowest_free_segment_and_talks_to_all() {
    let mut cluster = Cluster::three();
    let mut config = vxlan(&cluster);
    config["nodes"][1]["subnet"] = json!(["10.11.12.0/22", "fd11:0:0:3::/64"]);
    for node in &cluster.nodes {
        set_up(node, &config);
    }
    assert_eq!(segments(&cluster.nodes[1], "net"), ["10.11.12.0/22", "fd11:0:0:3::/64"], "fixed");
    assert_eq!(segments(&cluster.nodes[2], "net"), ["10.11.4.0/22", "fd11:0:0:1::/64"], "the lowest free one");
    cluster.add(1, &[]);
    let joined = cluster.nodes[3].entry(Underlay::V4);
    config["nodes"].as_array_mut().unwrap().push(joined);
    let pods = cluster.start_everywhere(&config);
    assert_eq!(segments(&cluster.nodes[3], "net"), ["10.11.8.0/22", "fd11:0:0:2::/64"], "the hole");
    all_talk(&pods);
    noted("a fourth node joins a network of three");
}

#[test]
fn more_nodes_than_segments_are_refused_with_the_numbers() {
    let cluster = Cluster::three();
    let mut config = cluster.network("net", Underlay::V4, &[("10.11.0.0/24", 25)]);
    config["tunnelMode"] = json!("vxlan");
    let node = &cluster.nodes[2];
    let netns = node.sandbox.netns("pod");
    let before = node.everything();
    let (code, message) = node.call(&config, &netns, "eth0").add_fails();
    assert_eq!(code, 7, "{message}");
    contains(&message, &["10.11.0.0/24", "2 segments", "/25", "node3", "3 nodes"]);
    assert_eq!(node.everything(), before, "nothing is changed");
    // Who is there already is not concerned by one more.
    config["nodes"].as_array_mut().unwrap().pop();
    let pods = [cluster.nodes[0].start(&config, "a"), cluster.nodes[1].start(&config, "b")];
    config["nodes"].as_array_mut().unwrap().push(node.entry(Underlay::V4));
    let more = cluster.nodes[0].start(&config, "more");
    assert!(pods[0].reaches(&pods[1]) && more.reaches(&pods[1]));
    let (code, message) = node.call(&config, &netns, "eth0").add_fails();
    assert_eq!(code, 7, "{message}");
    noted("capacity of a network, with the numbers");
}

#[test]
fn both_families_are_sliced_side_by_side() {
    let cluster = Cluster::three();
    let mut config = cluster.network("net", Underlay::V4, &[V6, V4]);
    config["tunnelMode"] = json!("vxlan");
    let pods = cluster.start_everywhere(&config);
    for (index, node) in cluster.nodes.iter().enumerate() {
        let mut wanted = [format!("fd11:0:0:{index:x}::/64"), format!("10.11.{}.0/22", 4 * index)];
        wanted.sort();
        let mut found: Vec<String> =
            segments(node, "net").iter().map(|s| s.replace("fd11::/", "fd11:0:0:0::/")).collect();
        found.sort();
        assert_eq!(found, wanted, "{}", node.name);
    }
    all_talk(&pods);
}
