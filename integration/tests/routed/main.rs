//! Routed networks: clusters of machines whose containers talk to each other, whatever is between the nodes and
//! whatever is done to them. What the running kernel has (plain routes, vxlan) is tried on it, all the rest in the VM.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bad_input;
mod beside;
mod check;
mod command;
mod cost;
mod del;
mod down;
mod dry_run;
mod examples;
mod faults;
mod firewall;
mod foreign;
mod hooks;
mod identity;
mod independent;
mod leaving;
mod local;
mod mode_change;
mod mtu;
mod pairs;
mod plan_edits;
mod plan_on_all;
mod secrets;
mod segments;
mod source;
mod tables;
mod wireguard;

use std::net::IpAddr;
use std::time::Duration;

use integration::cluster::{Cluster, Underlay};
use integration::{Vm, report};
use serde_json::Value;

/// The network of the documentation, and a segment's prefix length.
const V4: (&str, u8) = ("10.11.0.0/16", 22);
const V6: (&str, u8) = ("fd11::/48", 64);
/// Tunnels that the running kernel may lack, by what they are carried over.
const OTHERS: [(&str, Underlay); 3] = [("ipip", Underlay::V4), ("gre", Underlay::V6), ("wireguard", Underlay::V4)];
/// The MTU of links between nodes.
const LINK: u32 = 1500;

/// A VM in which nodes can resolve names.
fn vm() -> Vm {
    Vm::new().program("/usr/bin/getent").limit(Duration::from_secs(400))
}

/// A dual-stack network over IPv4, for the kernel as it is.
fn vxlan(cluster: &Cluster) -> Value {
    network(cluster, "net", "vxlan", Underlay::V4)
}

/// A dual-stack network in some mode.
fn network(cluster: &Cluster, name: &str, mode: &str, underlay: Underlay) -> Value {
    let mut config = cluster.network(name, underlay, &[V4, V6]);
    config["tunnelMode"] = mode.into();
    if mode == "wireguard" {
        cluster.exchange_keys(&mut config);
    }
    config
}

/// Switches strict reverse path filtering on, everywhere and before anything is made.
#[track_caller]
fn set_strict(cluster: &Cluster) {
    for node in &cluster.nodes {
        node.sandbox.sh("for name in all default eth0; do echo 1 > /proc/sys/net/ipv4/conf/$name/rp_filter; done").ok();
    }
}

/// An address by its text.
fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[track_caller]
fn contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
}

fn noted(what: &str) {
    report::ran(&report::kernel(), what);
}
