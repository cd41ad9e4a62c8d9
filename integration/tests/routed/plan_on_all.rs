//! The command that edits the list of nodes leaves a list that is the same plan on all of them.

use integration::cluster::{Cluster, Underlay, all_talk};
use serde_json::Value;

use crate::segments::set_up;
use crate::{noted, vxlan};

/// The plugin's configuration in a node's conflist.
#[track_caller]
pub fn installed(cluster: &Cluster, index: usize) -> Value {
    of_conflist(&cluster.nodes[index].sandbox.read("/etc/cni/net.d/net.conflist"))
}

fn of_conflist(text: &str) -> Value {
    let conflist: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut plugin = conflist["plugins"][0].clone();
    for key in ["cniVersion", "name"] {
        plugin[key] = conflist[key].clone();
    }
    plugin
}

#[test]
fn nodes_are_added_and_removed_by_the_command() {
    let mut cluster = Cluster::three();
    let config = vxlan(&cluster);
    cluster.install(&config);
    for node in &cluster.nodes {
        set_up(node, &config);
    }
    cluster.nodes[0].osvc_net(&["conf", "remove-node", "net", "node2"]).ok();
    let edited = installed(&cluster, 0);
    cluster.nodes[2].install(&edited);
    for index in [0, 2] {
        cluster.nodes[index].osvc_net(&["setup", "net"]).ok();
    }
    let pods = [cluster.nodes[0].start(&edited, "a"), cluster.nodes[2].start(&edited, "c")];
    all_talk(&pods);
    pods.iter().for_each(|pod| pod.check());
    drop(pods);

    cluster.add(1, &[]);
    let entry = cluster.nodes[3].entry(Underlay::V4);
    let addr = entry["addr"].as_str().unwrap().to_owned();
    cluster.nodes[0].osvc_net(&["conf", "add-node", "net", "node4", &addr]).ok();
    let edited = installed(&cluster, 0);
    assert!(
        edited["nodes"].as_array().unwrap().iter().all(|node| !node["subnet"].is_null()),
        "all are fixed: {edited}"
    );
    let pods = [2, 3].map(|index| {
        cluster.nodes[index].install(&edited);
        cluster.nodes[index].start(&edited, "d")
    });
    all_talk(&pods);
    pods.iter().for_each(|pod| pod.check());
    noted("osvc-net conf add-node and remove-node");
}

#[test]
fn a_configuration_written_by_the_command_works() {
    let cluster = Cluster::three();
    let nodes: Vec<String> =
        cluster.nodes.iter().map(|node| format!("--node={}={},{}", node.name, node.v4, node.v6)).collect();
    let mut words = vec!["conf", "new", "routed", "net", "--network", "10.11.0.0/16", "--network", "fd11::/48"];
    words.extend(["--mask-per-node", "22", "--mask-per-node", "64", "--mode", "vxlan"]);
    words.extend(nodes.iter().map(String::as_str));
    let config = of_conflist(&cluster.nodes[0].osvc_net(&words).ok());
    assert_eq!(config["nodes"].as_array().unwrap().len(), 3, "{config}");
    all_talk(&cluster.start_everywhere(&config));
    noted("osvc-net conf new routed");
}
