//! `osvc-net ip ls`: who has, or last had, which address.

use std::net::IpAddr;

use osvc_cni::ipam::liveness::{Kernel, Liveness, Witness};
use osvc_cni::ipam::record::{Record, State};
use osvc_cni::{Host, NetworkName};
use serde_json::{Value, json};

use crate::args::Format;
use crate::error::Error;
use crate::networks::Networks;
use crate::output::{self, seconds, short};

/// An address and what is known of it.
struct Row<'a> {
    network: &'a NetworkName,
    address: IpAddr,
    record: Record,
    liveness: Option<Liveness>,
}

/// Prints the addresses of the named networks, or of all.
pub fn list(host: &Host, networks: Networks, names: &[String], format: Format) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(names);
    let mut witness = Kernel::new(host).in_a_hurry();
    let mut rows = Vec::new();
    for network in &chosen {
        let folder = network.address_folders(host).map(|folders| folders.ours);
        let records = osvc_cni::ipam::list(host, &network.name, folder.as_deref());
        match records {
            Ok(records) => rows.extend(records.into_iter().map(|(address, record)| Row {
                network: &network.name,
                address,
                liveness: (record.state == State::Held).then(|| witness.judge(&record)),
                record,
            })),
            Err(error) => errors.push(Error::Network { network: network.name.clone(), source: Box::new(error.into()) }),
        }
    }
    let text = match format {
        Format::Table => table(&rows),
        Format::Json => format!("{:#}\n", Value::from(rows.iter().map(Row::json).collect::<Vec<_>>())),
    };
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn table(rows: &[Row<'_>]) -> String {
    let header = ["NETWORK", "ADDRESS", "STATE", "KEY", "CONTAINER", "INTERFACE", "SINCE"];
    let cells = |row: &Row<'_>| {
        let record = &row.record;
        [
            row.network.to_string(),
            row.address.to_string(),
            row.state().to_owned(),
            record.key.text.clone(),
            short(&record.container).to_owned(),
            record.ifname.clone(),
            seconds(&record.since),
        ]
    };
    output::table(header, &rows.iter().map(cells).collect::<Vec<_>>())
}

impl Row<'_> {
    fn state(&self) -> &'static str {
        match (self.record.state, self.liveness) {
            (State::Held, Some(Liveness::Dead)) => "dead",
            (State::Held, _) => "held",
            (State::Released, _) => "released",
            (State::Reserved, _) => "reserved",
        }
    }

    /// All of the record, with its network, its address and whether its holder lives.
    fn json(&self) -> Value {
        let mut value = json!({"network": self.network, "address": self.address});
        if let (Some(object), Ok(Value::Object(record))) = (value.as_object_mut(), serde_json::to_value(&self.record)) {
            object.extend(record);
            if let Some(liveness) = self.liveness {
                object.insert("liveness".to_owned(), Value::from(word(liveness)));
            }
        }
        value
    }
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
    use super::*;

    fn row(network: &NetworkName, liveness: Option<Liveness>) -> Row<'_> {
        let record = json!({
            "v": 1, "key": {"source": "podman", "text": "web"}, "instance": 0, "container": "0123456789ab".repeat(5),
            "ifname": "eth0", "boot": "b", "state": "held", "uses": 3, "since": "2026-01-02T03:04:05.678Z"
        });
        let record = serde_json::from_value(record).unwrap();
        Row { network, address: "10.22.0.9".parse().unwrap(), record, liveness }
    }

    #[test]
    fn people_see_the_main_things() {
        let network = "podnet".parse().unwrap();
        assert_eq!(
            table(&[row(&network, Some(Liveness::Running)), row(&network, Some(Liveness::Dead))]),
            "NETWORK  ADDRESS    STATE  KEY  CONTAINER     INTERFACE  SINCE\n\
             podnet   10.22.0.9  held   web  0123456789ab  eth0       2026-01-02T03:04:05Z\n\
             podnet   10.22.0.9  dead   web  0123456789ab  eth0       2026-01-02T03:04:05Z\n"
        );
    }

    #[test]
    fn programs_see_all() {
        let network = "podnet".parse().unwrap();
        let value = row(&network, Some(Liveness::Unknown)).json();
        assert_eq!(value["network"], "podnet");
        assert_eq!(value["address"], "10.22.0.9");
        assert_eq!(value["liveness"], "unknown");
        assert_eq!(value["key"], json!({"source": "podman", "text": "web"}));
        assert_eq!(value["uses"], 3);
    }
}
