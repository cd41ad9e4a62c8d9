//! Makes the kernel's maps what the store says, for the slots that a change touches.
//!
//! Each slot is asked for and made right, whatever is there: what was killed half way is completed by whoever comes
//! next. All of it is one transaction, of both families.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::rc::Rc;

use super::Error;
use super::area::{Area, merged, of_record};
use super::claims::{Claim, Judge, claimants};
use super::keys::{TABLE, family};
use super::place::Memory;
use super::record::{Record, Slot};
use super::ruleset::{Holders, document};
use super::store::Store;
use crate::Host;
use crate::firewall::family::Family;
use crate::firewall::nfnetlink::Nfnetlink;
use crate::firewall::{self, nft};
use crate::ipam::liveness::Liveness;
use crate::netlink::netns::NetnsId;
use crate::portmap::Protocol;

mod batch;

/// How often somebody else may change our tables under our hands, before all of them is made anew.
const TRIES: u32 = 3;
/// What the kernel is asked for.
const CHANGE: &str = "change the host ports";

/// Where changes are made.
pub struct Site<'a> {
    /// This machine.
    pub host: &'a Host,
    /// Its network namespace.
    pub home: &'a NetnsId,
    /// The one socket: closing any after a deletion waits for an RCU grace period.
    pub kernel: &'a mut Nfnetlink,
    /// Who tells whether a holder lives.
    pub judge: &'a mut dyn Judge,
    /// What the sets of pairs should hold is to be read from all records, not from the sets and the record at hand.
    pub thorough: bool,
    /// Set when a change may have given a network another word than it had.
    pub reworded: bool,
}

impl<'a> Site<'a> {
    /// A place for changes.
    pub fn new(host: &'a Host, home: &'a NetnsId, kernel: &'a mut Nfnetlink, judge: &'a mut dyn Judge) -> Self {
        Self { host, home, kernel, judge, thorough: false, reworded: false }
    }

    /// True if the record's ports are ports of this boot and network namespace.
    pub fn is_here(&self, record: &Record) -> bool {
        record.boot == self.host.boot && record.home.same(self.home)
    }

    /// Takes out the records that are `leaving`, and puts in the one that is `arriving`, which is in the store by now, with
    /// the slots of the record that it `replaced`. Where another attachment waits, it gets its turn. When all is made anew,
    /// what the dead have goes as well, and is added to `leaving`.
    ///
    /// # Errors
    /// The kernel's: then nothing was changed in it.
    pub fn change(
        &mut self,
        store: &Store<'_>,
        arriving: Option<&Record>,
        replaced: Option<&Record>,
        leaving: &mut Vec<Rc<Record>>,
    ) -> Result<(), Error> {
        let mut touched: BTreeSet<Slot> = BTreeSet::new();
        let records = leaving.iter().map(Rc::as_ref).chain(arriving).chain(replaced);
        for record in records.filter(|record| self.is_here(record)) {
            touched.extend(record.slots().iter().map(|(slot, _)| slot));
        }
        if touched.is_empty() {
            return Ok(());
        }
        let holders = self.holders(store, &touched, arriving, leaving)?;
        let needed: Vec<Family> = arriving.iter().flat_map(|record| families(record)).collect();
        let mut done = false;
        for _ in 0..TRIES {
            if arriving.is_some() && (store.is_doubtful() || !self.in_place(&needed)?) {
                break;
            }
            let committed = self
                .batch(store, &touched, &holders, arriving, leaving)
                .and_then(|batch| if batch.is_empty() { Ok(()) } else { Ok(self.kernel.commit(&batch, CHANGE)?) });
            match committed {
                // Somebody changed what we had just looked at, or something of theirs is in the way: a map of our name
                // and another shape answers with EINVAL.
                Err(Error::Firewall(firewall::Error::Kernel { source, .. }))
                    if [ErrorKind::NotFound, ErrorKind::AlreadyExists, ErrorKind::InvalidInput]
                        .contains(&source.kind()) => {}
                outcome => {
                    outcome?;
                    done = true;
                    break;
                }
            }
        }
        if !done {
            match self.swap(store, leaving) {
                // No DEL fails for want of nft: what it takes away is taken away, who waits has to wait.
                Err(error) if arriving.is_none() => {
                    tracing::warn!("{error}");
                    let batch = self.withdrawal(&touched, leaving)?;
                    if !batch.is_empty() {
                        self.kernel.commit(&batch, CHANGE)?;
                    }
                }
                swapped => swapped?,
            }
        }
        self.forget_flows(&touched);
        Ok(())
    }

    /// Who has each of these slots once the change is made. The dead have none; their own records tell what else they had,
    /// and go with that, another time.
    fn holders(
        &mut self,
        store: &Store<'_>,
        touched: &BTreeSet<Slot>,
        arriving: Option<&Record>,
        leaving: &[Rc<Record>],
    ) -> Result<Holders, Error> {
        let mut holders = Holders::new();
        let mut gone: BTreeMap<String, bool> = leaving.iter().map(|record| (record.tag(), true)).collect();
        gone.extend(arriving.map(|record| (record.tag(), false)));
        for slot in touched {
            let claims = match claimants(store, slot, self.home, &self.host.boot) {
                // No DEL fails for what somebody else is.
                Err(error @ Error::NewerFormat { .. }) if arriving.is_none() => {
                    tracing::warn!("{error}");
                    continue;
                }
                claims => claims?,
            };
            for Claim { tag, record, target } in claims {
                let is_gone = *gone.entry(tag.clone()).or_insert_with(|| self.judge.judge(&record) == Liveness::Dead);
                if !is_gone {
                    holders.insert(*slot, (target, tag));
                    break;
                }
            }
        }
        Ok(holders)
    }

    fn in_place(&mut self, needed: &[Family]) -> Result<bool, Error> {
        match Memory::load(self.host, self.home) {
            Some(memory) => memory.holds(self.kernel, needed),
            None => Ok(false),
        }
    }

    /// Makes the tables anew, whole, from the store without what is `leaving`; what the dead hold is left out and added
    /// to it.
    ///
    /// # Errors
    /// nft is not there, or refused: then the tables are as they were.
    pub fn swap(&mut self, store: &Store<'_>, leaving: &mut Vec<Rc<Record>>) -> Result<(), Error> {
        let (holders, areas) = wanted(self.host, self.home, self.judge, store, leaving)?;
        let mut needed: Vec<Family> = Vec::new();
        for family in Family::ALL {
            let is_needed = holders.keys().any(|slot| self::family(slot.address) == family)
                || areas.iter().any(|area| family.holds(&area.subnet));
            if is_needed || self.kernel.table_fingerprint(family.number(), TABLE)?.is_some() {
                needed.push(family);
            }
        }
        let text = document(&needed, &holders, &areas);
        if !text.is_empty() {
            nft::commit(&text, &format!("make the tables {TABLE}"))?;
        }
        store.trust();
        self.reworded = true;
        // Flows that began while there were no tables, and those of the dead.
        let gone = leaving.iter().filter(|record| self.is_here(record)).flat_map(|record| record.slots());
        let slots = holders.into_keys().chain(gone.map(|(slot, _)| slot)).collect();
        self.forget_flows(&slots);
        Memory::save(self.host, self.home, self.kernel, &needed)
    }

    /// Flows of UDP go on as they are translated, whatever the maps say, for as long as they are known. (A connection of
    /// TCP belongs to the container that accepted it.)
    fn forget_flows(&mut self, touched: &BTreeSet<Slot>) {
        for family in Family::ALL {
            let udp =
                touched.iter().filter(|slot| slot.protocol == Protocol::Udp && self::family(slot.address) == family);
            let ports: BTreeSet<u16> = udp.map(|slot| slot.port).collect();
            let ports: Vec<u16> = ports.into_iter().collect();
            if ports.is_empty() {
                continue;
            }
            if let Err(error) = self.kernel.forget_udp(family.number(), &ports) {
                tracing::warn!("flows to udp ports {ports:?} may go on to where they went: {error}");
            }
        }
    }
}

/// What all records of this boot and network namespace together ask for; what the dead hold is left out and added to
/// what is `leaving`.
///
/// # Errors
/// The records cannot be read.
pub fn wanted(
    host: &Host,
    home: &NetnsId,
    judge: &mut dyn Judge,
    store: &Store<'_>,
    leaving: &mut Vec<Rc<Record>>,
) -> Result<(Holders, Vec<Area>), Error> {
    let mut holders = Holders::new();
    let mut areas = Vec::new();
    let gone: BTreeSet<String> = leaving.iter().map(|record| record.tag()).collect();
    // Oldest first: who came first has the port, the network's last word holds.
    for record in store.all()? {
        let tag = record.tag();
        if gone.contains(&tag) || !record.home.same(home) {
            continue;
        }
        if record.boot != host.boot || judge.judge(&record) == Liveness::Dead {
            leaving.push(record);
            continue;
        }
        for (slot, target) in record.slots() {
            holders.entry(slot).or_insert_with(|| (target, tag.clone()));
        }
        areas = merged(areas, of_record(&record));
    }
    Ok((holders, areas))
}

/// The families of a record's targets.
fn families(record: &Record) -> Vec<Family> {
    record.targets.iter().map(|target| family(target.addr())).collect()
}
