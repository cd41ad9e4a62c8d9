//! `osvc-net ip history`: who had which address before.

use osvc_cni::ipam::history::{self, Line, What};
use osvc_cni::{Host, NetworkName};
use serde_json::{Value, json};

use super::select::{self, SelectError};
use crate::args::{Format, History};
use crate::error::Error;
use crate::networks::Networks;
use crate::output::{self, seconds, short};

/// Prints the changes that are remembered, the oldest first.
pub fn run(host: &Host, networks: Networks, arguments: &History) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(&arguments.network);
    let mut rows: Vec<(&NetworkName, Line)> = Vec::new();
    let mut known = Vec::new();
    for network in &chosen {
        let fault = |error: osvc_cni::ipam::Error| Error::Network {
            network: network.name.clone(),
            source: Box::new(error.into()),
        };
        let folder = network.address_folders(host).map(|folders| folders.ours);
        match history::read(host, &network.name, folder.as_deref()) {
            Ok(past) => {
                errors.extend(past.faults.into_iter().map(fault));
                rows.extend(past.lines.into_iter().map(|line| (&network.name, line)));
            }
            Err(error) => errors.push(fault(error)),
        }
    }
    if let Some(what) = &arguments.what {
        let address = what.parse().ok();
        let meant = |line: &Line| line.key.text == *what || (address.is_some() && line.address == address);
        if !rows.iter().any(|(_, line)| meant(line)) && errors.is_empty() {
            known.extend(rows.iter().map(|(_, line)| line.key.text.clone()));
            if let Err(error) = unknown(host, &chosen, what, &known) {
                return Err(vec![error]);
            }
        }
        rows.retain(|(_, line)| meant(line));
    }
    rows.sort_by(|(_, a), (_, b)| a.time.cmp(&b.time));
    let text = match arguments.output {
        Format::Table => table(&rows),
        Format::Json => format!("{:#}\n", Value::from(rows.iter().map(json).collect::<Vec<_>>())),
    };
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Something of which nothing is remembered: no error if there is a record of it, from before there was a history.
fn unknown(host: &Host, chosen: &[crate::networks::Network], what: &str, told: &[String]) -> Result<(), Error> {
    let mut keys = told.to_vec();
    for network in chosen {
        let (snapshot, _) = select::records(host, network);
        if select::which(&network.name, &snapshot, what).is_ok() {
            return Ok(());
        }
        keys.extend(select::near(&snapshot, what).map(str::to_owned));
    }
    let nearest = crate::nearest::nearest(what, keys.iter().map(String::as_str)).map(str::to_owned);
    Err(Error::specific(SelectError::Nowhere { what: what.to_owned(), nearest }))
}

fn table(rows: &[(&NetworkName, Line)]) -> String {
    let header = ["TIME", "NETWORK", "WHAT", "IP", "KEY", "CONTAINER", "IFNAME"];
    let cells = |(network, line): &(&NetworkName, Line)| {
        [
            seconds(&line.time),
            network.to_string(),
            format!("{}{}", word(line.what), if line.undone { " (undone)" } else { "" }),
            line.address.map(|address| address.to_string()).unwrap_or_default(),
            line.key.text.clone(),
            short(&line.container).to_owned(),
            line.ifname.clone(),
        ]
    };
    output::table(header, &rows.iter().map(cells).collect::<Vec<_>>())
}

fn json((network, line): &(&NetworkName, Line)) -> Value {
    json!({
        "network": network, "time": line.time, "what": word(line.what), "address": line.address, "key": line.key,
        "instance": line.instance, "container": line.container, "ifname": line.ifname, "undone": line.undone,
    })
}

fn word(what: What) -> &'static str {
    match what {
        What::Held => "held",
        What::Released => "released",
        What::Reserved => "reserved",
        What::Forgotten => "forgotten",
        What::Refused => "refused",
    }
}
