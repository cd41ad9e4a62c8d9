//! osvc-net adopt: containers of the reference plugins become ours, and go back, without being stopped.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod ends;
mod fsck;
mod hidden;
mod killed;
mod kinds;
mod mixed;
mod podman;
mod race;
mod stuck;
mod undo;

use std::collections::{BTreeMap, BTreeSet};

use integration::{Family, Netns, Output, Sandbox};
use serde_json::{Value, json};

/// host-local's folder of the network.
const FILES: &str = "/var/lib/cni/networks/net1";

/// Ours.
const RECORDS: &str = "/var/lib/cni/osvc/ipam/net1";

fn osvc_net(sandbox: &Sandbox, words: &[&str]) -> Output {
    sandbox.osvc_net(words)
}

/// A conflist of a family that differs from the other's by its types only.
fn conflist(family: Family, ipam: &Value) -> Value {
    let mut ipam = ipam.clone();
    ipam["type"] = json!(family.ipam());
    let plugin =
        json!({"type": family.bridge(), "bridge": "br9", "isGateway": true, "hairpinMode": true, "ipam": ipam});
    json!({"cniVersion": "1.0.0", "name": "net1", "plugins": [plugin]})
}

fn switch(sandbox: &Sandbox, family: Family, ipam: &Value) {
    sandbox.write("/etc/cni/net.d/net1.conflist", &conflist(family, ipam).to_string());
}

/// A range of an IPv4 network.
fn v4() -> Value {
    json!({"ranges": [[{"subnet": "10.9.0.0/24"}]]})
}

/// A set of each family.
fn both() -> Value {
    json!({"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]]})
}

/// A container that cnitool started.
struct Pod {
    netns: Netns,
    name: String,
    addresses: Vec<String>,
}

/// cnitool, as podman would call the plugins: by name.
fn cnitool(sandbox: &Sandbox, verb: &str, netns: &str, name: &str) -> Output {
    let args = format!("IgnoreUnknown=1;K8S_POD_NAME={name}");
    sandbox.sh(&format!("CNI_PATH=/opt/cni/bin CNI_ARGS='{args}' cnitool {verb} net1 /run/netns/{netns}"))
}

fn start(sandbox: &Sandbox, netns: &str, name: &str) -> Pod {
    let netns = sandbox.netns(netns);
    let addresses = add(sandbox, &netns.name, name);
    Pod { netns, name: name.to_owned(), addresses }
}

#[track_caller]
fn add(sandbox: &Sandbox, netns: &str, name: &str) -> Vec<String> {
    let result: Value = serde_json::from_str(&cnitool(sandbox, "add", netns, name).ok()).unwrap();
    integration::addresses_of(&result).iter().map(|text| text.split('/').next().unwrap().to_owned()).collect()
}

impl Pod {
    fn address(&self) -> &str {
        &self.addresses[0]
    }

    /// The namespace is made anew, as by a runtime that restarts a container.
    #[track_caller]
    fn restart(&self, sandbox: &Sandbox) -> Vec<String> {
        cnitool(sandbox, "del", &self.netns.name, &self.name).ok();
        sandbox.delete_netns(&self.netns);
        sandbox.netns(&self.netns.name);
        add(sandbox, &self.netns.name, &self.name)
    }
}

/// host-local's files with their texts.
fn files(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let names = sandbox.list(FILES).into_iter().filter(|name| name.parse::<std::net::IpAddr>().is_ok());
    names.map(|name| (name.clone(), sandbox.read(&format!("{FILES}/{name}")))).collect()
}

/// Our records, but for when they were released.
fn records(sandbox: &Sandbox) -> BTreeMap<String, Value> {
    let names = sandbox.list(RECORDS).into_iter().filter(|name| name.parse::<std::net::IpAddr>().is_ok());
    let record = |name: String| {
        let mut record = sandbox.record(RECORDS, &name);
        if record["state"] == "released" {
            record["since"] = Value::Null;
        }
        (name, record)
    };
    names.map(record).collect()
}

fn held(sandbox: &Sandbox) -> BTreeSet<String> {
    sandbox.held(Family::Osvc, "net1").iter().map(ToString::to_string).collect()
}

/// Every file below a folder, and its content.
fn tree(sandbox: &Sandbox, folder: &str) -> String {
    sandbox
        .sh(&format!("cd {folder} && find . -printf '%p %y %m %T@ %l\\n' | sort; find . -type f | sort | xargs md5sum"))
        .ok()
}
