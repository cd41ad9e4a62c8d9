//! What our records become when a running container's addresses are taken over: as an ADD would have left them.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use super::super::config::IpamConfig;
use super::super::host_local::Entry;
use super::super::key::Key;
use super::super::liveness::{Kernel, Liveness, Witness};
use super::super::range::RangeSet;
use super::super::record::{NetnsRef, Record, State};
use super::super::search::Neighbours;
use super::super::snapshot::Snapshot;
use super::super::store::{Change, Store};
use super::super::{Error, Request, timestamp};
use super::Refusal;
use crate::Host;

/// Our records, locked or not.
pub(super) trait Records {
    /// That of an address.
    fn at(&self, address: IpAddr) -> Result<Option<Record>, Error>;
    /// Those of a key.
    fn of_key(&self, key: &Key) -> Result<Vec<(IpAddr, Record)>, Error>;
}

impl Records for Store {
    fn at(&self, address: IpAddr) -> Result<Option<Record>, Error> {
        self.read(address)
    }

    fn of_key(&self, key: &Key) -> Result<Vec<(IpAddr, Record)>, Error> {
        let mut found = Vec::new();
        for address in self.by_key.get(&key.hash())? {
            found.extend(self.read(address)?.filter(|record| record.key == *key).map(|record| (address, record)));
        }
        Ok(found)
    }
}

impl Records for Snapshot {
    fn at(&self, address: IpAddr) -> Result<Option<Record>, Error> {
        // What is no record is set aside when the store is locked, and counts as none.
        if let Some(fault) = self.faults.iter().find_map(|fault| unreadable(fault, address)) {
            return Err(fault);
        }
        let place = self.records.binary_search_by_key(&address, |(at, _)| *at).ok();
        Ok(place.and_then(|place| self.records.get(place)).map(|(_, record)| record.clone()))
    }

    fn of_key(&self, key: &Key) -> Result<Vec<(IpAddr, Record)>, Error> {
        Ok(self.records.iter().filter(|(_, record)| record.key == *key).cloned().collect())
    }
}

/// What reading the record of an address would end with, if that is this fault.
fn unreadable(fault: &Error, address: IpAddr) -> Option<Error> {
    let is_its = |path: &Path| path.file_name().is_some_and(|name| name == address.to_string().as_str());
    match fault {
        Error::NewerFormat { path, v } if is_its(path) => Some(Error::NewerFormat { path: path.clone(), v: *v }),
        Error::Io { doing, path, source } if is_its(path) => {
            let source = source.raw_os_error().map_or_else(|| source.kind().into(), io::Error::from_raw_os_error);
            Some(Error::io(doing, path, source))
        }
        _ => None,
    }
}

/// The changes that take over all addresses of an attachment.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// In this order.
    pub changes: Vec<Change>,
    /// The addresses that are the attachment's then.
    pub kept: Vec<IpAddr>,
}

/// Whoever plans for one attachment.
pub(super) struct Planner<'a> {
    pub host: &'a Host,
    pub config: &'a IpamConfig,
    pub request: &'a Request,
    pub netns: Option<NetnsRef>,
    pub entries: &'a [Entry],
}

impl Planner<'_> {
    /// The changes, or what keeps an address from being taken: then none of the attachment's is, since a DEL looks for the
    /// rest in one place only.
    pub fn plan(&self, records: &impl Records) -> Result<Result<Plan, Vec<Refusal>>, Error> {
        let mut witness = Kernel::new(self.host).in_a_hurry();
        let mut others = self.config.neighbours(self.host, Some(self.request))?;
        let (mut plan, mut refusals) = (Plan::default(), Vec::new());
        for entry in self.entries {
            let address = entry.address;
            let before = records.at(address)?;
            let Some(set) = self.set_of(address, before.as_ref()) else {
                refusals.push(self.out_of_range(address));
                continue;
            };
            let by = match others.holder(address)? {
                Some(by) => Some(by),
                None => before.as_ref().and_then(|record| self.in_the_way(record, &mut witness)),
            };
            if let Some(by) = by {
                refusals.push(Refusal::Taken { address, by });
                continue;
            }
            let mut rivals = records.of_key(&self.request.key)?;
            rivals.retain(|(at, _)| *at != address && set.contains(*at));
            self.take(entry, before, rivals, &mut witness, &mut plan);
        }
        Ok(if refusals.is_empty() { Ok(plan) } else { Err(refusals) })
    }

    fn is_requested(&self, address: IpAddr) -> bool {
        self.request.requested.contains(&address)
    }

    /// The set out of which an ADD could give the address to this key.
    fn set_of(&self, address: IpAddr, before: Option<&Record>) -> Option<&RangeSet> {
        let may_ask = self.is_requested(address)
            || before.is_some_and(|record| record.key == self.request.key && (record.requested || record.pinned));
        let usable = |set: &&RangeSet| {
            set.0.iter().any(|range| range.allocatable(address) || (may_ask && range.requestable(address)))
        };
        self.config.sets.iter().find(usable)
    }

    /// Why no set may give the address.
    fn out_of_range(&self, address: IpAddr) -> Refusal {
        let mut ranges = self.config.sets.iter().flat_map(|set| &set.0);
        if let Some(range) = ranges.clone().find(|range| range.gateway == Some(address)) {
            return Refusal::Gateway { address, subnet: range.subnet };
        }
        if ranges.any(|range| range.requestable(address)) {
            return Refusal::Excluded { address };
        }
        let sets: Vec<String> = self.config.sets.iter().map(ToString::to_string).collect();
        Refusal::OutOfRange { address, ranges: sets.join(" and ") }
    }

    /// Who has the address by our own record, if that is somebody else who may live.
    fn in_the_way(&self, record: &Record, witness: &mut dyn Witness) -> Option<String> {
        let others = record.key != self.request.key;
        match record.state {
            State::Released => None,
            _ if record.is_held() && record.is_of(&self.request.attachment) => None,
            State::Reserved | State::Held if others && (record.pinned || record.state == State::Reserved) => {
                Some(format!("reserved for {:?}", record.key.text))
            }
            State::Reserved => None,
            State::Held => (witness.judge(record) != Liveness::Dead).then(|| format!("held by {}", record.holder())),
        }
    }

    /// One address: its record, and the end of what its key had remembered in this place.
    fn take(
        &self,
        entry: &Entry,
        before: Option<Record>,
        rivals: Vec<(IpAddr, Record)>,
        witness: &mut dyn Witness,
        plan: &mut Plan,
    ) {
        let (request, address) = (self.request, entry.address);
        // What nobody lives on is but a memory, and the address that the key has now is the newer one.
        let (memories, used): (Vec<_>, Vec<_>) = rivals.into_iter().partition(|(_, record)| {
            !record.pinned
                && match record.state {
                    State::Released => true,
                    State::Reserved => false,
                    State::Held => witness.judge(record) == Liveness::Dead,
                }
        });
        let is_used = |instance: u32| used.iter().any(|(_, record)| record.instance == instance);
        let same_key = before.as_ref().filter(|record| record.key == request.key);
        let ours = same_key.filter(|record| record.is_held() && record.is_of(&request.attachment));
        let instance = match same_key.map(|record| record.instance).filter(|instance| !is_used(*instance)) {
            Some(instance) => instance,
            None => (0..).find(|instance| !is_used(*instance)).unwrap_or(0),
        };
        let instance = ours.map_or(instance, |record| record.instance);
        plan.kept.push(address);
        if ours.is_none() {
            let (requested, since) = (self.is_requested(address), timestamp::format(entry.since));
            let record = request.held(same_key, instance, requested, self.host.boot.clone(), since);
            let record = Record { netns: self.netns.clone(), ..record };
            plan.changes.push(Change { address, before, after: Some(record) });
        }
        for (at, record) in memories.into_iter().filter(|(_, record)| record.instance == instance) {
            plan.changes.push(Change { address: at, before: Some(record), after: None });
        }
    }
}
