//! `osvc-net doctor`: each fault is made, found by its name, and mended by what was told; a host without one is silent.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod files;
mod foreign;
mod healthy;
mod host;
mod ranges;
mod records;
mod routed;
mod runtimes;
mod several;
mod vm;

use integration::cluster::{Cluster, Underlay};
use integration::{Netns, Output, Sandbox, report};
use serde_json::{Value, json};

/// A path with the programs that a test puts in place of real ones.
const PATH: &str = "PATH=/opt/fake:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// As docker leaves it behind.
const DROP: &str = "table ip filter { chain FORWARD { type filter hook forward priority 0; policy drop; }; }";

/// A conflist of one plugin.
fn conflist(name: &str, plugin: Value) -> Value {
    json!({"cniVersion": "1.0.0", "name": name, "plugins": [plugin]})
}

/// The bridge network that most tests have.
fn net1() -> Value {
    conflist("net1", json!({"type": "osvc-bridge", "network": "10.9.0.0/24"}))
}

/// A machine with a network of one container, and no systemd-networkd.
fn machine() -> (Sandbox, Netns) {
    let sandbox = Sandbox::new();
    quiet(&sandbox);
    write(&sandbox, "net1", &net1());
    let netns = sandbox.netns("web");
    start(&sandbox, &net1(), &netns);
    (sandbox, netns)
}

fn write(sandbox: &Sandbox, name: &str, conflist: &Value) {
    sandbox.write(&format!("/etc/cni/net.d/{name}.conflist"), &conflist.to_string());
}

/// ADD of the first plugin.
fn start(sandbox: &Sandbox, conflist: &Value, netns: &Netns) -> Value {
    let mut config = conflist["plugins"][0].clone();
    config["cniVersion"] = conflist["cniVersion"].clone();
    config["name"] = conflist["name"].clone();
    let plugin = config["type"].as_str().unwrap().to_owned();
    sandbox.plugin(&plugin).config(config).container(&netns.name).netns(netns).named(&netns.name).add()
}

/// The machine that runs the tests may have a networkd; this one has none.
fn quiet(sandbox: &Sandbox) {
    fake(sandbox, "systemctl", "echo inactive; exit 3");
}

/// A program in place of the real one.
fn fake(sandbox: &Sandbox, name: &str, script: &str) {
    sandbox.write(&format!("/opt/fake/{name}"), &format!("#!/bin/sh\n{script}\n"));
    sandbox.sh(&format!("chmod +x /opt/fake/{name}")).ok();
}

fn doctor(sandbox: &Sandbox, words: &[&str]) -> Output {
    let argv: Vec<&str> =
        ["env", PATH, "/opt/cni/bin/osvc-net", "doctor"].into_iter().chain(words.iter().copied()).collect();
    sandbox.run(&argv)
}

/// All findings, by the output for programs: that for people and the status say the same.
#[track_caller]
fn findings(sandbox: &Sandbox) -> Vec<Value> {
    let output = doctor(sandbox, &["-o", "json"]);
    let found: Vec<Value> = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"));
    assert_eq!(output.rc, i32::from(!found.is_empty()), "{output}");
    let keys = ["id", "network", "what", "why", "help"];
    for finding in &found {
        assert_eq!(finding.as_object().unwrap().keys().collect::<Vec<_>>(), keys, "{finding}");
    }
    found
}

/// The only finding there is, which must be of this id and name these things.
#[track_caller]
fn only(sandbox: &Sandbox, id: &str, named: &[&str]) -> Value {
    let found = findings(sandbox);
    assert_eq!(found.iter().map(|finding| finding["id"].as_str().unwrap()).collect::<Vec<_>>(), [id], "{found:#?}");
    names(&found[0], named);
    report::ran(&report::kernel(), &format!("osvc-net doctor: {id}"));
    found[0].clone()
}

/// A finding of this id, among others.
#[track_caller]
fn one_of(sandbox: &Sandbox, id: &str, named: &[&str]) -> Value {
    let found = findings(sandbox);
    let finding = found.iter().find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("no {id}: {found:#?}"));
    names(finding, named);
    report::ran(&report::kernel(), &format!("osvc-net doctor: {id}"));
    finding.clone()
}

#[track_caller]
fn names(finding: &Value, named: &[&str]) {
    for word in named {
        assert!(finding["what"].as_str().unwrap().contains(word), "{word} is named: {finding:#}");
    }
}

#[track_caller]
fn silent(sandbox: &Sandbox) {
    let output = doctor(sandbox, &[]);
    assert_eq!((output.rc, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""), "{output}");
}

/// Does what a finding tells to do.
#[track_caller]
fn help(sandbox: &Sandbox, finding: &Value) {
    let commands = finding["help"].as_str().unwrap();
    sandbox.sh(&format!("set -e; export {PATH}:/opt/cni/bin\n{commands}")).ok();
}

/// Sets a network up on all nodes: direct routes on a link, VXLAN behind a router.
fn by_vxlan(cluster: &Cluster) -> Value {
    let mut config = cluster.network("net", Underlay::V4, &[("10.11.0.0/16", 24)]);
    config["cniVersion"] = json!("1.0.0");
    config["tunnelMode"] = json!("vxlan");
    cluster.install(&config);
    for node in &cluster.nodes {
        quiet(&node.sandbox);
        node.osvc_net(&["setup"]).ok();
    }
    config
}
