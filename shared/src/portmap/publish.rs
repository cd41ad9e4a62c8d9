//! Publishing the ports of an attachment, and withdrawing them.

use std::collections::HashSet;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::SystemTime;

use super::Error;
use super::claims::{self, make_room, squatters};
use super::localhost::Doors;
use super::record::{Record, Slot};
use super::recover::{Look, recover};
use super::settle::Site;
use super::store::{self, Store};
use crate::firewall::nfnetlink::Nfnetlink;
use crate::ipam::liveness::Kernel;
use crate::ipam::timestamp;
use crate::netlink::netns::host_id;
use crate::{Attachment, Host, NetworkName};

/// Publishes what a record says, in place of what the same attachment had before. `entry` names the entry of the
/// configuration that a slot comes from. The time of the record is that of its turn.
///
/// What the dead hold of these ports, and what points to the record's addresses and is not theirs, goes. Its options are
/// those of its network from now on.
///
/// # Errors
/// A port is held by another container; the kernel or the store cannot be changed. Nothing is published then, and what was
/// before still is.
pub fn publish(host: &Host, mut record: Record, entry: &dyn Fn(&Slot) -> String) -> Result<(), Error> {
    recover(host, Look::InTheKernel)?;
    let mut kernel = Nfnetlink::open()?;
    let home = record.home.clone();
    store::locked(host, |store| {
        store.make_whole()?;
        record.since = timestamp::format(SystemTime::now());
        let mut judge = Kernel::new(host);
        let mut leaving = make_room(store, &record, entry, &mut judge)?;
        let addresses: Vec<IpAddr> = record.targets.iter().map(|target| target.addr()).collect();
        let elsewhere = squatters(store, &record.tag(), &record.network, &home, &addresses, &mut judge)?;
        join(&mut leaving, elsewhere);
        let replaced = store.load(&record.tag())?;
        let mut site = Site::new(host, &home, &mut kernel, &mut judge);
        let done = store
            .put(&record)
            .and_then(|()| site.change(store, Some(&record), replaced.as_deref(), &mut leaving))
            // Only now: until the table drops what comes from elsewhere, 127.0.0.1 stays closed.
            .and_then(|()| Doors::default().open(&record));
        if let Err(error) = done {
            if let Err(second) = undo(host, store, &record, replaced.as_deref()) {
                tracing::error!("{second}: while undoing after: {error}");
            }
            return Err(error);
        }
        let reworded = site.reworded;
        remove(store, &leaving);
        if reworded && let Err(error) = reword(store, &record) {
            tracing::warn!("{error}: other containers of network {} may get their older options back", record.network);
        }
        Ok(())
    })
}

/// Gives the other records of a network the options of its newest, which the kernel has by now.
fn reword(store: &mut Store<'_>, newest: &Record) -> Result<(), Error> {
    for record in store.members(&newest.network)? {
        let newer = record.with(&newest.options());
        if newer != *record && newer.home.same(&newest.home) {
            store.put(&newer)?;
        }
    }
    Ok(())
}

/// Puts back what a record replaced. The kernel's answer may have been lost on its way to us: what was refused, or was
/// not, is looked up on another socket. The record stays, for DEL to find it, until the kernel has none of it.
fn undo(host: &Host, store: &mut Store<'_>, record: &Record, replaced: Option<&Record>) -> Result<(), Error> {
    if let Some(replaced) = replaced {
        store.put(replaced)?;
    }
    let mut leaving = if replaced.is_none() { vec![Rc::new(record.clone())] } else { Vec::new() };
    let (mut kernel, mut judge) = (Nfnetlink::open()?, Kernel::new(host));
    let mut site = Site::new(host, &record.home, &mut kernel, &mut judge);
    // What the record changed for its network goes back to what the others say.
    site.thorough = true;
    site.change(store, replaced, Some(record), &mut leaving)?;
    if replaced.is_none() { store.remove(record) } else { Ok(()) }
}

/// Withdraws the ports of an attachment. None is a success.
///
/// # Errors
/// The kernel or the store cannot be changed: to be tried again.
pub fn withdraw(host: &Host, attachment: &Attachment) -> Result<Vec<Rc<Record>>, Error> {
    withdraw_some(host, |store, _| Ok(store.load(&attachment.tag())?.into_iter().collect()))
}

/// Withdraws what points to addresses that are an attachment's now. Costs some system calls when nothing does.
///
/// # Errors
/// As [`withdraw`].
pub fn vacate(host: &Host, attachment: &Attachment, addresses: &[IpAddr]) -> Result<Vec<Rc<Record>>, Error> {
    recover(host, Look::InRun)?;
    if !store::may_point_at(host, addresses) {
        return Ok(Vec::new());
    }
    let home = host_id()?;
    withdraw_some(host, |store, judge| {
        squatters(store, &attachment.tag(), &attachment.network, &home, addresses, judge)
    })
}

/// [`vacate`], and [`withdraw`] of what the attachment itself may have published before: it publishes nothing now.
///
/// # Errors
/// As [`withdraw`].
pub fn stand_back(host: &Host, attachment: &Attachment, addresses: &[IpAddr]) -> Result<Vec<Rc<Record>>, Error> {
    recover(host, Look::InRun)?;
    let tag = attachment.tag();
    if !store::has_record(host, &tag) && !store::may_point_at(host, addresses) {
        return Ok(Vec::new());
    }
    let home = host_id()?;
    withdraw_some(host, |store, judge| {
        let mut leaving = squatters(store, &tag, &attachment.network, &home, addresses, judge)?;
        leaving.extend(store.load(&tag)?);
        Ok(leaving)
    })
}

/// Withdraws what no valid attachment of a network holds (CNI_CONTAINERID and CNI_IFNAME are in the tags of `valid`);
/// without a list, or for all networks, what the dead hold. With `dry_run` nothing is done.
///
/// # Errors
/// As [`withdraw`].
pub fn sweep(
    host: &Host,
    network: Option<&NetworkName>,
    valid: Option<&HashSet<String>>,
    dry_run: bool,
) -> Result<Vec<Rc<Record>>, Error> {
    let home = host_id()?;
    let stale = |store: &Store<'_>, judge: &mut Kernel| claims::stale(store, network, valid, &home, judge);
    if dry_run {
        return Ok(store::viewed(host, |store| stale(store, &mut Kernel::new(host)))?.unwrap_or_default());
    }
    withdraw_some(host, stale)
}

/// Withdraws what is picked out of the store, if there is one.
fn withdraw_some(
    host: &Host,
    pick: impl FnOnce(&Store<'_>, &mut Kernel) -> Result<Vec<Rc<Record>>, Error>,
) -> Result<Vec<Rc<Record>>, Error> {
    recover(host, Look::InTheKernel)?;
    let done = store::existing(host, |store| {
        let mut judge = Kernel::new(host);
        let mut leaving = pick(store, &mut judge)?;
        let home = host_id()?;
        // Of another network namespace: only from there its ports can be withdrawn, and until then the record stays.
        leaving.retain(|record| record.boot != host.boot || record.home.same(&home));
        if leaving.is_empty() && !store.is_doubtful() {
            return Ok(leaving);
        }
        let mut kernel = Nfnetlink::open()?;
        let mut site = Site::new(host, &home, &mut kernel, &mut judge);
        site.change(store, None, None, &mut leaving)?;
        // The kernel first: a record without elements is found by whoever comes next, elements without a record by nobody.
        for record in &leaving {
            tracing::info!("host ports of {} withdrawn", record.holder());
            store.remove(record)?;
        }
        if store.is_doubtful() {
            let mut dead = Vec::new();
            match site.swap(store, &mut dead) {
                Ok(()) => remove(store, &dead),
                // What was asked for is done.
                Err(error) => tracing::warn!("the host ports could not be looked through: {error}"),
            }
        }
        Ok(leaving)
    })?;
    Ok(done.unwrap_or_default())
}

/// Forgets records whose ports are withdrawn. One that stays is swept later.
pub(super) fn remove(store: &mut Store<'_>, leaving: &[Rc<Record>]) {
    for record in leaving {
        tracing::info!("host ports of {} withdrawn: it is gone, or its address is another's", record.holder());
        if let Err(error) = store.remove(record) {
            tracing::warn!("{error}");
        }
    }
}

/// Adds records that are not there yet.
fn join(records: &mut Vec<Rc<Record>>, more: Vec<Rc<Record>>) {
    for record in more {
        if !records.iter().any(|known| known.tag() == record.tag()) {
            records.push(record);
        }
    }
}
