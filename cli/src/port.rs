//! `osvc-net port ls`: which port of this host leads to which container.

use osvc_cni::portmap::{Port, Record};
use osvc_cni::{Host, portmap};
use serde_json::{Value, json};

use crate::args::Format;
use crate::error::Error;
use crate::networks::Networks;
use crate::output::{self, seconds, short};

/// Prints the host ports of the named networks, or of all.
pub fn list(host: &Host, networks: Networks, names: &[String], format: Format) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(names);
    let (ports, records) = portmap::list(host).map_err(|error| vec![osvc_cni::Error::from(error).into()])?;
    let is_chosen = |record: &Record| names.is_empty() || chosen.iter().any(|network| network.name == record.network);
    let rows: Vec<(&Port, &Record)> =
        ports.iter().map(|port| (port, &*records[port.record])).filter(|(_, record)| is_chosen(record)).collect();
    let text = match format {
        Format::Table => table(&rows),
        Format::Json => format!("{:#}\n", Value::from(rows.iter().map(json).collect::<Vec<_>>())),
    };
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn table(rows: &[(&Port, &Record)]) -> String {
    let header =
        ["NETWORK", "HOST ADDRESS", "PORT", "PROTOCOL", "TARGET", "STATE", "KEY", "CONTAINER", "INTERFACE", "SINCE"];
    let cells = |(port, record): &(&Port, &Record)| {
        [
            record.network.to_string(),
            port.slot.address.to_string(),
            port.slot.port.to_string(),
            port.slot.protocol.to_string(),
            port.target.to_string(),
            port.state.name().to_owned(),
            record.key.text.clone(),
            short(&record.container).to_owned(),
            record.ifname.clone(),
            seconds(&record.since),
        ]
    };
    output::table(header, &rows.iter().map(cells).collect::<Vec<_>>())
}

/// All that is known of a port.
fn json((port, record): &(&Port, &Record)) -> Value {
    json!({
        "network": record.network, "hostIP": port.slot.address, "hostPort": port.slot.port,
        "protocol": port.slot.protocol, "target": port.target.ip(), "containerPort": port.target.port(),
        "state": port.state.name(), "key": record.key, "container": record.container, "ifname": record.ifname,
        "netns": record.netns.as_ref().map(|netns| &netns.path), "snat": record.snat, "masqAll": record.masq_all,
        "allowFrom": record.allow_from, "since": record.since,
    })
}

#[cfg(test)]
mod tests {
    use osvc_cni::portmap::{Protocol, Slot, State};

    use super::*;

    #[test]
    fn people_and_programs_see_where_a_port_leads() {
        let record = json!({
            "v": 1, "network": "podnet", "container": "0123456789ab".repeat(5), "ifname": "eth0",
            "key": {"source": "podman", "text": "web"}, "boot": "b", "home": {"dev": 4, "ino": 5},
            "since": "2026-01-02T03:04:05.678901Z", "targets": ["10.22.0.9/16"], "snat": true, "masq_all": false,
            "mappings": [{"host_port": 8080, "container_port": 80, "protocol": "tcp"}]
        });
        let record: Record = serde_json::from_value(record).unwrap();
        let port = Port {
            slot: Slot { address: "0.0.0.0".parse().unwrap(), protocol: Protocol::Tcp, port: 8080 },
            target: "10.22.0.9:80".parse().unwrap(),
            state: State::Published,
            record: 0,
        };
        assert_eq!(
            table(&[(&port, &record)]),
            "NETWORK  HOST ADDRESS  PORT  PROTOCOL  TARGET        STATE      KEY  CONTAINER     INTERFACE  SINCE\n\
             podnet   0.0.0.0       8080  tcp       10.22.0.9:80  published  web  0123456789ab  eth0       2026-01-02T03:04:05Z\n"
        );
        let value = super::json(&(&port, &record));
        assert_eq!(
            (&value["hostPort"], &value["target"], &value["state"]),
            (&json!(8080), &json!("10.22.0.9"), &json!("published"))
        );
    }
}
