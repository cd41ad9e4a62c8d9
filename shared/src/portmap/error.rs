//! What can go wrong with host ports.

use std::io;
use std::path::{Path, PathBuf};

use super::config::ConfigError;
use crate::lock::LockError;
use crate::{Code, firewall, netlink};

/// Host ports that could not be published, withdrawn or found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A host port is somebody else's.
    #[error("{entry}: host port {port} is held by {holder}: end that container, or publish another port")]
    Taken {
        /// The entry: `portMappings[0] (8080->80/tcp)`.
        entry: String,
        /// The port and protocol: `8080/tcp`.
        port: String,
        /// Key, container, network and since when.
        holder: String,
    },
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
        source: io::Error,
    },
    /// A record of a later version.
    #[error("{} has format {v}, this version knows {}: install the version that wrote it", .path.display(), super::record::FORMAT)]
    NewerFormat {
        /// The record.
        path: PathBuf,
        /// Its format.
        v: u32,
    },
    /// nftables, or conntrack.
    #[error(transparent)]
    Firewall(#[from] firewall::Error),
    /// A device of the host, or one of its parameters.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// STATUS: the next ADD could not write its record.
    #[error(transparent)]
    NotWritable(#[from] crate::host::NotWritable),
    /// CHECK: the record is not there.
    #[error("{attachment}: {what}; DEL and ADD make it")]
    NoRecord {
        /// The attachment.
        attachment: String,
        /// What is missing.
        what: &'static str,
    },
    /// CHECK: something is not there.
    #[error("{attachment}: {what}; `osvc-net setup` puts it back")]
    Missing {
        /// The attachment.
        attachment: String,
        /// What is missing.
        what: String,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }

    /// The code printed to the runtime.
    pub fn code(&self) -> Code {
        match self {
            Self::Config(error) => error.code(),
            Self::Taken { .. } => Code::InUse,
            Self::Lock(error) => error.code(),
            Self::Firewall(error) => error.code(),
            Self::NotWritable(_) => Code::NotAvailable,
            Self::NoRecord { .. } | Self::Missing { .. } => Code::CheckFailed,
            _ => Code::Io,
        }
    }
}
