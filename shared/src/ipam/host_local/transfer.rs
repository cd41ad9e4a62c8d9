//! host-local's records one by one, for taking them over and giving them back. All under its lock but looking.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::SystemTime;

use super::super::store::file::is_absence;
use super::{HostLocal, HostLocalError, read, split};

/// A record is written here first. host-local takes no file for one whose name is no address.
const NEW: &str = ".osvc-net.new";

/// The record of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The address.
    pub address: IpAddr,
    /// The container id.
    pub container: String,
    /// The interface, if the record says it.
    pub ifname: Option<String>,
    /// When the record was written.
    pub since: SystemTime,
}

impl Entry {
    /// True if it is that attachment's: as host-local sees it, a record without interface is of all.
    pub fn is_of(&self, container: &str, ifname: &str) -> bool {
        self.container == container && self.ifname.as_deref().is_none_or(|own| own == ifname)
    }
}

impl HostLocal {
    /// The folder.
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// All records by address, of the living and the dead; empty files are nobody's.
    ///
    /// # Errors
    /// The folder or a record cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, HostLocalError> {
        let mut found = Vec::new();
        for address in self.addresses()? {
            found.extend(self.entry(address)?);
        }
        crate::order::sort_by_key(&mut found, |entry| entry.address);
        Ok(found)
    }

    /// The record of an address.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn entry(&self, address: IpAddr) -> Result<Option<Entry>, HostLocalError> {
        let Some((text, since)) = read(&self.path(address))? else { return Ok(None) };
        let (container, ifname) = split(&text);
        if container.is_empty() {
            return Ok(None);
        }
        Ok(Some(Entry { address, container: container.to_owned(), ifname: ifname.map(str::to_owned), since }))
    }

    /// The file of an address.
    pub fn path(&self, address: IpAddr) -> PathBuf {
        self.folder.join(address.to_string())
    }

    /// Makes the folder, as host-local does.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(in crate::ipam) fn make_folder(&self) -> Result<(), HostLocalError> {
        let made = DirBuilder::new().recursive(true).mode(0o755).create(&self.folder);
        made.map_err(|source| HostLocalError::Write { path: self.folder.clone(), source })
    }

    /// Removes a record.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(in crate::ipam) fn discard(&self, address: IpAddr) -> Result<(), HostLocalError> {
        let path = self.path(address);
        match fs::remove_file(&path) {
            Err(source) if !is_absence(&source) => Err(HostLocalError::Remove { path, source }),
            _ => Ok(()),
        }
    }

    /// Writes a record, as host-local writes it, with the time of the ADD: there whole or not at all, and for good once
    /// [`settle`](Self::settle) was called.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(in crate::ipam) fn put(&self, entry: &Entry) -> Result<(), HostLocalError> {
        let (temporary, path) = (self.folder.join(NEW), self.path(entry.address));
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).mode(0o644).open(&temporary)?;
            let ifname = entry.ifname.as_ref().map(|ifname| format!("\r\n{ifname}")).unwrap_or_default();
            file.write_all(format!("{}{ifname}", entry.container).as_bytes())?;
            file.set_modified(entry.since)?;
            file.sync_all()?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|source| {
            let _ = fs::remove_file(&temporary);
            HostLocalError::Write { path: path.clone(), source }
        })
    }

    /// What was put and discarded stays so over a power loss.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(in crate::ipam) fn settle(&self) -> Result<(), HostLocalError> {
        let settled = File::open(&self.folder).and_then(|folder| folder.sync_all());
        settled.map_err(|source| HostLocalError::Write { path: self.folder.clone(), source })
    }

    /// Takes away what a killed writer left.
    pub(in crate::ipam) fn tidy(&self) {
        let _ = fs::remove_file(self.folder.join(NEW));
    }
}
