//! What only adoption can meet.

use std::net::IpAddr;
use std::path::PathBuf;

use osvc_cni::NetworkName;
use osvc_cni::ipam::adopt::Refusal;

use crate::error::Error;

/// Why something is left as it was.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The conflist is host-local's.
    #[error(
        "network {network}: change {what} in {} first: what is started before that is host-local's; nothing of it was taken over",
        .file.display()
    )]
    HostLocals {
        /// The network.
        network: NetworkName,
        /// Its configuration.
        file: PathBuf,
        /// Which types to which.
        what: String,
    },
    /// Nothing says what it looks like.
    #[error("network {0} has records but no configuration: what its ranges are is not known; nothing was taken over")]
    NoConfiguration(NetworkName),
    /// Nobody of ours gives addresses there.
    #[error("network {0}: no osvc plugin gives its addresses: there is nothing to take them over")]
    NoAddresses(NetworkName),
    /// A container that stays host-local's.
    #[error("network {network}: {whose}: {why}; it is left with host-local")]
    Left {
        /// The network.
        network: NetworkName,
        /// The container and its interface.
        whose: String,
        /// Why.
        why: Refusal,
    },
    /// A container that stays ours.
    #[error("network {network}: {address} of {whose} is {by}: stop one of the two; it is not given back")]
    Taken {
        /// The network.
        network: NetworkName,
        /// The address.
        address: IpAddr,
        /// The container and its interface.
        whose: String,
        /// Who has it by host-local's records.
        by: String,
    },
    /// A container whose id is lost.
    #[error(
        "network {network}: {address} of {whose}: the record was lost and made again, without the whole container id; \
         it is not given back: restart the container"
    )]
    CutId {
        /// The network.
        network: NetworkName,
        /// The address.
        address: IpAddr,
        /// The container and its interface.
        whose: String,
    },
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::specific(problem)
    }
}
