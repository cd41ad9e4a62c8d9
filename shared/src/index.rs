//! Folders of symbolic links: what belongs to a name, without reading all records.
//!
//! An entry is a symbolic link named `<name>.<slot>` whose target is the text of what belongs to the name: one system
//! call to make and one to read, no data block. The slots of a name are dense from 0, so a look-up ends at the first
//! missing one; taking one out moves the last into its place by one rename(2), so that no crash leaves a gap.
//!
//! An entry is made before its record and removed after it: a crash leaves an entry too many, never one
//! too few. Whoever follows an entry compares the record with what it looked for.

use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A file or folder that could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {source}", .path.display())]
pub struct FileError {
    /// What was tried.
    pub doing: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The kernel's answer.
    pub source: io::Error,
}

impl FileError {
    fn new(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self { doing, path: path.to_owned(), source }
    }
}

/// One folder of links, whose targets are texts of `T`.
pub struct Index<T> {
    folder: PathBuf,
    target: PhantomData<fn() -> T>,
}

impl<T: Display + FromStr + PartialEq> Index<T> {
    /// The index that lies in a folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, target: PhantomData }
    }

    fn slot(&self, name: &str, slot: usize) -> PathBuf {
        self.folder.join(format!("{name}.{slot}"))
    }

    /// What is in each slot of a name; `None` for what is no `T`.
    fn slots(&self, name: &str) -> Result<Vec<Option<T>>, FileError> {
        let mut found = Vec::new();
        for slot in 0.. {
            let path = self.slot(name, slot);
            match fs::read_link(&path) {
                Ok(target) => found.push(target.to_str().and_then(|text| text.parse().ok())),
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(FileError::new("read", &path, error)),
            }
        }
        Ok(found)
    }

    /// What belongs to a name.
    pub fn get(&self, name: &str) -> Result<Vec<T>, FileError> {
        Ok(self.slots(name)?.into_iter().flatten().collect())
    }

    /// True if nothing belongs to a name, which one system call tells; false if that cannot be told.
    pub fn is_empty(&self, name: &str) -> bool {
        fs::read_link(self.slot(name, 0)).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    /// Every name with what belongs to it, in no order.
    pub fn entries(&self) -> Result<Vec<(String, T)>, FileError> {
        let failed = |error| FileError::new("read", &self.folder, error);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            let target = fs::read_link(&path).ok().and_then(|target| target.to_str()?.parse().ok());
            let name = path.file_stem().and_then(|name| name.to_str());
            found.extend(name.map(str::to_owned).zip(target));
        }
        Ok(found)
    }

    /// Puts something under a name, unless it is there.
    pub fn insert(&self, name: &str, target: &T) -> Result<(), FileError> {
        let slots = self.slots(name)?;
        if slots.iter().flatten().any(|there| there == target) {
            return Ok(());
        }
        let path = self.slot(name, slots.len());
        symlink(target.to_string(), &path).map_err(|error| FileError::new("make", &path, error))
    }

    /// Takes something from under a name, if it is there.
    pub fn remove(&self, name: &str, target: &T) -> Result<(), FileError> {
        let slots = self.slots(name)?;
        let Some(slot) = slots.iter().position(|there| there.as_ref() == Some(target)) else { return Ok(()) };
        let (path, last) = (self.slot(name, slot), self.slot(name, slots.len() - 1));
        let moved = if path == last { fs::remove_file(&path) } else { fs::rename(&last, &path) };
        moved.map_err(|error| FileError::new("remove", &path, error))
    }

    /// Empties the index, making its folder.
    pub fn clear(&self) -> Result<(), FileError> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(FileError::new("empty", &self.folder, error));
            }
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
pub fn make_folder(path: &Path) -> Result<(), FileError> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| FileError::new("make", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index<T: Display + FromStr + PartialEq>() -> (tempfile::TempDir, Index<T>) {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::new(folder.path().join("by-name"));
        index.clear().unwrap();
        (folder, index)
    }

    #[test]
    fn slots_stay_dense() {
        let (_folder, index) = index::<String>();
        for target in ["a", "b", "c", "b"] {
            index.insert("x", &target.to_owned()).unwrap();
        }
        assert_eq!(index.get("x").unwrap(), ["a", "b", "c"]);
        index.remove("x", &"a".to_owned()).unwrap();
        assert_eq!(index.get("x").unwrap(), ["c", "b"]);
        index.remove("x", &"a".to_owned()).unwrap();
        assert!(index.is_empty("y") && !index.is_empty("x"));
        let mut entries = index.entries().unwrap();
        crate::order::sort(&mut entries);
        assert_eq!(entries, [("x".to_owned(), "b".to_owned()), ("x".to_owned(), "c".to_owned())]);
    }

    #[test]
    fn a_target_of_another_kind_keeps_its_slot() {
        let (folder, index) = index::<u32>();
        symlink("banana", folder.path().join("by-name/x.0")).unwrap();
        index.insert("x", &7).unwrap();
        assert_eq!(index.get("x").unwrap(), [7]);
        index.remove("x", &7).unwrap();
        assert!(index.get("x").unwrap().is_empty());
    }

    #[test]
    fn names_may_have_dots_and_a_missing_folder_is_empty() {
        let (folder, index) = index::<String>();
        index.insert("10.0.0.1", &"a".to_owned()).unwrap();
        assert_eq!(index.entries().unwrap(), [("10.0.0.1".to_owned(), "a".to_owned())]);
        std::fs::remove_dir_all(folder.path().join("by-name")).unwrap();
        assert!(index.entries().unwrap().is_empty() && index.is_empty("10.0.0.1"));
        assert_eq!(index.changed(), 0);
    }
}
