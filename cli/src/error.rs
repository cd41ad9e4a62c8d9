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
    #[error("network {0} has records but no configuration: it cannot be set up")]
    Unconfigured(NetworkName),
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
    /// All that concerns no network of its own.
    #[error(transparent)]
    Core(Box<osvc_cni::Error>),
    /// The list cannot be printed.
    #[error("cannot print: {0}")]
    Print(std::io::Error),
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
