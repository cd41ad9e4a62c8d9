//! A store for who only looks. Nothing is locked, made, mended or set aside; what the next writer would make again is made
//! in memory. So a plan is what that writer would do, also on a file system that is mounted read-only.

use std::collections::HashMap;
use std::fs;
use std::net::IpAddr;

use super::{Class, Location, Store, file, seal};
use crate::ipam::bitmap::Bitmap;
use crate::ipam::queue::{Entry, Verdict};
use crate::ipam::record::{Record, State};
use crate::ipam::timestamp::micros;
use crate::ipam::{Error, snapshot};

/// What derives from the records, where the files do not say it.
#[derive(Default)]
pub(super) struct View {
    /// Records that the host ends of living attachments say again.
    lost: HashMap<IpAddr, Record>,
    by_key: HashMap<String, Vec<IpAddr>>,
    by_attachment: HashMap<String, Vec<IpAddr>>,
    queues: HashMap<(Class, bool), Vec<Entry>>,
}

/// How a store is used.
#[derive(Default)]
pub(super) enum Sight {
    /// Its user may write.
    #[default]
    Writes,
    /// Its user looks, and the derived files fit.
    Looks,
    /// Its user looks, and the derived files do not fit.
    LooksThrough(Box<View>),
}

impl Location<'_> {
    /// Runs `act`, which only looks, on the store as the next writer would find it: after it mended what is wrong.
    pub(in crate::ipam) fn looking<T>(&self, act: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<T, Error> {
        let mut store = self.store(seal::read(self.folder));
        store.namespaces.freeze();
        store.sight = Sight::Looks;
        if !store.is_sealed() {
            self.look_through(&mut store)?;
        }
        act(&mut store)
    }

    /// The same; `None` if there is no such folder, which no writer would make.
    pub(in crate::ipam) fn looking_if_there<T>(
        &self,
        act: impl FnOnce(&mut Store) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match fs::symlink_metadata(self.folder) {
            Err(error) if file::is_absence(&error) => Ok(None),
            _ => self.looking(act).map(Some),
        }
    }

    fn look_through(&self, store: &mut Store) -> Result<(), Error> {
        let snapshot = snapshot::folder(self.folder)?;
        let mut present: Vec<IpAddr> = snapshot.records.iter().map(|(address, _)| *address).collect();
        for fault in snapshot.faults {
            match fault {
                // Set aside by the next writer, and no record from then on.
                Error::Torn(_) => {}
                // Somebody has it.
                Error::NewerFormat { path, .. } => {
                    present.extend(path.file_name().and_then(|name| name.to_str()?.parse::<IpAddr>().ok()));
                }
                error => return Err(error),
            }
        }
        let mut view = View::default();
        let mut records = snapshot.records;
        if store.sealed.is_none() {
            for (address, record) in store.recoverable(self.host)? {
                view.lost.insert(address, record.clone());
                present.push(address);
                records.push((address, record));
            }
        }
        for (address, record) in records {
            view.by_key.entry(record.key.hash()).or_default().push(address);
            view.by_attachment.entry(record.tag(self.network.as_str())).or_default().push(address);
            if record.state == State::Released {
                let entry = Entry { address, since: micros(&record.since) };
                view.queues.entry((Class::of(&record), address.is_ipv6())).or_default().push(entry);
            }
        }
        for entries in view.queues.values_mut() {
            crate::order::sort_by_key(entries, |entry| entry.since);
        }
        store.bitmap = Bitmap::in_memory(present.into_iter().filter(IpAddr::is_ipv4));
        store.namespaces.distrust();
        store.sight = Sight::LooksThrough(Box::new(view));
        Ok(())
    }
}

impl Store {
    /// True if its user only looks.
    pub(in crate::ipam) fn is_looked_at(&self) -> bool {
        !matches!(self.sight, Sight::Writes)
    }

    fn view(&self) -> Option<&View> {
        match &self.sight {
            Sight::LooksThrough(view) => Some(view),
            _ => None,
        }
    }

    /// A record that the next writer makes again.
    pub(super) fn lost(&self, address: IpAddr) -> Option<&Record> {
        self.view()?.lost.get(&address)
    }

    /// The addresses of [`lost`](Self::lost).
    pub(super) fn all_lost(&self) -> impl Iterator<Item = IpAddr> {
        self.view().into_iter().flat_map(|view| view.lost.keys().copied())
    }

    /// Addresses that a key may have: to be compared with their records.
    ///
    /// # Errors
    /// The index cannot be read.
    pub(in crate::ipam) fn of_key(&self, hash: &str) -> Result<Vec<IpAddr>, Error> {
        match self.view() {
            Some(view) => Ok(view.by_key.get(hash).cloned().unwrap_or_default()),
            None => Ok(self.by_key.get(hash)?),
        }
    }

    /// Addresses that an attachment may have: to be compared with their records.
    ///
    /// # Errors
    /// The index cannot be read.
    pub(in crate::ipam) fn of_attachment(&self, tag: &str) -> Result<Vec<IpAddr>, Error> {
        match self.view() {
            Some(view) => Ok(view.by_attachment.get(tag).cloned().unwrap_or_default()),
            None => Ok(self.by_attachment.get(tag)?),
        }
    }

    /// The first released address that `fits`. It stays in its queue.
    ///
    /// # Errors
    /// The queue cannot be read, or `judge` fails.
    pub(in crate::ipam) fn first_released(
        &self,
        class: Class,
        v6: bool,
        judge: &mut dyn FnMut(Entry) -> Result<Verdict, Error>,
    ) -> Result<Option<Entry>, Error> {
        let queue = self.queue(class, v6);
        let entries = match &self.sight {
            // Passes over what is stale for good.
            Sight::Writes => return queue.first(judge),
            Sight::Looks => queue.entries()?,
            Sight::LooksThrough(view) => view.queues.get(&(class, v6)).cloned().unwrap_or_default(),
        };
        for entry in entries {
            if matches!(judge(entry)?, Verdict::Fits) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
