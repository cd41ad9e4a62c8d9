//! Putting back what somebody else took away.

use std::rc::Rc;

use super::Error;
use super::area::{Area, pairs};
use super::config::Options;
use super::keys::{ANY, HOST, SENTINEL, TABLE, family, map_of, slot_element};
use super::localhost::Doors;
use super::place::Memory;
use super::publish::remove;
use super::record::Record;
use super::recover::{Look, recover};
use super::ruleset::Holders;
use super::sets::{Difference, read};
use super::settle::{self, Site};
use super::store::{self, Store};
use crate::firewall::family::Family;
use crate::firewall::nfnetlink::Nfnetlink;
use crate::ipam::liveness::Kernel;
use crate::netlink::netns::{NetnsId, host_id};
use crate::{Host, NetworkName};

/// What [`mend`] found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mended {
    /// The ports that should be published: slots of the maps.
    pub ports: usize,
    /// Elements that were not there or not right, and parameters of devices.
    pub wrong: usize,
    /// Our rules were not there or were changed.
    pub rules: bool,
}

impl Mended {
    /// True if nothing had to be done.
    pub fn is_whole(&self) -> bool {
        self.wrong == 0 && !self.rules
    }
}

/// Makes the tables again, complete, if somebody flushed or changed them since they were made. For each container's
/// start: some ten questions to the kernel, however many ports there are, and none when no port was ever published.
///
/// # Errors
/// The kernel cannot be asked, or nft refused.
pub fn restore(host: &Host) -> Result<bool, Error> {
    if !store::exists(host) {
        return Ok(false);
    }
    recover(host, Look::InTheKernel)?;
    let home = host_id()?;
    let mut kernel = Nfnetlink::open()?;
    let mut is_in_place = || match Memory::load(host, &home) {
        Some(memory) => memory.holds(&mut kernel, &[]),
        None => Ok(false),
    };
    if is_in_place()? {
        return Ok(false);
    }
    let restored = store::existing(host, |store| {
        // Somebody may have been at it.
        if is_in_place()? {
            return Ok(false);
        }
        let were_made = Memory::load(host, &home).is_some();
        remake(host, &home, store, &mut Nfnetlink::open()?)?;
        Ok(were_made)
    })?;
    if restored == Some(true) {
        tracing::warn!("somebody removed the rules of the published ports: they are put back");
    }
    Ok(restored.unwrap_or_default())
}

/// Makes all of it anew, and forgets what the dead had.
fn remake(host: &Host, home: &NetnsId, store: &mut Store<'_>, kernel: &mut Nfnetlink) -> Result<(), Error> {
    let (mut judge, mut leaving) = (Kernel::new(host), Vec::new());
    let mut site = Site::new(host, home, kernel, &mut judge);
    site.swap(store, &mut leaving)?;
    remove(store, &leaving);
    let (records, mut doors) = (store.all()?, Doors::default());
    for record in records.iter().filter(|record| site.is_here(record)) {
        if let Err(error) = doors.open(record) {
            tracing::warn!("ports of {} are not on 127.0.0.1: {error}", record.holder());
        }
    }
    Ok(())
}

/// Opens the device of a network that was made anew: it has lost what lets 127.0.0.1 through. Nothing if the network has no
/// ports.
///
/// # Errors
/// The store cannot be read, the kernel does not answer, or /proc/sys cannot be written to.
pub fn reopen(host: &Host, network: &NetworkName) -> Result<(), Error> {
    let home = host_id()?;
    if !store::networks(host).contains(network)
        || !Memory::load(host, &home).is_some_and(|memory| memory.has(Family::Ip))
    {
        return Ok(());
    }
    let records = store::viewed(host, |store| store.all())?.unwrap_or_default();
    let mut doors = Doors::default();
    let here = |record: &&Rc<Record>| record.network == *network && record.boot == host.boot && record.home.same(&home);
    records.iter().filter(here).try_for_each(|record| doors.open(record))
}

/// Compares all that should be published with what the kernel has, element by element, and makes it right; with
/// `dry_run` it is only compared.
///
/// # Errors
/// As [`restore`].
pub fn mend(host: &Host, dry_run: bool) -> Result<Mended, Error> {
    let home = host_id()?;
    if dry_run {
        return Ok(store::viewed(host, |store| look(host, &home, store))?.unwrap_or_default());
    }
    recover(host, Look::InTheKernel)?;
    let mended = store::existing(host, |store| {
        let found = look(host, &home, store)?;
        if found.is_whole() {
            store.trust();
        } else {
            remake(host, &home, store, &mut Nfnetlink::open()?)?;
        }
        Ok(found)
    })?;
    Ok(mended.unwrap_or_default())
}

/// What differs.
fn look(host: &Host, home: &NetnsId, store: &Store<'_>) -> Result<Mended, Error> {
    let mut judge = Kernel::new(host);
    let (holders, areas) = settle::wanted(host, home, &mut judge, store, &mut Vec::new())?;
    let memory = Memory::load(host, home);
    let mut found = Mended { ports: holders.len(), ..Mended::default() };
    if holders.is_empty() && memory.is_none() {
        return Ok(found);
    }
    let mut kernel = Nfnetlink::open()?;
    let mut is_there = !holders.is_empty();
    for family in Family::ALL {
        is_there |= kernel.table(family.number(), TABLE)?.is_some();
    }
    // Flushed, and nobody misses it.
    if !is_there {
        return Ok(found);
    }
    let needed: Vec<Family> =
        Family::ALL.into_iter().filter(|of| holders.keys().any(|slot| family(slot.address) == *of)).collect();
    found.rules = !match &memory {
        Some(memory) => memory.holds(&mut kernel, &needed)?,
        None => false,
    };
    for family in Family::ALL {
        found.wrong += wrong(&mut kernel, family, &holders, &areas)?;
    }
    let mut doors = Doors::default();
    for record in store.all()?.iter().filter(|record| record.boot == host.boot && record.home.same(home)) {
        found.wrong += usize::from(doors.closed(record)?.is_some());
    }
    Ok(found)
}

/// How many elements of a family are missing, too many, or others than they should be.
fn wrong(kernel: &mut Nfnetlink, family: Family, holders: &Holders, areas: &[Area]) -> Result<usize, Error> {
    let number = family.number();
    let mut wrong = 0;
    for map in [ANY, HOST] {
        let mut found = kernel.set_elements(number, TABLE, map)?;
        found.retain(|element| element.comment.as_deref() != Some(SENTINEL));
        let wanted = holders
            .iter()
            .filter(|(slot, _)| self::family(slot.address) == family && map_of(slot) == map)
            .map(|(slot, (target, tag))| slot_element(slot, *target, tag));
        wrong += difference(found, wanted.collect());
    }
    let Difference { stale, missing } = Difference::new(read(kernel, family)?, &pairs(areas, family));
    wrong += stale.len() + missing.len();
    Ok(wrong)
}

/// How many are in one list only.
fn difference<T: Ord>(mut a: Vec<T>, mut b: Vec<T>) -> usize {
    crate::order::sort(&mut a);
    crate::order::sort(&mut b);
    let common = a.iter().filter(|item| b.binary_search(item).is_ok()).count();
    a.len().max(b.len()) - common
}

/// What [`reconfigure`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconfigured {
    /// Records that were changed, or with `dry_run` would be.
    pub changed: usize,
    /// Holders whose ports do not go with the options: the whole network keeps those that it had.
    pub refused: Vec<String>,
}

/// Makes the ports of a network's running containers what its configuration says now: masquerading and who may connect.
/// [`mend`] puts it into the kernel. With `dry_run` nothing is changed.
///
/// # Errors
/// The store cannot be locked, read or written.
pub fn reconfigure(
    host: &Host,
    network: &NetworkName,
    options: &Options,
    dry_run: bool,
) -> Result<Reconfigured, Error> {
    let home = host_id()?;
    let is_on_localhost =
        |record: &Record| record.mappings.iter().any(|mapping| mapping.host_ip.is_some_and(|ip| ip.is_loopback()));
    let plan = |store: &Store<'_>| {
        let (mut newer, mut done) = (Vec::new(), Reconfigured::default());
        for record in store.all()?.into_iter().filter(|record| record.network == *network) {
            let wanted = record.with(options);
            match () {
                () if wanted == *record || record.boot != host.boot || !record.home.same(&home) => {}
                // As an ADD would refuse it.
                () if !options.snat && is_on_localhost(&record) => done.refused.push(record.holder()),
                () => newer.push(wanted),
            }
        }
        // One word holds for the whole network.
        if !done.refused.is_empty() {
            newer.clear();
        }
        done.changed = newer.len();
        Ok((newer, done))
    };
    if dry_run {
        return Ok(store::viewed(host, plan)?.unwrap_or_default().1);
    }
    recover(host, Look::InTheKernel)?;
    let done = store::existing(host, |store| {
        let (newer, done) = plan(store)?;
        newer.iter().try_for_each(|record| store.put(record))?;
        Ok(done)
    })?;
    Ok(done.unwrap_or_default())
}
