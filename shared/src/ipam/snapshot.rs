//! All records of a network at one moment, for those who only look.
//!
//! Nothing is locked and nothing is changed: a record is there whole or not at all, so that whoever looks waits for no
//! writer, and no writer for him.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::libc::O_DIRECTORY;
use nix::sys::stat::Mode;

use super::record::{FORMAT, Record};
use super::{Error, folders};
use crate::{Host, NetworkName};

/// More than any record: a key is at most what stdin may hold, and six times as long in JSON at worst.
const LIMIT: u64 = 64 << 20;
/// Below this many records one thread is as fast as several.
const FEW: usize = 1024;
/// More threads than that only wait for each other in the kernel.
const THREADS: usize = 8;
/// After so many records whoever watches is told.
const PACE: usize = 128;

/// The records of a network, by address.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Each address and its record, in the order of the addresses.
    pub records: Vec<(IpAddr, Record)>,
    /// What could not be read: a record of a later format, a torn one, no permission.
    pub faults: Vec<Error>,
}

/// What is no record.
#[derive(Debug, thiserror::Error)]
#[error("{} is no address record ({why}): `osvc-net fsck --repair` sets it aside", .path.display())]
pub struct Torn {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// Reads the records of every folder that the network ever had. `configured`: the one of its configuration. What an
/// attachment has by two folders (`dataDir` was changed while it ran) is there once, as the configured one has it.
///
/// # Errors
/// A folder cannot be read. A file that cannot is a fault of the snapshot.
pub fn take(host: &Host, network: &NetworkName, configured: Option<&Path>) -> Result<Snapshot, Error> {
    watched(host, network, configured, &|_| {})
}

/// As [`take`]; `progress` is told now and then, by any thread, how many more records were read.
///
/// # Errors
/// As [`take`].
pub fn watched(
    host: &Host,
    network: &NetworkName,
    configured: Option<&Path>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Snapshot, Error> {
    let mut snapshot = Snapshot::default();
    for folder in folders::known(host, network, configured)? {
        snapshot.append(read_folder(&folder, progress)?);
    }
    // Stable: of one address, the configured folder's record comes first.
    snapshot.records.sort_by_key(|(address, _)| *address);
    snapshot.merge(network);
    Ok(snapshot)
}

/// Reads the records of one folder, which need not be there.
///
/// # Errors
/// As [`take`].
pub fn folder(folder: &Path) -> Result<Snapshot, Error> {
    let mut snapshot = read_folder(folder, &|_| {})?;
    snapshot.records.sort_by_key(|(address, _)| *address);
    Ok(snapshot)
}

fn read_folder(folder: &Path, progress: &(dyn Fn(u64) + Sync)) -> Result<Snapshot, Error> {
    let mut snapshot = Snapshot::default();
    let fault = |error| Error::io("read", folder, error);
    let handle = match fs::OpenOptions::new().read(true).custom_flags(O_DIRECTORY).open(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(snapshot),
        handle => handle.map_err(fault)?,
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(fault)? {
        let name = entry.map_err(fault)?.file_name();
        let address = name.to_str().filter(|name| !name.starts_with('.')).and_then(|name| name.parse().ok());
        names.extend(address.map(|address: IpAddr| (address, name)));
    }
    let place = Place { folder, handle: &handle, progress };
    let threads = match names.len() {
        ..FEW => 1,
        _ => thread::available_parallelism().map_or(1, usize::from).min(THREADS),
    };
    let share = names.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let mut shares = names.chunks(share);
        let first = shares.next().unwrap_or_default();
        let others: Vec<_> = shares.map(|share| scope.spawn(|| place.read_all(share))).collect();
        snapshot.append(place.read_all(first));
        for other in others {
            match other.join() {
                Ok(part) => snapshot.append(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    Ok(snapshot)
}

impl Snapshot {
    fn append(&mut self, mut other: Self) {
        self.records.append(&mut other.records);
        self.faults.append(&mut other.faults);
    }

    /// Leaves one record of each address and attachment: the first one, unless only a later one is held.
    fn merge(&mut self, network: &NetworkName) {
        self.records.dedup_by(|(other, later), (address, first)| {
            let is_same = other == address && later.tag(network.as_str()) == first.tag(network.as_str());
            if is_same && later.is_held() && !first.is_held() {
                std::mem::swap(later, first);
            }
            is_same
        });
    }
}

/// Where records are read.
struct Place<'a> {
    folder: &'a Path,
    /// The same, opened: a name is looked up in it and not from the root.
    handle: &'a File,
    progress: &'a (dyn Fn(u64) + Sync),
}

impl Place<'_> {
    fn read_all(&self, names: &[(IpAddr, OsString)]) -> Snapshot {
        let mut snapshot = Snapshot { records: Vec::with_capacity(names.len()), faults: Vec::new() };
        let mut text = vec![0; 4096];
        for part in names.chunks(PACE) {
            for (address, name) in part {
                match self.read(name, &mut text) {
                    Ok(Some(record)) => snapshot.records.push((*address, record)),
                    Ok(None) => {}
                    Err(fault) => snapshot.faults.push(fault),
                }
            }
            (self.progress)(part.len() as u64);
        }
        snapshot
    }

    /// The record of a file; none if it went meanwhile.
    fn read(&self, name: &OsStr, text: &mut Vec<u8>) -> Result<Option<Record>, Error> {
        let path = || self.folder.join(name);
        let torn = |why: &str| Err(Torn { path: path(), why: why.to_owned() }.into());
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let mut file = match openat(self.handle, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP | Errno::ENXIO) => return torn("it is no file"),
            Err(error) => return Err(Error::io("read", &path(), error.into())),
        };
        let mut size = match file.read(text) {
            Ok(size) => size,
            Err(error) if matches!(error.kind(), ErrorKind::IsADirectory | ErrorKind::WouldBlock) => {
                return torn("it is no file");
            }
            Err(error) => return Err(Error::io("read", &path(), error)),
        };
        // A file's read is short only at its end.
        if size == text.len() {
            size += file.take(LIMIT).read_to_end(text).map_err(|error| Error::io("read", &path(), error))?;
        }
        match serde_json::from_slice::<Record>(text.get(..size).unwrap_or_default()) {
            Ok(record) if record.v == FORMAT => Ok(Some(record)),
            Ok(record) => Err(Error::NewerFormat { path: path(), v: record.v }),
            Err(error) => torn(&error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipam::world::World;

    #[test]
    fn what_cannot_be_read_is_told_and_the_rest_is_there() {
        let mut world = World::new(&["10.0.0.0/24", "fd00::/64"]);
        let long = "k".repeat(10_000);
        for key in ["a", "b", &long] {
            world.try_add(key, &key[..1]).unwrap();
        }
        let path = world.path();
        let newer =
            fs::read_to_string(path.join(world.add("a", "a").to_string())).unwrap().replace("\"v\":1", "\"v\":9");
        fs::write(path.join("10.9.9.9"), newer).unwrap();
        fs::write(path.join("10.9.9.8"), "").unwrap();
        fs::create_dir(path.join("10.9.9.7")).unwrap();
        nix::unistd::mkfifo(&path.join("10.9.9.6"), Mode::S_IRWXU).unwrap();
        let names = || fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        std::os::unix::fs::symlink("/etc/passwd", path.join("10.9.9.5")).unwrap();
        let before = names();
        let snapshot = take(&world.host, &world.network, None).unwrap();
        assert_eq!(names(), before, "nothing is set aside");
        assert_eq!(snapshot.records.len(), 6);
        assert!(snapshot.records.iter().any(|(_, record)| record.key.text == long));
        assert!(snapshot.records.is_sorted_by_key(|(address, _)| *address));
        let told: Vec<String> = snapshot.faults.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 5, "{told:?}");
        for (name, word) in [
            ("10.9.9.9", "format 9"),
            ("10.9.9.8", "fsck"),
            ("10.9.9.7", "fsck"),
            ("10.9.9.6", "fsck"),
            ("10.9.9.5", "fsck"),
        ] {
            assert!(told.iter().any(|told| told.contains(name) && told.contains(word)), "{name}: {told:?}");
        }
    }

    #[test]
    fn an_attachment_that_is_recorded_in_two_folders_is_there_once() {
        let mut world = World::new(&["10.0.0.0/24"]);
        let address = world.add("web", "c1");
        let (default, configured) = (world.path(), world.folder.path().join("elsewhere"));
        fs::create_dir(&configured).unwrap();
        let text = fs::read_to_string(default.join(address.to_string())).unwrap();
        let put = |text: &str| fs::write(configured.join(address.to_string()), text).unwrap();
        let taken = || take(&world.host, &world.network, Some(&configured)).unwrap().records;
        put(&text.replace("\"uses\":1", "\"uses\":2"));
        assert_eq!(taken().iter().map(|(_, record)| record.uses).collect::<Vec<_>>(), [2]);
        put(&text.replace("\"held\"", "\"released\""));
        assert_eq!(taken().iter().map(|(_, record)| record.is_held()).collect::<Vec<_>>(), [true]);
        put(&text.replace("\"c1\"", "\"c2\""));
        assert_eq!(taken().len(), 2, "two holders of one address");
    }

    #[test]
    fn many_are_read_by_several_threads() {
        let mut world = World::new(&["10.0.0.0/16"]);
        let address = world.add("web", "c1");
        let path = world.path();
        let text = fs::read(path.join(address.to_string())).unwrap();
        for n in 0..3000 {
            fs::write(path.join(format!("10.1.{}.{}", n / 256, n % 256)), &text).unwrap();
        }
        let told = std::sync::atomic::AtomicU64::new(0);
        let count = |more| _ = told.fetch_add(more, std::sync::atomic::Ordering::Relaxed);
        let snapshot = watched(&world.host, &world.network, None, &count).unwrap();
        assert_eq!((snapshot.records.len(), snapshot.faults.len(), told.into_inner()), (3001, 0, 3001));
        assert!(snapshot.records.is_sorted_by_key(|(address, _)| *address));
    }
}
