//! Why a key has, or would get, an address: what an ADD would decide, decided by the same code and not written.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::allocator::Allocator;
use super::config::IpamConfig;
use super::key::Key;
use super::liveness::{Kernel, Liveness, Witness};
use super::range::RangeSet;
use super::record::Record;
use super::search::Neighbours;
use super::store::{Location, Store};
use super::{Error, Request};
use crate::{Attachment, Host, NetworkName};

pub use walk::{Obstacle, Step, Walk};

mod walk;

/// Why a key has, or would get, an address of each set.
#[derive(Debug)]
pub struct Explanation {
    /// Of each set, in their order.
    pub sets: Vec<Reason>,
    /// Why the next ADD of the key would be refused.
    pub refused: Option<Error>,
}

/// Why a key has, or would get, an address of one set.
#[derive(Debug)]
pub struct Reason {
    /// The set.
    pub set: RangeSet,
    /// The key.
    pub key: Key,
    /// Which of the key's simultaneous holders this is.
    pub instance: u32,
    /// The way through the set from the first candidate on.
    pub walk: Walk,
    /// What a holder that lives, or that may, has.
    pub has: Option<(IpAddr, Record)>,
    /// What the next ADD gets, beside that holder if there is one, and the record that is there; none if it is refused.
    pub next: Option<(IpAddr, Option<Record>)>,
}

impl Reason {
    /// True if a record is the key's.
    pub fn own(&self, record: &Record) -> bool {
        record.key == self.key
    }
}

/// An ADD of a key by nobody in particular.
pub(super) fn pretended(network: &NetworkName, key: &Key, ifname: &str) -> Option<Request> {
    Some(Request {
        attachment: Attachment {
            network: network.clone(),
            // No runtime has such an id: it can be no holder's.
            container: "osvc-net-explain".parse().ok()?,
            ifname: ifname.parse().or_else(|_| "eth0".parse()).ok()?,
        },
        key: key.clone(),
        object: None,
        rid: None,
        netns: None,
        host_end: None,
        requested: Vec::new(),
    })
}

/// Tells why a key has, or would get, its addresses. `instance`: of which of its simultaneous holders; else of the one
/// that has one, or of the next.
///
/// # Errors
/// The store cannot be locked or read. That a range is full is part of the explanation.
pub fn explain(host: &Host, config: &IpamConfig, key: &Key, instance: Option<u32>) -> Result<Explanation, Error> {
    let location = Location { host, network: &config.network, folder: &config.folder };
    location.looking(|store| {
        let mut witness = Kernel::new(host).in_a_hurry();
        let Some(request) = request(store, &config.network, key)? else {
            return Ok(Explanation { sets: Vec::new(), refused: None });
        };
        let mut others = config.neighbours(host, Some(&request))?;
        on(store, &mut witness, &mut others, &request, config, instance)
    })
}

/// An ADD of the key by a new container, at the interface at which it was last.
fn request(store: &Store, network: &NetworkName, key: &Key) -> Result<Option<Request>, Error> {
    let mut last: Option<Record> = None;
    for address in store.of_key(&key.hash())? {
        if let Some(record) = store.read(address)?.filter(|record| record.key == *key)
            && last.as_ref().is_none_or(|last| last.since < record.since)
        {
            last = Some(record);
        }
    }
    Ok(pretended(network, key, last.as_ref().map_or("eth0", |record| &record.ifname)))
}

/// As [`explain`], on a store and with witnesses that are at hand.
pub(super) fn on(
    store: &mut Store,
    witness: &mut dyn Witness,
    others: &mut dyn Neighbours,
    request: &Request,
    config: &IpamConfig,
    instance: Option<u32>,
) -> Result<Explanation, Error> {
    let none = vec![None; config.sets.len()];
    let mut allocator = Allocator::new(store, witness, others, request);
    let planned = allocator.plan(&config.sets, &none, &config.claims);
    let given: Vec<(IpAddr, u32)> = allocator
        .search
        .changes
        .iter()
        .filter_map(|change| Some((change.address, change.after.as_ref().filter(|after| after.is_held())?.instance)))
        .collect();
    let mut sets = Vec::with_capacity(config.sets.len());
    for (at, set) in config.sets.iter().enumerate() {
        let mut allocator = Allocator::new(store, witness, others, request);
        let mut records = allocator.records_of_key(set)?;
        records.retain(|(_, record)| instance.is_none_or(|instance| record.instance == instance));
        crate::order::sort_by_key(&mut records, |(_, record)| record.instance);
        let mut has = None;
        for (address, record) in &records {
            if record.is_held() && allocator.search.witness.judge(record) != Liveness::Dead {
                has = Some((*address, record.clone()));
                break;
            }
        }
        let found = match (&planned, instance) {
            (Ok(addresses), None) => addresses.get(at).copied(),
            // Another set, or the claim, may be why it is refused.
            (Err(_), None) => allowed(allocator.one(set, None))?,
            (_, Some(_)) if has.is_some() => None,
            (_, Some(instance)) => match records.first() {
                Some((address, _)) => Some(*address),
                None => allowed(allocator.draw(set, instance))?,
            },
        };
        let next = match found {
            Some(address) => Some((address, store.read(address)?)),
            None => None,
        };
        let of = has.as_ref().map(|(_, record)| record.instance).or(instance);
        let of =
            of.or_else(|| given.iter().find(|(address, _)| found == Some(*address)).map(|(_, instance)| *instance));
        let instance = of.unwrap_or(0);
        let target = has.as_ref().map(|(address, _)| *address).or(found);
        let walk = walk::of(store, witness, others, set, &request.key.digest(instance), target)?;
        sets.push(Reason { set: set.clone(), key: request.key.clone(), instance, walk, has, next });
    }
    Ok(Explanation { sets, refused: planned.err().filter(|_| instance.is_none()) })
}

/// What an ADD is refused is no failure of the explanation.
fn allowed(found: Result<IpAddr, Error>) -> Result<Option<IpAddr>, Error> {
    match found {
        Ok(address) => Ok(Some(address)),
        Err(Error::Full { .. } | Error::Taken { .. } | Error::Elsewhere(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Obstacles beyond the first ones, by their kind.
pub type Counts = BTreeMap<&'static str, u128>;

#[cfg(test)]
mod tests;
