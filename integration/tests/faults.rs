//! Death and errors at every system call of ADD and DEL: the runtime's next step works, and then nothing is left.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::fault::Bench;
use integration::{Sandbox, addresses_of, report, trace};
use serde_json::{Value, json};

fn bridge() -> (&'static str, Value) {
    (
        "osvc-bridge",
        json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "network": ["10.9.0.0/24", "fd09::/64"]}),
    )
}

fn ipam() -> (&'static str, Value) {
    let keys = json!({"type": "osvc-ipam", "ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]]});
    ("osvc-ipam", json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "ipam": keys}))
}

/// The network is in place, and another container lives on it all the time.
fn on_a_network((name, config): (&str, Value), run: impl FnOnce(&Bench<'_>, &str)) {
    let sandbox = Sandbox::new();
    let netns = sandbox.netns("pod");
    let call = sandbox.plugin(name).config(config).container("id-1").netns(&netns).named("web");
    let other = sandbox.netns("other");
    call.clone().container("other").netns(&other).named("other").add();
    run(&Bench::new(&sandbox, call, &netns), name);
}

fn killed_everywhere(verb: &str, plugin: (&str, Value)) {
    on_a_network(plugin, |bench, name| bench.killed_everywhere(verb, name));
}

fn errors_everywhere(verb: &str, plugin: (&str, Value)) {
    on_a_network(plugin, |bench, name| bench.errors_everywhere(verb, name));
}

#[test]
fn osvc_ipam_killed_at_every_system_call_of_add() {
    killed_everywhere("ADD", ipam());
}

#[test]
fn osvc_ipam_killed_at_every_system_call_of_del() {
    killed_everywhere("DEL", ipam());
}

#[test]
fn osvc_bridge_killed_at_every_system_call_of_add() {
    killed_everywhere("ADD", bridge());
}

#[test]
fn osvc_bridge_killed_at_every_system_call_of_del() {
    killed_everywhere("DEL", bridge());
}

#[test]
fn osvc_ipam_with_an_error_at_every_system_call_of_add() {
    errors_everywhere("ADD", ipam());
}

#[test]
fn osvc_ipam_with_an_error_at_every_system_call_of_del() {
    errors_everywhere("DEL", ipam());
}

#[test]
fn osvc_bridge_with_an_error_at_every_system_call_of_add() {
    errors_everywhere("ADD", bridge());
}

#[test]
fn osvc_bridge_with_an_error_at_every_system_call_of_del() {
    errors_everywhere("DEL", bridge());
}

/// The first ADD sets the network up: more calls, and a child (nft).
#[test]
fn osvc_bridge_killed_at_every_system_call_of_a_networks_first_add() {
    let sandbox = Sandbox::new();
    let netns = sandbox.netns("pod");
    let (name, config) = bridge();
    let call = sandbox.plugin(name).config(config).container("id-1").netns(&netns).named("web");
    let blank = || sandbox.sh("ip link del obr_net1; nft flush ruleset; rm -rf /var/lib/cni/* /run/osvc-cni").rc;
    let calls = trace::system_calls(&sandbox, &call, "ADD");
    let address = addresses_of(&call.clone().call("ADD").json.unwrap_or(Value::Null));
    call.del();
    let before = sandbox.leftovers();
    for fault in &calls {
        blank();
        let words = trace::inject(fault, "signal=SIGKILL");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        call.clone().through(&words).call("ADD");
        call.del();
        let again = addresses_of(&call.add());
        assert!(address.is_empty() || again == address, "the first ADD killed at {fault}");
        assert!(sandbox.ping(&netns, "10.9.0.1"), "the gateway answers after a first ADD killed at {fault}");
        call.del();
        sandbox.leftovers().assert_same_as(&before, &format!("a first ADD killed at {fault}, then DEL, ADD, DEL"));
    }
    report::ran(
        "strace --inject",
        &format!("SIGKILL at each of the {} system calls of a network's first ADD", calls.len()),
    );
}
