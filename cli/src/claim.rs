//! `osvc-net claim ls`: what each namespace may hold in a network, and holds.

use std::collections::BTreeMap;

use osvc_cni::ipam::claims::Claims;
use osvc_cni::ipam::liveness::{Census, Liveness, Witness};
use osvc_cni::{Host, NetworkName};
use serde_json::{Value, json};

use crate::args::Format;
use crate::error::Error;
use crate::ip::select;
use crate::networks::{Network, Networks};
use crate::output;

/// A namespace in a network.
struct Row<'a> {
    network: &'a NetworkName,
    namespace: String,
    /// `None`: any number.
    limit: Option<u64>,
    held: u64,
}

/// Prints the claims of the named networks, or of all that have some.
pub fn list(host: &Host, networks: Networks, names: &[String], format: Format) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(names);
    let mut rows = Vec::new();
    for network in &chosen {
        match of_network(host, network) {
            Ok((found, faults)) => {
                rows.extend(found);
                errors.extend(faults);
            }
            Err(error) => errors.push(Error::Network { network: network.name.clone(), source: Box::new(error) }),
        }
    }
    let text = match format {
        Format::Table => table(&rows),
        Format::Json => format!("{:#}\n", Value::from(rows.iter().map(Row::json).collect::<Vec<_>>())),
    };
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Every namespace with a claim, and every other that holds something. None if the network has no claims.
fn of_network<'a>(host: &Host, network: &'a Network) -> Result<(Vec<Row<'a>>, Vec<Error>), osvc_cni::Error> {
    let Some(call) = network.address_call(host).transpose()? else { return Ok(Default::default()) };
    let claims = Claims::of_call(&call)?;
    if claims == Claims::default() {
        return Ok(Default::default());
    }
    let mut held: BTreeMap<String, u64> = claims.names().map(|name| (name.to_owned(), 0)).collect();
    let mut witness = Census::new(host);
    let (snapshot, faults) = select::records(host, network);
    for (_, record) in &snapshot.records {
        // The dead give up what they have when somebody needs it.
        if record.is_held() && witness.judge(record) != Liveness::Dead {
            *held.entry(record.key.namespace().to_owned()).or_default() += 1;
        }
    }
    let row = |(namespace, held): (String, u64)| Row {
        network: &network.name,
        limit: claims.limit(&namespace),
        namespace,
        held,
    };
    Ok((held.into_iter().map(row).collect(), faults))
}

fn table(rows: &[Row<'_>]) -> String {
    let cells = |row: &Row<'_>| {
        let limit = row.limit.map(|limit| limit.to_string()).unwrap_or_default();
        [row.network.to_string(), row.namespace.clone(), limit, row.held.to_string()]
    };
    output::table(["NETWORK", "NAMESPACE", "LIMIT", "HELD"], &rows.iter().map(cells).collect::<Vec<_>>())
}

impl Row<'_> {
    fn json(&self) -> Value {
        json!({"network": self.network, "namespace": self.namespace, "limit": self.limit, "held": self.held})
    }
}
