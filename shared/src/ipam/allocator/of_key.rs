//! What a key has already: its records, and which of them it gets.

use std::net::IpAddr;

use super::Allocator;
use crate::ipam::Error;
use crate::ipam::liveness::Liveness;
use crate::ipam::range::RangeSet;
use crate::ipam::record::{Record, State};

impl Allocator<'_> {
    /// True if the attachment has ended unnoticed, and another address has been reserved for its key meanwhile.
    pub(super) fn moves(&mut self, set: &RangeSet, address: IpAddr, record: &Record) -> Result<bool, Error> {
        if record.pinned {
            return Ok(false);
        }
        // First what costs little: a holder that may be about to end is waited for.
        let records = self.records_of_key(set)?;
        let is_reserved = records.iter().any(|(other, record)| *other != address && record.state == State::Reserved);
        Ok(is_reserved && self.search.witness.judge(record) == Liveness::Dead)
    }

    /// The records of the key that are of use in a set.
    pub(in crate::ipam) fn records_of_key(&self, set: &RangeSet) -> Result<Vec<(IpAddr, Record)>, Error> {
        let mut records = Vec::new();
        for address in self.search.store.of_key(&self.request.key.hash())? {
            if let Some(record) = self.search.read(address)?
                && record.key == self.request.key
                && usable(set, address, &record)
            {
                records.push((address, record));
            }
        }
        Ok(records)
    }

    /// Rule 3: a record of the key that nobody lives on; else the instance number of rule 4.
    pub(super) fn of_key(&mut self, set: &RangeSet) -> Result<(Option<IpAddr>, u32), Error> {
        let mut records = self.records_of_key(set)?;
        let attachment = &self.request.attachment;
        crate::order::sort_by_key(&mut records, |(_, record)| {
            let reserved = record.pinned || record.state == State::Reserved;
            (!record.is_of(attachment), record.ifname != attachment.ifname.as_str(), !reserved, record.instance)
        });
        for (address, record) in &records {
            let free = !record.is_held()
                || record.is_of(&self.request.attachment)
                || self.search.witness.judge(record) == Liveness::Dead;
            if free && self.search.neighbours.holder(*address)?.is_none() {
                self.grant(*address, Some(record.clone()), record.instance, false);
                return Ok((Some(*address), 0));
            }
        }
        let used: Vec<u32> = records.iter().map(|(_, record)| record.instance).collect();
        Ok((None, (0..).find(|instance| !used.contains(instance)).unwrap_or(0)))
    }
}

/// A recorded address that its key may have again: in the range, and not taken out of use since, unless
/// it was asked for by name.
pub(in crate::ipam) fn usable(set: &RangeSet, address: IpAddr, record: &Record) -> bool {
    set.0
        .iter()
        .any(|range| range.allocatable(address) || ((record.requested || record.pinned) && range.requestable(address)))
}
