//! What can go wrong, with the place where to put it right.

use std::fmt;
use std::path::PathBuf;

use osvc_cni::NetworkName;
use osvc_cni::attachment::NameError;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in bytes.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// Any failure of the command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// No JSON, or none of the right shape.
    #[error("{place}: {problem}")]
    Json {
        /// Where.
        place: Place,
        /// What is wrong there.
        problem: String,
    },
    /// A network that cannot be named so.
    #[error("{place}: network name {name:?}: {source}")]
    Name {
        /// Where.
        place: Place,
        /// As configured.
        name: String,
        /// Why.
        source: NameError,
    },
    /// A plugin's configuration.
    #[error("{place}: network {network}: {source}")]
    Config {
        /// Where the plugin's configuration begins.
        place: Place,
        /// The network.
        network: NetworkName,
        /// Why.
        source: Box<osvc_cni::Error>,
    },
    /// A configuration that would be wrong.
    #[error("network {network}: {source}")]
    New {
        /// The network.
        network: NetworkName,
        /// Why.
        source: Box<osvc_cni::Error>,
    },
    /// A network.
    #[error("network {network}: {source}")]
    Network {
        /// Which.
        network: NetworkName,
        /// Why.
        source: Box<osvc_cni::Error>,
    },
    /// No network of that name.
    #[error("no network {name:?}{}", suggestion(.nearest.as_deref(), .known))]
    Unknown {
        /// As given.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
        /// All there are.
        known: Vec<String>,
    },
    /// A network that another plugin sets up.
    #[error("{}: network {network} has no osvc plugin: it cannot be set up", .file.display())]
    NotOurs {
        /// Its configuration.
        file: PathBuf,
        /// The network.
        network: NetworkName,
    },
    /// A network of which only records are left.
    #[error(
        "network {0} has records but no configuration: it cannot be set up; `osvc-net teardown {0}` removes what there is"
    )]
    Unconfigured(NetworkName),
    /// A network that is to go while it is used.
    #[error("network {network} is in use by {tenants}: stop them, or use --force; nothing was removed")]
    InUse {
        /// Which.
        network: NetworkName,
        /// By whom.
        tenants: String,
    },
    /// A network that is to go to another bridge while it is used.
    #[error(
        "network {network} is on bridge {bridge}, where {tenants} uses it: stop them, and the next setup moves it to {to}"
    )]
    StillThere {
        /// Which.
        network: NetworkName,
        /// Where it is.
        bridge: String,
        /// Where it is to be.
        to: String,
        /// By whom it is used.
        tenants: String,
    },
    /// A container that nothing but a restart helps.
    #[error("network {network}: {address} of {holder} runs without its host end, which is gone: restart the container")]
    Detached {
        /// Which.
        network: NetworkName,
        /// Its address.
        address: std::net::IpAddr,
        /// Who it is.
        holder: String,
    },
    /// Published ports that do not go with what their network's configuration says now.
    #[error(
        "network {network}: snat is false, but {holder} has ports on 127.0.0.1: all of the network stay as they were"
    )]
    Ports {
        /// Which.
        network: NetworkName,
        /// Whose ports.
        holder: String,
    },
    /// A file that cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A network that has no nodes.
    #[error("{}: network {network} is no routed one: it has no plugin osvc-routed", .file.display())]
    NotRouted {
        /// Its configuration.
        file: PathBuf,
        /// The network.
        network: NetworkName,
    },
    /// A routed network.
    #[error("network {network}: {source}")]
    Routed {
        /// Which.
        network: NetworkName,
        /// Why.
        source: Box<osvc_cni::routed::Error>,
    },
    /// What could not be done for a node of a routed network.
    #[error("network {network}: {node}: {fault}")]
    Peer {
        /// Which.
        network: NetworkName,
        /// The node.
        node: String,
        /// Why.
        fault: String,
    },
    /// A routed network that is not as it should be.
    #[error("network {network}: {what}")]
    Missing {
        /// Which.
        network: NetworkName,
        /// What is missing.
        what: String,
    },
    /// A node that is to join is there.
    #[error("network {network} has a node {node} already")]
    NodeThere {
        /// Which.
        network: NetworkName,
        /// The node.
        node: String,
    },
    /// A node that is to go is not there.
    #[error("network {network} has no node {node}: there are {}", .known.join(", "))]
    NoNode {
        /// Which.
        network: NetworkName,
        /// As given.
        node: String,
        /// All there are.
        known: Vec<String>,
    },
    /// A network without nodes is none.
    #[error("{node} is the last node of network {network}: remove the network's configuration instead")]
    LastNode {
        /// Which.
        network: NetworkName,
        /// The node.
        node: String,
    },
    /// A node that cannot join.
    #[error("network {network}: {why}")]
    NoSegment {
        /// Which.
        network: NetworkName,
        /// Why.
        why: String,
    },
    /// A network that is not known, for which a key was asked.
    #[error("{unknown}; `osvc-net wireguard pubkey {network} --new` makes a key for one that is not configured yet")]
    NoKeyYet {
        /// Why it is not known.
        unknown: Box<Error>,
        /// Its name.
        network: NetworkName,
    },
    /// A name that no network can have.
    #[error("network name {name:?}: {source}")]
    NoName {
        /// As given.
        name: String,
        /// Why.
        source: NameError,
    },
    /// All that concerns no network of its own.
    #[error(transparent)]
    Core(Box<osvc_cni::Error>),
    /// What only one command can meet.
    #[error(transparent)]
    Specific(Box<dyn std::error::Error + Send + Sync>),
    /// SIGINT or SIGTERM came.
    #[error("interrupted: what is told above is done, the rest is as it was; run it again")]
    Interrupted,
    /// The list cannot be printed.
    #[error("cannot print: {0}")]
    Print(std::io::Error),
}

impl Error {
    /// What only one command can meet.
    pub fn specific(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Specific(Box::new(error))
    }

    /// True if the kernel refuses it to this user.
    pub fn is_denied(&self) -> bool {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = source {
            let denied = match error.downcast_ref::<std::io::Error>() {
                Some(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
                None => matches!(
                    error.downcast_ref::<nix::errno::Errno>(),
                    Some(nix::errno::Errno::EPERM | nix::errno::Errno::EACCES)
                ),
            };
            if denied {
                return true;
            }
            source = error.source();
        }
        false
    }
}

impl<E: Into<osvc_cni::Error>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Core(Box::new(error.into()))
    }
}

fn suggestion(nearest: Option<&str>, known: &[String]) -> String {
    match (nearest, known) {
        (Some(nearest), _) => format!(": did you mean {nearest:?}?"),
        (None, []) => ": there is none on this host".to_owned(),
        (None, known) => format!(": there are {}", known.join(", ")),
    }
}
