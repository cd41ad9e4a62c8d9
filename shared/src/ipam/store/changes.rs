//! Several changes that belong together, back and forth, and for good.

use std::fs;
use std::io::ErrorKind;

use super::{Change, Store};
use crate::ipam::Error;
use crate::ipam::queue::Queue;

impl Store {
    /// Applies all changes, or none: what was done before one that fails is put back.
    pub fn apply_all(&mut self, changes: &[Change]) -> Result<(), Error> {
        for (at, change) in changes.iter().enumerate() {
            if let Err(error) = self.apply(change) {
                // This one as well: it may have failed half way.
                if let Err(second) = self.revert(&changes[..=at]) {
                    tracing::error!("{second}: while undoing after: {error}");
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Puts back what changes found, the last one first, except what somebody changed since. A released address stands
    /// where it stood in its queue.
    pub fn revert(&mut self, changes: &[Change]) -> Result<(), Error> {
        let mut first = Ok(());
        for change in changes.iter().rev() {
            let back = Change { address: change.address, before: change.after.clone(), after: change.before.clone() };
            let reverted = self.read(change.address).and_then(|now| match now == change.after {
                true => self.bring(&back, Queue::put_back).map(|()| self.journal.changed(&self.folder, &back, true)),
                false => Ok(()),
            });
            first = first.and(reverted);
        }
        first
    }

    /// What is in the folder outlives a power loss, with the folder and those above it that were made with it.
    pub(in crate::ipam) fn settle(&self) -> Result<(), Error> {
        // `<dataDir>/osvc/<network>`, and where dataDir is.
        for path in self.folder.ancestors().take(4) {
            match fs::File::open(path).and_then(|folder| folder.sync_all()) {
                // Some file systems have nothing to write for a folder.
                Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {}
                settled => settled.map_err(|error| Error::io("write", path, error))?,
            }
        }
        Ok(())
    }
}
