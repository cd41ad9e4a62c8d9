//! Against the kernel: each test in a network namespace and a state folder of its own.

mod cluster;
mod elements;
mod flows;
mod others;
mod own;
mod races;

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::netlink::netns::host_id;

/// A host with some networks, which were set up here and now.
struct Place {
    _folder: TempDir,
    host: Host,
}

impl Place {
    fn new(networks: &[(&str, &[&str])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host = crate::network::record::tests::host(&folder);
        let place = Self { _folder: folder, host };
        for (name, subnets) in networks {
            place.set_up(name, subnets, |_| {});
        }
        place
    }

    fn set_up(&self, name: &str, subnets: &[&str], adapt: impl FnOnce(&mut NetworkRecord)) {
        let mut record = crate::network::record::tests::record(name, subnets);
        record.netns = host_id().unwrap();
        adapt(&mut record);
        record.save(&self.host).unwrap();
    }

    fn record(&self, name: &str) -> NetworkRecord {
        NetworkRecord::load(&self.host, &name.parse().unwrap()).unwrap().unwrap()
    }

    fn lose(&self, name: &str) {
        NetworkRecord::remove(&self.host, &name.parse().unwrap()).unwrap();
    }

    fn apply(&self) {
        apply(&self.host).unwrap();
    }

    fn is_in_place(&self, name: &str) -> bool {
        in_place(&self.host, &self.record(name)).unwrap()
    }

    /// What CHECK says of a network.
    fn fault(&self, name: &str) -> String {
        check(&self.host, &self.record(name)).unwrap_err().to_string()
    }

    fn passes(&self, name: &str) {
        check(&self.host, &self.record(name)).unwrap();
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn nft(document: &str) {
    nft::commit(document, "prepare a test").unwrap();
}

/// The objects of one kind in the ruleset: family, table, chain, name, comment, as far as they have them.
fn objects(kind: &str) -> Vec<String> {
    let ruleset: Value = serde_json::from_str(&run("nft", &["-j", "list", "ruleset"])).unwrap();
    let object = |entry: &Value| {
        let object = entry.get(kind)?;
        let field = |name: &&str| object.get(*name).and_then(Value::as_str).map(str::to_owned);
        Some(["family", "table", "chain", "name", "comment"].iter().filter_map(field).collect::<Vec<_>>().join(" "))
    };
    ruleset["nftables"].as_array().unwrap().iter().filter_map(object).collect()
}

fn rules_with(text: &str) -> usize {
    objects("rule").iter().filter(|rule| rule.contains(text)).count()
}

const A: (&str, &[&str]) = ("a", &["10.1.0.0/16"]);
const B: (&str, &[&str]) = ("b", &["10.2.0.0/16", "fd00:2::/64"]);
