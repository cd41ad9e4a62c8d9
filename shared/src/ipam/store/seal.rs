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

impl Store {
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
