//! Source checks, by traffic: `macspoofchk` and `spoofcheck`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cost;
mod lifetime;
mod traffic;

use std::net::IpAddr;
use std::os::fd::AsRawFd;

use integration::cluster::{Cluster, Underlay};
use integration::fault::Bench;
use integration::{Family, Netns, Plugin, Sandbox, addresses_of, container_mac, report, trace};
use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6};
use serde_json::{Value, json};

/// Where the records are.
const RECORDS: &str = "/var/lib/cni/osvc/spoof/attachments/net1";
/// Nobody's addresses in the network.
const OTHER4: &str = "10.9.0.200";
const OTHER6: &str = "fd09::200";
const OTHER_MAC: &str = "02:00:00:00:00:77";
/// System calls from the last one that names a file of the checks to their end.
const BEYOND: usize = 24;

fn config(mac: bool, addresses: bool) -> Value {
    json!({"cniVersion": "1.1.0", "name": "net1", "type": "osvc-bridge", "network": ["10.9.0.0/24", "fd09::/64"],
        "macspoofchk": mac, "spoofcheck": addresses})
}

fn call<'a>(sandbox: &'a Sandbox, config: &Value, netns: &Netns) -> Plugin<'a> {
    let plugin = sandbox.plugin(config["type"].as_str().unwrap());
    plugin.config(config.clone()).container(&netns.name).netns(netns).named(&netns.name)
}

/// A container with its call and result.
struct Pod<'a> {
    netns: Netns,
    call: Plugin<'a>,
    result: Value,
}

impl<'a> Pod<'a> {
    fn start(sandbox: &'a Sandbox, config: &Value, name: &str) -> Self {
        let netns = sandbox.netns(name);
        let call = call(sandbox, config, &netns);
        let result = call.add();
        Self { netns, call, result }
    }

    fn address(&self, index: usize) -> String {
        addresses_of(&self.result)[index].split('/').next().unwrap().to_owned()
    }

    /// The host end.
    fn port(&self) -> String {
        self.result["interfaces"][1]["name"].as_str().unwrap().to_owned()
    }

    fn mac(&self) -> &str {
        container_mac(&self.result).unwrap()
    }
}

/// What arrives at `to` when `from` sends `from`'s script: true if an address (in whatever header) is seen.
fn arrives(sandbox: &Sandbox, from: &Pod<'_>, to: &Pod<'_>, script: &str, address: &str) -> bool {
    let listened = sandbox.capture(Some(&to.netns.path));
    sandbox.sh(&format!("ip netns exec {} bash -c '{script}'", from.netns.name));
    let packets = listened.end();
    match address.parse::<IpAddr>() {
        Ok(address) => packets.with_address(address) > 0,
        Err(_) => packets.from_mac(address) > 0,
    }
}

/// The elements of a set that are a port's.
fn elements(sandbox: &Sandbox, port: &str) -> usize {
    sandbox.sh("nft list table bridge osvc-cni 2>/dev/null; true").ok().matches(port).count()
}

fn noted(what: &str) {
    report::ran(&report::kernel(), what);
}
