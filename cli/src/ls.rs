//! `osvc-net ls`: the networks, and how full they are.

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;
use osvc_cni::ipam::liveness::{Census, Liveness, Witness};
use osvc_cni::ipam::range::RangeSet;
use osvc_cni::ipam::record::{Record, State};
use osvc_cni::{Host, NetworkName};
use serde_json::{Value, json};

use crate::args::{Chosen, Format};
use crate::error::Error;
use crate::ip::select;
use crate::networks::{Network, Networks};
use crate::output;
use crate::shape::Shape;

/// The largest integer that every reader of JSON keeps.
const EXACT: u128 = 1 << 53;
/// Larger numbers are told as a power of two.
const SHORT: u128 = 1 << 32;

/// A network, or one of the sets that it gives an address of each.
struct Row<'a> {
    name: &'a NetworkName,
    kind: String,
    networks: Vec<IpNet>,
    segments: Vec<IpNet>,
    /// Usable addresses; `None`: it gives none, or cannot say which.
    size: Option<u128>,
    count: Count,
}

/// Records by what they are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    held: u128,
    dead: u128,
    reserved: u128,
    released: u128,
    /// Held by others who allocate in the same ranges: host-local, OpenSVC's agent.
    others: u128,
    /// Held or reserved, and not among the usable ones: asked for by name, or of a range that is configured no longer.
    outside: u128,
}

impl Count {
    fn used(&self) -> u128 {
        self.held + self.dead + self.reserved + self.others
    }

    fn add(&mut self, record: &Record, witness: &mut Census) {
        match record.state {
            State::Held if witness.judge(record) == Liveness::Dead => self.dead += 1,
            State::Held => self.held += 1,
            State::Reserved => self.reserved += 1,
            State::Released => self.released += 1,
        }
    }
}

/// Prints the named networks, or all. One that cannot be read is a row with less in it, and an error.
pub fn run(host: &Host, networks: Networks, arguments: &Chosen) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(&arguments.networks);
    let mut witness = Census::new(host);
    let mut rows = Vec::new();
    for network in &chosen {
        rows.extend(of_network(host, network, &mut witness, &mut errors));
    }
    let text = match arguments.output {
        Format::Table => table(&rows),
        Format::Json => format!("{:#}\n", Value::from(rows.iter().map(Row::json).collect::<Vec<_>>())),
    };
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn of_network<'a>(host: &Host, network: &'a Network, witness: &mut Census, errors: &mut Vec<Error>) -> Vec<Row<'a>> {
    let plugins = network.definition.iter().flat_map(|definition| &definition.plugins);
    let kind = plugins.map(|plugin| plugin.kind.as_str()).next().unwrap_or_default().to_owned();
    let shape = network.shape(host).unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    let (snapshot, faults) = select::records(host, network);
    errors.extend(faults);
    let mut others_of = None;
    let (kind, networks, segments, sets) = match shape {
        Some(Shape { kind, networks, segments, addresses, .. }) => {
            let others = addresses.as_ref().map(|config| config.others(host, &snapshot)).transpose();
            others_of = others.unwrap_or_else(|error| {
                errors.push(Error::Network { network: network.name.clone(), source: Box::new(error.into()) });
                None
            });
            (kind, networks, segments, addresses.map(|config| config.sets).unwrap_or_default())
        }
        None => (kind, Vec::new(), Vec::new(), Vec::new()),
    };
    if sets.is_empty() {
        let mut count = Count::default();
        snapshot.records.iter().for_each(|(_, record)| count.add(record, witness));
        return vec![Row { name: &network.name, kind, networks, segments, size: None, count }];
    }
    let mut rows: Vec<Row<'_>> = sets
        .iter()
        .map(|set| {
            let (networks, segments) = subnets(set, &networks, &segments);
            Row {
                name: &network.name,
                kind: kind.clone(),
                networks,
                segments,
                size: Some(set.size()),
                count: Count::default(),
            }
        })
        .collect();
    let others: HashSet<IpAddr> = others_of.into_iter().flatten().collect();
    let place =
        |address: IpAddr| sets.iter().position(|set: &RangeSet| set.0.iter().any(|range| range.allocatable(address)));
    for at in others.iter().filter_map(|address| place(*address)) {
        rows[at].count.others += 1;
    }
    for (address, record) in &snapshot.records {
        match place(*address) {
            // It is not free for the one that had it.
            Some(_) if record.state == State::Released && others.contains(address) => {}
            Some(at) => rows[at].count.add(record, witness),
            None if record.state == State::Released => {}
            None => {
                let near = |set: &RangeSet| set.0.iter().any(|range| range.subnet.contains(address));
                rows[sets.iter().position(near).unwrap_or(0)].count.outside += 1;
            }
        }
    }
    rows
}

/// The networks and segments that a set is of.
fn subnets(set: &RangeSet, networks: &[IpNet], segments: &[IpNet]) -> (Vec<IpNet>, Vec<IpNet>) {
    let mut own: Vec<IpNet> = set.0.iter().map(|range| range.subnet).collect();
    own.dedup();
    if segments.is_empty() {
        return (own, Vec::new());
    }
    let whole = networks.iter().copied().filter(|network| own.iter().any(|own| network.contains(own)));
    (whole.collect(), own)
}

fn table(rows: &[Row<'_>]) -> String {
    let header = ["NAME", "TYPE", "NETWORK", "SEGMENT", "SIZE", "USED", "FREE", "RELEASED"];
    let joined = |nets: &[IpNet]| nets.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let cells = |row: &Row<'_>| {
        let counted = row.size.is_some() || row.count != Count::default();
        let number = |number: u128| if counted { short(number) } else { String::new() };
        [
            row.name.to_string(),
            row.kind.clone(),
            joined(&row.networks),
            joined(&row.segments),
            row.size.map(short).unwrap_or_default(),
            number(row.count.used()),
            row.free().map(short).unwrap_or_default(),
            number(row.count.released),
        ]
    };
    output::table(header, &rows.iter().map(cells).collect::<Vec<_>>())
}

impl Row<'_> {
    fn free(&self) -> Option<u128> {
        self.size.map(|size| size.saturating_sub(self.count.used()))
    }

    fn json(&self) -> Value {
        let Count { held, dead, reserved, released, others, outside } = self.count;
        json!({
            "name": self.name, "type": self.kind, "networks": self.networks, "segments": self.segments,
            "size": self.size.map(exact), "used": exact(self.count.used()), "free": self.free().map(exact),
            "held": exact(held), "dead": exact(dead), "reserved": exact(reserved), "released": exact(released),
            "others": exact(others), "outside": exact(outside),
        })
    }
}

/// In full, or as a power of two: what is free of 2^64 addresses is no different after some are gone.
fn short(number: u128) -> String {
    if number <= SHORT {
        return number.to_string();
    }
    let power = format!("{:.2}", (number as f64).log2());
    format!("2^{}", power.trim_end_matches('0').trim_end_matches('.'))
}

/// A number, or a text if a number would not be read exactly.
pub fn exact(number: u128) -> Value {
    match u64::try_from(number) {
        Ok(small) if number <= EXACT => small.into(),
        _ => number.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size() {
        let all = [0, 65_533, 16_777_213, 1 << 32, (1 << 64) - 1, 3 << 63, u128::MAX].map(short);
        assert_eq!(all, ["0", "65533", "16777213", "4294967296", "2^64", "2^64.58", "2^128"]);
        assert_eq!(exact(1 << 53), json!(9_007_199_254_740_992_u64));
        assert_eq!(exact((1 << 53) + 1), json!("9007199254740993"));
    }

    #[test]
    fn what_is_not_known_is_no_number() {
        let name = "l2".parse().unwrap();
        let row = |size, count| Row {
            name: &name,
            kind: "osvc-bridge".to_owned(),
            networks: Vec::new(),
            segments: Vec::new(),
            size,
            count,
        };
        let some = Count { held: 1, dead: 1, reserved: 1, released: 7, others: 1, outside: 1 };
        assert_eq!(
            table(&[row(None, Count::default()), row(None, some), row(Some(253), some)]),
            "NAME  TYPE         NETWORK  SEGMENT  SIZE  USED  FREE  RELEASED\n\
             l2    osvc-bridge  -        -        -     -     -     -\n\
             l2    osvc-bridge  -        -        -     4     -     7\n\
             l2    osvc-bridge  -        -        253   4     249   7\n"
        );
    }
}
