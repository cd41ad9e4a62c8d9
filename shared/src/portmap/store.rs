//! The folder of the host ports' records.
//!
//! ```text
//! <state>/ports/          0700
//!   lock                  flock(2) of every writer
//!   attachments/<tag>     the host ports of an attachment: the only thing that decides      (record.rs)
//!   by-port/              derived: `tcp-8080.0`, who publishes a port                        (../index.rs)
//!   by-address/           derived: `10.22.0.5.0`, whose ports lead to an address             (../index.rs)
//!   by-network/           derived: `podnet/<tag>`, who has ports on a network                (store/members.rs)
//!   index                 derived: boot id and the times at which we left the three folders  (store/seal.rs)
//!   whole                 there as long as no record was lost: else the kernel is asked for them    (recover.rs)
//!   tables.json           derived: our tables as they were made                                      (place.rs)
//!   corrupt/              set aside: what is no record
//! ```
//!
//! A record is there whole or not at all: it is written to `attachments/.new` and renamed. Its links are made before it
//! and removed after it, so a killed writer leaves a link too many, never one too few; what is found by a link is
//! compared with what was looked for. ADD and DEL do not fsync: after a power loss nobody is left who needs what they
//! wrote. The links are made again from the records whenever `index` does not fit: another boot, a folder changed by
//! somebody else, a writer killed in the middle. Where that fails (a full disk), all records are read instead.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use super::Error;
use super::mapping::Protocol;
use super::record::Record;
use crate::index::{FileError, Index, make_folder};
use crate::ipam::store::file;
use crate::{Host, lock};
use known::Filed;
use members::Members;
use seal::Seal;

pub use members::networks;
pub use peek::{has_record, may_point_at};

pub mod fsck;
pub(super) mod known;
mod members;
mod peek;
mod read;
mod relink;
#[cfg(test)]
pub(super) mod sample;
mod seal;
#[cfg(test)]
mod tests;
mod write;

impl From<FileError> for Error {
    fn from(FileError { doing, path, source }: FileError) -> Self {
        Self::Io { doing, path, source }
    }
}

/// Where the records lie.
pub fn folder(host: &Host) -> PathBuf {
    host.state.join("ports")
}

/// The host ports of all attachments, locked.
pub struct Store<'a> {
    folder: PathBuf,
    records: PathBuf,
    by_port: Index<String>,
    by_address: Index<String>,
    members: Members,
    boot: &'a str,
    seal: Seal<'a>,
    /// The links are complete; else everything is looked for in all records.
    linked: bool,
    /// Something was changed: `index` has to be written again.
    changed: Cell<bool>,
    /// The links may be too many in a way that only the next opening mends.
    untidy: Cell<bool>,
    /// Records may have come or gone without the kernel's knowledge.
    doubtful: Cell<bool>,
    /// Nothing is to be changed.
    looking: bool,
    /// What was read so far, by tag. Nobody else writes while we have the lock.
    known: RefCell<HashMap<String, Filed>>,
}

/// The file that tells that no record was lost before it was written.
const WHOLE: &str = "whole";

/// True if there is a folder of records.
pub fn exists(host: &Host) -> bool {
    folder(host).join("attachments").exists()
}

/// True if no record was lost: the folder was not removed since the first port was published.
pub fn is_whole(host: &Host) -> bool {
    folder(host).join(WHOLE).exists()
}

/// Runs `act` on the locked store, whose folder is made if it is not there. Records may have been lost: see
/// [`is_whole`].
///
/// # Errors
/// The folder cannot be made or locked, or whatever `act` returns.
pub fn locked<T>(host: &Host, act: impl FnOnce(&mut Store<'_>) -> Result<T, Error>) -> Result<T, Error> {
    let folder = folder(host);
    make_folder(&folder.join("attachments"))?;
    lock::exclusively(&folder.join("lock"), || {
        let mut store = Store::open(host, folder.clone());
        let outcome = act(&mut store);
        store.close();
        outcome
    })
}

/// As [`locked`]; `None`, and nothing is made, if there is no folder of records.
///
/// # Errors
/// As [`locked`].
pub fn existing<T>(host: &Host, act: impl FnOnce(&mut Store<'_>) -> Result<T, Error>) -> Result<Option<T>, Error> {
    if is_there(host)? { locked(host, act).map(Some) } else { Ok(None) }
}

/// Shows `look` the store as it is, without its lock: nothing is written or waited for, and what is no record is passed
/// over. `None` if there is no folder of records.
///
/// # Errors
/// It cannot be read, or whatever `look` returns.
pub fn viewed<T>(host: &Host, look: impl FnOnce(&Store<'_>) -> Result<T, Error>) -> Result<Option<T>, Error> {
    if is_there(host)? { look(&Store::view(host)).map(Some) } else { Ok(None) }
}

/// As [`viewed`], while nobody writes.
///
/// # Errors
/// It cannot be locked or read, or whatever `look` returns.
pub fn at_rest<T>(host: &Host, look: impl FnOnce(&Store<'_>) -> Result<T, Error>) -> Result<Option<T>, Error> {
    if is_there(host)? {
        lock::exclusively(&folder(host).join("lock"), || look(&Store::view(host)).map(Some))
    } else {
        Ok(None)
    }
}

fn is_there(host: &Host) -> Result<bool, Error> {
    let records = folder(host).join("attachments");
    match fs::symlink_metadata(&records) {
        Ok(_) => Ok(true),
        Err(error) if file::is_absence(&error) => Ok(false),
        Err(error) => Err(Error::io("read", &records, error)),
    }
}

/// Whether a record could be written. Nothing is.
///
/// # Errors
/// [`Error::NotWritable`].
pub fn writable(host: &Host) -> Result<(), Error> {
    Ok(crate::host::writable(&folder(host).join("attachments"))?)
}

impl<'a> Store<'a> {
    fn new(host: &'a Host, folder: PathBuf) -> Self {
        Self {
            records: folder.join("attachments"),
            by_port: Index::new(folder.join("by-port")),
            by_address: Index::new(folder.join("by-address")),
            members: Members::new(folder.join(members::FOLDER)),
            boot: &host.boot,
            seal: Seal::new(folder.clone(), &host.boot),
            folder,
            linked: true,
            changed: Cell::new(false),
            untidy: Cell::new(false),
            doubtful: Cell::new(false),
            looking: false,
            known: RefCell::default(),
        }
    }

    /// The store as it is, for one who changes nothing.
    fn view(host: &'a Host) -> Self {
        let store = Self::new(host, folder(host));
        let linked = store.seal.fits();
        Self { linked, looking: true, ..store }
    }

    fn open(host: &'a Host, folder: PathBuf) -> Self {
        let mut store = Self::new(host, folder);
        if !store.seal.fits() {
            store.changed.set(true);
            store.doubtful.set(true);
            if let Err(error) = store.relink() {
                tracing::warn!("{error}: every record of host ports is read instead");
                store.linked = false;
            }
        }
        store
    }

    fn close(&self) {
        if !self.linked || self.untidy.get() || self.doubtful.get() {
            self.seal.revoke();
        } else if self.changed.get() {
            self.seal.renew();
        }
    }

    /// True if somebody else changed the records, if a writer was killed, or if one was found torn: what the kernel has may
    /// be of records that are no more.
    pub fn is_doubtful(&self) -> bool {
        self.doubtful.get()
    }

    /// What the kernel has was compared with the records, all of it. Until then everybody doubts.
    pub fn trust(&self) {
        if self.doubtful.replace(false) {
            self.changed.set(true);
        }
    }

    /// Tells that no record is lost.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn make_whole(&self) -> Result<(), Error> {
        let path = self.folder.join(WHOLE);
        if path.exists() {
            return Ok(());
        }
        let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        made.map(drop).map_err(|error| Error::io("make", &path, error))
    }

    /// The kernel's boot id.
    pub fn boot(&self) -> &str {
        self.boot
    }

    fn path(&self, tag: &str) -> PathBuf {
        self.records.join(tag)
    }

    /// The name of a port in `by-port/`.
    fn port_name((protocol, port): (Protocol, u16)) -> String {
        format!("{protocol}-{port}")
    }
}
