//! Who may have a host port: one container at a time, and the dead none.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use super::Error;
use super::record::{Record, Slot};
use super::store::Store;
use super::store::known::Known;
use crate::NetworkName;
use crate::ipam::liveness::{Kernel, Liveness};
use crate::netlink::netns::NetnsId;

#[cfg(test)]
mod tests;

/// Who tells whether a record's holder lives: the kernel, or a test.
pub trait Judge {
    /// What is known of the record's holder.
    fn judge(&mut self, record: &Record) -> Liveness;
}

impl Judge for Kernel {
    fn judge(&mut self, record: &Record) -> Liveness {
        self.judge_traces(&record.traces())
    }
}

/// A judge who is asked once about each record, and not at all about those of another boot.
struct Verdicts<'a> {
    judge: &'a mut dyn Judge,
    boot: &'a str,
    known: HashMap<String, bool>,
}

impl<'a> Verdicts<'a> {
    fn new(judge: &'a mut dyn Judge, boot: &'a str) -> Self {
        Self { judge, boot, known: HashMap::new() }
    }

    fn is_of_another_boot(&self, record: &Record) -> bool {
        record.boot != self.boot
    }

    fn is_dead(&mut self, known: &Known) -> bool {
        if let Some(dead) = self.known.get(&known.tag) {
            return *dead;
        }
        let dead = self.judge.judge(&known.record) == Liveness::Dead;
        self.known.insert(known.tag.clone(), dead);
        dead
    }
}

/// Records that have to go, each once.
#[derive(Default)]
struct Leaving {
    tags: HashSet<String>,
    records: Vec<Rc<Record>>,
}

impl Leaving {
    fn push(&mut self, known: &Known) {
        if self.tags.insert(known.tag.clone()) {
            self.records.push(known.record.clone());
        }
    }
}

/// Makes sure that `record` may have its ports. Returns the records that have to be removed for it: of its ports, those
/// of another boot, and those of overlapping slots whose holder is dead. Ports of another network namespace are
/// other ports; those of the same container stay. Nothing is changed.
///
/// # Errors
/// [`Error::Taken`] when the living have one, with `entry_of` it as the entry; or a record cannot be read.
pub fn make_room(
    store: &Store<'_>,
    record: &Record,
    entry_of: &dyn Fn(&Slot) -> String,
    judge: &mut dyn Judge,
) -> Result<Vec<Rc<Record>>, Error> {
    let own = record.tag();
    let mut verdicts = Verdicts::new(judge, store.boot());
    let mut leaving = Leaving::default();
    for (slot, _) in record.slots() {
        for other in store.of_port(slot.protocol, slot.port)? {
            if other.tag == own {
                continue;
            }
            if verdicts.is_of_another_boot(&other.record) {
                leaving.push(&other);
                continue;
            }
            let there = other.slots_of(slot.protocol, slot.port);
            if !other.record.home.same(&record.home) || !there.iter().any(|(there, _)| there.overlaps(&slot)) {
                continue;
            }
            if verdicts.is_dead(&other) {
                leaving.push(&other);
            } else if other.record.container != record.container {
                let port = format!("{}/{}", slot.port, slot.protocol);
                return Err(Error::Taken { entry: entry_of(&slot), port, holder: other.record.holder() });
            }
        }
    }
    Ok(leaving.records)
}

/// Records of other attachments whose ports lead to addresses that now are an attachment's of `network`: those of the
/// same network, where an address has one owner, and of another network or boot those of the dead. Those of another
/// network namespace than `home` lead elsewhere.
///
/// # Errors
/// A record cannot be read.
pub fn squatters(
    store: &Store<'_>,
    record_tag: &str,
    network: &NetworkName,
    home: &NetnsId,
    addresses: &[IpAddr],
    judge: &mut dyn Judge,
) -> Result<Vec<Rc<Record>>, Error> {
    let mut verdicts = Verdicts::new(judge, store.boot());
    let mut leaving = Leaving::default();
    for address in addresses {
        for other in store.of_address(*address)? {
            if other.tag == record_tag {
                continue;
            }
            if verdicts.is_of_another_boot(&other.record)
                || (other.record.home.same(home) && (other.record.network == *network || verdicts.is_dead(&other)))
            {
                leaving.push(&other);
            }
        }
    }
    Ok(leaving.records)
}

/// An attachment that wants a slot.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Its tag.
    pub tag: String,
    /// Its record.
    pub record: Rc<Record>,
    /// Where the slot leads if it has it.
    pub target: SocketAddr,
}

/// Who wants exactly this slot in this boot and network namespace, the oldest first: the one that has it.
///
/// # Errors
/// A record cannot be read.
pub fn claimants(store: &Store<'_>, slot: &Slot, home: &NetnsId, boot: &str) -> Result<Vec<Claim>, Error> {
    let mut found = Vec::new();
    for known in store.of_port(slot.protocol, slot.port)? {
        let theirs = known.slots_of(slot.protocol, slot.port).iter().find(|(theirs, _)| theirs == slot);
        if let Some((_, target)) = theirs
            && known.record.boot == boot
            && known.record.home.same(home)
        {
            found.push(Claim { tag: known.tag.clone(), record: known.record.clone(), target: *target });
        }
    }
    crate::order::sort_by(&mut found, |a, b| (&a.record.since, &a.tag).cmp(&(&b.record.since, &b.tag)));
    Ok(found)
}

/// The records that garbage collection removes, of one network or of all. With a list of the tags that are valid: those
/// not listed, unless provably alive: these belong to another runtime, and are logged. Without: the provably dead.
///
/// # Errors
/// As [`Store::all`].
pub fn stale(
    store: &Store<'_>,
    network: Option<&NetworkName>,
    valid: Option<&HashSet<String>>,
    home: &NetnsId,
    judge: &mut dyn Judge,
) -> Result<Vec<Rc<Record>>, Error> {
    let mut all = store.all()?;
    all.retain(|record| {
        // Of another network namespace: it cannot be judged from here.
        if record.boot == store.boot() && !record.home.same(home) {
            return false;
        }
        if network.is_some_and(|network| *network != record.network)
            || valid.is_some_and(|tags| tags.contains(&record.tag()))
        {
            return false;
        }
        let liveness = if record.boot == store.boot() { judge.judge(record) } else { Liveness::Dead };
        match (liveness, valid) {
            (Liveness::Running | Liveness::Attached, Some(_)) => {
                tracing::warn!(
                    "network {}: {} is not listed but alive: its ports stay",
                    record.network,
                    record.holder()
                );
                false
            }
            (Liveness::Dead, _) | (Liveness::Unknown, Some(_)) => true,
            (_, None) => false,
        }
    });
    Ok(all)
}
