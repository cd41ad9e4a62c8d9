//! What was read from a file of the store, with what is asked of it often.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use ipnet::IpNet;
use serde::Deserialize;
use serde_json::Value;

use super::super::mapping::{Mapping, Protocol};
use super::super::record::{FORMAT, Record, Slot};

/// A record, read and sorted once: an attachment may publish thousands of ports, and each is asked for.
#[derive(Debug)]
pub struct Known {
    /// The attachment's tag.
    pub tag: String,
    /// The record.
    pub record: Rc<Record>,
    /// Its ports, each once, in order.
    pub ports: Vec<(Protocol, u16)>,
    /// Where they lead.
    pub addresses: Vec<IpAddr>,
    /// Its slots by protocol and port, and where they lead.
    slots: Vec<(Slot, SocketAddr)>,
}

impl Known {
    /// Sorts a record.
    pub fn new(record: Rc<Record>) -> Self {
        let mut slots = record.slots();
        crate::order::sort_by_key(&mut slots, |(slot, _)| (slot.protocol, slot.port));
        let addresses = record.targets.iter().map(IpNet::addr).collect();
        Self { tag: record.tag(), ports: ports(&record.mappings), addresses, slots, record }
    }

    /// True if it publishes this port, on whatever address.
    pub fn has_port(&self, port: (Protocol, u16)) -> bool {
        self.ports.binary_search(&port).is_ok()
    }

    /// True if its ports lead to this address.
    pub fn leads_to(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// Its slots of a port.
    pub fn slots_of(&self, protocol: Protocol, port: u16) -> &[(Slot, SocketAddr)] {
        let place = |slot: &Slot| (slot.protocol, slot.port).cmp(&(protocol, port));
        let from = self.slots.partition_point(|(slot, _)| place(slot).is_lt());
        let to = self.slots.partition_point(|(slot, _)| place(slot).is_le());
        &self.slots[from..to]
    }
}

/// What this version can tell of a record of a later one.
pub struct Later {
    /// Its format.
    pub v: u32,
    /// The ports that it seems to publish.
    pub ports: Vec<(Protocol, u16)>,
    /// The addresses that they seem to lead to.
    pub addresses: Vec<IpAddr>,
}

/// What a file turned out to be.
#[derive(Clone)]
pub enum Filed {
    /// A record.
    Known(Rc<Known>),
    /// A record of a later version.
    Later(Rc<Later>),
}

impl Filed {
    /// Reads the content of the file of a tag.
    ///
    /// # Errors
    /// Why it is no record.
    pub fn parse(tag: &str, text: &[u8]) -> Result<Self, String> {
        let why = match serde_json::from_slice::<Record>(text) {
            Ok(record) if record.v == FORMAT => {
                let known = Known::new(Rc::new(record));
                let theirs = known.tag == tag;
                return if theirs {
                    Ok(Self::Known(Rc::new(known)))
                } else {
                    Err(format!("it is that of {}", known.tag))
                };
            }
            Ok(record) => format!("its format is {}", record.v),
            Err(error) => error.to_string(),
        };
        match serde_json::from_slice::<Outline>(text) {
            Ok(outline) if outline.v > FORMAT => Ok(Self::Later(Rc::new(outline.into()))),
            _ => Err(why),
        }
    }
}

/// What a later version will hardly do without.
#[derive(Deserialize)]
struct Outline {
    v: u32,
    #[serde(default)]
    targets: Value,
    #[serde(default)]
    mappings: Value,
}

impl From<Outline> for Later {
    fn from(outline: Outline) -> Self {
        let list = |value: Value| if let Value::Array(list) = value { list } else { Vec::new() };
        let mappings = list(outline.mappings).into_iter().filter_map(|value| serde_json::from_value(value).ok());
        let targets = list(outline.targets).into_iter().filter_map(|value| serde_json::from_value(value).ok());
        let ports = ports(&mappings.collect::<Vec<Mapping>>());
        Self { v: outline.v, ports, addresses: targets.map(|target: IpNet| target.addr()).collect() }
    }
}

fn ports(mappings: &[Mapping]) -> Vec<(Protocol, u16)> {
    let mut ports: Vec<_> = mappings.iter().map(|mapping| (mapping.protocol, mapping.host_port)).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}
