//! DEL and GC: as on a bridge. The network itself stays.

use integration::Family;
use integration::cluster::{Cluster, all_talk};
use serde_json::json;

use crate::{noted, vxlan};

#[test]
fn del_leaves_the_network_and_nothing_of_the_container() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    let pods = cluster.start_everywhere(&config);
    let node = &cluster.nodes[0];
    let (leftovers, everything) = (node.sandbox.leftovers(), node.everything());
    let mut pod = node.start(&config, "short");
    let address = pod.addresses.clone();
    pod.silence();
    pod.call.del();
    pod.call.del();
    pod.call.clone().no_netns().no_args().del();
    node.sandbox.delete_netns(&pod.netns);
    node.sandbox.leftovers().assert_same_as(&leftovers, "ADD and DEL");
    assert_eq!(node.everything(), everything);
    all_talk(&pods);
    let again = node.start(&config, "short");
    assert_eq!(again.addresses, address, "the same workload has the same address");
    noted("DEL on a routed network");
}

#[test]
fn gc_frees_what_is_dead_and_keeps_what_lives() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    let mut pods = cluster.start_everywhere(&config);
    let node = &cluster.nodes[0];
    let mut dead = node.start(&config, "dead");
    dead.silence();
    node.sandbox.delete_netns(&dead.netns);
    node.sandbox.wait_for("the pair is gone", "[ $(ip -o link show type veth | grep -c ' ov') -eq 1 ]");
    let held = node.sandbox.held(Family::Osvc, "net");
    assert!(dead.addresses.iter().all(|address| held.contains(address)));
    let mut valid = config.clone();
    valid["cni.dev/valid-attachments"] = json!([{"containerID": "a", "ifname": "eth0"}]);
    node.sandbox.plugin("osvc-routed").config(valid).call("GC").done();
    let held = node.sandbox.held(Family::Osvc, "net");
    assert!(!dead.addresses.iter().any(|address| held.contains(address)), "{held:?}");
    all_talk(&pods);
    pods.remove(0).end();
    assert!(node.sandbox.held(Family::Osvc, "net").is_empty());
    noted("GC on a routed network");
}
