//! What a namespace holds, for its claim: from `by-namespace/` if it can tell, else from all records.

use std::fs;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Error, Holders, Store};

impl Store {
    /// How many addresses a namespace holds, as of now.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn held_in(&mut self, namespace: &str) -> Result<u64, Error> {
        match self.namespaces.look(namespace) {
            Some(count) => Ok(count.held),
            None => Ok(self.count_all(namespace)?.len() as u64),
        }
    }

    /// Counts all namespaces. Returns what one of them holds.
    fn count_all(&mut self, namespace: &str) -> Result<Vec<IpAddr>, Error> {
        let mut holders = Holders::default();
        for address in self.addresses()? {
            match self.read(address) {
                // Whose it is cannot be told.
                Err(Error::NewerFormat { .. }) => {}
                record => {
                    if let Some(record) = record? {
                        holders.note(address, &record);
                    }
                }
            }
        }
        self.namespaces.write(&holders);
        Ok(holders.0.remove(namespace).unwrap_or_default())
    }

    /// The addresses that a namespace holds, in no order.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn list_of(&mut self, namespace: &str) -> Result<Vec<IpAddr>, Error> {
        if let Some(count) = self.namespaces.look(namespace)
            && let Ok(entries) = fs::read_dir(self.namespaces.of(namespace))
        {
            let listed: Vec<IpAddr> =
                entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
            if listed.len() as u64 == count.held {
                return Ok(listed);
            }
        }
        self.count_all(namespace)
    }

    /// When all holders of a namespace were last found to be alive.
    pub fn looked_at(&mut self, namespace: &str) -> Option<SystemTime> {
        let count = self.namespaces.look(namespace)?;
        (count.looked > 0).then(|| UNIX_EPOCH + Duration::from_secs(count.looked))
    }

    /// They are, now.
    pub fn note_look_at(&mut self, namespace: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.namespaces.take(namespace);
        if let Some((Some(count), _)) = self.namespaces.known.get_mut(namespace) {
            count.looked = now;
        }
    }
}
