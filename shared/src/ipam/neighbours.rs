//! All others who give out addresses of a network's ranges: host-local, OpenSVC's agent, and we ourselves under another
//! `dataDir`.

use std::net::IpAddr;
use std::path::PathBuf;

use super::config::IpamConfig;
use super::host_local::{ForeignHolder, HostLocal};
use super::liveness::{Kernel, Liveness, Witness};
use super::record::{Record, State};
use super::search::Neighbours;
use super::snapshot::Snapshot;
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

    /// The addresses that host-local and OpenSVC's agent keep from this network, in order: what one of theirs holds that
    /// lives, and none of ours holds or has reserved. `records`: ours, those of older folders among them.
    ///
    /// # Errors
    /// Their records cannot be read.
    pub fn others(&self, host: &Host, records: &Snapshot) -> Result<Vec<IpAddr>, Error> {
        let mut others = self.neighbours(host, None)?;
        let mut found = others.host_local.holders()?;
        found.extend(others.opensvc.holders()?);
        let mut found: Vec<IpAddr> = found.into_iter().map(|(address, _)| address).collect();
        crate::order::sort(&mut found);
        found.dedup();
        let is_ours = |address: &IpAddr| {
            let from = records.records.partition_point(|(at, _)| at < address);
            let of = records.records.iter().skip(from).take_while(|(at, _)| at == address);
            of.into_iter().any(|(_, record)| record.state != State::Released)
        };
        found.retain(|address| !is_ours(address));
        Ok(found)
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
