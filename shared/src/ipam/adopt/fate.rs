//! What becomes of a container that is to be taken over.

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;

use super::super::key::Key;

/// What was, or would be, done about a tenant.
#[derive(Debug)]
pub enum Fate {
    /// Its addresses are ours.
    Taken(Taken),
    /// It cannot be running any more, and host-local's records are removed.
    Gone {
        /// Its addresses.
        addresses: Vec<IpAddr>,
        /// How that is known.
        why: String,
    },
    /// Nothing was done.
    Left(Vec<Refusal>),
}

/// What was taken over.
#[derive(Debug)]
pub struct Taken {
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// Whose they are.
    pub key: Key,
    /// The interface.
    pub ifname: String,
    /// libcni's result of it was found: without, the key is the container id.
    pub cached: bool,
}

/// Why an address is left with host-local.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// None of ours could be called so.
    #[error("no container or interface can have this name")]
    Name,
    /// In a range, but given only to those who ask for it.
    #[error("{address} is excluded by the configuration: take it out of ipam.exclude, or stop the container")]
    Excluded {
        /// The address.
        address: IpAddr,
    },
    /// The next hop of all others.
    #[error("{address} is the gateway of {subnet} by the configuration: set another gateway, or stop the container")]
    Gateway {
        /// The address.
        address: IpAddr,
        /// The subnet.
        subnet: IpNet,
    },
    /// Not in the ranges.
    #[error("{address} is not in the ranges of the configuration ({ranges}): widen them, or stop the container")]
    OutOfRange {
        /// The address.
        address: IpAddr,
        /// The ranges.
        ranges: String,
    },
    /// Somebody else has it, by our records or by OpenSVC's.
    #[error("{address} is somebody else's as well: {by}: stop one of the two")]
    Taken {
        /// The address.
        address: IpAddr,
        /// Who.
        by: String,
    },
    /// It cannot be told whether the container runs.
    #[error("{why}: it cannot be told whether it runs: if it does not, remove {}", .file.display())]
    Doubt {
        /// What stands in the way.
        why: String,
        /// host-local's record of it.
        file: PathBuf,
    },
}

/// What is to become of a tenant.
pub(super) enum Decided {
    Taken(Taken),
    Gone(Vec<IpAddr>, String),
    Refused(Vec<Refusal>),
}

impl Decided {
    /// For the caller.
    pub fn fate(self) -> Fate {
        match self {
            Self::Taken(taken) => Fate::Taken(taken),
            Self::Gone(addresses, why) => Fate::Gone { addresses, why },
            Self::Refused(refusals) => Fate::Left(refusals),
        }
    }
}
