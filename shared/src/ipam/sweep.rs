//! DEL, GC and listing: what looks at records without configuration.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;
use std::time::SystemTime;

use super::liveness::{Kernel, Liveness, Witness};
use super::queue::{Entry, Verdict};
use super::record::{Record, State};
use super::snapshot::{self, Snapshot};
use super::store::{Change, Class, Location, Store};
use super::timestamp::{format, micros};
use super::{Error, folders, held_by};
use crate::attachment::tag;
use crate::{Attachment, Host, NetworkName};

/// Wide IPv6 ranges are never full: so many released records are kept for their keys, no more.
const KEPT_V6: u64 = 4096;

/// Releases what an attachment holds, in every folder that the network ever had.
/// Returns the addresses; none is a success.
///
/// # Errors
/// A store cannot be locked, read or written: the DEL has to come again.
pub fn release(
    host: &Host,
    network: &NetworkName,
    configured: Option<&Path>,
    attachment: &Attachment,
) -> Result<Vec<IpAddr>, Error> {
    let mut freed = Vec::new();
    for folder in folders::known(host, network, configured)? {
        let location = Location { host, network, folder: &folder };
        let released = location.existing(|store| {
            let held = held_by(store, attachment)?;
            held.into_iter().map(|(address, record)| set_free(store, address, record)).collect::<Result<Vec<_>, _>>()
        })?;
        freed.extend(released.into_iter().flatten());
    }
    Ok(freed)
}

/// Marks one address as released.
pub(super) fn set_free(store: &mut Store, address: IpAddr, record: Record) -> Result<IpAddr, Error> {
    let released = record.released(&format(SystemTime::now()));
    let mut change = Change { address, before: Some(record), after: Some(released) };
    if let Err(error) = store.apply(&change) {
        // A full disk must not hold an address: to remove a file needs no room. Only the memory is lost.
        change.after = None;
        tracing::warn!("{error}: the record of {address} is removed instead of kept for its key");
        store.apply(&change)?;
    }
    if address.is_ipv6() && !store.bitmap.covers(address) {
        evict(store)?;
    }
    Ok(address)
}

/// Forgets the IPv6 address that was released first, if more than [`KEPT_V6`] are kept.
fn evict(store: &mut Store) -> Result<(), Error> {
    let queues = Class::ALL.map(|class| store.queue(class, true));
    let total = || queues.iter().try_fold(0, |sum, queue| Ok::<_, Error>(sum + queue.len()?));
    if total()? <= KEPT_V6 {
        return Ok(());
    }
    // The same service released again and again counts once.
    for queue in &queues {
        queue.compact()?;
    }
    if total()? <= KEPT_V6 {
        return Ok(());
    }
    for queue in &queues {
        let mut record = None;
        let oldest = queue.take(|Entry { address, since }| {
            record =
                store.read(address)?.filter(|record| record.state == State::Released && micros(&record.since) == since);
            Ok(if record.is_some() { Verdict::Fits } else { Verdict::Stale })
        })?;
        if let Some(Entry { address, .. }) = oldest {
            return store.apply(&Change { address, before: record, after: None });
        }
    }
    Ok(())
}

/// Releases what is not `valid` (container id and interface), in this network only. Without a list, only what is provably dead.
/// What is unlisted but provably alive belongs to another runtime: it is kept, and logged.
/// Returns what was freed.
///
/// # Errors
/// A store cannot be locked, read or written.
pub fn gc(
    host: &Host,
    network: &NetworkName,
    configured: Option<&Path>,
    valid: Option<&[(String, String)]>,
) -> Result<Vec<(IpAddr, Record)>, Error> {
    gc_watched(host, network, configured, valid, &|_| {})
}

/// As [`gc`]; `progress` is told how many more records were looked at. A store is locked meanwhile: it must not wait.
///
/// # Errors
/// As [`gc`].
pub fn gc_watched(
    host: &Host,
    network: &NetworkName,
    configured: Option<&Path>,
    valid: Option<&[(String, String)]>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<(IpAddr, Record)>, Error> {
    let valid: Option<HashSet<String>> =
        valid.map(|list| list.iter().map(|(container, ifname)| tag(network.as_str(), container, ifname)).collect());
    let mut freed = Vec::new();
    for folder in folders::known(host, network, configured)? {
        let location = Location { host, network, folder: &folder };
        location.existing(|store| {
            let mut witness = Kernel::new(host);
            for address in store.addresses()? {
                progress(1);
                let Some(record) = readable(store, address)?.filter(Record::is_held) else { continue };
                if stays(&record, network, valid.as_ref(), &mut witness) {
                    continue;
                }
                set_free(store, address, record.clone())?;
                freed.push((address, record));
            }
            Ok(())
        })?;
    }
    crate::order::sort_by_key(&mut freed, |(address, _)| *address);
    Ok(freed)
}

/// What a [`gc`] without a list would free, of the records as they are: nothing is locked or changed. `progress`: as in
/// [`gc_watched`].
///
/// # Errors
/// A folder cannot be read.
pub fn garbage(
    host: &Host,
    network: &NetworkName,
    configured: Option<&Path>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Snapshot, Error> {
    let mut snapshot = snapshot::watched(host, network, configured, progress)?;
    let mut witness = Kernel::new(host);
    snapshot.records.retain(|(_, record)| record.is_held() && !stays(record, network, None, &mut witness));
    Ok(snapshot)
}

/// The record of an address; one of a later version is reported and passed over.
fn readable(store: &Store, address: IpAddr) -> Result<Option<Record>, Error> {
    match store.read(address) {
        Err(error @ Error::NewerFormat { .. }) => {
            tracing::warn!("{error}");
            Ok(None)
        }
        record => record,
    }
}

fn stays(record: &Record, network: &NetworkName, valid: Option<&HashSet<String>>, witness: &mut dyn Witness) -> bool {
    if valid.is_some_and(|valid| valid.contains(&record.tag(network.as_str()))) {
        return true;
    }
    match (witness.judge(record), valid) {
        (Liveness::Running | Liveness::Attached, Some(_)) => {
            tracing::warn!("network {network}: {} is not listed but alive: kept", record.holder());
            true
        }
        (Liveness::Dead, _) | (Liveness::Unknown, Some(_)) => false,
        (_, None) => true,
    }
}

/// All records of a network, by address.
///
/// # Errors
/// A store cannot be locked or read.
pub fn list(host: &Host, network: &NetworkName, configured: Option<&Path>) -> Result<Vec<(IpAddr, Record)>, Error> {
    let mut found = Vec::new();
    for folder in folders::known(host, network, configured)? {
        let location = Location { host, network, folder: &folder };
        location.existing(|store| {
            for address in store.addresses()? {
                found.extend(readable(store, address)?.map(|record| (address, record)));
            }
            Ok(())
        })?;
    }
    crate::order::sort_by_key(&mut found, |(address, _)| *address);
    Ok(found)
}
