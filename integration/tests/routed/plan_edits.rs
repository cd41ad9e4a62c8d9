//! A node is taken out of the list: on one node only, on all of them, with its segment fixed, or retired. Never do two
//! nodes have one segment, and never does a node stop serving its containers.

use integration::cluster::{Cluster, Underlay, all_talk};
use serde_json::{Value, json};

use crate::plan_on_all::installed;
use crate::segments::{segments, set_up};
use crate::{contains, noted, vxlan};

const SEGMENTS: [&str; 3] = ["10.11.0.0/22", "10.11.4.0/22", "10.11.8.0/22"];

/// A cluster in service, and its configuration.
fn in_service() -> (Cluster, Value) {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    for node in &cluster.nodes {
        set_up(node, &config);
    }
    (cluster, config)
}

fn without_the_middle(config: &Value) -> Value {
    let mut edited = config.clone();
    edited["nodes"].as_array_mut().unwrap().remove(1);
    edited
}

/// What explains a refused change: of STATUS, CHECK and setup.
#[track_caller]
fn explained(cluster: &Cluster, index: usize, config: &Value, words: &[&str]) {
    let node = &cluster.nodes[index];
    let (code, message) = node.sandbox.plugin("osvc-routed").config(config.clone()).call("STATUS").error();
    assert!((50..=51).contains(&code) || code == 7, "{code}: {message}");
    contains(&message, words);
    let pod = node.start(config, "checked");
    contains(&pod.check_fails(), words);
    pod.end();
    node.install(config);
    let told = node.osvc_net(&["setup", "net"]);
    contains(&format!("{}{}", told.stdout, told.stderr), words);
}

#[test]
fn removed_on_one_node_only() {
    let (cluster, config) = in_service();
    let edited = without_the_middle(&config);
    // The third node would come to the second one's segment.
    let pods = [
        cluster.nodes[0].start(&config, "a"),
        cluster.nodes[1].start(&config, "b"),
        cluster.nodes[2].start(&edited, "c"),
    ];
    for (node, segment) in cluster.nodes.iter().zip(SEGMENTS) {
        assert!(segments(node, "net").contains(&segment.to_owned()), "{} keeps {segment}", node.name);
    }
    assert!(pods[0].reaches(&pods[2]) && pods[2].reaches(&pods[0]), "who is in both lists talks");
    assert!(pods[0].reaches(&pods[1]) && pods[1].reaches(&pods[0]));
    explained(&cluster, 2, &edited, &["node3", "10.11.8.0/22", "10.11.4.0/22", "subnet", "retired"]);
    noted("a middle node removed on one node only");
}

#[test]
fn removed_on_all_nodes() {
    let (cluster, config) = in_service();
    let edited = without_the_middle(&config);
    let pods = [cluster.nodes[0].start(&edited, "a"), cluster.nodes[2].start(&edited, "c")];
    assert!(segments(&cluster.nodes[2], "net").contains(&SEGMENTS[2].to_owned()), "it keeps its segment");
    all_talk(&pods);
    explained(&cluster, 2, &edited, &["node3", "10.11.8.0/22", "subnet"]);
    // What the removed one still has comes by no route of ours any more.
    let routes = cluster.nodes[0].routes();
    assert!(!routes.iter().any(|route| route.starts_with("10.11.4.0/22")), "{routes:?}");
    noted("a middle node removed on all nodes");
}

/// What is promised when a node joins by a list that is wrong about nodes in service, and what is not: nothing on that
/// node says so, but nobody in service is disturbed, and all of them tell. With all segments fixed it is right.
#[test]
fn joined_after_a_removal_on_all_nodes() {
    let (mut cluster, config) = in_service();
    let mut edited = without_the_middle(&config);
    cluster.add(0, &[]);
    let joined = cluster.nodes[3].entry(Underlay::V4);
    edited["nodes"].as_array_mut().unwrap().push(joined);
    let netns = cluster.nodes[3].sandbox.netns("d");
    let call = cluster.nodes[3].call(&edited, &netns, "eth0").env("OSVC_LOG", "info");
    let added = call.call("ADD");
    contains(&added.output.stderr, &["10.11.8.0/22", "not all have `subnet`", "add-node"]);
    added.result();
    assert!(segments(&cluster.nodes[3], "net").contains(&SEGMENTS[2].to_owned()), "node3's, which it cannot know");
    let pods = [cluster.nodes[0].start(&edited, "a"), cluster.nodes[2].start(&edited, "c")];
    all_talk(&pods);
    drop(pods);
    for index in [0, 2] {
        explained(&cluster, index, &edited, &["node4", "10.11.8.0/22", "node3", "subnet"]);
    }
    // By the command it is right: it looks at what is recorded where it runs.
    cluster.add(1, &[]);
    let addr = cluster.nodes[4].v4.to_string();
    cluster.nodes[0].install(&config);
    cluster.nodes[0].osvc_net(&["conf", "remove-node", "net", "node2"]).ok();
    cluster.nodes[0].osvc_net(&["conf", "add-node", "net", "node5", &addr]).ok();
    let fixed = installed(&cluster, 0);
    let call = cluster.nodes[4].call(&fixed, &cluster.nodes[4].sandbox.netns("e"), "eth0").env("OSVC_LOG", "info");
    let added = call.call("ADD");
    assert!(!added.output.stderr.contains("add-node"), "nothing to tell: {}", added.output);
    added.result();
    clean(&cluster, &fixed, &[0, 2, 4]);
    noted("a node that joins after a removal, by a list that fixes nothing");
}

#[test]
fn removed_with_the_others_pinned_is_clean() {
    let (cluster, config) = in_service();
    let mut edited = without_the_middle(&config);
    edited["nodes"][0]["subnet"] = json!(["10.11.0.0/22", "fd11::/64"]);
    edited["nodes"][1]["subnet"] = json!(["10.11.8.0/22", "fd11:0:0:2::/64"]);
    clean(&cluster, &edited, &[0, 2]);
    noted("a node removed with the others' segments fixed");
}

#[test]
fn retired_is_clean_and_its_segment_stays_empty() {
    let (mut cluster, config) = in_service();
    let mut edited = config.clone();
    edited["nodes"][1]["retired"] = json!(true);
    clean(&cluster, &edited, &[0, 2]);
    cluster.add(0, &[]);
    let joined = cluster.nodes[3].entry(Underlay::V4);
    edited["nodes"].as_array_mut().unwrap().push(joined);
    clean(&cluster, &edited, &[0, 2, 3]);
    assert!(segments(&cluster.nodes[3], "net").contains(&"10.11.12.0/22".to_owned()), "not that of the retired one");
    noted("a retired node, and another one that joins after it");
}

#[track_caller]
fn clean(cluster: &Cluster, config: &Value, nodes: &[usize]) {
    let pods: Vec<_> = nodes.iter().map(|index| cluster.nodes[*index].start(config, &format!("p{index}"))).collect();
    all_talk(&pods);
    for pod in &pods {
        pod.check();
        pod.node.sandbox.plugin("osvc-routed").config(config.clone()).call("STATUS").done();
        pod.node.install(config);
        pod.node.osvc_net(&["setup", "net"]).ok();
    }
    pods.into_iter().for_each(|pod| pod.end());
}
