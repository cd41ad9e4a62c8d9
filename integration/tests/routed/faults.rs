//! Death at every system call: of an ADD, of the ADD that makes a network, and of `osvc-net setup`. The next one
//! completes, and then all is as it would have been.

use std::time::Duration;

use integration::cluster::{Cluster, Node, Underlay};
use integration::fault::Bench;
use integration::{Sandbox, addresses_of, trace};
use serde_json::{Value, json};

use crate::{noted, vm, vxlan};

/// What makes a node new: nothing is there and nothing is known.
const BLANK: &str =
    "ip link show group 79 -o 2>/dev/null | cut -d: -f2 | cut -d@ -f1 | while read dev; do ip link del $dev; done
    ip route flush proto 79; ip -6 route flush proto 79; nft flush ruleset; rm -rf /var/lib/cni/* /run/osvc-cni";

/// A program that is not to go further than this call.
fn killed(sandbox: &Sandbox, call: &trace::SystemCall, argv: &[&str]) {
    let words = trace::inject(call, "signal=SIGKILL");
    let words: Vec<&str> = words.iter().map(String::as_str).chain(argv.iter().copied()).collect();
    sandbox.run(&words);
}

/// What of a node must come out the same, with what it tells of its peers: without the numbers of devices, which are
/// counted.
fn state(node: &Node) -> String {
    let everything = node.everything();
    // "7: ov0123456789abc@if2: …"
    let numberless = |line: &str| {
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit());
        match line.split_once("@if") {
            Some((name, rest)) => format!("{name}@if{}", rest.trim_start_matches(|c: char| c.is_ascii_digit())),
            None => line.to_owned(),
        }
    };
    let mut lines: Vec<String> = everything.lines().map(numberless).filter(|line| !line.contains("fe80:")).collect();
    lines.sort();
    lines.push(node.sandbox.read("/run/osvc-cni/peers/net.json"));
    lines.join("\n")
}

#[test]
fn add_killed_at_every_system_call() {
    let cluster = Cluster::new(&[0, 0, 1], &[]);
    let config = vxlan(&cluster);
    let node = &cluster.nodes[0];
    let _other = node.start(&config, "other");
    let netns = node.sandbox.netns("pod");
    let bench = Bench::new(&node.sandbox, node.call(&config, &netns, "eth0"), &netns);
    bench.killed_everywhere("ADD", "osvc-routed");
}

#[test]
fn del_killed_at_every_system_call() {
    let cluster = Cluster::new(&[0, 0, 1], &[]);
    let config = vxlan(&cluster);
    let node = &cluster.nodes[0];
    let _other = node.start(&config, "other");
    let netns = node.sandbox.netns("pod");
    let bench = Bench::new(&node.sandbox, node.call(&config, &netns, "eth0"), &netns);
    bench.killed_everywhere("DEL", "osvc-routed");
}

/// The first ADD on a node killed at each call: the runtime's DEL and ADD make the network, and it works.
#[track_caller]
fn first_add_killed(config: &Value, cluster: &Cluster, each: usize) {
    let peer = cluster.nodes[1].start(config, "peer");
    let node = &cluster.nodes[0];
    let netns = node.sandbox.netns("pod");
    let call = node.call(config, &netns, "eth0");
    let address = addresses_of(&call.add());
    let whole = state(node);
    call.del();
    node.sandbox.sh(BLANK);
    let calls = trace::system_calls(&node.sandbox, &call, "ADD");
    for fault in calls.iter().step_by(each) {
        call.del();
        node.sandbox.sh(BLANK);
        let words = trace::inject(fault, "signal=SIGKILL");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        call.clone().through(&words).call("ADD");
        call.del();
        let result = call.add();
        assert_eq!(addresses_of(&result), address, "the first ADD killed at {fault}");
        assert_eq!(state(node), whole, "the first ADD killed at {fault}, then ADD");
        call.check(&result);
        assert!(node.sandbox.ping(&netns, &peer.addresses[0].to_string()), "the first ADD killed at {fault}");
    }
    let count = calls.len().div_ceil(each);
    noted(&format!("SIGKILL at {count} of {} system calls of the first ADD, {}", calls.len(), config["tunnelMode"]));
}

#[test]
fn a_networks_first_add_killed_at_every_system_call() {
    let cluster = Cluster::new(&[0, 1], &[]);
    first_add_killed(&vxlan(&cluster), &cluster, 1);
}

/// Setup with another configuration than the one in place, killed at each call.
#[track_caller]
fn setup_killed(cluster: &Cluster, from: &Value, to: &Value) {
    let node = &cluster.nodes[0];
    let pod = node.start(from, "a");
    let setup = ["/opt/cni/bin/osvc-net", "setup", "--prune", "net"];
    let apply = |config: &Value| {
        node.install(config);
        node.sandbox.run(&setup).ok();
    };
    apply(to);
    let whole = state(node);
    apply(from);
    node.install(to);
    let calls = trace::system_calls_of(&node.sandbox, &setup);
    assert_eq!(state(node), whole);
    for fault in &calls {
        apply(from);
        node.install(to);
        killed(&node.sandbox, fault, &setup);
        node.sandbox.run(&setup).ok();
        assert_eq!(state(node), whole, "setup killed at {fault}, then setup");
        node.call(to, &pod.netns, "eth0").check(&pod.result);
    }
    noted(&format!("SIGKILL at each of {} system calls of setup, {} to {}", calls.len(), from["tunnel"], to["tunnel"]));
}

#[test]
fn setup_killed_at_every_system_call() {
    let cluster = Cluster::new(&[0, 0, 1], &[]);
    let mut direct = vxlan(&cluster);
    direct["tunnel"] = json!("auto");
    let mut always = direct.clone();
    always["tunnel"] = json!("always");
    setup_killed(&cluster, &direct, &always);
}

/// In the VM each run takes seconds: enough of them to be in all parts of the work.
#[test]
fn with_other_tunnels_killed_at_many_system_calls() {
    let tools = ["/usr/bin/strace", "/usr/bin/timeout"];
    tools.iter().fold(vm(), |vm, tool| vm.program(tool)).limit(Duration::from_secs(900)).test(|| {
        let cluster = Cluster::new(&[0, 1], &[]);
        first_add_killed(&crate::network(&cluster, "net", "ipip", Underlay::V4), &cluster, 23);
    });
}
