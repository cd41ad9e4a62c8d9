//! Every error of the crate, with the code that the CNI specification gives it.

use crate::{firewall, ipam, netlink, network, portmap, protocol, routed, spoof};

/// Error codes of the CNI specification 1.1.0, section "Error", and libcni's `ErrInvalidNetNS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// The configuration's version is none of ours, or does not know the verb.
    IncompatibleVersion = 1,
    /// A key or value that cannot be honoured; the message names both.
    UnsupportedField = 2,
    /// Nothing is known of the container: the runtime need not clean up.
    UnknownContainer = 3,
    /// An environment variable is missing or wrong; the message names it.
    InvalidEnvironment = 4,
    /// Reading or writing failed.
    Io = 5,
    /// stdin is not the JSON it should be.
    Decode = 6,
    /// The network configuration contradicts itself or the host.
    InvalidConfig = 7,
    /// CNI_NETNS is not a network namespace, or is the plugin's own.
    InvalidNetns = 8,
    /// The same call may work later.
    TryAgainLater = 11,
    /// STATUS: an ADD would fail.
    NotAvailable = 50,
    /// STATUS: an ADD would fail, and containers may have lost connectivity.
    LimitedConnectivity = 51,
    /// Ours: CHECK found something gone.
    CheckFailed = 100,
    /// Ours: what was asked for is in use by somebody else, who is named.
    InUse = 101,
}

/// Any error of the crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The call itself: environment, stdin, version, delegation.
    #[error(transparent)]
    Protocol(#[from] protocol::Error),
    /// Addresses.
    #[error(transparent)]
    Ipam(#[from] ipam::Error),
    /// Bridges, pairs, container interfaces.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// Routed networks: segments, peers, tunnels.
    #[error(transparent)]
    Routed(Box<routed::Error>),
    /// nftables.
    #[error(transparent)]
    Firewall(#[from] firewall::Error),
    /// Host ports.
    #[error(transparent)]
    Portmap(#[from] portmap::Error),
    /// Source checks.
    #[error(transparent)]
    Spoof(#[from] spoof::Error),
    /// The kernel's answer to a netlink request.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// Teardown goes on after an error: all of them. The first one gives the code.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Several(Vec<Error>),
}

impl From<routed::Error> for Error {
    fn from(error: routed::Error) -> Self {
        Self::Routed(Box::new(error))
    }
}

impl Error {
    /// The code printed to the runtime.
    pub fn code(&self) -> u32 {
        match self {
            Self::Protocol(error) => error.code(),
            Self::Ipam(error) => error.code() as u32,
            Self::Network(error) => error.code() as u32,
            Self::Routed(error) => error.code() as u32,
            Self::Firewall(error) => error.code() as u32,
            Self::Portmap(error) => error.code() as u32,
            Self::Spoof(error) => error.code() as u32,
            Self::Netlink(_) => Code::Io as u32,
            Self::Several(errors) => errors.first().map_or(Code::Io as u32, Self::code),
        }
    }

    /// `details` of the error document, when there is more to say than the message.
    pub fn details(&self) -> Option<String> {
        match self {
            Self::Protocol(error) => error.details(),
            Self::Several(errors) => errors.first().and_then(Self::details),
            _ => None,
        }
    }

    /// All errors of a teardown as one, or success if there was none.
    pub fn collect(mut errors: Vec<Self>) -> Result<(), Self> {
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(Self::Several(errors)),
        }
    }
}
