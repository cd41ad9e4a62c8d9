//! The file that tells who the peers are, and the programs that are run when that changes.

use std::time::Duration;

use integration::cluster::{Cluster, Node, Underlay};
use serde_json::{Value, json};

use crate::{contains, noted, vxlan};

const FOLDER: &str = "/etc/osvc-cni/hooks.d";
const PEERS: &str = "/run/osvc-cni/peers/net.json";

/// Puts an executable there.
#[track_caller]
fn hook(node: &Node, name: &str, script: &str) {
    node.sandbox.write(&format!("{FOLDER}/{name}"), &format!("#!/bin/bash\n{script}\n"));
    node.sandbox.sh(&format!("chmod 755 /etc/osvc-cni {FOLDER} {FOLDER}/{name}")).ok();
}

/// Notes its arguments, its environment, its descriptors and the file.
const NOTE: &str = "echo \"$@\" >> /run/hook.args; cp \"$2\" /run/hook.json
    env > /run/hook.env; ls -l /proc/$$/fd > /run/hook.fd
    ps -o sid= -p $$ > /run/hook.sid; echo $$ > /run/hook.pid; touch /run/hook.done";

#[test]
fn a_change_of_peers_is_told_once() {
    let mut cluster = Cluster::three();
    let mut config = vxlan(&cluster);
    hook(&cluster.nodes[0], "10-note", NOTE);
    let pod = cluster.nodes[0].start(&config, "a");
    drop(pod);
    let node = &cluster.nodes[0];
    node.sandbox.wait_for("the hook has run", "[ -e /run/hook.done ]");
    assert_eq!(node.sandbox.read("/run/hook.args").trim(), format!("NetworkPeersUpdated {PEERS}"));
    let told: Value = serde_json::from_str(&node.sandbox.read("/run/hook.json")).unwrap();
    contains(&told.to_string(), &["node2", "node3", "192.168.1.2", "192.168.2.3", "10.11.8.0/22"]);
    let environment = node.sandbox.read("/run/hook.env");
    assert!(!environment.contains("CNI_"), "a clean environment: {environment}");
    let descriptors = node.sandbox.read("/run/hook.fd");
    assert!(!descriptors.contains("socket:") && !descriptors.contains(".lock"), "none is inherited: {descriptors}");
    assert_eq!(
        node.sandbox.read("/run/hook.sid").trim(),
        node.sandbox.read("/run/hook.pid").trim(),
        "a session of its own"
    );
    // Nothing changes: nothing is told.
    node.start(&config, "b").end();
    node.install(&config);
    node.osvc_net(&["setup"]).ok();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(node.sandbox.read("/run/hook.args").lines().count(), 1, "once");
    cluster.add(1, &[]);
    let joined = cluster.nodes[3].entry(Underlay::V4);
    config["nodes"].as_array_mut().unwrap().push(joined);
    let node = &cluster.nodes[0];
    node.start(&config, "c").end();
    node.sandbox.wait_for("it is told of the fourth node", "[ $(wc -l < /run/hook.args) -eq 2 ]");
    node.sandbox.wait_for("with the file", "grep -q node4 /run/hook.json");
    noted("hooks are told of a change of peers");
}

#[test]
fn what_was_not_told_is_told_by_the_next_call_and_the_command_waits() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    let node = &cluster.nodes[0];
    node.start(&config, "a").end();
    assert!(!node.sandbox.exists("/run/hook.args"));
    // A hook that comes later, and whoever runs it is killed.
    hook(node, "10-note", &format!("{NOTE}; [ -e /run/killed ] || {{ touch /run/killed; kill -KILL $PPID; }}"));
    node.start(&config, "b").end();
    node.sandbox.wait_for("the hook has run", "[ -e /run/killed ]");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(node.sandbox.read("/run/hook.args").lines().count(), 1);
    node.start(&config, "c").end();
    node.sandbox.wait_for("it is told again", "[ $(wc -l < /run/hook.args) -eq 2 ]");
    node.sandbox.wait_for("for good", "[ -e /run/osvc-cni/peers/net.told ]");
    node.start(&config, "d").end();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(node.sandbox.read("/run/hook.args").lines().count(), 2);
    // systemd ends what is left when the command ends.
    hook(node, "20-slow", "sleep 1; touch /run/slow.done");
    let mut other = config.clone();
    other["tunnel"] = json!("always");
    node.install(&other);
    node.osvc_net(&["setup"]).ok();
    assert!(node.sandbox.exists("/run/slow.done"), "setup waits for its hooks");
    noted("hooks: an event is not lost, and setup waits");
}

#[test]
fn hooks_that_misbehave_disturb_nothing() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    let node = &cluster.nodes[0];
    hook(node, "10-prints", "echo '{\"not\": \"a result\"}'; echo noise >&2; head -c 1000000 /dev/zero");
    hook(node, "20-hangs", "echo $$ > /run/hangs.pid; trap '' TERM HUP INT; while :; do sleep 1; done");
    hook(node, "30-goes-on", "(setsid sleep 200 &) ; echo > /run/daemon.done");
    hook(node, "40-fails", "exit 3");
    node.sandbox.write(&format!("{FOLDER}/50-no-program"), "no program");
    node.sandbox.sh(&format!("chmod 755 {FOLDER}/50-no-program; touch {FOLDER}/60-not-executable")).ok();
    hook(node, "90-note", NOTE);
    let reply = node.call(&config, &node.sandbox.netns("a"), "eth0").call("ADD");
    assert!(reply.elapsed() < Duration::from_secs(2), "nobody waits for a hook: {:?}", reply.elapsed());
    assert!(!reply.output.stderr.contains("noise"), "{}", reply.output);
    assert_eq!(reply.result()["cniVersion"], "1.1.0");
    let second = node.call(&config, &node.sandbox.netns("b"), "eth0").call("ADD");
    assert!(second.elapsed() < Duration::from_secs(2), "no lock is held by it: {:?}", second.elapsed());
    second.result();
    node.sandbox.wait_for("the last one has run", "[ -e /run/hook.done ]");
    // 10 s, and then it is killed.
    std::thread::sleep(Duration::from_secs(3));
    node.sandbox.wait_for("the hanging one is killed", "! kill -0 $(cat /run/hangs.pid)");
    noted("hooks that print, hang, go on, fail");
}

#[test]
fn only_what_root_alone_can_write_is_run() {
    let cluster = Cluster::new(&[0, 0], &[]);
    let config = vxlan(&cluster);
    let node = &cluster.nodes[0];
    hook(node, "10-foreign", "touch /run/foreign.done");
    node.sandbox.sh(&format!("chown 1000 {FOLDER}/10-foreign")).ok();
    hook(node, "20-writable", "touch /run/writable.done");
    node.sandbox.sh(&format!("chmod 777 {FOLDER}/20-writable")).ok();
    hook(node, "30-note", NOTE);
    node.start(&config, "a").end();
    node.sandbox.wait_for("the good one has run", "[ -e /run/hook.done ]");
    assert!(!node.sandbox.exists("/run/foreign.done") && !node.sandbox.exists("/run/writable.done"));
    // And none of a folder that others can write to.
    let other = &cluster.nodes[1];
    hook(other, "10-note", NOTE);
    other.sandbox.sh(&format!("chmod 777 {FOLDER}")).ok();
    other.start(&config, "b").end();
    std::thread::sleep(Duration::from_millis(700));
    assert!(!other.sandbox.exists("/run/hook.done"));
    noted("hooks of others are not run");
}

#[test]
fn the_command_tells_the_peers() {
    let cluster = Cluster::three();
    let mut config = vxlan(&cluster);
    config["nodes"][2]["addr"] = json!("nowhere.invalid");
    cluster.install(&config);
    let node = &cluster.nodes[0];
    node.start(&config, "a").end();
    let table = node.osvc_net(&["peers"]);
    contains(&table.stdout, &["net", "node2", "192.168.1.2", "10.11.4.0/22", "node3"]);
    let told = node.osvc_net(&["peers", "-o", "json"]);
    let told: Value = serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    contains(&told.to_string(), &["node2", "192.168.1.2", "nowhere.invalid"]);
    noted("osvc-net peers");
}
