//! DEL in host-local's place, for a container that was added before the conflist was switched to us.

use std::net::IpAddr;
use std::time::Duration;

use super::super::store::file::is_absence;
use super::{HostLocal, HostLocalError, read, split};
use crate::lock::{self, LockError};
use crate::{ContainerId, InterfaceName};

impl HostLocal {
    /// Removes the records of an attachment, as host-local's own DEL does: those of its container id and interface
    /// or, if there are none, those of the id alone, which is how host-local wrote them before it knew interfaces.
    /// `among`: only if one of these addresses is recorded for it; to look for all takes the longer the more host-local
    /// has leaked. Returns the addresses.
    ///
    /// Nothing is locked, let alone made, when there is nothing to remove.
    ///
    /// # Errors
    /// The folder cannot be read, host-local's lock is held for too long, or a record cannot be removed.
    pub fn remove(
        &self,
        container: &ContainerId,
        ifname: &InterfaceName,
        among: Option<&[IpAddr]>,
    ) -> Result<Vec<IpAddr>, HostLocalError> {
        if self.found(container, ifname, among)?.is_empty() {
            return Ok(Vec::new());
        }
        self.locked(|| {
            // Somebody else may have had the lock, and removed or made records, since; and there may be more than those
            // that were known of: a killed `osvc-net adopt` leaves an attachment in both stores, here with all of it.
            let addresses = self.found(container, ifname, None)?;
            for address in &addresses {
                let path = self.folder.join(address.to_string());
                match std::fs::remove_file(&path) {
                    Err(error) if !is_absence(&error) => return Err(HostLocalError::Remove { path, source: error }),
                    _ => {}
                }
            }
            Ok(addresses)
        })
    }

    /// The addresses that are recorded for an attachment, dead or alive: what [`remove`](Self::remove) would remove.
    ///
    /// # Errors
    /// The folder or a record cannot be read.
    pub fn records_of(&self, container: &ContainerId, ifname: &InterfaceName) -> Result<Vec<IpAddr>, HostLocalError> {
        self.found(container, ifname, None)
    }

    fn found(
        &self,
        container: &ContainerId,
        ifname: &InterfaceName,
        among: Option<&[IpAddr]>,
    ) -> Result<Vec<IpAddr>, HostLocalError> {
        let (mut exact, mut of_id) = (Vec::new(), Vec::new());
        for address in among.map_or_else(|| self.addresses(), |among| Ok(among.to_vec()))? {
            let Some((text, _)) = read(&self.folder.join(address.to_string()))? else { continue };
            match split(&text) {
                (id, Some(interface)) if id == container.as_str() && interface == ifname.as_str() => {
                    exact.push(address);
                }
                (id, None) if id == container.as_str() => of_id.push(address),
                _ => {}
            }
        }
        Ok(if exact.is_empty() { of_id } else { exact })
    }

    /// Under host-local's own flock(2). Nothing is written to its lock file: host-local compares the contents of all
    /// files with the container id, and would remove it.
    ///
    /// # Errors
    /// The lock file cannot be made, or is held for longer than [`lock::PATIENCE`]; what `act` reports.
    pub(in crate::ipam) fn locked<T, E: From<HostLocalError>>(
        &self,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.locked_within(lock::PATIENCE, act)
    }

    pub(super) fn locked_within<T, E: From<HostLocalError>>(
        &self,
        patience: Duration,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        enum Failure<E> {
            Lock(LockError),
            Act(E),
        }
        impl<E> From<LockError> for Failure<E> {
            fn from(error: LockError) -> Self {
                Self::Lock(error)
            }
        }
        let done = lock::exclusively_within(patience, &self.folder.join("lock"), || act().map_err(Failure::Act));
        done.map_err(|failure| match failure {
            Failure::Lock(error) => HostLocalError::Lock(error).into(),
            Failure::Act(error) => error,
        })
    }
}
