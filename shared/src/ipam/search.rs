//! Finding an address for somebody who has none: never used, released, last held by the dead.

use std::net::IpAddr;

use super::Error;
use super::liveness::Witness;
use super::queue::{Entry, Verdict};
use super::range::{Range, RangeSet, number};
use super::record::{Record, State};
use super::store::{Change, Class, Store};
use super::timestamp::micros;

/// Who else allocates in these ranges: host-local, OpenSVC's agent.
pub trait Neighbours {
    /// Who has the address, in words; `None`: nobody that lives.
    ///
    /// # Errors
    /// Their records cannot be read.
    fn holder(&mut self, address: IpAddr) -> Result<Option<String>, Error>;
}

/// IPv6 ranges up to this size have a bitmap; in larger ones a hashed address is as good as never taken.
const BITMAP_LIMIT: u128 = 1 << 20;

/// True if the addresses of a range are tracked by bits.
fn has_bitmap(range: &Range) -> bool {
    range.subnet.addr().is_ipv4() || number(range.end) - number(range.start) < BITMAP_LIMIT
}

/// A look at the locked store and its surroundings. Nothing is changed by it but entries that are wrong.
pub struct Search<'a> {
    pub(super) store: &'a mut Store,
    /// What was decided so far, of which nothing is written yet.
    pub(super) changes: Vec<Change>,
    pub(super) witness: &'a mut dyn Witness,
    pub(super) neighbours: &'a mut dyn Neighbours,
}

impl Search<'_> {
    /// The record of an address as it will be.
    pub(super) fn read(&self, address: IpAddr) -> Result<Option<Record>, Error> {
        match self.changes.iter().rev().find(|change| change.address == address) {
            Some(change) => Ok(change.after.clone()),
            None => self.store.read(address),
        }
    }

    /// An address of the set that may be given to a stranger whose walk begins at `digest`.
    ///
    /// # Errors
    /// [`Error::Full`] if the living hold everything.
    pub fn free(&mut self, set: &RangeSet, digest: &[u8; 32]) -> Result<IpAddr, Error> {
        for range in &set.0 {
            if let Some(found) = self.never_used(range, range.first_candidate(digest))? {
                return Ok(found);
            }
        }
        for class in Class::ALL {
            if let Some(found) = self.released(set, class)? {
                return Ok(found);
            }
        }
        self.scan(set, digest)
    }

    fn never_used(&mut self, range: &Range, first: IpAddr) -> Result<Option<IpAddr>, Error> {
        let first = number(first).clamp(number(range.start), number(range.end).saturating_add(1));
        // From the first candidate to the end, then from the start up to it.
        for (from, end) in [(first, number(range.end)), (number(range.start), first.saturating_sub(1))] {
            if let Some(found) = self.never_used_between(range, from, end)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn never_used_between(&mut self, range: &Range, mut from: u128, end: u128) -> Result<Option<IpAddr>, Error> {
        let v6 = range.subnet.addr().is_ipv6();
        while from <= end {
            let Some(next) = range.next_allocatable(range.address(from)) else { return Ok(None) };
            let mut next_number = number(next);
            if has_bitmap(range) {
                match self.store.bitmap.next_clear(v6, next_number, end)? {
                    Some(clear) if clear == next_number => {}
                    Some(clear) => {
                        from = clear;
                        continue;
                    }
                    None => return Ok(None),
                }
            }
            if next_number > end {
                return Ok(None);
            }
            if self.store.read(next)?.is_some() {
                self.store.mark(next, true, has_bitmap(range));
            } else if self.neighbours.holder(next)?.is_none() {
                return Ok(Some(next));
            }
            next_number += 1;
            from = next_number;
        }
        Ok(None)
    }

    fn released(&mut self, set: &RangeSet, class: Class) -> Result<Option<IpAddr>, Error> {
        let v6 = set.0.first().is_some_and(|range| range.subnet.addr().is_ipv6());
        let found = self.store.first_released(class, v6, &mut |Entry { address, since }| {
            // As it is now: an entry that is stale only after changes that are not made must not go.
            let fits = self.store.read(address)?.is_some_and(|record| {
                record.state == State::Released && micros(&record.since) == since && Class::of(&record) == class
            });
            Ok(if !fits {
                Verdict::Stale
            } else if set.0.iter().any(|range| range.allocatable(address))
                && !self.changes.iter().any(|change| change.address == address)
                && self.neighbours.holder(address)?.is_none()
            {
                Verdict::Fits
            } else {
                Verdict::Other
            })
        })?;
        match found {
            Some(entry) => Ok(Some(entry.address)),
            None => self.given_up(set, class),
        }
    }

    /// What this very ADD gives up comes after all that others did.
    fn given_up(&mut self, set: &RangeSet, class: Class) -> Result<Option<IpAddr>, Error> {
        for Change { address, .. } in &self.changes {
            let released = |record: &Record| record.state == State::Released && Class::of(record) == class;
            if self.read(*address)?.as_ref().is_some_and(released)
                && set.0.iter().any(|range| range.allocatable(*address))
                && self.neighbours.holder(*address)?.is_none()
            {
                return Ok(Some(*address));
            }
        }
        Ok(None)
    }
}
