//! What can go wrong with nftables.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::family::Family;
use crate::lock::LockError;
use crate::{Code, NetworkName, netlink, network};

/// A ruleset that could not be read or changed, or that is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No nft program.
    #[error("nft is in none of {}: install nftables 0.9.4 or later", super::program::FOLDERS.join(", "))]
    NoNft,
    /// The kernel does not speak nf_tables.
    #[error("this kernel has no nf_tables ({source}): load the module nf_tables, or boot Linux 5.4 or later")]
    NoNftables {
        /// The kernel's answer.
        source: io::Error,
    },
    /// nft is there and could not be run.
    #[error("cannot run {}: {source}", .path.display())]
    Nft {
        /// The program.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// nft refused a document: nothing of it was done.
    #[error(
        "nft could not {what}, and changed nothing: {stderr}; it needs nftables 0.9.4 or later, Linux 5.4 or later \
         and CAP_NET_ADMIN"
    )]
    Refused {
        /// What was wanted.
        what: String,
        /// nft's words.
        stderr: String,
    },
    /// The kernel's answer to a question.
    #[error("cannot {request}: {source}")]
    Kernel {
        /// What was asked.
        request: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The answer is no answer to the question.
    #[error("cannot {request}: the kernel's answer is malformed")]
    Malformed {
        /// What was asked.
        request: &'static str,
    },
    /// Somebody commits changes faster than they can be read.
    #[error("cannot {request}: the ruleset changed during each of {tries} readings; try again")]
    Unsteady {
        /// What was asked.
        request: &'static str,
        /// How often it was read.
        tries: u32,
    },
    /// `firewall.lock` could not be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The records of the networks could not be read.
    #[error(transparent)]
    Records(Box<network::Error>),
    /// The network namespace could not be identified.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// CHECK: something is not there.
    #[error("network {network}: {}; `osvc-net setup` and the next ADD put it back", list(.missing))]
    Missing {
        /// The network.
        network: NetworkName,
        /// What is missing.
        missing: Vec<Missing>,
    },
}

/// Something of a network that is not in the kernel's ruleset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The whole table.
    Table(Family),
    /// A base chain.
    Chain(Family, &'static str),
    /// Rules in a chain of ours.
    Rules {
        /// The table's family.
        family: Family,
        /// The chain.
        chain: &'static str,
        /// How many there should be.
        wanted: usize,
        /// How many there are.
        found: usize,
    },
    /// A subnet in the set of what is not masqueraded.
    Elements(Family),
    /// Nothing is missing, but something is not as it was made.
    Changed(Family),
    /// The accepts in a foreign chain that drops.
    Accept {
        /// nft's word for the family.
        family: &'static str,
        /// The foreign table.
        table: String,
        /// The chain that drops.
        chain: String,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = super::wanted::TABLE;
        match self {
            Self::Table(family) => write!(f, "nftables table {family} {table} is missing"),
            Self::Chain(family, chain) => write!(f, "nftables chain {family} {table} {chain} is missing"),
            Self::Rules { family, chain, wanted, found } => {
                write!(f, "nftables chain {family} {table} {chain} has {found} of its {wanted} rules")
            }
            Self::Elements(family) => {
                write!(f, "nftables set {family} {table} {} lacks its subnets", super::wanted::INSIDE)
            }
            Self::Changed(family) => write!(f, "nftables table {family} {table} was changed by somebody else"),
            Self::Accept { family, table, chain } => {
                write!(f, "nftables chain {family} {table} {chain} drops what is forwarded and has no accept for it")
            }
        }
    }
}

fn list(missing: &[Missing]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Error {
    /// The code of the CNI specification.
    pub fn code(&self) -> Code {
        match self {
            Self::NoNft | Self::NoNftables { .. } => Code::NotAvailable,
            Self::Lock(error) => error.code(),
            Self::Unsteady { .. } => Code::TryAgainLater,
            Self::Missing { .. } => Code::CheckFailed,
            Self::Records(error) => error.code(),
            _ => Code::Io,
        }
    }
}

impl Error {
    /// The kernel's error number, if it is the kernel that refused: ENOENT, EEXIST, ENOSPC, EPERM.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Kernel { source, .. } | Self::NoNftables { source } => source.raw_os_error(),
            _ => None,
        }
    }
}

impl From<network::Error> for Error {
    fn from(error: network::Error) -> Self {
        Self::Records(Box::new(error))
    }
}
