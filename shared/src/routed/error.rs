//! What can go wrong with a routed network.

use std::path::PathBuf;

use ipnet::IpNet;

use super::config::{Contradiction, Reason};
use super::segments::{Full, Refused};
use crate::lock::LockError;
use crate::protocol::{self, JsonError};
use crate::{Code, NetworkName, firewall, netlink, network};

/// The most changes that a message tells one by one.
const TOLD: usize = 5;

/// What can go wrong with a routed network.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What it has in common with a bridge.
    #[error(transparent)]
    Bridge(#[from] network::Error),
    /// stdin holds other types of values than it should.
    #[error(transparent)]
    Decode(#[from] protocol::Error),
    /// So does a part of it that comes in two shapes.
    #[error("invalid network configuration: {0}")]
    Type(#[from] JsonError),
    /// A key whose value cannot be honoured.
    #[error("cannot honour {key} {value}: {reason}")]
    Unsupported {
        /// The key, with its path, and the node's name if it is a node's.
        key: String,
        /// The value, as JSON.
        value: String,
        /// Why not, and what would do.
        reason: Reason,
    },
    /// Keys that contradict each other, or this host.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// More nodes than segments.
    #[error(transparent)]
    Full(Box<Full>),
    /// This node has no segment: the configuration would take one that is recorded for another node.
    #[error("this node has no segment: {0}")]
    NoSegment(Box<Refused>),
    /// The configuration would change the recorded plan. The plan stays.
    #[error(
        "the configuration would change which segment is whose, the recorded plan stays: {}. If {} is what is wrong, \
         remove it and run `osvc-net setup`", told(.changes), .path.display()
    )]
    Refused {
        /// The record.
        path: PathBuf,
        /// What would change.
        changes: Vec<Refused>,
    },
    /// Two calls with different configurations recorded the plan at the same time.
    #[error(
        "the segments of network {0} were recorded by another call meanwhile, and are not those of this one: try again"
    )]
    PlanChanged(NetworkName),
    /// Addresses that the other nodes look for elsewhere.
    #[error(
        "network {network}: addresses of {subnet} are outside of this node's segment {}, and no other node would look \
         for them here: leave that range out", list(.segments)
    )]
    OutsideSegment {
        /// The network.
        network: NetworkName,
        /// Where the addresses would come from.
        subnet: IpNet,
        /// The segments of this node.
        segments: Vec<IpNet>,
    },
    /// STATUS, and an ADD on a network that is not set up: the tunnels could not be made.
    #[error("network {network}: {source}; or choose another tunnelMode")]
    NoKind {
        /// The network.
        network: NetworkName,
        /// The kernel's answer, which names kind and module.
        source: netlink::Error,
    },
    /// CHECK: this is not as setup made it.
    #[error("network {network}: {}", .missing.join(", "))]
    Missing {
        /// The network.
        network: NetworkName,
        /// What is wrong.
        missing: Vec<String>,
    },
    /// A file could not be read or written.
    #[error("cannot {doing} {}: {source}", .path.display())]
    File {
        /// read, write, …
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A file of a later version.
    #[error("{} has format {v}, this version knows {known}: install the version that wrote it", .path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        v: u32,
        /// The latest one that this version knows.
        known: u32,
    },
    /// A file of a private key without one.
    #[error(
        "{} holds no private key of WireGuard: put the right one there (`wg genkey` makes one), or remove the file and \
         give the peers the new public key", .0.display()
    )]
    NoPrivateKey(PathBuf),
    /// Tunnels that could not be removed; why is in the log.
    #[error("network {network} is not gone: {devices} could not be removed, try again")]
    Left {
        /// The network.
        network: NetworkName,
        /// The devices.
        devices: String,
    },
    /// Rules for new tunnels, without which they stay down.
    #[error(transparent)]
    Rules(#[from] Box<firewall::Error>),
    /// The kernel's answer to a netlink request.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// The record is being written by somebody else.
    #[error(transparent)]
    Lock(#[from] LockError),
}

fn told(changes: &[Refused]) -> String {
    let mut told: Vec<String> = changes.iter().take(TOLD).map(ToString::to_string).collect();
    if changes.len() > TOLD {
        told.push(format!("and {} more", changes.len() - TOLD));
    }
    told.join("; ")
}

fn list(segments: &[IpNet]) -> String {
    segments.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Error {
    pub(crate) fn file(doing: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File { doing, path: path.into(), source }
    }

    /// The code of the CNI specification.
    pub fn code(&self) -> Code {
        match self {
            Self::Bridge(error) => error.code(),
            Self::Decode(_) | Self::Type(_) => Code::Decode,
            Self::Unsupported { .. } => Code::UnsupportedField,
            Self::Contradiction(_) | Self::Full(_) | Self::NoSegment(_) | Self::Refused { .. } => Code::InvalidConfig,
            Self::OutsideSegment { .. } => Code::InvalidConfig,
            Self::PlanChanged(_) => Code::TryAgainLater,
            Self::NoKind { .. } => Code::NotAvailable,
            Self::Missing { .. } => Code::CheckFailed,
            Self::File { .. } | Self::NewerFormat { .. } | Self::NoPrivateKey(_) | Self::Left { .. } => Code::Io,
            Self::Rules(error) => error.code(),
            Self::Netlink(_) => Code::Io,
            Self::Lock(error) => error.code(),
        }
    }
}
