//! A node that has left a network: the configuration is there, and says that this node has no part in it any more.

use std::fmt;

use crate::Error;
use crate::protocol::{Call, json};
use crate::routed::config::{Contradiction, Low};
use crate::routed::{self, RoutedConfig, SegmentRecord};

/// Why this node has no part in a network any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Departed {
    /// The list says so.
    Retired(String),
    /// It was in the list when it was set up, and is not now.
    Unlisted(String),
}

impl fmt::Display for Departed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retired(node) => write!(f, "this node, {node}, is retired"),
            Self::Unlisted(node) => write!(f, "this node, {node}, is not in the list any more"),
        }
    }
}

/// Why this node has no part in the network of this configuration any more; none if it has. A name that this node has
/// not been set up by proves nothing: a host that is called otherwise for a day is no reason to take a network away.
///
/// # Errors
/// The configuration cannot be used for another reason, or the record of the segments cannot be read.
pub fn departed(call: &Call) -> Result<Option<Departed>, Error> {
    let error = match RoutedConfig::from_call(call) {
        Ok(_) => return Ok(None),
        Err(error) => error,
    };
    let Some(record) = SegmentRecord::load(&call.host, &call.network)? else { return Err(error.into()) };
    let known = record.node;
    match &error {
        routed::Error::Contradiction(Contradiction::Retired(node)) if *node == known => {
            Ok(Some(Departed::Retired(known)))
        }
        routed::Error::Contradiction(Contradiction::NotListed { .. }) if !is_listed(call, &known)? => {
            Ok(Some(Departed::Unlisted(known)))
        }
        _ => Err(error.into()),
    }
}

fn is_listed(call: &Call, node: &str) -> Result<bool, Error> {
    let low: Low = call.config.low()?;
    let mut names = low.nodes.iter().flatten().filter_map(|listed| json::get(listed.as_object()?, "name")?.as_str());
    Ok(names.any(|name| name.to_lowercase() == node))
}
