//! The records on the disk. Whoever changes them, or the table, holds the lock.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::Error;
use super::record::{FORMAT, Record};
use crate::index::make_folder;
use crate::lock::{LockError, PATIENCE, exclusively_within};
use crate::{Host, NetworkName};

/// Where everything of this module is.
pub fn folder(host: &Host) -> PathBuf {
    host.state.join("spoof")
}

/// The records of all networks.
fn attachments(host: &Host) -> PathBuf {
    folder(host).join("attachments")
}

/// The records of one network.
pub fn of_network(host: &Host, network: &NetworkName) -> PathBuf {
    attachments(host).join(network.as_str())
}

fn failed(doing: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::File { doing, path: path.to_owned(), source }
}

/// Runs `act` as the only one that changes records or table. None if there is no folder (any more): then nothing is
/// checked.
pub fn locked<T>(host: &Host, act: impl FnOnce() -> Result<T, Error>) -> Result<Option<T>, Error> {
    locked_within(PATIENCE, host, act)
}

/// As [`locked`], waiting no longer than `patience`.
pub fn locked_within<T>(
    patience: Duration,
    host: &Host,
    act: impl FnOnce() -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    match exclusively_within(patience, &folder(host).join("lock"), || act().map(Some)) {
        Err(Error::Lock(LockError::Io { source, .. })) if source.kind() == ErrorKind::NotFound => Ok(None),
        outcome => outcome,
    }
}

/// True if there may be a record. Without the lock.
pub fn has_records(host: &Host) -> bool {
    attachments(host).exists()
}

/// True if an attachment has a record, or a part of one. Without the lock.
pub fn has(host: &Host, network: &NetworkName, tag: &str) -> bool {
    let path = of_network(host, network).join(format!("{tag}.json"));
    path.exists() || path.with_extension("new").exists()
}

/// Removes what only a crash leaves: records of other boots, half written ones, and empty folders. Under the lock.
///
/// # Errors
/// A folder or a record cannot be read, or one not removed.
pub fn clear(host: &Host) -> Result<(), Error> {
    for record in all(host, None)?.iter().filter(|record| record.boot != host.boot) {
        remove(host, &record.network, &record.tag())?;
    }
    for network in names(&attachments(host))?.iter().filter_map(|name| name.parse().ok()) {
        let folder = of_network(host, &network);
        for name in names(&folder)?.iter().filter(|name| name.ends_with(".new")) {
            let _ = fs::remove_file(folder.join(name));
        }
        remove_empty(host, &folder);
    }
    Ok(())
}

/// Removes a network's folder and the one above it, where they are empty.
fn remove_empty(host: &Host, folder: &Path) {
    if fs::remove_dir(folder).is_ok() {
        let _ = fs::remove_dir(attachments(host));
    }
}

/// Removes the folder of everything, by who holds the lock and found no record. Whoever waits for the lock meanwhile sees
/// that its file is gone: the lock goes last, and nothing is done after it that somebody else could mind.
pub fn forget(host: &Host) {
    let folder = folder(host);
    let _ = fs::remove_dir(attachments(host));
    for name in ["table.json", "table.new", "lock"] {
        let _ = fs::remove_file(folder.join(name));
    }
    let _ = fs::remove_dir(folder);
}

/// Makes the folder of everything.
pub fn prepare(host: &Host) -> Result<(), Error> {
    make_folder(&folder(host)).map_err(|error| failed("make", &error.path, error.source))
}

/// What is known of an attachment.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// The record.
    Record(Box<Record>),
    /// Something that is no record.
    Torn,
}

/// Reads the record of a network's attachment by its tag.
///
/// # Errors
/// It is there and cannot be read.
pub fn read(host: &Host, network: &NetworkName, tag: &str) -> Result<Found, Error> {
    let path = of_network(host, network).join(format!("{tag}.json"));
    let text = match fs::read(&path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Found::Nothing);
        }
        text => text.map_err(|error| failed("read", &path, error))?,
    };
    match serde_json::from_slice::<Record>(&text) {
        Ok(record) if record.v == FORMAT && record.network == *network && record.tag() == tag => {
            Ok(Found::Record(Box::new(record)))
        }
        _ => {
            tracing::warn!("{} is no record of this version", path.display());
            Ok(Found::Torn)
        }
    }
}

/// Writes a file as JSON, whole or not at all. Not to the disk: the next boot has no use for it.
pub(super) fn write_whole(path: &Path, content: &impl Serialize) -> std::io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(&serde_json::to_vec(content)?)?;
    fs::rename(&fresh, path)
}

/// Writes a record.
///
/// # Errors
/// It cannot be written.
pub fn write(host: &Host, record: &Record) -> Result<(), Error> {
    let folder = of_network(host, &record.network);
    make_folder(&folder).map_err(|error| failed("make", &error.path, error.source))?;
    let path = folder.join(format!("{}.json", record.tag()));
    write_whole(&path, record).map_err(|error| failed("write", &path, error))
}

/// Removes a record, what was left half written of it, and with the last one the folders that it was in.
///
/// # Errors
/// It is there and cannot be removed.
pub fn remove(host: &Host, network: &NetworkName, tag: &str) -> Result<(), Error> {
    let folder = of_network(host, network);
    for extension in ["new", "json"] {
        let path = folder.join(format!("{tag}.{extension}"));
        match fs::remove_file(&path) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(failed("remove", &path, error));
            }
            _ => {}
        }
    }
    remove_empty(host, &folder);
    Ok(())
}

/// All records, of one network or of all.
///
/// # Errors
/// A folder or a record cannot be read.
pub fn all(host: &Host, of: Option<&NetworkName>) -> Result<Vec<Record>, Error> {
    let networks = match of {
        Some(network) => vec![network.clone()],
        None => names(&attachments(host))?.iter().filter_map(|name| name.parse().ok()).collect(),
    };
    let mut records = Vec::new();
    for network in networks {
        for name in names(&of_network(host, &network))? {
            let Some(tag) = name.strip_suffix(".json") else { continue };
            if let Found::Record(record) = read(host, &network, tag)? {
                records.push(*record);
            }
        }
    }
    Ok(records)
}

/// The names in a folder; none if there is no such folder.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| failed("read", folder, error))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| failed("read", folder, error))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}
