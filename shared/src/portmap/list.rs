//! Who has which host port.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;

use super::Error;
use super::claims::Judge;
use super::record::{Record, Slot};
use super::store;
use crate::Host;
use crate::ipam::liveness::{Kernel, Liveness};
use crate::netlink::netns::host_id;

/// What a host port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// By the records it leads to the target.
    Published,
    /// It leads to the same container on another network, which came first; its turn comes then.
    Standby,
    /// Its holder is gone: nothing keeps another from taking it.
    Dead,
}

impl State {
    /// The word in listings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Standby => "standby",
            Self::Dead => "dead",
        }
    }
}

/// One host port of one attachment.
#[derive(Debug, Clone)]
pub struct Port {
    /// Address, protocol and port on the host.
    pub slot: Slot,
    /// Where it leads.
    pub target: SocketAddr,
    /// What it is.
    pub state: State,
    /// The index of its record.
    pub record: usize,
}

/// All host ports as recorded, by port, and the records that they are of. Nothing is waited for.
///
/// # Errors
/// The store cannot be read.
pub fn list(host: &Host) -> Result<(Vec<Port>, Vec<Rc<Record>>), Error> {
    let records = store::viewed(host, |store| store.all())?.unwrap_or_default();
    let home = host_id()?;
    let mut judge = Kernel::new(host).in_a_hurry();
    let mut taken = BTreeSet::new();
    let mut ports = Vec::new();
    // Oldest first.
    for (index, record) in records.iter().enumerate() {
        let dead = record.boot != host.boot || judge.judge(record) == Liveness::Dead;
        let here = record.home.same(&home);
        for (slot, target) in record.slots().iter() {
            let state = match dead {
                true => State::Dead,
                // Of another network namespace: its ports are not ours.
                false if !here || taken.insert(*slot) => State::Published,
                false => State::Standby,
            };
            ports.push(Port { slot: *slot, target: *target, state, record: index });
        }
    }
    crate::order::sort_by_key(&mut ports, |port| (port.slot.port, port.slot.protocol, port.slot.address, port.state));
    Ok((ports, records))
}
