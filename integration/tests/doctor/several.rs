//! Several faults at once: none hides another that a different command helps.

use integration::Sandbox;
use integration::cluster::Cluster;
use serde_json::{Value, json};

use crate::{DROP, fake, findings, help, machine, names, net1, only, silent, start, write};

/// The findings of these ids, in this order and no others.
#[track_caller]
fn all(sandbox: &Sandbox, ids: &[&str]) -> Vec<Value> {
    let found = findings(sandbox);
    assert_eq!(found.iter().map(|finding| finding["id"].as_str().unwrap()).collect::<Vec<_>>(), ids, "{found:#?}");
    found
}

#[test]
fn an_uplink_that_does_not_forward_and_a_bridge_that_is_gone() {
    let (sandbox, _) = machine();
    sandbox.outside();
    silent(&sandbox);
    sandbox.sh("echo 0 > /proc/sys/net/ipv4/conf/up0/forwarding; nft delete table ip osvc-cni").ok();
    let found = all(&sandbox, &["forwarding-off", "not-set-up"]);
    names(&found[1], &["firewall rules"]);
    sandbox.ip("link del obr_net1");
    let found = all(&sandbox, &["forwarding-off", "not-set-up"]);
    names(&found[1], &["its bridge obr_net1 is gone"]);
    found.iter().for_each(|finding| help(&sandbox, finding));
    silent(&sandbox);
    // What the same command helps is told once.
    sandbox.sh("echo 0 > /proc/sys/net/ipv4/ip_forward; nft delete table ip osvc-cni").ok();
    help(&sandbox, &only(&sandbox, "forwarding-off", &["ip_forward is 0"]));
    silent(&sandbox);
}

#[test]
fn a_drop_that_is_left_alone_and_rules_that_are_gone() {
    let (sandbox, _) = machine();
    sandbox.sh("for call in /proc/sys/net/bridge/bridge-nf-call-*; do echo 0 > $call; done").ok();
    let mut never = net1();
    never["plugins"][0]["forwardAccept"] = json!("never");
    write(&sandbox, "net1", &never);
    sandbox.osvc_net(&["setup"]).ok();
    start(&sandbox, &never, &sandbox.netns("b"));
    sandbox.nft(DROP);
    all(&sandbox, &["foreign-drop"]);
    sandbox.sh("nft delete table ip osvc-cni").ok();
    let found = all(&sandbox, &["foreign-drop", "not-set-up"]);
    help(&sandbox, &found[1]);
    all(&sandbox, &["foreign-drop"]);
}

#[test]
fn a_list_that_contradicts_the_plan_and_a_node_that_is_down() {
    let cluster = Cluster::three();
    let mut config = crate::by_vxlan(&cluster);
    let [first, second] = [0, 1].map(|index| &cluster.nodes[index]);
    silent(&first.sandbox);
    // Whatever is wrong with the host.
    fake(&first.sandbox, "podman", "echo podman version 5.4.1");
    second.sandbox.ip("link set eth0 down");
    all(&first.sandbox, &["podman-without-cni", "peer-down"]);
    config["nodes"].as_array_mut().unwrap().swap(1, 2);
    first.install(&config);
    let told = first.osvc_net(&["setup"]);
    assert!(told.rc == 1 && told.stderr.contains("node node2 has 10.11.1.0/24"), "{told}");
    let found = findings(&first.sandbox);
    let of = |id: &str| found.iter().find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("{id}: {found:#?}"));
    of("peer-down");
    names(of("status"), &["osvc-routed: ", "node node2 has 10.11.1.0/24"]);
}
