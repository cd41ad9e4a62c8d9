//! The folder of a network's address records.
//!
//! ```text
//! <folder>/               0700
//!   lock                  flock(2) of every writer
//!   10.22.0.5             the record of an address: the only thing that decides
//!   by-key/ by-attachment/  derived: which addresses a key or attachment has   (index.rs)
//!   bitmap/               derived: which addresses have a record               (bitmap.rs)
//!   by-namespace/         derived: what a namespace holds, for its claim      (store/namespaces.rs)
//!   queue/                derived: released addresses, oldest first            (queue.rs)
//!   index                 derived: boot id and the times at which we left this folder and the two of the indexes
//!   exhausted             derived: the last time that everything was held by the living
//!   corrupt/              set aside: what is no record
//! ```
//!
//! A record is there whole or not at all: it is written to `.new`, then linked (a new one) or renamed (a
//! changed one). ADD and DEL do not fsync: after a power loss nobody is left who needs what they wrote. The
//! derived files are made again from the records whenever `index` does not fit: another boot, a folder changed by
//! somebody else, a writer killed in the middle.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Error;
use super::bitmap::Bitmap;
use super::queue::{Entry, Queue};
use super::record::{FORMAT, Record, State};
use super::timestamp::micros;
use crate::index::{Index, make_folder};
use crate::{Host, NetworkName, lock};
pub(super) use namespaces::Holders;
use namespaces::{Namespaces, holder};

mod count;
pub mod file;
mod namespaces;
mod seal;

/// Names in the folder that are no records.
const OURS: [&str; 9] =
    ["lock", "by-key", "by-attachment", "by-namespace", "bitmap", "queue", "index", "exhausted", "corrupt"];

/// How a released address was used, in the order in which strangers get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// By one ADD.
    Once,
    /// By several ADDs of one key: it will probably come again.
    Again,
    /// After an explicit request.
    Requested,
}

impl Class {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Once, Self::Again, Self::Requested];

    /// The class of a record.
    pub fn of(record: &Record) -> Self {
        match record {
            Record { requested: true, .. } => Self::Requested,
            Record { uses: ..=1, .. } => Self::Once,
            _ => Self::Again,
        }
    }
}

/// A record before and after, for undoing.
#[derive(Debug, Clone)]
pub struct Change {
    /// The address.
    pub address: IpAddr,
    /// What was there.
    pub before: Option<Record>,
    /// What is there now.
    pub after: Option<Record>,
}

/// The records of one network, locked.
pub struct Store {
    pub(super) folder: PathBuf,
    pub(super) network: NetworkName,
    pub(super) by_key: Index<IpAddr>,
    pub(super) by_attachment: Index<IpAddr>,
    pub(super) bitmap: Bitmap,
    pub(super) namespaces: Namespaces,
    boot: String,
    /// What `index` says.
    sealed: Option<String>,
    broken: bool,
}

/// Where a store comes from: its folder and whose it is.
pub struct Location<'a> {
    /// This host.
    pub host: &'a Host,
    /// The network, which scopes the keys.
    pub network: &'a NetworkName,
    /// The folder.
    pub folder: &'a Path,
}

impl Location<'_> {
    /// Runs `act` on the locked store, or returns `None` if there is no such folder.
    pub fn existing<T>(&self, act: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<Option<T>, Error> {
        self.existing_within(lock::PATIENCE, act)
    }

    /// As [`existing`](Self::existing), with another patience for the lock.
    pub fn existing_within<T>(
        &self,
        patience: Duration,
        act: impl FnOnce(&mut Store) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match fs::symlink_metadata(self.folder) {
            Ok(_) => self.locked(patience, act).map(Some),
            Err(error) if file::is_absence(&error) => Ok(None),
            Err(error) => Err(Error::io("read", self.folder, error)),
        }
    }

    /// Runs `act` on the locked store, whose folder is made if it is not there.
    pub fn created<T>(&self, act: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<T, Error> {
        make_folder(self.folder)?;
        self.locked(lock::PATIENCE, act)
    }

    fn locked<T>(&self, patience: Duration, act: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<T, Error> {
        lock::exclusively_within(patience, &self.folder.join("lock"), || {
            let mut store = Store {
                folder: self.folder.to_owned(),
                network: self.network.clone(),
                by_key: Index::new(self.folder.join("by-key")),
                by_attachment: Index::new(self.folder.join("by-attachment")),
                bitmap: Bitmap::new(self.folder.join("bitmap")),
                namespaces: Namespaces::new(self.folder.join("by-namespace")),
                boot: self.host.boot.clone(),
                sealed: seal::read(self.folder),
                broken: false,
            };
            if !store.is_sealed() {
                store.rebuild(store.sealed.is_none())?;
            }
            let outcome = act(&mut store);
            if !store.namespaces.close() {
                // Nobody may believe what could not be taken away.
                store.unseal();
            }
            store.seal();
            outcome
        })
    }
}

impl Store {
    pub(super) fn boot(&self) -> String {
        self.boot.clone()
    }

    /// The queue of released addresses of a class and family.
    pub fn queue(&self, class: Class, v6: bool) -> Queue {
        let class = match class {
            Class::Once => "once",
            Class::Again => "again",
            Class::Requested => "requested",
        };
        Queue::new(self.folder.join("queue").join(format!("{class}{}", if v6 { 6 } else { 4 })))
    }

    /// The file of an address.
    pub fn path(&self, address: IpAddr) -> PathBuf {
        self.folder.join(address.to_string())
    }

    /// The record of an address. What is no record is set aside and counts as none.
    ///
    /// # Errors
    /// [`Error::NewerFormat`]: a later version wrote it; guessing could give one address to two.
    pub fn read(&self, address: IpAddr) -> Result<Option<Record>, Error> {
        let path = self.path(address);
        let Some(text) = file::read(&path).map_err(|error| Error::io("read", &path, error))? else { return Ok(None) };
        match serde_json::from_slice::<Record>(&text) {
            Ok(record) if record.v == FORMAT => Ok(Some(record)),
            Ok(record) => Err(Error::NewerFormat { path, v: record.v }),
            Err(error) => {
                self.set_aside(&path, &error.to_string())?;
                Ok(None)
            }
        }
    }

    /// Moves what is no record to `corrupt/`, where an operator can look at it.
    pub(super) fn set_aside(&self, path: &Path, why: &str) -> Result<(), Error> {
        let folder = self.folder.join("corrupt");
        make_folder(&folder)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let aside = (0..)
            .map(|n| folder.join(if n == 0 { name.to_string() } else { format!("{name}.{n}") }))
            .find(|path| fs::symlink_metadata(path).is_err())
            .unwrap_or(folder);
        // It may have been counted.
        self.namespaces.clear();
        tracing::warn!("{} is no address record ({why}): moved to {}", path.display(), aside.display());
        fs::rename(path, &aside).map_err(|error| Error::io("move", path, error))
    }

    /// The addresses that have a file, in no order. Unknown files are set aside.
    pub fn addresses(&self) -> Result<Vec<IpAddr>, Error> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(|error| Error::io("read", &self.folder, error))? {
            let entry = entry.map_err(|error| Error::io("read", &self.folder, error))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            match name.parse::<IpAddr>() {
                Ok(address) if address.to_string() == *name => found.push(address),
                _ if OURS.contains(&&*name) || name.starts_with('.') => {}
                // A folder is in nobody's way, and who knows what is in it.
                _ if entry.file_type().is_ok_and(|kind| kind.is_dir()) => {}
                _ => self.set_aside(&self.folder.join(&*name), "its name is no address")?,
            }
        }
        Ok(found)
    }

    /// Brings a record and what derives from it from `before` to `after`.
    pub fn apply(&mut self, change: &Change) -> Result<(), Error> {
        self.bring(change, Queue::push)
    }

    /// As [`apply`](Self::apply); `enqueue` says where a released address stands.
    fn bring(&mut self, change: &Change, enqueue: fn(&Queue, Entry) -> Result<(), Error>) -> Result<(), Error> {
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
    pub(super) fn mark(&mut self, address: IpAddr, present: bool, make: bool) {
        if let Err(error) = self.bitmap.mark(address, present, make) {
            tracing::debug!("{error}");
            if !present {
                self.unseal();
            }
        }
    }

    /// Everything derived is made again by the next writer.
    fn unseal(&mut self) {
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
        let durable = record.state == State::Reserved;
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

    /// Puts back what changes found, the last one first, except what somebody changed since. A released address stands
    /// where it stood in its queue.
    pub fn revert(&mut self, changes: &[Change]) -> Result<(), Error> {
        let mut first = Ok(());
        for change in changes.iter().rev() {
            let back = Change { address: change.address, before: change.after.clone(), after: change.before.clone() };
            let reverted = self.read(change.address).and_then(|now| match now == change.after {
                true => self.bring(&back, Queue::put_back),
                false => Ok(()),
            });
            first = first.and(reverted);
        }
        first
    }
}
