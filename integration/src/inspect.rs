//! What the machine holds: addresses, devices, rules; and what may be left after a DEL.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use crate::{Family, Netns, Sandbox};

/// The addresses of a result, with prefix length, in order; of every version.
pub fn addresses_of(result: &Value) -> Vec<String> {
    let new = result["ips"].as_array().into_iter().flatten().map(|ip| &ip["address"]);
    let old = ["ip4", "ip6"].into_iter().map(|key| &result[key]["ip"]);
    new.chain(old).filter_map(|address| Some(address.as_str()?.to_owned())).collect()
}

/// The gateway of a result's first address.
pub fn gateway_of(result: &Value) -> Option<&str> {
    result["ips"][0]["gateway"].as_str().or_else(|| result["ip4"]["gateway"].as_str())
}

/// The MAC of the container's interface in a result (0.3.0 and later).
pub fn container_mac(result: &Value) -> Option<&str> {
    let interfaces = result["interfaces"].as_array()?;
    interfaces.iter().find(|interface| interface["sandbox"].is_string())?["mac"].as_str()
}

impl Sandbox {
    /// The names of all devices of the machine.
    #[track_caller]
    pub fn links(&self) -> BTreeSet<String> {
        names(&self.ip_json("link"))
    }

    /// The names of all devices of a namespace.
    #[track_caller]
    pub fn links_in(&self, netns: &Netns) -> BTreeSet<String> {
        names(&self.ip_json(&format!("-n {} link", netns.name)))
    }

    /// One device of the machine, with details (`ip -d`).
    #[track_caller]
    pub fn link(&self, name: &str) -> Value {
        self.ip_json(&format!("-d link show dev {name}")).remove(0)
    }

    /// One device of a namespace, with details.
    #[track_caller]
    pub fn link_in(&self, netns: &Netns, name: &str) -> Value {
        self.ip_json(&format!("-n {} -d link show dev {name}", netns.name)).remove(0)
    }

    /// The addresses of a device of the machine, link-local left out.
    #[track_caller]
    pub fn addresses(&self, device: &str) -> Vec<String> {
        global_addresses(&self.ip_json(&format!("addr show dev {device}")))
    }

    /// The addresses of a device of a namespace, link-local left out.
    #[track_caller]
    pub fn addresses_in(&self, netns: &Netns, device: &str) -> Vec<String> {
        global_addresses(&self.ip_json(&format!("-n {} addr show dev {device}", netns.name)))
    }

    /// The routes of a namespace, as `ip -j route show table all` gives them, local and link-local ones left out.
    #[track_caller]
    pub fn routes_in(&self, netns: &Netns, family: u8) -> Vec<Value> {
        let mut routes = self.ip_json(&format!("-n {} -{family} -d route show table all", netns.name));
        routes.retain(|route| {
            route["table"] != "local"
                && !route["dst"].as_str().unwrap_or_default().starts_with("fe80:")
                && route["dst"] != "ff00::/8"
        });
        routes
    }

    /// The addresses held on a network, by the files of the family's store.
    pub fn held(&self, family: Family, network: &str) -> BTreeSet<IpAddr> {
        let folder = match family {
            Family::Osvc => format!("/var/lib/cni/osvc/ipam/{network}"),
            Family::Reference => format!("/var/lib/cni/networks/{network}"),
        };
        self.held_in(family, &folder)
    }

    /// The addresses held in a store's folder.
    pub fn held_in(&self, family: Family, folder: &str) -> BTreeSet<IpAddr> {
        let is_held = |name: &str| match family {
            Family::Osvc => self.record(folder, name)["state"] == "held",
            Family::Reference => true,
        };
        let files = self.list(folder).into_iter().filter(|name| name.parse::<IpAddr>().is_ok());
        files.filter(|name| is_held(name)).filter_map(|name| name.parse().ok()).collect()
    }

    /// One address record of ours; null if it is no JSON.
    pub fn record(&self, folder: &str, address: &str) -> Value {
        let text = std::fs::read_to_string(self.path(&format!("{folder}/{address}"))).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// The records of host ports, and the links `by-port/tcp-8080.0 -> TAG`.
    pub fn port_records(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for folder in ["attachments", "by-port", "by-address"] {
            let inside = format!("/var/lib/cni/osvc/ports/{folder}");
            for name in self.list(&inside) {
                let target = std::fs::read_link(self.path(&format!("{inside}/{name}"))).unwrap_or_default();
                found.insert(format!("{folder}/{name} -> {}", target.display()));
            }
        }
        found
    }

    /// Everything that a DEL has to have cleaned up.
    #[track_caller]
    pub fn leftovers(&self) -> Leftovers {
        let folders = self.list("/var/lib/cni/osvc/ipam");
        let held = folders.iter().flat_map(|network| {
            self.held(Family::Osvc, network).into_iter().map(move |address| format!("{network} {address}"))
        });
        let temporary = self.sh(
            "find /var/lib/cni /run/osvc-cni -name '*.tmp*' -o -name '.tmp*' 2>/dev/null; find /var/lib/cni/networks -type f \
             -name '*[.:]*' 2>/dev/null | grep -v last_reserved_ip",
        );
        Leftovers {
            links: self.links(),
            held: held.collect(),
            ports: self.port_records(),
            files: temporary.stdout.lines().map(str::to_owned).collect(),
            mounts: self.sh("awk '{print $5}' /proc/self/mountinfo | sort").ok(),
            ruleset: self.ruleset(),
        }
    }
}

/// What is there at one moment: to be compared with a later one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftovers {
    /// Devices of the machine.
    pub links: BTreeSet<String>,
    /// Held addresses of all networks of ours.
    pub held: BTreeSet<String>,
    /// Records of host ports and the links to them.
    pub ports: BTreeSet<String>,
    /// Temporary files, and host-local's address files.
    pub files: BTreeSet<String>,
    /// Mount points.
    pub mounts: String,
    /// The nftables ruleset.
    pub ruleset: String,
}

impl Leftovers {
    /// # Panics
    /// Something is there that was not there before, or something is gone.
    #[track_caller]
    pub fn assert_same_as(&self, before: &Self, after_what: &str) {
        assert_eq!(self.links, before.links, "devices after {after_what}");
        assert_eq!(self.held, before.held, "held addresses after {after_what}");
        assert_eq!(self.ports, before.ports, "records of host ports after {after_what}");
        assert_eq!(self.files, before.files, "files after {after_what}");
        assert_eq!(self.mounts, before.mounts, "mounts after {after_what}");
        assert_eq!(self.ruleset, before.ruleset, "ruleset after {after_what}");
    }
}

fn names(links: &[Value]) -> BTreeSet<String> {
    links.iter().filter_map(|link| Some(link["ifname"].as_str()?.to_owned())).collect()
}

fn global_addresses(links: &[Value]) -> Vec<String> {
    let addresses = links.iter().flat_map(|link| link["addr_info"].as_array().into_iter().flatten());
    addresses
        .filter(|address| address["scope"] == "global" || address["scope"] == "host")
        .map(|address| format!("{}/{}", address["local"].as_str().unwrap_or_default(), address["prefixlen"]))
        .collect()
}
