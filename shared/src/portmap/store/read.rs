//! Reading records: by attachment, port, address, and all.

use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;
use std::rc::Rc;

use super::super::mapping::Protocol;
use super::known::{Filed, Known, Later};
use super::{Error, Record, Store};
use crate::index::make_folder;
use crate::ipam::store::file;

impl Store<'_> {
    /// The record of an attachment.
    ///
    /// # Errors
    /// It cannot be read. [`Error::NewerFormat`]: a later version wrote it.
    pub fn load(&self, tag: &str) -> Result<Option<Rc<Record>>, Error> {
        let Some(filed) = self.look(tag)? else { return Ok(None) };
        Ok(Some(self.readable(filed, tag)?.record.clone()))
    }

    /// True if the record of an attachment is of a later version.
    pub fn is_later(&self, tag: &str) -> bool {
        matches!(self.look(tag), Ok(Some(Filed::Later(_))))
    }

    /// The records that publish a port, on whatever address, in no order.
    ///
    /// # Errors
    /// One cannot be read. [`Error::NewerFormat`]: a later version wrote it; guessing could give one port to two.
    pub(in super::super) fn of_port(&self, protocol: Protocol, port: u16) -> Result<Vec<Rc<Known>>, Error> {
        let port = (protocol, port);
        let linked = if self.linked { Some(self.by_port.get(&Self::port_name(port))?) } else { None };
        self.matching(linked, |known| known.has_port(port), |later| later.ports.contains(&port))
    }

    /// The records whose ports lead to an address, in no order.
    ///
    /// # Errors
    /// As [`of_port`](Self::of_port).
    pub(in super::super) fn of_address(&self, address: IpAddr) -> Result<Vec<Rc<Known>>, Error> {
        let linked = if self.linked { Some(self.by_address.get(&address.to_string())?) } else { None };
        self.matching(linked, |known| known.leads_to(address), |later| later.addresses.contains(&address))
    }

    /// The records behind links, or without them all, that are what is looked for. A link to a record of a later version
    /// is believed.
    fn matching(
        &self,
        linked: Option<Vec<String>>,
        fits: impl Fn(&Known) -> bool,
        may_fit: impl Fn(&Later) -> bool,
    ) -> Result<Vec<Rc<Known>>, Error> {
        let by_link = linked.is_some();
        let mut found = Vec::new();
        for tag in linked.map_or_else(|| self.tags(), Ok)? {
            match self.look(&tag)? {
                Some(Filed::Known(known)) if fits(&known) => found.push(known),
                Some(Filed::Later(later)) if by_link || may_fit(&later) => return Err(self.newer(&tag, &later)),
                _ => {}
            }
        }
        Ok(found)
    }

    /// All records, the oldest first. One of a later version is reported and left out.
    ///
    /// # Errors
    /// The folder or one of them cannot be read.
    pub fn all(&self) -> Result<Vec<Rc<Record>>, Error> {
        let mut found = Vec::new();
        for tag in self.tags()? {
            match self.look(&tag)? {
                Some(Filed::Known(known)) => found.push(known),
                Some(Filed::Later(later)) => tracing::warn!("{}", self.newer(&tag, &later)),
                None => {}
            }
        }
        crate::order::sort_by(&mut found, |a, b| (&a.record.since, &a.tag).cmp(&(&b.record.since, &b.tag)));
        Ok(found.iter().map(|known| known.record.clone()).collect())
    }

    /// The attachments that have a file, in no order. What is named otherwise is set aside.
    pub(super) fn tags(&self) -> Result<Vec<String>, Error> {
        let failed = |error| Error::io("read", &self.records, error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.records).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            match name.to_str() {
                Some(name) if is_tag(name) => found.push(name.to_owned()),
                Some(name) if name.starts_with('.') => {}
                _ => self.set_aside(&self.records.join(&name), "its name is that of no attachment"),
            }
        }
        Ok(found)
    }

    /// What the file of an attachment is. What is no record is set aside and counts as none.
    pub(super) fn look(&self, tag: &str) -> Result<Option<Filed>, Error> {
        // A link may have been made by anybody.
        if !is_tag(tag) {
            return Ok(None);
        }
        if let Some(filed) = self.known.borrow().get(tag) {
            return Ok(Some(filed.clone()));
        }
        let path = self.path(tag);
        let Some(text) = file::read(&path).map_err(|error| Error::io("read", &path, error))? else { return Ok(None) };
        match Filed::parse(tag, &text) {
            Ok(filed) => {
                self.known.borrow_mut().insert(tag.to_owned(), filed.clone());
                Ok(Some(filed))
            }
            Err(why) => {
                self.set_aside(&path, &why);
                self.doubtful.set(true);
                Ok(None)
            }
        }
    }

    /// The record that a file is, unless a later version wrote it.
    pub(super) fn readable(&self, filed: Filed, tag: &str) -> Result<Rc<Known>, Error> {
        match filed {
            Filed::Known(known) => Ok(known),
            Filed::Later(later) => Err(self.newer(tag, &later)),
        }
    }

    pub(super) fn newer(&self, tag: &str, later: &Later) -> Error {
        Error::NewerFormat { path: self.path(tag), v: later.v }
    }

    /// Moves what is no record to `corrupt/`, where an operator can look at it; its links go at the next opening. Where
    /// that fails it stays, and still is no record.
    fn set_aside(&self, path: &Path, why: &str) {
        if self.looking {
            tracing::debug!("{} is no record of host ports ({why})", path.display());
            return;
        }
        let folder = self.folder.join("corrupt");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let moved = make_folder(&folder).map_err(Error::from).and_then(|()| {
            let mut aside = folder.join(&*name);
            for n in 1.. {
                match fs::symlink_metadata(&aside) {
                    Err(error) if error.kind() == ErrorKind::NotFound => break,
                    _ => aside = folder.join(format!("{name}.{n}")),
                }
            }
            fs::rename(path, &aside).map_err(|error| Error::io("move", path, error))?;
            Ok(aside)
        });
        match moved {
            Ok(aside) => {
                tracing::warn!("{} is no record of host ports ({why}): moved to {}", path.display(), aside.display());
                self.untidy.set(true);
            }
            Err(error) => tracing::warn!("{} is no record of host ports ({why}); {error}", path.display()),
        }
    }
}

pub(super) fn is_tag(name: &str) -> bool {
    name.len() == 13 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
