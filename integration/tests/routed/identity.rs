//! A host whose name is that of another node: its own was changed, a file was copied to all hosts, or its whole disk.

use integration::cluster::{Cluster, Node, all_talk};
use serde_json::Value;

use crate::segments::{segments, set_up};
use crate::{contains, noted, vxlan};

const NAME: &str = "/etc/osvc-cni/node";

/// What STATUS says against it.
#[track_caller]
fn status(node: &Node, config: &Value) -> String {
    node.sandbox.plugin("osvc-routed").config(config.clone()).call("STATUS").error().1
}

#[test]
fn a_name_that_becomes_another_nodes_changes_nothing_and_is_told() {
    let mut cluster = Cluster::three();
    let config = vxlan(&cluster);
    set_up(&cluster.nodes[0], &config);
    for reboot in [false, true] {
        if reboot {
            cluster.reboot(0);
        }
        let node = &cluster.nodes[0];
        node.sandbox.write(NAME, "node3\n");
        // The other node of that name is its peer still.
        let pods = cluster.start_everywhere(&config);
        assert!(segments(node, "net").contains(&"10.11.0.0/22".to_owned()), "{:?}", segments(node, "net"));
        all_talk(&pods);
        contains(&status(node, &config), &["was node node1", "node3", "/etc/osvc-cni/node"]);
        contains(&pods[0].check_fails(), &["it stays node1"]);
        node.install(&config);
        let told = node.osvc_net(&["setup", "net"]);
        assert_eq!(told.rc, 1, "{told}");
        contains(&format!("{}{}", told.stdout, told.stderr), &["was node node1"]);
        node.sandbox.write(NAME, "node1\n");
        pods[0].check();
        pods.into_iter().for_each(|pod| pod.end());
    }
    noted("the name of a node in service becomes that of another one");
}

#[test]
fn a_first_setup_under_a_name_that_the_addresses_contradict_is_refused() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    set_up(&cluster.nodes[0], &config);
    let node = &cluster.nodes[1];
    node.sandbox.write(NAME, "node1\n");
    let netns = node.sandbox.netns("pod");
    let before = node.everything();
    let (code, message) = node.call(&config, &netns, "eth0").add_fails();
    assert_eq!(code, 7, "{message}");
    contains(&message, &["node1", "192.168.1.2", "node2", "/etc/osvc-cni/node"]);
    contains(&status(node, &config), &["192.168.1.2"]);
    node.install(&config);
    for words in [&["setup", "net"][..], &["setup", "--dry-run", "net"]] {
        let told = node.osvc_net(words);
        assert_eq!(told.rc, 1, "{told}");
        contains(&told.stderr, &["192.168.1.2"]);
    }
    assert_eq!(node.everything(), before, "nothing is changed");
    assert!(!node.sandbox.exists("/var/lib/cni/osvc/segments/net.json"), "nor recorded");
    node.sandbox.write(NAME, "node2\n");
    let pods = [cluster.nodes[0].start(&config, "a"), node.start(&config, "b")];
    all_talk(&pods);
    noted("a first setup under the name of another node");
}

#[test]
fn a_copy_of_a_nodes_disk_becomes_the_node_that_its_addresses_say() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    let first = cluster.nodes[0].start(&config, "a");
    let record = "/var/lib/cni/osvc/segments/net.json";
    let copy = &cluster.nodes[2];
    copy.sandbox.write(record, &cluster.nodes[0].sandbox.read(record));
    let pods = [first, copy.start(&config, "c")];
    assert!(segments(copy, "net").contains(&"10.11.8.0/22".to_owned()), "{:?}", segments(copy, "net"));
    all_talk(&pods);
    pods.iter().for_each(|pod| pod.check());
    noted("a copied disk");
}
