//! Who has which address, why, and what an operator decides about it: `osvc-net ls`, `ip …`, `hosts`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::{Netns, Output, Plugin, Sandbox, addresses_of};
use serde_json::{Value, json};

mod agree;
mod examples;
mod history;
mod hosts;
mod listing;
mod look_only;
mod many;
mod reserve;
mod with_podman;

/// A machine with these networks' conflists.
fn machine(networks: &[Value]) -> Sandbox {
    let sandbox = Sandbox::new();
    for network in networks {
        let name = network["name"].as_str().unwrap();
        let mut plugin = network.clone();
        plugin.as_object_mut().unwrap().retain(|key, _| !["name", "cniVersion"].contains(&key.as_str()));
        let conflist = json!({"cniVersion": "1.0.0", "name": name, "plugins": [plugin]});
        sandbox.write(&format!("/etc/cni/net.d/{name}.conflist"), &conflist.to_string());
    }
    sandbox
}

/// A one-line network.
fn net1(network: &str) -> Value {
    json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "network": network})
}

fn call<'a>(sandbox: &'a Sandbox, config: &Value, container: &str, name: &str) -> Plugin<'a> {
    sandbox.plugin(config["type"].as_str().unwrap()).config(config.clone()).container(container).named(name)
}

/// Starts a container, and tells its first address.
#[track_caller]
fn start(sandbox: &Sandbox, config: &Value, netns: &Netns, container: &str, name: &str) -> String {
    let result = call(sandbox, config, container, name).netns(netns).add();
    addresses_of(&result)[0].split('/').next().unwrap().to_owned()
}

fn osvc_net(sandbox: &Sandbox, words: &[&str]) -> Output {
    sandbox.osvc_net(words)
}

#[track_caller]
fn json_of(sandbox: &Sandbox, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["-o", "json"]).collect();
    serde_json::from_str(&osvc_net(sandbox, &words).ok()).unwrap()
}

/// All that is stored, but for what tells the time of the last look, and stale entries that whoever comes by takes out.
fn state(sandbox: &Sandbox) -> String {
    sandbox
        .sh("cd /var/lib/cni; find . -name queue -prune -o ! -name lock \\( -type f -exec sha256sum {} + -o -type l -printf '%p %l\\n' \\) | sort")
        .ok()
}
