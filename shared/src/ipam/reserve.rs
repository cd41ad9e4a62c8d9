//! What an operator decides about addresses: for whom one is kept, and what is held in vain.

use std::net::IpAddr;
use std::time::SystemTime;

use super::allocator::Allocator;
use super::config::IpamConfig;
use super::explain::pretended;
use super::key::Key;
use super::liveness::{Kernel, Liveness, Witness};
use super::range::RangeSet;
use super::record::{FORMAT, Record, State};
use super::store::{Change, Location, Store};
use super::timestamp::format;
use super::{Error, folders, requested};
use crate::Host;

pub use back::{release, unreserve};

mod back;

/// What became, or would become, of an address.
#[derive(Debug)]
pub struct Decision {
    /// The address.
    pub address: IpAddr,
    /// What was there.
    pub before: Option<Record>,
    /// What is there now; the same if there was nothing to do.
    pub after: Option<Record>,
    /// What is known of the holder, if it was held.
    pub liveness: Option<Liveness>,
    /// Reserving: what a holder of the key has at this moment instead. It keeps it until it ends.
    pub elsewhere: Option<IpAddr>,
}

impl Decision {
    /// True if something was, or would be, done.
    pub fn is_change(&self) -> bool {
        self.before != self.after
    }

    fn change(&self) -> Change {
        Change { address: self.address, before: self.before.clone(), after: self.after.clone() }
    }
}

/// Whose addresses, or which one.
#[derive(Debug, Clone)]
pub enum Which {
    /// All of a key.
    Key(Key),
    /// One.
    Address(IpAddr),
}

/// Keeps an address of each set for a key, or the given one. It is on the disk when this returns.
///
/// # Errors
/// The address is no container's or somebody else's, a set is full, the store cannot be read or written. Nothing is
/// reserved then.
pub fn reserve(
    host: &Host,
    config: &IpamConfig,
    key: &Key,
    address: Option<IpAddr>,
    dry_run: bool,
) -> Result<Vec<Decision>, Error> {
    let wanted = requested::assign(&config.sets, address.as_slice())?;
    let location = Location { host, network: &config.network, folder: &config.folder };
    let decide = |store: &mut Store| {
        let mut decisions = Vec::new();
        for (set, wanted) in config.sets.iter().zip(wanted) {
            if address.is_none() || wanted.is_some() {
                decisions.extend(in_set(host, store, config, key, set, wanted)?);
            }
        }
        if !dry_run {
            let changes = decisions.iter().filter(|decision| decision.is_change()).map(Decision::change);
            store.apply_all(&changes.collect::<Vec<_>>())?;
            // The folder may be new, also from a run that was killed.
            store.settle()?;
        }
        Ok(decisions)
    };
    if dry_run {
        return location.looking(decide);
    }
    folders::remember(host, &config.network, &config.folder);
    location.created(decide)
}

fn in_set(
    host: &Host,
    store: &mut Store,
    config: &IpamConfig,
    key: &Key,
    set: &RangeSet,
    wanted: Option<IpAddr>,
) -> Result<Option<Decision>, Error> {
    let mut witness = Kernel::new(host);
    let Some(request) = pretended(&config.network, key, "eth0") else { return Ok(None) };
    let mut others = config.neighbours(host, Some(&request))?;
    let mut allocator = Allocator::new(store, &mut witness, &mut others, &request);
    let mut records = allocator.records_of_key(set)?;
    crate::order::sort_by_key(&mut records, |(_, record)| {
        (!(record.pinned || record.state == State::Reserved), !record.is_held(), record.instance)
    });
    let mut living = None;
    for (address, record) in &records {
        if living.is_none() && record.is_held() && allocator.search.witness.judge(record) != Liveness::Dead {
            living = Some((*address, record.clone()));
        }
    }
    let address = match (wanted, records.first(), &living) {
        (Some(wanted), _, _) => wanted,
        (None, Some((address, record)), _) if record.pinned || record.state == State::Reserved => *address,
        (None, _, Some((address, _))) => *address,
        (None, _, None) => allocator.one(set, None)?,
    };
    if let Some(by) = allocator.search.neighbours.holder(address)? {
        return Err(Error::Taken { address, by });
    }
    // What is planned is not written.
    let before = store.read(address)?;
    let (own, taken) =
        (before.as_ref().is_some_and(|record| record.key == *key), |by| Err(Error::Taken { address, by }));
    let mut liveness = None;
    let after = match &before {
        Some(record) if own && (record.state == State::Reserved || (record.is_held() && record.pinned)) => {
            record.clone()
        }
        Some(record) if own && record.is_held() => {
            liveness = Some(witness.judge(record));
            Record { pinned: true, ..record.clone() }
        }
        Some(record) if !own && (record.state == State::Reserved || (record.is_held() && record.pinned)) => {
            return taken(format!("it is reserved for {:?}", record.key.text));
        }
        Some(record) if record.is_held() => {
            liveness = Some(witness.judge(record));
            if liveness != Some(Liveness::Dead) {
                return taken(format!("{} has it", record.holder()));
            }
            reserved(store, key, records.first(), None)
        }
        before => reserved(store, key, records.first(), before.as_ref().filter(|_| own)),
    };
    let elsewhere = living.map(|(held, _)| held).filter(|held| *held != address);
    Ok(Some(Decision { address, before, after: Some(after), liveness, elsewhere }))
}

/// The record of a reservation. It is that of the holder that the key has, or had last in this set, so that this one
/// gets it, and not a twin.
fn reserved(store: &Store, key: &Key, last: Option<&(IpAddr, Record)>, own: Option<&Record>) -> Record {
    let last = own.or(last.map(|(_, record)| record));
    let text = |pick: fn(&Record) -> &String| last.map(pick).cloned().unwrap_or_default();
    Record {
        v: FORMAT,
        key: key.clone(),
        instance: last.map_or(0, |record| record.instance),
        object: last.and_then(|record| record.object.clone()),
        rid: last.and_then(|record| record.rid.clone()),
        container: text(|record| &record.container),
        ifname: text(|record| &record.ifname),
        netns: None,
        host: None,
        boot: store.boot(),
        state: State::Reserved,
        uses: own.map_or(0, |record| record.uses),
        requested: own.is_some_and(|record| record.requested),
        pinned: true,
        since: format(SystemTime::now()),
    }
}
