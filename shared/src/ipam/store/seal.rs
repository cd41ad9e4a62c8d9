//! `index`: boot id, and the times at which the last writer left the folders. While it fits, the derived files do.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::Store;
use crate::index::changed;

/// Which derived files there are. A version that knows others makes them again, and so do we after it.
const DERIVED: u32 = 2;

/// What `index` says; `None` if there is none.
pub(super) fn read(folder: &Path) -> Option<String> {
    fs::read(folder.join("index")).ok().map(|text| String::from_utf8_lossy(&text).trim_end().to_owned())
}

/// What `index` tells of the derived files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ipam) enum Seal {
    /// They are as the last writer left them.
    Fits,
    /// Somebody else changed a folder, or a writer was killed: the next one makes them again.
    Broken,
    /// It is not there: the same, and the records themselves may be lost.
    Missing,
    /// Of another boot or version: the same, and as it should be.
    Elsewhere,
}

impl Store {
    /// What `index` tells.
    pub(in crate::ipam) fn look_at_seal(&self) -> Seal {
        let Some(sealed) = &self.sealed else { return Seal::Missing };
        let mut words = sealed.split(' ');
        match (words.next(), words.next()) {
            _ if self.is_sealed() => Seal::Fits,
            (Some(derived), Some(boot)) if derived == DERIVED.to_string() && boot == self.boot => Seal::Broken,
            (Some(derived), Some(_)) if derived.parse::<u32>().is_ok() => Seal::Elsewhere,
            _ => Seal::Broken,
        }
    }

    /// Whatever happens from now on, the derived files are not believed until they were made again.
    pub(in crate::ipam) fn break_seal(&mut self) {
        let _ = fs::remove_file(self.folder.join("index"));
        self.sealed = None;
    }

    /// True if nobody else changed the folders since, and no writer was killed in the middle.
    pub(super) fn is_sealed(&self) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| *sealed == self.line())
    }

    fn line(&self) -> String {
        let (by_key, by_attachment) = (self.by_key.changed(), self.by_attachment.changed());
        format!("{DERIVED} {} {} {by_key} {by_attachment}", self.boot, changed(&self.folder))
    }

    /// Tells the next writer that the derived files are as we left them.
    pub(super) fn seal(&mut self) {
        if self.broken || self.is_sealed() {
            return;
        }
        let path = self.folder.join("index");
        // Made before the time of the folder is read. Fixed width: overwritten in place, and a torn line fits nothing.
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{:<127}\n", self.line()).as_bytes()));
        if let Err(error) = written {
            tracing::debug!("{}: {error}; it will be made again", path.display());
        }
    }
}
