//! A workload keeps its address, a range never leaks, nobody gets somebody else's: over reboots, lost and late DELs, lost
//! stores, and many calls at once.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod by_hand;
mod del;
mod many;
mod reboot;
mod sharing;
mod store;

use integration::{Netns, Plugin, Sandbox, addresses_of};
use serde_json::{Value, json};

/// One line of configuration: network `net1`.
fn bridge(subnet: &str) -> Value {
    json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "network": subnet})
}

/// The IPAM plugin alone, with these keys.
fn ipam(mut keys: Value) -> Value {
    keys["type"] = json!("osvc-ipam");
    json!({"cniVersion": "1.1.0", "name": "net1", "type": "osvc-bridge", "ipam": keys})
}

/// A call of the plugin that a configuration is for.
fn plugin<'a>(sandbox: &'a Sandbox, config: &Value) -> Plugin<'a> {
    let name = if config["network"].is_null() { "osvc-ipam" } else { "osvc-bridge" };
    sandbox.plugin(name).config(config.clone())
}

/// ADD of a workload in a new container: its addresses.
fn start(sandbox: &Sandbox, config: &Value, container: &str, name: &str) -> (Netns, Vec<String>) {
    let netns = sandbox.netns(container);
    let result = plugin(sandbox, config).container(container).netns(&netns).named(name).add();
    (netns, addresses_of(&result))
}
