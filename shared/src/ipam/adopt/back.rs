//! The way back: host-local's records of everything that is held.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::super::host_local::{Entry, HostLocal};
use super::super::liveness::{Kernel, Liveness, Witness};
use super::super::record::Record;
use super::super::snapshot::{self, Snapshot};
use super::super::store::Location;
use super::super::sweep::set_free;
use super::super::{Error, folders, timestamp};
use crate::attachment::tag;
use crate::{Host, NetworkName};

/// A network whose addresses are to be host-local's again.
pub struct Return<'a> {
    /// This host.
    pub host: &'a Host,
    /// The network.
    pub network: &'a NetworkName,
    /// The folder of our records by its configuration.
    pub ours: Option<&'a Path>,
    /// The folder of host-local's records.
    pub host_local: &'a Path,
}

/// An attachment with addresses, by our records.
#[derive(Debug, Clone)]
pub struct Tenancy {
    folder: PathBuf,
    /// The addresses and their records.
    pub held: Vec<(IpAddr, Record)>,
}

/// What was, or would be, done about an attachment.
#[derive(Debug)]
pub enum Back {
    /// host-local has its addresses.
    Given(Vec<(IpAddr, Record)>),
    /// It cannot be running any more: its addresses are free, and host-local has not heard of it.
    Gone(Vec<(IpAddr, Record)>),
    /// Nothing was done: somebody else has an address by host-local's records, in words.
    Taken(IpAddr, String),
    /// Nothing was done: its record was made again from its host end, where there was no room for the whole id.
    CutId(IpAddr),
}

impl Return<'_> {
    fn host_local(&self) -> HostLocal {
        HostLocal::new(self.host_local, self.network)
    }

    /// Who holds addresses, in the order of the addresses, and what could not be read.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn tenancies(&self) -> Result<(Vec<Tenancy>, Vec<Error>), Error> {
        let (mut found, mut faults) = (Vec::<Tenancy>::new(), Vec::new());
        for folder in folders::known(self.host, self.network, self.ours)? {
            let Snapshot { records, faults: wrong } = snapshot::folder(&folder)?;
            faults.extend(wrong);
            let mut places = HashMap::new();
            for (address, record) in records.into_iter().filter(|(_, record)| record.is_held()) {
                let whose = (record.container.clone(), record.ifname.clone());
                let place = *places.entry(whose).or_insert(found.len());
                match found.get_mut(place) {
                    Some(tenancy) => tenancy.held.push((address, record)),
                    None => found.push(Tenancy { folder: folder.clone(), held: vec![(address, record)] }),
                }
            }
        }
        Ok((found, faults))
    }

    /// What [`give`](Self::give) would do; nothing is changed.
    ///
    /// # Errors
    /// A record cannot be read.
    pub fn look(&self, tenancy: &Tenancy) -> Result<Option<Back>, Error> {
        self.decide(tenancy.held.clone()).map(Some)
    }

    /// Gives the addresses of an attachment to host-local; `None` if it holds none any more.
    ///
    /// What is left of our records is the memory of their keys, as after a DEL: it keeps nobody from an address.
    ///
    /// # Errors
    /// A lock cannot be had; a record cannot be read or written.
    pub fn give(&self, tenancy: &Tenancy) -> Result<Option<Back>, Error> {
        let host_local = self.host_local();
        host_local.make_folder()?;
        let location = Location { host: self.host, network: self.network, folder: &tenancy.folder };
        let done = host_local.locked(|| {
            host_local.tidy();
            location.existing(|store| {
                let mut held = Vec::new();
                for (address, _) in &tenancy.held {
                    // Its DEL may have come, or another ADD, since it was listed.
                    let record = store.read(*address)?.filter(|record| record.is_held() && tenancy.is_of(record));
                    held.extend(record.map(|record| (*address, record)));
                }
                if held.is_empty() {
                    return Ok(None);
                }
                let back = self.decide(held)?;
                if let Back::Given(held) = &back {
                    for (address, record) in held {
                        host_local.put(&entry(*address, record))?;
                    }
                    host_local.settle()?;
                }
                if let Back::Given(held) | Back::Gone(held) = &back {
                    for (address, record) in held {
                        set_free(store, *address, record.clone())?;
                    }
                }
                Ok(Some(back))
            })
        })?;
        Ok(done.flatten())
    }

    fn decide(&self, held: Vec<(IpAddr, Record)>) -> Result<Back, Error> {
        let mut witness = Kernel::new(self.host);
        if held.iter().all(|(_, record)| witness.judge(record) == Liveness::Dead) {
            return Ok(Back::Gone(held));
        }
        let mut host_local = self.host_local();
        for (address, record) in &held {
            if is_cut(record, self.network) {
                return Ok(Back::CutId(*address));
            }
            let own = host_local.entry(*address)?.is_some_and(|entry| entry.is_of(&record.container, &record.ifname));
            if !own && let Some(other) = host_local.holder(*address)? {
                return Ok(Back::Taken(*address, other.to_string()));
            }
        }
        Ok(Back::Given(held))
    }
}

impl Tenancy {
    fn is_of(&self, other: &Record) -> bool {
        let same = |own: &Record| own.container == other.container && own.ifname == other.ifname;
        self.held.first().is_some_and(|(_, own)| same(own))
    }
}

/// A host end of ours is named by the whole container id.
fn is_cut(record: &Record, network: &NetworkName) -> bool {
    let named = record.host.as_ref().and_then(|host| host.ifname.strip_prefix("ov"));
    named.is_some_and(|named| named != tag(network.as_str(), &record.container, &record.ifname))
}

fn entry(address: IpAddr, record: &Record) -> Entry {
    Entry {
        address,
        container: record.container.clone(),
        ifname: Some(record.ifname.clone()),
        since: timestamp::parse(&record.since).unwrap_or_else(std::time::SystemTime::now),
    }
}
