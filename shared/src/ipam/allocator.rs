//! Which address an attachment gets: the rules of the design, first match, on a locked store.
//!
//! All is decided first, and only then written: whoever is killed leaves nothing that was not allowed, and an ADD that is
//! refused has changed nothing.

use std::net::IpAddr;

use super::claims::Claims;
use super::liveness::{Liveness, Witness};
use super::range::RangeSet;
use super::record::{Record, State};
use super::search::{Neighbours, Search};
use super::store::{Change, Store};
use super::timestamp::format;
use super::{Elsewhere, Error, Request};

pub(super) use of_key::usable;

mod of_key;

/// One ADD's work on the locked store.
pub struct Allocator<'a> {
    pub(super) search: Search<'a>,
    pub(super) request: &'a Request,
    pub(super) now: String,
}

impl<'a> Allocator<'a> {
    /// An allocator for one request.
    pub fn new(
        store: &'a mut Store,
        witness: &'a mut dyn Witness,
        neighbours: &'a mut dyn Neighbours,
        request: &'a Request,
    ) -> Self {
        let now = format(std::time::SystemTime::now());
        Self { search: Search { store, changes: Vec::new(), witness, neighbours }, request, now }
    }

    /// One address of each set, and what was changed for it. A failure puts everything back.
    ///
    /// # Errors
    /// A requested address is somebody's, a set is full, the namespace has all that it may have, or the store cannot be
    /// read or written.
    pub fn allocate(
        mut self,
        sets: &[RangeSet],
        requested: &[Option<IpAddr>],
        claims: &Claims,
    ) -> Result<(Vec<IpAddr>, Vec<Change>), Error> {
        let addresses = match self.plan(sets, requested, claims) {
            Ok(addresses) => addresses,
            Err(error) => {
                match &error {
                    Error::Taken { address, .. } => self.search.store.journal.refused(self.request, Some(*address)),
                    Error::Full { .. } => self.search.store.journal.refused(self.request, None),
                    _ => {}
                }
                return Err(error);
            }
        };
        let Search { store, changes, .. } = self.search;
        store.apply_all(&changes)?;
        store.journal.allocated();
        Ok((addresses, changes))
    }

    /// One address of each set, of which nothing is written: what [`allocate`](Self::allocate) would do.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub(super) fn plan(
        &mut self,
        sets: &[RangeSet],
        requested: &[Option<IpAddr>],
        claims: &Claims,
    ) -> Result<Vec<IpAddr>, Error> {
        let addresses = self.all(sets, requested)?;
        self.claim(claims)?;
        Ok(addresses)
    }

    fn all(&mut self, sets: &[RangeSet], requested: &[Option<IpAddr>]) -> Result<Vec<IpAddr>, Error> {
        // A process id used again: what the old process held is free for this one, too.
        let key = self.request.key.clone();
        self.give_up(|_, record| record.key != key)?;
        let mut addresses = Vec::with_capacity(sets.len());
        for (set, requested) in sets.iter().zip(requested.iter().copied().chain(std::iter::repeat(None))) {
            addresses.push(self.one(set, requested)?);
        }
        // An address that a request replaced, or of a range that is no longer configured.
        self.give_up(|address, _| !addresses.contains(&address))?;
        Ok(addresses)
    }

    pub(super) fn one(&mut self, set: &RangeSet, requested: Option<IpAddr>) -> Result<IpAddr, Error> {
        if let Some(address) = requested {
            return self.requested(address);
        }
        if let Some(address) = self.own(set)? {
            return Ok(address);
        }
        let (mine, instance) = self.of_key(set)?;
        match mine {
            Some(address) => Ok(address),
            None => self.draw(set, instance),
        }
    }

    /// Rule 1: an explicit request.
    fn requested(&mut self, address: IpAddr) -> Result<IpAddr, Error> {
        if let Some(by) = self.search.neighbours.holder(address)? {
            return Err(Error::Taken { address, by });
        }
        let before = self.search.read(address)?;
        if let Some(record) = &before {
            let own = record.is_of(&self.request.attachment);
            match record.state {
                State::Released => {}
                State::Reserved if record.key == self.request.key => {}
                State::Reserved => {
                    return Err(Error::Taken { address, by: format!("reserved for {:?}", record.key.text) });
                }
                State::Held if own => self.not_elsewhere(address, record)?,
                State::Held if record.pinned && record.key != self.request.key => {
                    return Err(Error::Taken { address, by: format!("reserved for {:?}", record.key.text) });
                }
                State::Held if self.search.witness.judge(record) == Liveness::Dead => {}
                State::Held => return Err(Error::Taken { address, by: record.holder() }),
            }
        }
        let instance = match &before {
            Some(record) if record.key == self.request.key => record.instance,
            _ => 0,
        };
        self.grant(address, before, instance, true);
        Ok(address)
    }

    /// Rule 2: what this attachment holds already.
    fn own(&mut self, set: &RangeSet) -> Result<Option<IpAddr>, Error> {
        for address in self.search.store.of_attachment(&self.request.attachment.tag())? {
            let Some(record) = self.search.read(address)? else { continue };
            let same = record.is_held()
                && record.is_of(&self.request.attachment)
                && record.key == self.request.key
                && usable(set, address, &record);
            if same && self.search.neighbours.holder(address)?.is_none() && !self.moves(set, address, &record)? {
                self.not_elsewhere(address, &record)?;
                let instance = record.instance;
                self.grant(address, Some(record), instance, false);
                return Ok(Some(address));
            }
        }
        Ok(None)
    }

    /// An attachment that provably lives in another namespace is not given to a second one.
    fn not_elsewhere(&mut self, address: IpAddr, record: &Record) -> Result<(), Error> {
        let (Some(there), Some((_, here))) = (&record.netns, &self.request.netns) else { return Ok(()) };
        let (Some(there_id), Some(here)) = (&there.id, here) else { return Ok(()) };
        if !there_id.same(here) && self.search.witness.judge(record) == Liveness::Running {
            return Err(Error::Elsewhere(Box::new(Elsewhere {
                attachment: self.request.attachment.clone(),
                address,
                netns: there.path.clone(),
                since: record.since.clone(),
            })));
        }
        Ok(())
    }

    /// Rule 5: the walk from the first candidate, then what was released, last what the dead hold.
    pub(super) fn draw(&mut self, set: &RangeSet, instance: u32) -> Result<IpAddr, Error> {
        let address = self.search.free(set, &self.request.key.digest(instance))?;
        let before = self.search.read(address)?;
        self.grant(address, before, instance, false);
        Ok(address)
    }

    /// Makes the attachment the holder of an address.
    fn grant(&mut self, address: IpAddr, before: Option<Record>, instance: u32, requested: bool) {
        let request = self.request;
        let same_key = before.as_ref().filter(|record| record.key == request.key);
        let boot = self.search.store.boot();
        let record = request.held(same_key, instance, requested, boot, self.now.clone());
        self.search.changes.push(Change { address, before, after: Some(record) });
    }

    /// Releases what the attachment holds and `other` picks out.
    fn give_up(&mut self, other: impl Fn(IpAddr, &Record) -> bool) -> Result<(), Error> {
        for address in self.search.store.of_attachment(&self.request.attachment.tag())? {
            if let Some(record) = self.search.read(address)?
                && record.is_held()
                && record.is_of(&self.request.attachment)
                && other(address, &record)
            {
                let after = Some(record.released(&self.now));
                self.search.changes.push(Change { address, before: Some(record), after });
            }
        }
        Ok(())
    }
}
