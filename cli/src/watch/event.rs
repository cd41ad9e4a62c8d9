//! One line of what `osvc-net watch` prints.

use std::net::IpAddr;
use std::path::Path;
use std::time::SystemTime;

use osvc_cni::ipam::record::{Record, State};
use osvc_cni::ipam::timestamp;
use osvc_cni::routed::peer_file::PeerFile;
use osvc_cni::{NetworkName, portmap};
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::output;

/// What happened, with the record of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    network: NetworkName,
    line: Map<String, Value>,
}

impl Event {
    fn new(what: &str, network: &NetworkName, more: Value, record: Option<Value>) -> Self {
        let mut line = Map::new();
        line.insert("time".to_owned(), Value::from(timestamp::format(SystemTime::now())));
        line.insert("event".to_owned(), Value::from(what));
        line.insert("network".to_owned(), Value::from(network.as_str()));
        for fields in [Some(more), record].into_iter().flatten() {
            let Value::Object(fields) = fields else { continue };
            for (name, value) in fields {
                line.entry(name).or_insert(value);
            }
        }
        Self { network: network.clone(), line }
    }

    /// An address became what its record says.
    pub fn address(network: &NetworkName, folder: &Path, address: IpAddr, record: &Record) -> Self {
        let what = match record.state {
            State::Held => "held",
            State::Released => "released",
            State::Reserved => "reserved",
        };
        Self::of_record(what, network, folder, address, record)
    }

    /// The record of an address has gone.
    pub fn forgotten(network: &NetworkName, folder: &Path, address: IpAddr, record: &Record) -> Self {
        Self::of_record("forgotten", network, folder, address, record)
    }

    /// The last holder of an address gave it back, which was not seen: the next one has it.
    pub fn handed_on(network: &NetworkName, folder: &Path, address: IpAddr, before: &Record, since: &str) -> Self {
        Self::of_record("released", network, folder, address, &before.released(since))
    }

    fn of_record(what: &str, network: &NetworkName, folder: &Path, address: IpAddr, record: &Record) -> Self {
        let more = json!({"address": address, "folder": folder});
        Self::new(what, network, more, serde_json::to_value(record).ok())
    }

    /// Host ports of an attachment came.
    pub fn published(record: &portmap::Record) -> Self {
        Self::new("published", &record.network, json!({}), serde_json::to_value(record).ok())
    }

    /// Host ports of an attachment went.
    pub fn unpublished(record: &portmap::Record) -> Self {
        Self::new("unpublished", &record.network, json!({}), serde_json::to_value(record).ok())
    }

    /// The nodes of a routed network, as this one sees them, are others; none: the network was taken off this node.
    pub fn peers(network: &NetworkName, file: Option<&PeerFile>) -> Self {
        let gone = || json!({"gone": true, "peers": []});
        Self::new(
            "peers",
            network,
            file.map_or_else(gone, |_| json!({})),
            file.and_then(|f| serde_json::to_value(f).ok()),
        )
    }

    /// Whose it is.
    pub fn network(&self) -> &NetworkName {
        &self.network
    }

    /// Prints it, at once.
    pub fn print(&self) -> Result<(), Error> {
        output::print(&format!("{}\n", Value::from(self.line.clone())))
    }

    #[cfg(test)]
    pub fn what(&self) -> &str {
        self.line["event"].as_str().unwrap_or_default()
    }
}
