//! Why a tunnel cannot be had.

use nix::errno::Errno;

use crate::NetworkName;
use crate::netlink;
use crate::routed;

/// Why a tunnel cannot be had: the fault of each peer that it should lead to.
#[derive(Debug, thiserror::Error)]
pub(in crate::routed) enum Refusal {
    /// The name is taken.
    #[error("device {0} is not one of ours, and has the name of the tunnel: rename or delete it")]
    Name(String),
    /// Two networks have the same parameters.
    #[error(
        "{device}, a tunnel of network {network}, has the same parameters: rename one of the networks, or give it another `port`, on every node"
    )]
    Clash {
        /// The device.
        device: String,
        /// The other network.
        network: NetworkName,
    },
    /// A foreign device that cannot be shared.
    #[error(
        "the foreign device {0} has the same parameters, and the kernel allows one: delete it, or give the network another `port` on every node"
    )]
    Foreign(String),
    /// A foreign device that would have to be used, and does not work.
    #[error("the foreign device {0} has the same ends, and the kernel allows one, but it {1}: correct or delete it")]
    Unfit(String, &'static str),
    /// Somebody else listens.
    #[error("{source}: UDP port {port} is in use, give the network another `port` on every node")]
    Port {
        /// The port.
        port: u16,
        /// The kernel's answer.
        source: netlink::Error,
    },
    /// The kernel's answer.
    #[error(transparent)]
    Kernel(#[from] netlink::Error),
    /// The private key.
    #[error(transparent)]
    Key(Box<routed::Error>),
}

impl From<routed::Error> for Refusal {
    fn from(error: routed::Error) -> Self {
        Self::Key(Box::new(error))
    }
}

impl Refusal {
    /// The refusal of a device that listens on a UDP port.
    pub fn of(error: netlink::Error, port: Option<u16>) -> Self {
        match port {
            Some(port) if error.is(Errno::EADDRINUSE) => Self::Port { port, source: error },
            _ => Self::Kernel(error),
        }
    }

    /// True if the kernel has not got that kind of device.
    pub fn is_missing_kind(&self) -> bool {
        matches!(self, Self::Kernel(netlink::Error::NoModule { .. }))
    }
}
