//! One change of a record, with all that derives from it.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;

use super::namespaces::holder;
use super::{Change, Class, Store};
use crate::ipam::Error;
use crate::ipam::queue::{Entry, Queue};
use crate::ipam::record::{Record, State};
use crate::ipam::timestamp::micros;

impl Store {
    /// Brings a record and what derives from it from `before` to `after`.
    pub fn apply(&mut self, change: &Change) -> Result<(), Error> {
        self.bring(change, Queue::push)?;
        self.journal.changed(&self.folder, change, false);
        Ok(())
    }

    /// As [`apply`](Self::apply), without a word in the history; `enqueue` says where a released address stands.
    pub(super) fn bring(
        &mut self,
        change: &Change,
        enqueue: fn(&Queue, Entry) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let network = self.network.clone();
        let place = |record: &Record| (record.key.hash(), record.tag(network.as_str()));
        let (before, after) = (change.before.as_ref().map(place), change.after.as_ref().map(place));
        let address = change.address;
        let (from, to) = (holder(change.before.as_ref()), holder(change.after.as_ref()));
        self.namespaces.before(from, to);
        if let Some((key, tag)) = &after {
            if before.as_ref().map(|(key, _)| key) != Some(key) {
                self.by_key.insert(key, &address)?;
            }
            if before.as_ref().map(|(_, tag)| tag) != Some(tag) {
                self.by_attachment.insert(tag, &address)?;
            }
        }
        match &change.after {
            Some(record) => {
                if let Err(error) = self.write(address, record, change.before.is_none()) {
                    self.forget_entries(address, &after, &before);
                    self.namespaces.forget();
                    return Err(error);
                }
            }
            None => {
                self.mark(address, false, false);
                let path = self.path(address);
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        self.namespaces.forget();
                        return Err(Error::io("remove", &path, error));
                    }
                    _ => {}
                }
            }
        }
        self.namespaces.after(address, from, to);
        if let Some((key, tag)) = &before {
            if after.as_ref().map(|(key, _)| key) != Some(key) {
                self.by_key.remove(key, &address)?;
            }
            if after.as_ref().map(|(_, tag)| tag) != Some(tag) {
                self.by_attachment.remove(tag, &address)?;
            }
        }
        if change.before.is_none() {
            self.mark(address, true, address.is_ipv4());
        }
        if let Some(record) = &change.after
            && record.state == State::Released
        {
            let entry = Entry { address, since: micros(&record.since) };
            enqueue(&self.queue(Class::of(record), address.is_ipv6()), entry)?;
        }
        Ok(())
    }

    /// Sets or clears the bit of an address. A record never fails for it: a bit that is missing shows when the address
    /// is tried, and after one that could not be cleared everything derived is made again.
    pub(in crate::ipam) fn mark(&mut self, address: IpAddr, present: bool, make: bool) {
        if self.is_looked_at() {
            return;
        }
        if let Err(error) = self.bitmap.mark(address, present, make) {
            tracing::debug!("{error}");
            if !present {
                self.unseal();
            }
        }
    }

    /// Everything derived is made again by the next writer.
    pub(super) fn unseal(&mut self) {
        let _ = fs::remove_file(self.folder.join("index"));
        self.broken = true;
    }

    /// After a record could not be written: its index entries go again, as far as the disk lets them.
    fn forget_entries(&self, address: IpAddr, made: &Option<(String, String)>, kept: &Option<(String, String)>) {
        let Some((key, tag)) = made else { return };
        if kept.as_ref().map(|(key, _)| key) != Some(key) {
            let _ = self.by_key.remove(key, &address);
        }
        if kept.as_ref().map(|(_, tag)| tag) != Some(tag) {
            let _ = self.by_attachment.remove(tag, &address);
        }
    }

    /// Writes a record: linked if it is a new one, so that it can replace nothing.
    fn write(&self, address: IpAddr, record: &Record, new: bool) -> Result<(), Error> {
        let (temporary, path) = (self.folder.join(".new"), self.path(address));
        let mut line = serde_json::to_vec(record).map_err(|error| Error::io("write", &path, error.into()))?;
        line.push(b'\n');
        // What an operator decided outlives a power loss.
        let durable = record.state == State::Reserved || record.pinned;
        let write = || {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(&line)?;
            if durable {
                file.sync_all()?;
            }
            if new {
                fs::hard_link(&temporary, &path)?;
                fs::remove_file(&temporary)?;
            } else {
                fs::rename(&temporary, &path)?;
            }
            if durable { fs::File::open(&self.folder)?.sync_all() } else { Ok(()) }
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temporary);
            Error::io("write", &path, error)
        })
    }
}
