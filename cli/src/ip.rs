//! `osvc-net ip ls`: who has, or last had, which address.

pub mod explain;
pub mod history;
pub mod reserve;
pub mod select;

use std::borrow::Cow;
use std::net::IpAddr;

use osvc_cni::ipam::liveness::{Census, Liveness, Witness};
use osvc_cni::ipam::record::{Record, State};
use osvc_cni::{Host, NetworkName};
use serde::Serialize;

use crate::args::Format;
use crate::error::Error;
use crate::networks::Networks;
use crate::output::{self, seconds};
use crate::shape::node_name;

/// An address and what is known of it.
struct Row<'a> {
    network: &'a NetworkName,
    node: &'a str,
    address: IpAddr,
    record: Record,
    liveness: Option<Liveness>,
}

/// Prints the addresses of the named networks, or of all. What cannot be read is told, and the rest is listed.
pub fn list(host: &Host, networks: Networks, names: &[String], format: Format) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(names);
    let mut witness = Census::new(host);
    // What is wrong with a configuration is told by `ls`; who has what does not depend on it.
    let node = |shape: Option<crate::shape::Shape>| shape.map_or_else(node_name, |shape| shape.node);
    let nodes: Vec<String> = chosen.iter().map(|network| node(network.shape(host).ok().flatten())).collect();
    let mut rows = Vec::new();
    for (network, node) in chosen.iter().zip(&nodes) {
        let (snapshot, faults) = select::records(host, network);
        errors.extend(faults);
        rows.extend(snapshot.records.into_iter().map(|(address, record)| Row {
            network: &network.name,
            node,
            address,
            liveness: (record.state == State::Held).then(|| witness.judge(&record)),
            record,
        }));
    }
    let text = match format {
        Format::Table => table(&rows),
        Format::Json => json(&rows),
    };
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn table(rows: &[Row<'_>]) -> String {
    let header = ["KEY", "NODE", "IFNAME", "IP", "NETWORK", "STATE", "SINCE"];
    output::table(header, &rows.iter().map(Row::cells).collect::<Vec<_>>())
}

impl Row<'_> {
    fn cells(&self) -> [Cow<'_, str>; 7] {
        let record = &self.record;
        [
            Cow::from(&record.key.text),
            self.node.into(),
            Cow::from(&record.ifname),
            self.address.to_string().into(),
            self.network.as_str().into(),
            self.state().into(),
            seconds(&record.since).into(),
        ]
    }

    fn state(&self) -> &'static str {
        match (self.record.state, self.liveness) {
            (State::Held, Some(Liveness::Dead)) => "dead",
            (State::Held, _) => "held",
            (State::Released, _) => "released",
            (State::Reserved, _) => "reserved",
        }
    }

    fn json(&self) -> Listed<'_> {
        let Self { network, node, address, record, liveness } = self;
        Listed { network, node, address: *address, record, liveness: liveness.map(word) }
    }
}

/// All of a record, with its network, its node, its address and whether its holder lives.
#[derive(Serialize)]
struct Listed<'a> {
    network: &'a NetworkName,
    node: &'a str,
    address: IpAddr,
    #[serde(flatten)]
    record: &'a Record,
    #[serde(skip_serializing_if = "Option::is_none")]
    liveness: Option<&'static str>,
}

/// Written as it is read: a tree of 60 000 records takes longer than all the rest.
fn json(rows: &[Row<'_>]) -> String {
    let rows: Vec<Listed<'_>> = rows.iter().map(Row::json).collect();
    serde_json::to_string_pretty(&rows).map(|text| text + "\n").unwrap_or_default()
}

fn word(liveness: Liveness) -> &'static str {
    match liveness {
        Liveness::Running => "running",
        Liveness::Attached => "attached",
        Liveness::Dead => "dead",
        Liveness::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn row(network: &NetworkName, liveness: Option<Liveness>) -> Row<'_> {
        let record = json!({
            "v": 1, "key": {"source": "podman", "text": "web"}, "instance": 0, "container": "0123456789ab".repeat(5),
            "ifname": "eth0", "boot": "b", "state": "held", "uses": 3, "since": "2026-01-02T03:04:05.678Z"
        });
        let record = serde_json::from_value(record).unwrap();
        Row { network, node: "node1", address: "10.22.0.9".parse().unwrap(), record, liveness }
    }

    #[test]
    fn people_see_the_main_things() {
        let network = "podnet".parse().unwrap();
        assert_eq!(
            table(&[row(&network, Some(Liveness::Running)), row(&network, Some(Liveness::Dead))]),
            "KEY  NODE   IFNAME  IP         NETWORK  STATE  SINCE\n\
             web  node1  eth0    10.22.0.9  podnet   held   2026-01-02T03:04:05Z\n\
             web  node1  eth0    10.22.0.9  podnet   dead   2026-01-02T03:04:05Z\n"
        );
    }

    #[test]
    fn programs_see_all() {
        let network = "podnet".parse().unwrap();
        let text = super::json(&[row(&network, Some(Liveness::Unknown))]);
        let value = serde_json::from_str::<Value>(&text).unwrap()[0].take();
        assert_eq!(value["network"], "podnet");
        assert_eq!(value["node"], "node1");
        assert_eq!(value["address"], "10.22.0.9");
        assert_eq!(value["liveness"], "unknown");
        assert_eq!(value["key"], json!({"source": "podman", "text": "web"}));
        assert_eq!(value["uses"], 3);
    }
}
