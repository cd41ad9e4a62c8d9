//! What can go wrong with source checks.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::document::TABLE;
use crate::lock::LockError;
use crate::{Code, firewall, netlink};

/// Source checks that could not be made, removed or verified.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The lock could not be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// nftables.
    #[error(transparent)]
    Firewall(#[from] firewall::Error),
    /// The network namespace could not be identified.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// The record of an attachment could not be read, written or removed.
    #[error("cannot {doing} {}: {source}", .path.display())]
    File {
        /// What was to be done.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// CHECK: something is not there.
    #[error("source checks of {port}: {}", .missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Missing {
        /// The host end.
        port: String,
        /// What is missing.
        missing: Vec<Missing>,
    },
}

/// Something of an attachment's source checks that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The container was started when the configuration did not ask for this, or the record is lost.
    Check(&'static str),
    /// The table is gone, or its rules are not those that were made.
    Table,
    /// An element of a set.
    Element {
        /// The set.
        set: &'static str,
        /// The address; none for the port itself.
        address: Option<String>,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REPAIR: &str = "`osvc-net setup` and the next ADD put it back";
        match self {
            Self::Check(key) => write!(f, "{key} was not set when the container was started: start it anew"),
            Self::Table => write!(f, "nftables table bridge {TABLE} is missing or was changed; {REPAIR}"),
            Self::Element { set, address: Some(address) } => {
                write!(f, "nftables set bridge {TABLE} {set} lacks {address}; `osvc-net setup` puts it back")
            }
            Self::Element { set, address: None } => {
                write!(f, "nftables set bridge {TABLE} {set} lacks the port; `osvc-net setup` puts it back")
            }
        }
    }
}

impl Error {
    /// The code of the CNI specification.
    pub fn code(&self) -> Code {
        match self {
            Self::Lock(error) => error.code(),
            Self::Firewall(error) => error.code(),
            Self::Netlink(_) | Self::File { .. } => Code::Io,
            Self::Missing { .. } => Code::CheckFailed,
        }
    }
}
