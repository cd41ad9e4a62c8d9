//! `by-network/<network>/<tag>`: who has ports on a network, so that the last one to leave is known without reading all.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::rc::Rc;

use super::super::record::Record;
use super::known::Filed;
use super::{Error, Store};
use crate::index::make_folder;
use crate::{Host, NetworkName};

/// Its name.
pub const FOLDER: &str = "by-network";

/// The folder of the networks.
pub struct Members {
    folder: PathBuf,
}

impl Members {
    /// The networks of a folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Puts an attachment under its network.
    pub fn insert(&self, network: &NetworkName, tag: &str) -> Result<(), Error> {
        let folder = self.folder.join(network.as_str());
        make_folder(&folder)?;
        let path = folder.join(tag);
        let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        made.map(drop).map_err(|error| Error::io("make", &path, error))
    }

    /// Takes an attachment away, and the last one's network with it. One too many harms nobody.
    pub fn remove(&self, network: &NetworkName, tag: &str) {
        let folder = self.folder.join(network.as_str());
        let _ = fs::remove_file(folder.join(tag));
        let _ = fs::remove_dir(folder);
    }

    /// Forgets all.
    pub fn clear(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The networks that have host ports, as far as the links tell. Nothing is waited for.
pub fn networks(host: &Host) -> Vec<NetworkName> {
    let entries = fs::read_dir(super::folder(host).join(FOLDER)).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

impl Store<'_> {
    /// The records of a network, in no order. Those of a later version are left out.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn members(&self, network: &NetworkName) -> Result<Vec<Rc<Record>>, Error> {
        let mut found = Vec::new();
        self.each_member(network, |record| {
            found.push(record.clone());
            false
        })?;
        Ok(found)
    }

    /// True if one of a network's records counts. As a rule the first one does.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn has_member(&self, network: &NetworkName, counts: impl Fn(&Record) -> bool) -> Result<bool, Error> {
        self.each_member(network, |record| counts(record))
    }

    /// Shows records of a network until one is the last: true if one was.
    fn each_member(&self, network: &NetworkName, mut is_last: impl FnMut(&Rc<Record>) -> bool) -> Result<bool, Error> {
        let folder = self.members.folder.join(network.as_str());
        let entries = match fs::read_dir(&folder) {
            _ if !self.linked => Err(ErrorKind::Unsupported.into()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            entries => entries.and_then(Iterator::collect::<io::Result<Vec<_>>>),
        };
        // Half a list would take the word of those who are left out: then all records are read.
        let Ok(entries) = entries else {
            return Ok(self.all()?.iter().filter(|record| record.network == *network).any(&mut is_last));
        };
        for entry in entries {
            if let Some(Filed::Known(known)) = self.look(&entry.file_name().to_string_lossy())?
                && known.record.network == *network
                && is_last(&known.record)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
