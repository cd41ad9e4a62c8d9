//! `index`: boot id, and the times at which the last writer left the folders. While it fits, the links do.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use super::super::record::FORMAT;
use super::members::FOLDER;
use crate::index::changed;

/// The seal of the store in a folder, in a boot.
pub struct Seal<'a> {
    folder: PathBuf,
    boot: &'a str,
}

impl<'a> Seal<'a> {
    /// The seal that lies in a folder.
    pub fn new(folder: PathBuf, boot: &'a str) -> Self {
        Self { folder, boot }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("index")
    }

    fn line(&self) -> String {
        let times = ["attachments", "by-port", "by-address", FOLDER].map(|name| changed(&self.folder.join(name)));
        format!("{FORMAT} {} {}", self.boot, times.map(|time| time.to_string()).join(" "))
    }

    /// True if nobody else changed the folders since, and no writer was killed in the middle, or is in it.
    pub fn fits(&self) -> bool {
        let Ok(sealed) = fs::read(self.path()) else { return false };
        let sealed = String::from_utf8_lossy(&sealed);
        sealed.lines().next().is_some_and(|sealed| sealed.trim_end() == self.line())
    }

    /// Tells the next one that the links are as we left them.
    pub fn renew(&self) {
        // Fixed width: overwritten in place, and a torn line fits nothing.
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.path())
            .and_then(|mut file| file.write_all(format!("{:<159}\n", self.line()).as_bytes()));
        if let Err(error) = written {
            tracing::debug!("{}: {error}; it will be made again", self.path().display());
        }
    }

    /// Tells the next one to make the links again. The times would, but for changes within one tick of the clock.
    pub fn revoke(&self) {
        let _ = fs::remove_file(self.path());
    }
}
