//! A node of a [`Cluster`](super::Cluster).

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::{Pod, Underlay};
use crate::{Netns, Output, Plugin, Sandbox};

/// Link group and route protocol of what is ours.
const OURS: &str = "79";

/// A machine that is a node.
pub struct Node {
    /// The machine.
    pub sandbox: Sandbox,
    /// Its host name.
    pub name: String,
    /// Where the others reach it by IPv4.
    pub v4: IpAddr,
    /// Where they reach it by IPv6.
    pub v6: IpAddr,
    /// The link that it is on.
    pub(super) link: usize,
}

/// A tunnel device of ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tunnel {
    /// Its name.
    pub name: String,
    /// Its kind, as `ip -d link` names it.
    pub kind: String,
    /// The other end, of a device that has one.
    pub remote: Option<String>,
}

impl Node {
    /// What the list of nodes says of it.
    pub fn entry(&self, underlay: Underlay) -> Value {
        let addr = match underlay {
            Underlay::V4 => json!(self.v4),
            Underlay::V6 => json!(self.v6),
            Underlay::Both => json!([self.v4, self.v6]),
        };
        json!({"name": self.name, "addr": addr})
    }

    /// Its default routes, which go when its device goes down.
    #[track_caller]
    pub fn default_routes(&self) {
        let subnet = self.link + 1;
        self.sandbox
            .sh(&format!(
                "ip route replace default via 192.168.{subnet}.254; ip -6 addr replace {}/64 dev eth0 nodad
                 ip -6 route replace default via fd00:{subnet}::fe",
                self.v6
            ))
            .ok();
    }

    /// Puts a network's conflist on it.
    #[track_caller]
    pub fn install(&self, config: &Value) {
        let mut plugin = config.clone();
        let keys = plugin.as_object_mut().expect("a configuration is an object");
        let (version, name) = (keys.remove("cniVersion"), keys.remove("name"));
        let conflist = json!({"cniVersion": version, "name": name, "plugins": [plugin]});
        let name = config["name"].as_str().expect("a network has a name");
        self.sandbox.write(&format!("/etc/cni/net.d/{name}.conflist"), &conflist.to_string());
    }

    /// Runs `osvc-net` with these words.
    pub fn osvc_net(&self, words: &[&str]) -> Output {
        self.sandbox.osvc_net(words)
    }

    /// A call for a container in a namespace of this node, called as the namespace is.
    #[track_caller]
    pub fn call(&self, config: &Value, netns: &Netns, ifname: &str) -> Plugin<'_> {
        let plugin = self.sandbox.plugin(config["type"].as_str().expect("a plugin has a type")).config(config.clone());
        plugin.container(&netns.name).netns(netns).ifname(ifname).named(&netns.name)
    }

    /// Starts a container with servers on a network.
    #[track_caller]
    pub fn start(&self, config: &Value, name: &str) -> Pod<'_> {
        let netns = self.sandbox.netns(name);
        self.attach(config, &netns, "eth0")
    }

    /// Gives a namespace an interface on a network, and servers at its addresses.
    #[track_caller]
    pub fn attach(&self, config: &Value, netns: &Netns, ifname: &str) -> Pod<'_> {
        Pod::new(self, self.call(config, netns, ifname), netns, ifname)
    }

    /// The tunnels of ours that are there, in order.
    #[track_caller]
    pub fn tunnels(&self) -> Vec<Tunnel> {
        let links = self.sandbox.ip_json(&format!("-d link show group {OURS}"));
        let tunnel = |link: &Value| {
            let kind = link["linkinfo"]["info_kind"].as_str().unwrap_or_default();
            let text = |value: &Value| Some(value.as_str()?.to_owned());
            let info = &link["linkinfo"]["info_data"];
            let remote = text(&info["remote"]).or_else(|| text(&info["remote6"]));
            let name = text(&link["ifname"])?;
            (!matches!(kind, "bridge" | "veth")).then(|| Tunnel { name, kind: kind.to_owned(), remote })
        };
        let mut tunnels: Vec<Tunnel> = links.iter().filter_map(tunnel).collect();
        tunnels.sort();
        tunnels
    }

    /// The kinds of the tunnels of ours.
    #[track_caller]
    pub fn kinds(&self) -> BTreeSet<String> {
        self.tunnels().into_iter().map(|tunnel| tunnel.kind).collect()
    }

    /// The device by which packets go to an address, as the kernel says.
    #[track_caller]
    pub fn way_to(&self, address: IpAddr) -> String {
        let family = if address.is_ipv4() { "-4" } else { "-6" };
        let route = self.sandbox.ip_json(&format!("{family} route get {address}")).remove(0);
        route["dev"].as_str().unwrap_or_default().to_owned()
    }

    /// The routes of ours in the table main, as `ip` prints them, without what the kernel puts there itself.
    #[track_caller]
    pub fn routes(&self) -> Vec<String> {
        let texts = ["-4", "-6"].map(|family| self.sandbox.ip(&format!("{family} route show proto {OURS}")));
        texts.iter().flat_map(|text| text.lines()).map(|line| line.trim().to_owned()).collect()
    }

    /// Routes, devices of ours, addresses and rules, for comparisons: in alphabetical order, without what depends on
    /// whether containers are there.
    #[track_caller]
    pub fn everything(&self) -> String {
        let shown = self.sandbox.sh(&format!(
            "ip -4 route show table all; ip -6 route show table all
             ip -o -d link show group {OURS} | sed 's/ qdisc.*//'
             ip -o addr show | sed 's/ valid_lft.*//'; nft -s list ruleset"
        ));
        let passing = [" linkdown", "NO-CARRIER,", ",LOWER_UP", ",M-DOWN", " tentative"];
        let settled = |line: &str| passing.iter().fold(line.trim().to_owned(), |line, word| line.replace(word, ""));
        // The kernel gives a container's host end its link-local address and route some time after its carrier.
        let passes = |line: &String| line.contains("fe80:") && line.contains(" ov");
        let mut lines: Vec<String> = shown.ok().lines().map(settled).filter(|line| !passes(line)).collect();
        lines.sort();
        lines.join("\n")
    }
}
