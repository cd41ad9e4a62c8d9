//! osvc-routed: a container on this node's segment of a network that all nodes of a cluster have in common.
//!
//! On its own segment it is osvc-bridge, by the same code ([`bridge`](super::bridge)); what a node has beyond that is a
//! [`Member`]'s.

use super::bridge::{Network, add, check, del, gc, status};
use crate::ipam::config::IpamConfig;
use crate::network::Wanted;
use crate::protocol::{Call, CniResult, Plugin};
use crate::routed::hooks;
use crate::{Attachment, Error};

mod departed;
mod member;
mod setup;

pub use departed::{Departed, departed};
pub(super) use member::Member;
pub use setup::{Found, How, refuse_move, setup};

/// The `osvc-routed` plugin.
pub struct Routed;

impl Plugin for Routed {
    fn name(&self) -> &'static str {
        "osvc-routed"
    }

    fn add(&self, call: &Call, attachment: &Attachment) -> Result<CniResult, Error> {
        add::add(call, attachment, &network(call)?)
    }

    fn del(&self, call: &Call, attachment: &Attachment) -> Result<(), Error> {
        del::del(call, attachment)
    }

    fn check(&self, call: &Call, attachment: &Attachment) -> Result<(), Error> {
        check::check(call, attachment, &network(call)?)
    }

    fn status(&self, call: &Call) -> Result<(), Error> {
        status::status(call, &network(call)?)
    }

    fn gc(&self, call: &Call) -> Result<(), Error> {
        gc::gc(call)
    }

    fn answered(&self, _: &Call) {
        hooks::launch();
    }
}

/// What the configuration of a call asks of this host before any container comes: this node's own part.
///
/// # Errors
/// The configuration cannot be used, or gives this node no segment.
pub fn wanted(call: &Call) -> Result<Option<Wanted>, Error> {
    Ok(network(call)?.wanted())
}

/// How this node gives addresses of its segments.
///
/// # Errors
/// The configuration cannot be used, or gives this node no segment.
pub fn addresses(call: &Call) -> Result<Option<IpamConfig>, Error> {
    Ok(network(call)?.addresses())
}

fn network(call: &Call) -> Result<Network, Error> {
    Network::of_cluster(call, Member::of(call)?)
}

#[cfg(test)]
mod tests;
