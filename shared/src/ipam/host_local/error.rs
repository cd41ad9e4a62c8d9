//! What can go wrong with the records of others.

use std::path::PathBuf;

use crate::lock::LockError;

/// The records of others cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostLocalError {
    /// A record or their folder cannot be read, so that nobody knows who has the address.
    #[error("cannot read {}, where another plugin keeps its reservations: {source}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// The age of this boot is unknown.
    #[error("cannot read the time since boot from {}: {source}", .path.display())]
    Boot {
        /// /proc/uptime.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// host-local's lock cannot be taken.
    #[error("host-local's lock: {0}")]
    Lock(LockError),
    /// A record cannot be written.
    #[error("cannot write {}, host-local's reservation of a container: {source}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A record of a deleted container cannot be removed.
    #[error("cannot remove {}, host-local's reservation of a deleted container: {source}", .path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
}
