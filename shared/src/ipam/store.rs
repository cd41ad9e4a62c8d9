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
//!   history history.1     what happened, for people: nothing depends on it   (history.rs)
//!   corrupt/              set aside: what is no record
//! ```
//!
//! A record is there whole or not at all: it is written to `.new`, then linked (a new one) or renamed (a
//! changed one). ADD and DEL do not fsync: after a power loss nobody is left who needs what they wrote. The
//! derived files are made again from the records whenever `index` does not fit: another boot, a folder changed by
//! somebody else, a writer killed in the middle.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::Error;
use super::bitmap::Bitmap;
use super::history::Journal;
use super::queue::Queue;
use super::record::{FORMAT, Record};
use crate::NetworkName;
use crate::index::{Index, make_folder};
pub use location::Location;
pub(super) use namespaces::Holders;
use namespaces::Namespaces;
use view::Sight;

mod apply;
mod changes;
mod count;
pub mod file;
mod location;
mod namespaces;
pub(super) mod seal;
mod view;

/// Names in the folder that are no records.
pub(super) const OURS: [&str; 11] = [
    "lock",
    "by-key",
    "by-attachment",
    "by-namespace",
    "bitmap",
    "queue",
    "index",
    "exhausted",
    "corrupt",
    "history",
    "history.1",
];

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
    pub(super) journal: Journal,
    boot: String,
    /// What `index` says.
    sealed: Option<String>,
    broken: bool,
    sight: Sight,
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

    /// The record of an address. What is no record counts as none, and is set aside by who may write.
    ///
    /// # Errors
    /// [`Error::NewerFormat`]: a later version wrote it; guessing could give one address to two.
    pub fn read(&self, address: IpAddr) -> Result<Option<Record>, Error> {
        if let Some(record) = self.lost(address) {
            return Ok(Some(record.clone()));
        }
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
        if self.is_looked_at() {
            return Ok(());
        }
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

    /// The addresses that have a file, in no order. Unknown files are set aside by who may write.
    pub fn addresses(&self) -> Result<Vec<IpAddr>, Error> {
        let mut found: Vec<IpAddr> = self.all_lost().collect();
        let failed = |error| Error::io("read", &self.folder, error);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if self.is_looked_at() && file::is_absence(&error) => return Ok(found),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            match name.parse::<IpAddr>() {
                Ok(address) if address.to_string() == *name => {
                    if self.lost(address).is_none() {
                        found.push(address);
                    }
                }
                _ if OURS.contains(&&*name) || name.starts_with('.') => {}
                // A folder is in nobody's way, and who knows what is in it.
                _ if entry.file_type().is_ok_and(|kind| kind.is_dir()) => {}
                _ => self.set_aside(&self.folder.join(&*name), "its name is no address")?,
            }
        }
        Ok(found)
    }
}
