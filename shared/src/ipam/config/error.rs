//! What can be wrong with a configuration of addresses.

use std::path::PathBuf;

use serde_json::Value;

use crate::ipam::key::TemplateError;
use crate::ipam::range::{RangeError, RangeSet};
use crate::ipam::requested::RequestError;
use crate::protocol::{self, JsonError, SpecVersion};
use crate::{Code, NetworkName};

/// A configuration that cannot be used. The texts are those of the reference host-local plugin, which people
/// search for, with the path of the key at fault.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// stdin holds other types of values than it should.
    #[error(transparent)]
    Decode(#[from] protocol::Error),
    /// So does a part of it that comes in two shapes.
    #[error("error unmarshall network config: {0}")]
    Part(JsonError),
    /// Nothing to allocate from.
    #[error("no IP ranges specified: set `ipam.subnet` or `ipam.ranges`")]
    NoRanges,
    /// A range set that cannot be used.
    #[error("invalid range set {index}: {source} ({at})")]
    RangeSet {
        /// Position, `runtimeConfig.ipRanges` first, then the flat form, then `ranges`.
        index: usize,
        /// Path of the key.
        at: String,
        /// Why.
        source: Box<RangeError>,
    },
    /// A range without `subnet`.
    #[error("invalid range set {index}: no subnet ({at})")]
    NoSubnet {
        /// Position, as above.
        index: usize,
        /// Path of the key.
        at: String,
    },
    /// Two sets share addresses: a container would get two addresses out of one pool.
    #[error(
        "range set {first} overlaps with {second}: {first_set} and {second_set}; the outer list of `ranges` gives an \
         address each, the inner lists are pools of one address"
    )]
    SetsOverlap {
        /// Position of the one.
        first: usize,
        /// Position of the other.
        second: usize,
        /// The one.
        first_set: RangeSet,
        /// The other.
        second_set: RangeSet,
    },
    /// The result of CNI 0.1.0 and 0.2.0 has room for one address of each family.
    #[error("CNI version {0} does not support more than 1 address per family")]
    OnePerFamily(SpecVersion),
    /// No prefix, or none that can be.
    #[error("invalid CIDR address: {text} ({at})")]
    Cidr {
        /// As configured.
        text: String,
        /// Path of the key.
        at: String,
    },
    /// No address.
    #[error("invalid IP address {text} ({at})")]
    Address {
        /// As configured.
        text: String,
        /// Path of the key.
        at: String,
    },
    /// An exclusion that means nothing, or not what it seems to.
    #[error("cannot exclude {text:?}: {reason} ({at})")]
    Exclude {
        /// As configured.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
        /// Path of the key.
        at: String,
    },
    /// A claim that is none.
    #[error("{at} {value}: {reason}")]
    Claim {
        /// Path of the key.
        at: String,
        /// As configured.
        value: Value,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Records would be kept wherever the runtime happens to run.
    #[error("{at} {} is not an absolute path", .path.display())]
    RelativePath {
        /// As configured.
        path: PathBuf,
        /// Path of the key.
        at: &'static str,
    },
    /// A key template that cannot be filled in.
    #[error("ipam.key {text:?}: {source}")]
    Template {
        /// As configured.
        text: String,
        /// Why.
        source: TemplateError,
    },
    /// The resolver configuration cannot be read.
    #[error("cannot read ipam.resolvConf {} of network {network}: {source}", .path.display())]
    ResolvConf {
        /// As configured.
        path: PathBuf,
        /// The network.
        network: NetworkName,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// Requested addresses that cannot be given.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl ConfigError {
    /// The CNI error code.
    pub fn code(&self) -> Code {
        match self {
            Self::Decode(_) | Self::Part(_) => Code::Decode,
            Self::ResolvConf { .. } => Code::Io,
            Self::Request(error) => error.code(),
            _ => Code::InvalidConfig,
        }
    }
}
