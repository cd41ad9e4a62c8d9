//! Records of routed networks: one JSON document in a file, whole or not at all, and on the disk when it is written.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Error;
use crate::torn;

/// What every record begins with, whatever its format.
#[derive(Deserialize)]
struct Head {
    v: u32,
}

/// The record in a file; `None` if there is none. One that is torn, or in which `fault` finds something, is set aside,
/// and is none, unless this process [only looks](torn::look_only).
///
/// # Errors
/// It cannot be read, or has a later format than `known`.
pub(crate) fn read<T: DeserializeOwned>(
    path: &Path,
    known: u32,
    fault: impl FnOnce(&T) -> Option<String>,
) -> Result<Option<T>, Error> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| Error::file("read", path, error))?,
    };
    match serde_json::from_slice::<Head>(&text) {
        Ok(Head { v }) if v > known => return Err(Error::NewerFormat { path: path.to_owned(), v, known }),
        _ => {}
    }
    let fault = match serde_json::from_slice::<T>(&text) {
        Ok(record) => match fault(&record) {
            None => return Ok(Some(record)),
            Some(fault) => fault,
        },
        Err(error) => error.to_string(),
    };
    set_aside(path, &fault)?;
    Ok(None)
}

fn set_aside(path: &Path, why: &str) -> Result<(), Error> {
    torn::set_aside(path, why).map_err(|error| Error::file("set aside", path, error))
}

/// Writes a record, and the folder to the disk.
///
/// # Errors
/// It cannot be written: the old one is still there.
pub(crate) fn write<T: Serialize>(path: &Path, record: &T) -> Result<(), Error> {
    // One for each process: what a killed one left is written over or lies there unread.
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        make_folder(folder)?;
        let mut text = serde_json::to_vec(record)?;
        text.push(b'\n');
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&fresh);
        Error::file("write", path, error)
    })
}

/// Makes a folder of records, with those above it; one that is there stays as it is. Each that is new is on the disk.
///
/// # Errors
/// The kernel's answer.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        make_folder(above)?;
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => File::open(above)?.sync_all()?,
        }
    }
    Ok(())
}

/// Removes a record. None is no error.
///
/// # Errors
/// It cannot be removed.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::file("remove", path, error)),
        _ => Ok(()),
    }
}
