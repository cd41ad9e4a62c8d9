//! Released addresses, the one released first in front: what is handed out again when no address is new.
//!
//! A file of fixed entries (address, time of release) with the position of the front in its head. Entries are only ever
//! appended and passed over; whoever takes one compares it with the record, so an entry of an address
//! that went back to its key meanwhile is simply stale.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use super::Error;

const HEAD: u64 = 24;
const ENTRY: u64 = 24;
const MAGIC: u64 = u64::from_be_bytes(*b"osvcfifo");
/// Below this many entries a file is never rewritten.
const SLACK: u64 = 2048;

/// An address and the time of its release in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The address.
    pub address: IpAddr,
    /// When it was released.
    pub since: u64,
}

/// One queue file.
pub struct Queue {
    path: PathBuf,
}

/// Front (index of the first entry), number of entries when the file was last rewritten.
#[derive(Clone, Copy, Default)]
struct Head {
    front: u64,
    rewritten: u64,
}

impl Queue {
    /// The queue in a file, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn error(&self, doing: &'static str) -> impl Fn(std::io::Error) -> Error + '_ {
        move |error| Error::io(doing, &self.path, error)
    }

    fn open(&self, create: bool) -> Result<Option<File>, Error> {
        let mut options = OpenOptions::new();
        match options.read(true).write(true).create(create).truncate(false).mode(0o600).open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound && !create => Ok(None),
            Err(error) => Err(self.error("open")(error)),
        }
    }

    /// Head and number of entries, the front included; a torn head counts as an empty file.
    fn head(&self, file: &File) -> Result<(Head, u64), Error> {
        let length = file.metadata().map_err(self.error("read"))?.len();
        let mut bytes = [0; HEAD as usize];
        if length < HEAD || file.read_exact_at(&mut bytes, 0).is_err() {
            return Ok((Head::default(), 0));
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(word)
        };
        let entries = (length - HEAD) / ENTRY;
        if word(0) != MAGIC || word(8) > entries {
            return Ok((Head::default(), 0));
        }
        Ok((Head { front: word(8), rewritten: word(16) }, entries))
    }

    fn write_head(&self, file: &File, head: Head) -> Result<(), Error> {
        let bytes = [MAGIC.to_be_bytes(), head.front.to_be_bytes(), head.rewritten.to_be_bytes()].concat();
        file.write_all_at(&bytes, 0).map_err(self.error("write"))
    }

    /// How many entries there are, stale ones included.
    pub fn len(&self) -> Result<u64, Error> {
        let Some(file) = self.open(false)? else { return Ok(0) };
        let (head, entries) = self.head(&file)?;
        Ok(entries - head.front)
    }

    /// All of them, stale ones included.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        // The file system may be mounted read-only.
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.map_err(self.error("open"))?,
        };
        let (head, entries) = self.head(&file)?;
        self.read(&file, head.front, entries)
    }

    /// Adds an entry at the back. The file stays below twice the number of different addresses.
    pub fn push(&self, entry: Entry) -> Result<(), Error> {
        let Some(file) = self.open(true)? else { return Ok(()) };
        let (head, entries) = self.head(&file)?;
        if entries == 0 {
            self.write_head(&file, Head::default())?;
        }
        file.write_all_at(&encode(entry), HEAD + entries * ENTRY).map_err(self.error("write"))?;
        if entries + 1 > SLACK.max(2 * head.rewritten) { self.compact() } else { Ok(()) }
    }

    /// Puts an entry back in its place, by its time, if it is not in the file any more.
    pub fn put_back(&self, entry: Entry) -> Result<(), Error> {
        let mut there = match self.open(false)? {
            Some(file) => {
                let (head, entries) = self.head(&file)?;
                self.read(&file, head.front, entries)?
            }
            None => Vec::new(),
        };
        if there.contains(&entry) {
            return Ok(());
        }
        let at = there.iter().position(|other| other.since > entry.since).unwrap_or(there.len());
        there.insert(at, entry);
        self.rewrite(&there)
    }

    /// Leaves the latest entry of each address.
    pub fn compact(&self) -> Result<(), Error> {
        let Some(file) = self.open(false)? else { return Ok(()) };
        let (head, entries) = self.head(&file)?;
        self.rewrite(&latest(self.read(&file, head.front, entries)?))
    }

    fn read(&self, file: &File, front: u64, entries: u64) -> Result<Vec<Entry>, Error> {
        let mut bytes = vec![0; ((entries - front) * ENTRY) as usize];
        file.read_exact_at(&mut bytes, HEAD + front * ENTRY).map_err(self.error("read"))?;
        Ok(bytes.chunks_exact(ENTRY as usize).map(decode).collect())
    }

    /// Replaces the whole file.
    pub fn rewrite(&self, entries: &[Entry]) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(HEAD as usize + entries.len() * ENTRY as usize);
        for word in [MAGIC, 0, entries.len() as u64] {
            bytes.extend(word.to_be_bytes());
        }
        for entry in entries {
            bytes.extend(encode(*entry));
        }
        let new = self.path.with_extension("new");
        std::fs::write(&new, bytes).and_then(|()| std::fs::rename(&new, &self.path)).map_err(self.error("write"))
    }

    /// Removes and returns the first entry that `fits`. Entries in front of it that are `stale` go as well.
    pub fn take(&self, judge: impl FnMut(Entry) -> Result<Verdict, Error>) -> Result<Option<Entry>, Error> {
        self.find(true, judge)
    }

    /// Returns the first entry that `fits`, and leaves it: it is stale as soon as its record has changed.
    pub fn first(&self, judge: impl FnMut(Entry) -> Result<Verdict, Error>) -> Result<Option<Entry>, Error> {
        self.find(false, judge)
    }

    fn find(
        &self,
        remove: bool,
        mut judge: impl FnMut(Entry) -> Result<Verdict, Error>,
    ) -> Result<Option<Entry>, Error> {
        let Some(file) = self.open(false)? else { return Ok(None) };
        let (mut head, entries) = self.head(&file)?;
        let before = head.front;
        let mut found = None;
        let mut only_stale = true;
        let mut at = head.front;
        'chunks: while at < entries {
            let end = (at + 128).min(entries);
            for entry in self.read(&file, at, end)? {
                match judge(entry)? {
                    Verdict::Stale => {}
                    Verdict::Fits => {
                        found = Some(entry);
                        at += 1;
                        break 'chunks;
                    }
                    Verdict::Other => only_stale = false,
                }
                at += 1;
                if only_stale {
                    head.front = at;
                }
            }
        }
        // An entry taken from behind others stays in the file: its record has changed, so it is stale.
        if remove && found.is_some() && only_stale {
            head.front = at;
        }
        if head.front != before {
            self.write_head(&file, head)?;
        }
        Ok(found)
    }
}

/// What an entry is to somebody who looks for an address.
pub enum Verdict {
    /// The record says otherwise: forget the entry.
    Stale,
    /// This one.
    Fits,
    /// Not for this caller: leave it.
    Other,
}

/// The latest entry of each address, in order of time.
fn latest(entries: Vec<Entry>) -> Vec<Entry> {
    let mut last = HashMap::with_capacity(entries.len() / 2);
    for entry in entries {
        last.insert(entry.address, entry.since);
    }
    let mut kept: Vec<Entry> = last.into_iter().map(|(address, since)| Entry { address, since }).collect();
    crate::order::sort_by_key(&mut kept, |entry| entry.since);
    kept
}

fn encode(entry: Entry) -> [u8; ENTRY as usize] {
    let mut bytes = [0; ENTRY as usize];
    // IPv4 as IPv4-mapped IPv6 (RFC 4291, 2.5.5.2): no address of a container is one by itself.
    let address = match entry.address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    bytes[..16].copy_from_slice(&address.octets());
    bytes[16..].copy_from_slice(&entry.since.to_be_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Entry {
    let (mut address, mut since) = ([0; 16], [0; 8]);
    address.copy_from_slice(&bytes[..16]);
    since.copy_from_slice(&bytes[16..24]);
    let address = Ipv6Addr::from(address);
    let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), |v4: Ipv4Addr| IpAddr::V4(v4));
    Entry { address, since: u64::from_be_bytes(since) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(last: u8, since: u64) -> Entry {
        Entry { address: IpAddr::from([10, 0, 0, last]), since }
    }

    fn queue(folder: &tempfile::TempDir) -> Queue {
        Queue::new(folder.path().join("once"))
    }

    #[test]
    fn first_in_first_out_over_stale_and_foreign_entries() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue(&folder);
        assert_eq!(queue.take(|_| Ok(Verdict::Fits)).unwrap(), None);
        for at in 1..=5 {
            queue.push(entry(at, u64::from(at))).unwrap();
        }
        let third = queue.take(|entry| Ok(if entry.since < 3 { Verdict::Stale } else { Verdict::Fits })).unwrap();
        assert_eq!(third, Some(entry(3, 3)));
        assert_eq!(queue.len().unwrap(), 2, "the two stale ones went with it");
        let fifth = queue.take(|entry| Ok(if entry.since < 5 { Verdict::Other } else { Verdict::Fits })).unwrap();
        assert_eq!(fifth, Some(entry(5, 5)));
        assert_eq!(queue.take(|_| Ok(Verdict::Fits)).unwrap(), Some(entry(4, 4)), "the foreign one is still there");
    }

    #[test]
    fn what_is_put_back_is_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue(&folder);
        queue.put_back(entry(3, 3)).unwrap();
        queue.push(entry(5, 5)).unwrap();
        assert_eq!(queue.first(|_| Ok(Verdict::Fits)).unwrap(), Some(entry(3, 3)));
        queue.put_back(entry(3, 3)).unwrap();
        assert_eq!(queue.len().unwrap(), 2, "it was never gone");
        for at in [4, 6, 2] {
            queue.put_back(entry(at, u64::from(at))).unwrap();
        }
        let taken = (2..=6).map(|_| queue.take(|_| Ok(Verdict::Fits)).unwrap());
        assert_eq!(taken.collect::<Vec<_>>(), (2..=6).map(|at| Some(entry(at, u64::from(at)))).collect::<Vec<_>>());
    }

    #[test]
    fn it_stays_small_however_often_one_service_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue(&folder);
        queue.push(entry(9, 1)).unwrap();
        for time in 2..20_000 {
            queue.push(entry((time % 7) as u8, time)).unwrap();
        }
        assert!(queue.len().unwrap() <= SLACK, "{} entries", queue.len().unwrap());
        assert_eq!(queue.take(|_| Ok(Verdict::Fits)).unwrap(), Some(entry(9, 1)), "the oldest is still in front");
    }

    #[test]
    fn a_torn_file_is_an_empty_queue() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue(&folder);
        std::fs::write(folder.path().join("once"), b"osvc").unwrap();
        assert_eq!(queue.take(|_| Ok(Verdict::Fits)).unwrap(), None);
        queue.push(entry(1, 1)).unwrap();
        assert_eq!(queue.take(|_| Ok(Verdict::Fits)).unwrap(), Some(entry(1, 1)));
        let v6 = Entry { address: "fd00::1".parse().unwrap(), since: 7 };
        queue.push(v6).unwrap();
        assert_eq!(queue.take(|_| Ok(Verdict::Fits)).unwrap(), Some(v6));
    }
}
