//! `by-key/` and `by-attachment/`: which addresses a key or an attachment has, without reading all records.
//!
//! An entry is a symbolic link named `<name>.<slot>` whose target is the address: one system call to make
//! and one to read, no data block. The slots of a name are dense from 0, so a look-up ends at the first
//! missing one; taking one out moves the last into its place by one rename(2), so that no crash leaves a gap.
//!
//! An entry is made before its record and removed after it: a crash leaves an entry too many, never one
//! too few. Whoever follows an entry compares the record with what it looked for.

use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use super::Error;

/// One of the two folders.
pub struct Index {
    folder: PathBuf,
}

impl Index {
    /// The index that lies in a folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn slot(&self, name: &str, slot: usize) -> PathBuf {
        self.folder.join(format!("{name}.{slot}"))
    }

    /// The addresses under a name.
    pub fn get(&self, name: &str) -> Result<Vec<IpAddr>, Error> {
        let mut found = Vec::new();
        for slot in 0.. {
            let path = self.slot(name, slot);
            match fs::read_link(&path) {
                Ok(target) => found.extend(target.to_str().and_then(|text| text.parse::<IpAddr>().ok())),
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(Error::io("read", &path, error)),
            }
        }
        Ok(found)
    }

    /// Puts an address under a name, unless it is there.
    pub fn insert(&self, name: &str, address: IpAddr) -> Result<(), Error> {
        let slots = self.get(name)?;
        if slots.contains(&address) {
            return Ok(());
        }
        let path = self.slot(name, slots.len());
        symlink(address.to_string(), &path).map_err(|error| Error::io("make", &path, error))
    }

    /// Takes an address from under a name, if it is there.
    pub fn remove(&self, name: &str, address: IpAddr) -> Result<(), Error> {
        let slots = self.get(name)?;
        let Some(slot) = slots.iter().position(|there| *there == address) else { return Ok(()) };
        let (path, last) = (self.slot(name, slot), self.slot(name, slots.len() - 1));
        let moved = if path == last { fs::remove_file(&path) } else { fs::rename(&last, &path) };
        moved.map_err(|error| Error::io("remove", &path, error))
    }

    /// Empties the index, making its folder.
    pub fn clear(&self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io("empty", &self.folder, error)),
            _ => {}
        }
        make_folder(&self.folder)
    }

    /// [`changed`] of the index.
    pub fn changed(&self) -> i128 {
        changed(&self.folder)
    }
}

/// When a folder was changed last, in nanoseconds since 1970; 0 if it is not there. A value that we did not leave tells
/// that somebody else changed it, or that we were killed in the middle.
pub fn changed(folder: &Path) -> i128 {
    fs::metadata(folder)
        .map(|meta| i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()))
        .unwrap_or(0)
}

/// Makes a folder that only root may enter, with the folders above it.
pub fn make_folder(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| Error::io("make", path, error))
}
