//! All others who give out addresses of a network's ranges: host-local, OpenSVC's agent, and we ourselves under another
//! `dataDir`.

use std::net::IpAddr;
use std::path::PathBuf;

use super::config::IpamConfig;
use super::host_local::{ForeignHolder, HostLocal};
use super::liveness::{Kernel, Liveness, Witness};
use super::record::{Record, State};
use super::search::Neighbours;
use super::store::file;
use super::{Error, Request, folders};
use crate::Host;

/// The other allocators of a network's ranges. What they keep for the caller itself is in nobody's way.
pub struct Others<'a> {
    host_local: HostLocal,
    opensvc: HostLocal,
    /// Folders of an older configuration, whose containers may still run.
    folders: Vec<PathBuf>,
    witness: Kernel,
    caller: Option<&'a Request>,
}

impl IpamConfig {
    /// The other allocators of this network's ranges, as the caller of an ADD sees them, or STATUS.
    ///
    /// # Errors
    /// The network's folders cannot be listed.
    pub fn neighbours<'a>(&self, host: &Host, caller: Option<&'a Request>) -> Result<Others<'a>, Error> {
        let mut folders = folders::known(host, &self.network, Some(&self.folder))?;
        folders.retain(|folder| *folder != self.folder && folder.is_dir());
        Ok(Others {
            host_local: HostLocal::new(&self.host_local, &self.network),
            opensvc: HostLocal::opensvc(&self.opensvc, &self.network),
            folders,
            witness: Kernel::new(host).in_a_hurry(),
            caller,
        })
    }
}

impl Neighbours for Others<'_> {
    fn holder(&mut self, address: IpAddr) -> Result<Option<String>, Error> {
        let caller = self.caller;
        let is_callers = |holder: &ForeignHolder| {
            caller.is_some_and(|Request { attachment, .. }| {
                holder.container == attachment.container.as_str()
                    && holder.ifname.as_deref().is_none_or(|ifname| ifname == attachment.ifname.as_str())
            })
        };
        if let Some(holder) = self.host_local.holder(address)?.filter(|holder| !is_callers(holder)) {
            return Ok(Some(holder.to_string()));
        }
        let is_keys = |holder: &ForeignHolder| caller.is_some_and(|request| holder.container == request.key.text);
        if let Some(holder) = self.opensvc.holder(address)?.filter(|holder| !is_keys(holder)) {
            return Ok(Some(holder.to_string()));
        }
        for folder in &self.folders {
            let path = folder.join(address.to_string());
            let Some(text) = file::read(&path).map_err(|error| Error::io("read", &path, error))? else { continue };
            // What is no record is set aside by whoever uses that folder.
            let Ok(record) = serde_json::from_slice::<Record>(&text) else { continue };
            let free = match record.state {
                State::Released => true,
                State::Reserved => caller.is_some_and(|request| request.key == record.key),
                State::Held => {
                    caller.is_some_and(|request| record.is_of(&request.attachment))
                        || self.witness.judge(&record) == Liveness::Dead
                }
            };
            if !free {
                return Ok(Some(format!("{} according to {}", record.holder(), path.display())));
            }
        }
        Ok(None)
    }
}
