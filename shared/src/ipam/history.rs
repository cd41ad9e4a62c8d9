//! `history`: who had which address before. A line of JSON for each change of a record, in the folder of the records.
//!
//! Each line ends with the totals so far, at a fixed width, so that the next writer reads them from the end of the file.
//! Past [`LIMIT`] the file becomes `history.1`, and the one that was called so is gone. It is only a memory: what cannot
//! be written is not remembered, and no ADD or DEL fails for it. A writer that was killed, or whose disk was full, may
//! leave half a line: whoever reads passes it over. On a full node, containers that are refused again and again must not
//! wash all else out: a refusal that is among the last lines already is counted only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::libc::{O_APPEND, O_NOFOLLOW, O_NONBLOCK};
use serde::Serialize;

use super::Error;
use super::key::Key;
use super::record::{Record, State};
use super::store::Change;
use super::timestamp::format;

use ends::{TAIL, of_file, read_end, tail};
pub use read::{Line, Past, read};

mod ends;
mod read;
mod refusals;

/// From this size on (bytes) a file of it is full.
const LIMIT: u64 = 1 << 20;
/// So much is kept in memory before it is written: a sweep of a full range is one writer.
const BUFFER: usize = 1 << 16;
/// What is counted over the life of a network's records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// ADDs that got an address.
    pub allocations: u64,
    /// ADDs that got none, because the address that they asked for is somebody's or because the range is full.
    pub conflicts: u64,
}

/// What happened to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// An attachment got it.
    Held,
    /// It was given back, or taken from the dead.
    Released,
    /// An operator's decision, or the end of who held an address that is reserved.
    Reserved,
    /// Its record is gone.
    Forgotten,
    /// An attachment did not get it; none in a full range.
    Refused,
}

/// A line without its totals.
#[derive(Serialize)]
struct Entry<'a> {
    time: &'a str,
    what: What,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    key: &'a Key,
    instance: u32,
    container: &'a str,
    ifname: &'a str,
    /// An ADD that failed put back what was before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    undone: bool,
}

/// What one writer has to tell, written when it leaves.
#[derive(Default)]
pub(super) struct Journal {
    lines: Vec<Vec<u8>>,
    size: usize,
    more: Totals,
    /// The one line is of an ADD that was refused for this.
    refusal: Option<Vec<u8>>,
}

impl Journal {
    /// A record has changed. `undone`: back to what it was.
    pub(super) fn changed(&mut self, folder: &Path, change: &Change, undone: bool) {
        let Some(record) = change.after.as_ref().or(change.before.as_ref()) else { return };
        let was_pinned = change.before.as_ref().is_some_and(|record| record.pinned || !record.is_held());
        let what = match change.after.as_ref().map(|record| record.state) {
            Some(State::Held) if record.pinned && !was_pinned => What::Reserved,
            Some(State::Held) => What::Held,
            Some(State::Released) => What::Released,
            Some(State::Reserved) => What::Reserved,
            None => What::Forgotten,
        };
        let Record { key, instance, container, ifname, .. } = record;
        self.line(&Entry {
            time: &format(SystemTime::now()),
            what,
            address: Some(change.address),
            key,
            instance: *instance,
            container,
            ifname,
            undone,
        });
        if self.size > BUFFER {
            self.write(folder);
        }
    }

    /// An ADD has got its addresses.
    pub(super) fn allocated(&mut self) {
        self.more.allocations += 1;
    }

    /// An ADD has got none.
    pub(super) fn refused(&mut self, request: &super::Request, address: Option<IpAddr>) {
        self.more.conflicts += 1;
        self.refusal = refusals::of(address, &request.key).filter(|_| self.lines.is_empty());
        self.line(&Entry {
            time: &format(SystemTime::now()),
            what: What::Refused,
            address,
            key: &request.key,
            instance: 0,
            container: request.attachment.container.as_str(),
            ifname: request.attachment.ifname.as_str(),
            undone: false,
        });
    }

    fn line(&mut self, entry: &Entry<'_>) {
        if entry.what != What::Refused {
            self.refusal = None;
        }
        let Ok(mut line) = serde_json::to_vec(entry) else { return };
        // The brace: the totals come before it.
        line.pop();
        self.size += line.len();
        self.lines.push(line);
    }

    /// Writes all of it.
    pub(super) fn write(&mut self, folder: &Path) {
        if self.lines.is_empty() {
            return;
        }
        if let Err(error) = self.append(folder) {
            tracing::debug!("{}: {error}: changes are not remembered", folder.join("history").display());
        }
        *self = Self::default();
    }

    fn plus(&self, totals: Totals) -> Totals {
        Totals {
            allocations: totals.allocations.saturating_add(self.more.allocations),
            conflicts: totals.conflicts.saturating_add(self.more.conflicts),
        }
    }

    fn append(&self, folder: &Path) -> io::Result<()> {
        let path = folder.join("history");
        let mut file = open(&path)?;
        let mut end = read_end(&mut file)?;
        if let Some(refusal) = self.refusal.as_ref().filter(|_| !end.torn)
            && refusals::is_told(&file, end.size, refusal)?
        {
            return ends::rewrite(&path, end.size, self.plus(end.totals));
        }
        if end.size >= LIMIT {
            fs::rename(&path, folder.join("history.1"))?;
            file = open(&path)?;
        } else if end.size == 0 {
            // A new one, or its predecessor's writer was killed between the two.
            end.totals = of_file(&folder.join("history.1"))?.unwrap_or_default();
        }
        let tail = tail(self.plus(end.totals));
        let mut text = Vec::with_capacity(self.size + self.lines.len() * TAIL + 1);
        if end.torn {
            text.push(b'\n');
        }
        for line in &self.lines {
            text.extend_from_slice(line);
            text.extend_from_slice(tail.as_bytes());
        }
        // One call: it is there whole, unless the disk is full.
        file.write_all(&text)
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = O_APPEND | O_NOFOLLOW | O_NONBLOCK;
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path)
}

/// The files of a folder, the older one first.
fn files(folder: &Path) -> [PathBuf; 2] {
    ["history.1", "history"].map(|name| folder.join(name))
}

/// What was counted over the life of the records of a folder: only the last whole line is read.
///
/// # Errors
/// A file cannot be read. There need be none.
pub fn totals(folder: &Path) -> Result<Totals, Error> {
    for path in files(folder).iter().rev() {
        if let Some(totals) = of_file(path).map_err(|error| Error::io("read", path, error))? {
            return Ok(totals);
        }
    }
    Ok(Totals::default())
}

#[cfg(test)]
mod tests;
