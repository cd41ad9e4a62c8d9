//! An ADD on a routed network that is in place costs what it costs on a bridge.

use std::time::Duration;

use integration::cluster::Cluster;
use integration::trace;
use serde_json::{Value, json};

use crate::{noted, vxlan};

const ROUNDS: usize = 31;
/// System calls that a routed network may cost beyond a bridge: not one per peer and device.
const BEYOND: usize = 60;

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

#[test]
fn an_add_in_place_costs_what_it_costs_on_a_bridge() {
    let cluster = Cluster::new(&[0, 0, 0, 0, 1, 1, 1, 1], &[]);
    let routed = vxlan(&cluster);
    let subnets = ["10.22.0.0/16", "fd22::/64"];
    let bridge = json!({"cniVersion": "1.1.0", "name": "local", "type": "osvc-bridge", "network": subnets});
    let node = &cluster.nodes[0];
    let _live = [node.start(&routed, "live1"), node.start(&bridge, "live2")];
    let mut times = [Vec::new(), Vec::new()];
    let netns = node.sandbox.netns("pod");
    for _ in 0..ROUNDS {
        for (config, times) in [&routed, &bridge].into_iter().zip(&mut times) {
            let call = node.call(config, &netns, "eth0");
            let reply = call.call("ADD");
            times.push(reply.elapsed());
            reply.result();
            call.del();
        }
    }
    let [routed_ms, bridge_ms] = times.map(median);
    // What it does beyond a bridge: a record more, and a look at devices, routes and neighbours.
    let calls = |config: &Value| {
        let all = trace::system_calls(&node.sandbox, &node.call(config, &netns, "eth0"), "ADD").len();
        node.call(config, &netns, "eth0").del();
        all
    };
    let (routed_calls, bridge_calls) = (calls(&routed), calls(&bridge));
    noted(&format!(
        "ADD with 7 peers in place, medians of {ROUNDS}: routed {routed_ms:.2} ms and {routed_calls} system calls, \
        bridge {bridge_ms:.2} ms and {bridge_calls}"
    ));
    assert!(routed_calls < bridge_calls + BEYOND, "routed {routed_calls}, bridge {bridge_calls} system calls");
}

#[test]
fn an_add_in_place_starts_no_program_and_writes_no_parameter() {
    let cluster = Cluster::three();
    let config: Value = vxlan(&cluster);
    let node = &cluster.nodes[0];
    let _live = node.start(&config, "live");
    let netns = node.sandbox.netns("pod");
    node.call(&config, &netns, "eth0")
        .through(&["strace", "-f", "-e", "trace=execve,fork,vfork,clone,clone3,open,openat", "-o", "/run/trace"])
        .add();
    let trace = node.sandbox.read("/run/trace");
    let lines = |word: &str| trace.lines().filter(|line| line.contains(word)).collect::<Vec<_>>();
    assert_eq!(lines("execve(").len(), 1, "itself: {:?}", lines("execve("));
    // Those of the container's own pair are another matter.
    let of_pair = |line: &&str| line.contains("/eth0/") || line.contains("/ov");
    let written: Vec<&str> =
        lines("/proc/sys/net").into_iter().filter(|line| line.contains("O_WRONLY") && !of_pair(line)).collect();
    assert!(written.is_empty(), "{written:?}");
    noted("an ADD in place starts no program");
}
