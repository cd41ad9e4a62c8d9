//! `make bench`: medians of whole processes, ours beside the reference plugins, in one run on one machine.
//!
//! Both are started by the same shell function in the same namespaces, so that what the starting costs is the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use integration::{Family, Sandbox};
use serde_json::{Value, json};

/// Rounds per figure.
const ROUNDS: usize = 101;

fn ipam(family: Family) -> Value {
    json!({"cniVersion": "1.0.0", "name": "bench", "type": family.bridge(), "ipam": {"type": family.ipam(), "subnet": "10.0.0.0/8"}})
}

fn bridge(family: Family) -> Value {
    if family.is_ours() {
        return json!({"cniVersion": "1.0.0", "name": "bench", "type": "osvc-bridge", "network": "10.9.0.0/16"});
    }
    json!({"cniVersion": "1.0.0", "name": "bench", "type": "bridge", "bridge": "cni9", "isDefaultGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "subnet": "10.9.0.0/16"}})
}

/// Medians of ADD and DEL in milliseconds.
fn measure(plugin: &str, config: &Value) -> (f64, f64) {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    let script = format!(
        "cni ADD warm /run/netns/pod warm > /dev/null; cni DEL warm /run/netns/pod warm
        for n in $(seq {ROUNDS}); do
            a=${{EPOCHREALTIME/./}}; cni ADD id-$n /run/netns/pod name-$n > /dev/null || exit 1
            b=${{EPOCHREALTIME/./}}; cni DEL id-$n /run/netns/pod name-$n || exit 1
            c=${{EPOCHREALTIME/./}}; echo $((b-a)) $((c-b))
        done"
    );
    let text = sandbox.bulk(plugin, config, &script).ok();
    let column = |index: usize| {
        let mut times: Vec<f64> =
            text.lines().map(|line| line.split(' ').nth(index).unwrap().parse::<f64>().unwrap() / 1e3).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    (column(0), column(1))
}

fn main() {
    println!("{:<34}{:>12}{:>12}{:>9}", "median of whole processes, ms", "reference", "ours", "ratio");
    for (what, plugin, config) in [
        ("IPAM", Family::ipam as fn(Family) -> &'static str, ipam as fn(Family) -> Value),
        ("bridge, masqueraded", Family::bridge, bridge),
    ] {
        let reference = measure(plugin(Family::Reference), &config(Family::Reference));
        let ours = measure(plugin(Family::Osvc), &config(Family::Osvc));
        for (verb, reference, ours) in [("ADD", reference.0, ours.0), ("DEL", reference.1, ours.1)] {
            println!("{:<34}{reference:>12.2}{ours:>12.2}{:>8.1}x", format!("{what} {verb}"), reference / ours);
        }
    }
}
