//! Addresses that belong to workloads: keys, ranges, records, and the rules that join them.

pub mod adopt;
pub mod allocator;
mod bitmap;
pub mod claims;
pub mod config;
pub mod explain;
pub mod folders;
pub mod fsck;
pub mod history;
pub mod host_local;
pub mod key;
pub mod liveness;
#[cfg(test)]
mod model;
mod neighbours;
mod queue;
pub mod range;
pub mod rebuild;
pub mod record;
pub mod requested;
pub mod reserve;
pub mod resolv_conf;
mod scan;
pub mod search;
pub mod snapshot;
mod status;
pub mod store;
pub mod sweep;
#[cfg(test)]
mod tests;
pub mod timestamp;
#[cfg(test)]
mod world;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;

use crate::index::FileError;
use crate::lock::LockError;
use crate::netlink::netns::NetnsId;
use crate::{Attachment, Code, Host, NetworkName, netlink};
use allocator::Allocator;
use config::IpamConfig;
use key::Key;
use liveness::Kernel;
use record::{HostEnd, NetnsRef, Record};
use store::{Change, Location};

pub use status::{check, status};
pub use sweep::{garbage, gc, gc_watched, list, release};

/// What can go wrong with addresses.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] config::ConfigError),
    /// Nothing says what to allocate from.
    #[error("IPAM config missing 'ipam' key")]
    NoIpam,
    /// An address was asked for that nobody may have.
    #[error(transparent)]
    Request(#[from] requested::RequestError),
    /// The records of host-local or of OpenSVC's agent.
    #[error(transparent)]
    HostLocal(#[from] host_local::HostLocalError),
    /// The store is locked by somebody else.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file of the store.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A record of a later version.
    #[error("{} has format {v}, this version knows {}: install the version that wrote it", .path.display(), record::FORMAT)]
    NewerFormat {
        /// The record.
        path: PathBuf,
        /// Its format.
        v: u32,
    },
    /// What lies where a record should be.
    #[error(transparent)]
    Torn(#[from] snapshot::Torn),
    /// Lost records cannot be recovered.
    #[error("cannot list the ports of network {network} to recover its lost address records: {source}")]
    Ports {
        /// The network.
        network: NetworkName,
        /// The kernel's answer.
        source: netlink::Error,
    },
    /// A requested address is somebody's.
    #[error("requested IP address {address} is not available: {by}")]
    Taken {
        /// The address.
        address: IpAddr,
        /// Its holder, and since when.
        by: String,
    },
    /// The same container id and interface in another network namespace.
    #[error(transparent)]
    Elsewhere(Box<Elsewhere>),
    /// The living hold everything.
    #[error(
        "no IP addresses available in range set: {ranges} ({held} held{}): `osvc-net ip ls` tells by whom; end some of them, or widen the range",
        .oldest.as_ref().map(|since| format!(", the oldest since {since}")).unwrap_or_default()
    )]
    Full {
        /// The ranges.
        ranges: String,
        /// How many addresses are held.
        held: u64,
        /// Since when the oldest is held.
        oldest: Option<String>,
    },
    /// A namespace has all that it may have.
    #[error(transparent)]
    Claim(Box<claims::ClaimError>),
    /// STATUS: the next ADD would meet this.
    #[error("{0}")]
    WouldFail(Box<Error>),
    /// STATUS: the next ADD could not write its record.
    #[error(transparent)]
    NotWritable(#[from] crate::host::NotWritable),
    /// CHECK: no reservation.
    #[error("Failed to find address added by container {} for interface {} on network {}", .0.container, .0.ifname, .0.network)]
    NotReserved(Attachment),
    /// CHECK: another address than the result says.
    #[error("{attachment} holds {held}, but its result says {}", .listed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    OtherAddress {
        /// The attachment.
        attachment: Attachment,
        /// What the record says.
        held: IpAddr,
        /// What the result says.
        listed: Vec<IpAddr>,
    },
}

/// An attachment that is running in another network namespace than the one that asks.
#[derive(Debug, thiserror::Error)]
#[error(
    "{attachment} has {address} in network namespace {} since {since} and is running there: DEL it first",
    .netns.display()
)]
pub struct Elsewhere {
    /// The attachment.
    pub attachment: Attachment,
    /// Its address.
    pub address: IpAddr,
    /// Where it lives.
    pub netns: PathBuf,
    /// Since when.
    pub since: String,
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }

    /// The code printed to the runtime.
    pub fn code(&self) -> Code {
        match self {
            Self::Config(error) => error.code(),
            Self::Request(error) => error.code(),
            Self::NoIpam => Code::InvalidConfig,
            Self::Lock(error) => error.code(),
            Self::Claim(error) => error.code(),
            Self::Full { .. } => Code::TryAgainLater,
            Self::Taken { .. } | Self::Elsewhere(_) => Code::InUse,
            Self::WouldFail(_) | Self::NotWritable(_) => Code::NotAvailable,
            Self::NotReserved(_) | Self::OtherAddress { .. } => Code::CheckFailed,
            _ => Code::Io,
        }
    }
}

impl From<FileError> for Error {
    fn from(FileError { doing, path, source }: FileError) -> Self {
        Self::Io { doing, path, source }
    }
}

/// What an attachment asks for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Who asks.
    pub attachment: Attachment,
    /// Whose address it will be.
    pub key: Key,
    /// The OpenSVC object, if it said so.
    pub object: Option<String>,
    /// The OpenSVC resource id, if it said so.
    pub rid: Option<String>,
    /// CNI_NETNS, with its identity if it is a network namespace.
    pub netns: Option<(PathBuf, Option<NetnsId>)>,
    /// The host end that the network will make.
    pub host_end: Option<HostEnd>,
    /// Addresses asked for by name.
    pub requested: Vec<IpAddr>,
}

impl Request {
    fn netns_ref(&self) -> Option<NetnsRef> {
        self.netns.clone().map(|(path, id)| NetnsRef::new(path, id))
    }

    /// The record of an address that this one has from now on. `before`: its record, if it was this key's.
    fn held(&self, before: Option<&Record>, instance: u32, requested: bool, boot: String, since: String) -> Record {
        Record {
            v: record::FORMAT,
            key: self.key.clone(),
            instance,
            object: self.object.clone(),
            rid: self.rid.clone(),
            container: self.attachment.container.to_string(),
            ifname: self.attachment.ifname.to_string(),
            netns: self.netns_ref(),
            host: self.host_end.clone(),
            boot,
            state: record::State::Held,
            uses: before.map_or(0, |record| record.uses).saturating_add(1),
            requested: requested || before.is_some_and(|record| record.requested),
            pinned: before.is_some_and(|record| record.pinned || record.state == record::State::Reserved),
            since,
        }
    }
}

/// An address with its prefix length, and the gateway of its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// The address, with host bits.
    pub address: IpNet,
    /// The range's gateway.
    pub gateway: Option<IpAddr>,
}

/// The addresses of an attachment, one per set, and the way back.
#[derive(Debug)]
pub struct Lease {
    /// The addresses, in the order of the sets.
    pub addresses: Vec<Assigned>,
    folder: PathBuf,
    changes: Vec<Change>,
}

impl Lease {
    /// Puts every record back as the ADD found it, except what somebody changed since.
    ///
    /// # Errors
    /// The store cannot be locked, read or written.
    pub fn undo(self, host: &Host, network: &NetworkName) -> Result<(), Error> {
        Location { host, network, folder: &self.folder }.existing(|store| store.revert(&self.changes))?;
        Ok(())
    }
}

/// Gives an attachment one address of each set: the one that it has, the one that its key had, or a new one.
///
/// # Errors
/// A requested address is somebody's, a set is full, or the store cannot be read or written. Nothing is changed then.
pub fn add(host: &Host, config: &IpamConfig, request: &Request) -> Result<Lease, Error> {
    let requested = requested::assign(&config.sets, &request.requested)?;
    let location = Location { host, network: &config.network, folder: &config.folder };
    folders::remember(host, &config.network, &config.folder);
    let (addresses, changes) = location.created(|store| {
        let mut witness = Kernel::new(host);
        let mut others = config.neighbours(host, Some(request))?;
        Allocator::new(store, &mut witness, &mut others, request).allocate(&config.sets, &requested, &config.claims)
    })?;
    let addresses = addresses.into_iter().filter_map(|address| assigned(&config.sets, address)).collect();
    Ok(Lease { addresses, folder: config.folder.clone(), changes })
}

/// An address with the prefix length and the gateway of its range.
fn assigned(sets: &[range::RangeSet], address: IpAddr) -> Option<Assigned> {
    let range = sets.iter().find_map(|set| set.range_of(address).ok())?;
    let address = IpNet::new(address, range.subnet.prefix_len()).ok()?;
    Some(Assigned { address, gateway: range.gateway })
}

/// The network namespace that is recorded for an attachment, while it holds an address.
///
/// # Errors
/// The store cannot be locked or read.
pub fn netns_of(host: &Host, config: &IpamConfig, attachment: &Attachment) -> Result<Option<PathBuf>, Error> {
    let location = Location { host, network: &config.network, folder: &config.folder };
    let held = location.existing(|store| held_by(store, attachment))?.unwrap_or_default();
    Ok(held.into_iter().find_map(|(_, record)| Some(record.netns?.path)))
}

/// The records of an attachment that are in a folder.
fn held_by(store: &store::Store, attachment: &Attachment) -> Result<Vec<(IpAddr, Record)>, Error> {
    let mut found = Vec::new();
    for address in store.of_attachment(&attachment.tag())? {
        if let Some(record) = store.read(address)?
            && record.is_held()
            && record.is_of(attachment)
        {
            found.push((address, record));
        }
    }
    Ok(found)
}
