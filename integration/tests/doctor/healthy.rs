//! Hosts on which all is well.

use std::fs;
use std::path::Path;
use std::time::Instant;

use integration::cluster::{Cluster, Underlay};
use integration::{Sandbox, report};
use serde_json::json;

use crate::{DROP, conflist, doctor, fake, findings, machine, quiet, silent, start, write};

#[test]
fn a_host_without_networks_is_well() {
    let sandbox = Sandbox::new();
    silent(&sandbox);
    assert_eq!(doctor(&sandbox, &["-o", "json"]).ok(), "[]\n");
    let told = doctor(&sandbox, &["nte1"]);
    assert!(told.rc == 1 && told.stderr.contains("no network \"nte1\""), "{told}");
}

#[test]
fn a_host_with_bridge_ports_and_a_cluster_is_well() {
    let cluster = Cluster::new(&[0, 0, 1], &[]);
    let mut config = cluster.network("cluster", Underlay::Both, &[("10.11.0.0/16", 24), ("fd11::/48", 64)]);
    config["cniVersion"] = json!("1.0.0");
    config["tunnelMode"] = json!("vxlan");
    cluster.install(&config);
    let node = &cluster.nodes[0];
    for node in &cluster.nodes {
        node.osvc_net(&["setup"]).ok();
        quiet(&node.sandbox);
    }
    let network = node.sandbox.network("net1", &["10.9.0.0/24", "fd09::/64"]);
    node.sandbox.write("/etc/cni/net.d/net1.conflist", &network.conflist().to_string());
    let container = network.container("web");
    container.publish(json!([{"hostPort": 8080, "containerPort": 80}]));
    let layer2 = json!({"cniVersion": "1.0.0", "name": "plain", "plugins": [{"type": "osvc-bridge", "ipam": {}}]});
    node.sandbox.write("/etc/cni/net.d/plain.conflist", &layer2.to_string());
    node.osvc_net(&["setup"]).ok();
    let before = node.sandbox.leftovers();
    let begin = Instant::now();
    silent(&node.sandbox);
    // 0.1 s, but for programs of other tests that take the processor.
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    node.sandbox.leftovers().assert_same_as(&before, "doctor");
}

#[test]
fn an_accept_in_somebodys_dropping_chain_is_no_finding() {
    let (sandbox, _) = machine();
    sandbox.nft(DROP);
    sandbox.sh("/opt/cni/bin/osvc-net setup").ok();
    silent(&sandbox);
    fake(&sandbox, "podman", "echo podman version 4.9.3");
    silent(&sandbox);
}

/// All findings that the code makes.
fn ids() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("cli/src/doctor");
    let mut ids = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let calls = code.split("report.add(").skip(1).chain(code.split("self.add(").skip(1));
        ids.extend(calls.filter_map(|call| call.trim_start().strip_prefix('"')?.split('"').next().map(str::to_owned)));
    }
    ids
}

#[test]
fn the_manual_shows_what_is_printed_and_lists_all_findings() {
    let manual = include_str!("../../../cli/src/args/examples/doctor.txt");
    let ids = ids();
    assert!(ids.len() > 30, "{ids:?}");
    for id in ids {
        assert!(manual.contains(&id), "{id} is not in the manual");
    }
    let sandbox = Sandbox::new();
    quiet(&sandbox);
    let podnet = conflist("podnet", json!({"type": "osvc-bridge", "network": "10.22.0.0/16"}));
    write(&sandbox, "podnet", &podnet);
    start(&sandbox, &podnet, &sandbox.netns("web"));
    sandbox.sh("for call in /proc/sys/net/bridge/bridge-nf-call-*; do echo 0 > $call; done").ok();
    sandbox.sh("echo 0 > /proc/sys/net/ipv4/ip_forward").ok();
    sandbox.nft(DROP);
    let output = doctor(&sandbox, &[]);
    let shown: String = output.stdout.lines().map(|line| format!("  {line}\n")).collect();
    assert!(manual.contains(&shown), "{shown}");
    assert_eq!((output.rc, output.stderr.as_str(), findings(&sandbox).len()), (1, "", 2), "{output}");
    report::ran(&report::kernel(), "osvc-net doctor: the manual");
}
