//! Points of the specification that show only in a whole call with a kernel or a runtime behind it, by their numbers in
//! the list of conformance points (C), of the reference's cases (CI, LN, LC) and of the runtimes' checklist (p).
//!
//! What no plugin can show, and what is not there yet, has no test here:
//! - C46: the runtime picks the version; a plugin gets one and answers in it (p3).
//! - C44 but for what our answer has to look like: the decoder is the runtime's.
//! - C81 but for CHECK of what was never added or is deleted: when CHECK is called is the runtime's affair.
//! - C104 but for our part of it: that a runtime whose conflist says `disableGC` calls nobody is the runtime's affair.
//! - C113: firewall; ours of that kind is not a plugin. What portmap adds to the whole is in `ports`.
//! - C132: what libcni does not do after a failure; what a plugin sees of it is below.
//! - LN4 as the reference has it: our names are not random, so they cannot run out. A taken name is below.
//! - SK13: an untyped error is 999. We have no untyped errors; a panic, which prints 999, cannot be provoked from outside.
//! - LC3 but for errors: a time limit is the runtime's. LC14 but for what is below: libcni's file names and merging.
//! - LC16: conversions are tested where they are written (`c56_lc16`).
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod add;
mod call;
mod chain;
mod check;
mod del;
mod libcni;
mod link;
mod ports;
mod result;
mod scripted;
mod status_gc;

use integration::{Netns, Plugin, Sandbox};
use serde_json::{Value, json};

/// The two plugins that give addresses.
const PLUGINS: [&str; 2] = ["osvc-ipam", "osvc-bridge"];

/// One line of configuration: network `net1`, in this version.
fn one_line(version: &str) -> Value {
    json!({"cniVersion": version, "name": "net1", "type": "osvc-bridge", "network": "10.9.0.0/24"})
}

/// The same network in the reference's keys, with these keys of `ipam` and no default route.
fn keys(mut ipam: Value) -> Value {
    if ipam["type"].is_null() {
        ipam["type"] = json!("osvc-ipam");
    }
    json!({"cniVersion": "1.1.0", "name": "net1", "type": "osvc-bridge", "bridge": "br9", "isGateway": true, "ipMasq": true,
        "ipam": ipam})
}

/// Configuration of osvc-ipam alone.
fn ipam(mut keys: Value) -> Value {
    keys["type"] = json!("osvc-ipam");
    json!({"cniVersion": "1.1.0", "name": "net1", "type": "osvc-bridge", "ipam": keys})
}

/// osvc-bridge for container `c1` in this namespace.
fn bridge<'a>(sandbox: &'a Sandbox, netns: &Netns, config: Value) -> Plugin<'a> {
    sandbox.plugin("osvc-bridge").netns(netns).config(config)
}

/// Both plugins, each with a configuration that is right for it.
fn both<'a>(sandbox: &'a Sandbox, netns: &Netns) -> [Plugin<'a>; 2] {
    [
        sandbox
            .plugin("osvc-ipam")
            .netns(netns)
            .config(ipam(json!({"subnet": "10.8.0.0/24"})))
            .with("name", json!("net8")),
        bridge(sandbox, netns, one_line("1.1.0")),
    ]
}

/// Devices, addresses and routes of a namespace, without what the kernel goes on changing by itself: carrier, and
/// link-local addresses.
fn inside(sandbox: &Sandbox, netns: &Netns) -> String {
    settled(sandbox, &format!("-n {}", netns.name))
}

/// As [`inside`], with other words for `ip`.
fn settled(sandbox: &Sandbox, words: &str) -> String {
    let lists =
        ["link", "-4 addr", "-6 addr", "-4 route", "-6 route"].map(|list| format!("ip {words} {list}")).join("; ");
    let filter =
        r"sed -E 's/ state [A-Z]+//; s/,?(LOWER_UP|NO-CARRIER|M-DOWN)//g; s/<,/</; s/ (linkdown|dead|tentative)//g'";
    sandbox.sh(&format!("{{ {lists}; }} | {filter} | grep -v 'fe80:\\|ff00:\\|valid_lft'")).ok()
}
