//! The table and the records made to agree: after somebody flushed the ruleset, changed the table, or lost the records.

use std::collections::HashMap;
use std::time::Duration;

use super::Error;
use super::document::{ADDRESS_CHECKED, MAC_CHECKED, SETS, TABLE};
use super::record::{Entry, Record};
use super::store;
use super::table::{self, BRIDGE, Memory};
use crate::firewall::nfnetlink::Nfnetlink;
use crate::netlink::RouteSocket;
use crate::netlink::netns::{NetnsId, host_id};
use crate::{Host, firewall};

/// Makes all of it again if somebody flushed or changed the table; what is left of an earlier boot goes. Waits for nobody:
/// who holds the lock makes the table again as well.
///
/// # Errors
/// The lock is held, a record cannot be read, no nft, or the kernel refuses.
pub fn restore(host: &Host) -> Result<(), Error> {
    let (home, mut kernel) = (host_id()?, Nfnetlink::open()?);
    let is_whole = |kernel: &mut Nfnetlink| {
        let memory = Memory::of_table(host, &home, kernel)?;
        Ok::<_, Error>(memory.is_some_and(|memory| memory.has_carried() || store::has_records(host)))
    };
    if is_whole(&mut kernel)? {
        return Ok(());
    }
    let act = || {
        // Somebody may have been at it.
        if is_whole(&mut kernel)? {
            return Ok(());
        }
        remake(host, &home, &mut kernel)?;
        if store::has_records(host) {
            tracing::warn!("the table of the source checks was not as it was made: it is put back");
        }
        Ok(())
    };
    store::locked_within(Duration::ZERO, host, act).map(drop)
}

/// What [`mend`] found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mended {
    /// Attachments whose sources are checked.
    pub attachments: usize,
    /// Elements that were not there, or should not be.
    pub wrong: usize,
    /// The table was not there, or was changed.
    pub rules: bool,
}

impl Mended {
    /// True if nothing had to be done.
    pub fn is_whole(&self) -> bool {
        self.wrong == 0 && !self.rules
    }
}

/// Compares all that should be checked with what the kernel has, element by element, and makes it right; with `dry_run` it
/// is only compared.
///
/// # Errors
/// As [`restore`], and the lock is waited for.
pub fn mend(host: &Host, dry_run: bool) -> Result<Mended, Error> {
    let (home, mut kernel) = (host_id()?, Nfnetlink::open()?);
    if !store::folder(host).exists() {
        // Never used, or all records are lost.
        if kernel.table_fingerprint(BRIDGE, TABLE)?.is_none() {
            return Ok(Mended::default());
        }
        if dry_run {
            return compare(host, &home, &mut kernel, true);
        }
        store::prepare(host)?;
    }
    let found = store::locked(host, || compare(host, &home, &mut kernel, dry_run))?;
    Ok(found.unwrap_or_default())
}

fn compare(host: &Host, home: &NetnsId, kernel: &mut Nfnetlink, dry_run: bool) -> Result<Mended, Error> {
    if !dry_run {
        store::clear(host)?;
    }
    let (records, strays) = (here(host, home)?, strays(host, home, kernel)?);
    let ports = strays.alive.iter().filter(|entry| [MAC_CHECKED, ADDRESS_CHECKED].contains(&entry.set));
    let mut ports: Vec<_> = ports.map(Entry::port).collect();
    crate::order::sort(&mut ports);
    ports.dedup();
    let mut found = Mended { attachments: records.len() + ports.len(), ..Mended::default() };
    let mut wanted: Vec<Entry> = records.iter().flat_map(Record::entries).collect();
    wanted.extend(strays.alive);
    match Memory::of_table(host, home, kernel)? {
        Some(memory) => found.wrong = memory.differences(kernel, &wanted)?,
        None => found.rules = !wanted.is_empty(),
    }
    if dry_run {
        return Ok(found);
    }
    match found.is_whole() {
        true => tidy(host, kernel),
        false => remake(host, home, kernel)?,
    }
    Ok(found)
}

/// True if a record is of this boot and network namespace.
pub fn is_here(record: &Record, host: &Host, home: &NetnsId) -> bool {
    record.boot == host.boot && record.host.netns.same(home)
}

fn here(host: &Host, home: &NetnsId) -> Result<Vec<Record>, Error> {
    let mut records = store::all(host, None)?;
    records.retain(|record| is_here(record, host, home));
    Ok(records)
}

/// What is in the sets and has no record.
#[derive(Debug, Default)]
pub struct Strays {
    /// Of ports that exist: somebody removed the records under running containers.
    pub alive: Vec<Entry>,
    /// Of ports that are gone.
    pub gone: Vec<Entry>,
}

/// Elements without a record. A DEL takes them out before the record, so that those of a port that exists are right.
///
/// # Errors
/// A record cannot be read, or the kernel cannot be asked.
pub fn strays(host: &Host, home: &NetnsId, kernel: &mut Nfnetlink) -> Result<Strays, Error> {
    let records = here(host, home)?;
    let (mut socket, mut strays) = (RouteSocket::open()?, Strays::default());
    let mut known: HashMap<String, Option<bool>> =
        records.into_iter().map(|record| (record.host.ifname, None)).collect();
    for (set, _) in SETS {
        for element in kernel.set_elements(BRIDGE, TABLE, set)? {
            let entry = Entry { set, key: element.key, address: None };
            let port = entry.port();
            let is_alive = match known.get(&port) {
                Some(is_alive) => *is_alive,
                None => {
                    let is_alive = socket.link_by_name(&port)?.is_some();
                    known.insert(port, Some(is_alive));
                    Some(is_alive)
                }
            };
            match is_alive {
                None => {}
                Some(true) => strays.alive.push(entry),
                Some(false) => strays.gone.push(entry),
            }
        }
    }
    Ok(strays)
}

/// What the sets have of a port whose record is lost.
///
/// # Errors
/// The kernel cannot be asked.
pub fn carried(host: &Host, home: &NetnsId, kernel: &mut Nfnetlink, port: &str) -> Result<Vec<Entry>, Error> {
    let mut found = Vec::new();
    if !Memory::read(host, home).is_some_and(|memory| memory.has_carried()) {
        return Ok(found);
    }
    for (set, _) in SETS {
        let elements = kernel.set_elements(BRIDGE, TABLE, set)?.into_iter();
        found.extend(elements.map(|element| Entry { set, key: element.key, address: None }));
    }
    found.retain(|entry| entry.port() == port);
    Ok(found)
}

/// Changes the sets; where the table is not as it was made, all of it is made anew from the records.
///
/// # Errors
/// As [`remake`].
pub fn change(host: &Host, home: &NetnsId, kernel: &mut Nfnetlink, old: &[Entry], new: &[Entry]) -> Result<(), Error> {
    match Memory::of_table(host, home, kernel)? {
        Some(memory) => match memory.change(kernel, old, new) {
            // Flushed since.
            Err(error) if error.errno() == Some(nix::libc::ENOENT) => remake(host, home, kernel),
            outcome => Ok(outcome?),
        },
        None => remake(host, home, kernel),
    }
}

/// Takes elements out of the sets, where there are any.
///
/// # Errors
/// The kernel's.
pub fn take_out(host: &Host, home: &NetnsId, kernel: &mut Nfnetlink, old: &[Entry]) -> Result<(), Error> {
    if old.is_empty() {
        return Ok(());
    }
    // A table that somebody changed is made anew by who comes next; one that is gone has nothing of ours.
    match Memory::of_table(host, home, kernel)? {
        Some(memory) => absent_is_fine(memory.change(kernel, old, &[])),
        None => {
            // With the sets that it may have.
            let mut each = old.iter().map(std::slice::from_ref);
            each.try_for_each(|entry| absent_is_fine(Memory::any().change(kernel, entry, &[])))
        }
    }
}

fn absent_is_fine(outcome: Result<(), firewall::Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.errno() == Some(nix::libc::ENOENT) => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Makes the table and all that is in it anew, and what is in it already of ports whose record is lost. With nothing in it
/// it goes.
///
/// # Errors
/// A record cannot be read, no nft, or the kernel refuses.
pub fn remake(host: &Host, home: &NetnsId, kernel: &mut Nfnetlink) -> Result<(), Error> {
    store::clear(host)?;
    let mut wanted: Vec<Entry> = here(host, home)?.iter().flat_map(Record::entries).collect();
    let strays = strays(host, home, kernel)?.alive;
    let is_carried = !strays.is_empty();
    wanted.extend(strays);
    if wanted.is_empty() {
        if kernel.table_fingerprint(BRIDGE, TABLE)?.is_some() {
            table::remove()?;
        }
        tidy(host, kernel);
        return Ok(());
    }
    Memory::make(host, home, kernel, &wanted, is_carried)
}

/// With the last record and the last port that is checked without one, the table and the folder go. Nothing depends on it:
/// what is left is only more to look at.
pub fn tidy(host: &Host, kernel: &mut Nfnetlink) {
    if store::has_records(host) {
        return;
    }
    let attempt = |kernel: &mut Nfnetlink| {
        let is_used = !strays(host, &host_id()?, kernel)?.alive.is_empty();
        if !is_used && kernel.table_fingerprint(BRIDGE, TABLE)?.is_some() {
            table::remove()?;
        }
        Ok::<_, Error>(is_used)
    };
    match attempt(kernel) {
        Ok(true) => {}
        Ok(false) => store::forget(host),
        Err(error) => tracing::warn!("the table of the source checks is not removed: {error}"),
    }
}
