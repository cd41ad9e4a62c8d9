//! Where a store is, and how one comes to it: locked, or only to look.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::namespaces::Namespaces;
use super::view::Sight;
use super::{Store, file, seal};
use crate::index::{Index, make_folder};
use crate::ipam::Error;
use crate::ipam::bitmap::Bitmap;
use crate::ipam::history::Journal;
use crate::{Host, NetworkName, lock};

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

    /// Shows `look` the store while nobody writes: nothing is made, mended or set aside. `None` if there is no folder.
    pub(in crate::ipam) fn at_rest<T>(
        &self,
        look: impl FnOnce(&Store) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match fs::symlink_metadata(self.folder) {
            Ok(_) => {}
            Err(error) if file::is_absence(&error) => return Ok(None),
            Err(error) => return Err(Error::io("read", self.folder, error)),
        }
        let look = || look(&self.store(seal::read(self.folder))).map(Some);
        let lock = self.folder.join("lock");
        // To make it would change the folder, and where there is none nobody writes.
        if lock.exists() { lock::exclusively(&lock, look) } else { look() }
    }

    /// True if the derived files are as the last writer left them. No lock is taken: while somebody writes they are not.
    pub(in crate::ipam) fn is_sealed(&self) -> bool {
        self.store(seal::read(self.folder)).is_sealed()
    }

    pub(super) fn store(&self, sealed: Option<String>) -> Store {
        Store {
            folder: self.folder.to_owned(),
            network: self.network.clone(),
            by_key: Index::new(self.folder.join("by-key")),
            by_attachment: Index::new(self.folder.join("by-attachment")),
            bitmap: Bitmap::new(self.folder.join("bitmap")),
            namespaces: Namespaces::new(self.folder.join("by-namespace")),
            journal: Journal::default(),
            boot: self.host.boot.clone(),
            sealed,
            broken: false,
            sight: Sight::default(),
        }
    }

    fn locked<T>(&self, patience: Duration, act: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<T, Error> {
        lock::exclusively_within(patience, &self.folder.join("lock"), || {
            let mut store = self.store(seal::read(self.folder));
            if !store.is_sealed() {
                store.rebuild(store.sealed.is_none().then_some(self.host))?;
            }
            let outcome = act(&mut store);
            if !store.namespaces.close() {
                // Nobody may believe what could not be taken away.
                store.unseal();
            }
            // Before the time of the folder is read: a new file changes it.
            store.journal.write(self.folder);
            store.seal();
            outcome
        })
    }
}
