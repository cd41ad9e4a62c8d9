//! Putting records in and taking them out, with the links that lead to them.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::rc::Rc;

use super::known::{Filed, Known};
use super::{Error, Record, Store};

impl Store<'_> {
    /// Writes a record, in place of the one that its attachment had.
    ///
    /// # Errors
    /// It cannot be written: what was there still is. [`Error::NewerFormat`]: a later version wrote what is there.
    pub fn put(&mut self, record: &Record) -> Result<(), Error> {
        let known = Known::new(Rc::new(record.clone()));
        let before = match self.look(&known.tag)? {
            Some(filed) => Some(self.readable(filed, &known.tag)?),
            None => None,
        };
        self.changed.set(true);
        if let Err(error) = self.link(&known).and_then(|()| self.write(&known)) {
            // As far as the disk lets us: what stays dangles.
            self.unlink(&known, before.as_deref());
            return Err(error);
        }
        if let Some(before) = before {
            self.unlink(&before, Some(&known));
        }
        self.known.get_mut().insert(known.tag.clone(), Filed::Known(Rc::new(known)));
        Ok(())
    }

    /// Removes an attachment's record; none is a success. Needs no room on the disk.
    ///
    /// # Errors
    /// It cannot be removed. [`Error::NewerFormat`]: a later version wrote what is there.
    pub fn remove(&mut self, record: &Record) -> Result<(), Error> {
        let given = Known::new(Rc::new(record.clone()));
        let stored = match self.look(&given.tag)? {
            Some(filed) => Some(self.readable(filed, &given.tag)?),
            None => None,
        };
        self.changed.set(true);
        let path = self.path(&given.tag);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io("remove", &path, error)),
            _ => {}
        }
        self.known.get_mut().remove(&given.tag);
        if let Some(stored) = stored {
            self.unlink(&stored, Some(&given));
        }
        self.unlink(&given, None);
        Ok(())
    }

    pub(super) fn link(&self, known: &Known) -> Result<(), Error> {
        for port in &known.ports {
            self.by_port.insert(&Self::port_name(*port), &known.tag)?;
        }
        for address in &known.addresses {
            self.by_address.insert(&address.to_string(), &known.tag)?;
        }
        self.members.insert(&known.record.network, &known.tag)
    }

    /// Takes away the links of a record, but for those of another. They harm nobody: a failure is no reason to stop.
    fn unlink(&self, known: &Known, but_for: Option<&Known>) {
        let ports = known.ports.iter().filter(|port| !but_for.is_some_and(|other| other.has_port(**port)));
        let addresses =
            known.addresses.iter().filter(|address| !but_for.is_some_and(|other| other.leads_to(**address)));
        let removed = ports.map(|port| self.by_port.remove(&Self::port_name(*port), &known.tag));
        let removed = removed.chain(addresses.map(|address| self.by_address.remove(&address.to_string(), &known.tag)));
        for error in removed.filter_map(Result::err) {
            tracing::debug!("{error}");
            self.untidy.set(true);
        }
        if but_for.is_none() {
            self.members.remove(&known.record.network, &known.tag);
        }
    }

    fn write(&self, known: &Known) -> Result<(), Error> {
        let (temporary, path) = (self.records.join(".new"), self.path(&known.tag));
        let mut line = serde_json::to_vec(&*known.record).map_err(|error| Error::io("write", &path, error.into()))?;
        line.push(b'\n');
        let write = || {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(&line)?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temporary);
            Error::io("write", &path, error)
        })
    }
}
