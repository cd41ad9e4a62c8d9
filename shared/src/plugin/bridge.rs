//! osvc-bridge: a container on a bridge, with one line of configuration or the keys of the reference plugin.
//!
//! What is done for each verb is below, for any [`Network`]: osvc-routed does the same for its own.

use crate::ipam::config::IpamConfig;
use crate::network::Wanted;
use crate::protocol::{Call, CniResult, Plugin};
use crate::{Attachment, Error};

pub(super) mod add;
pub(super) mod check;
pub(super) mod del;
pub(super) mod gc;
mod network;
mod result;
pub(super) mod status;

pub(super) use network::{Network, Source};

/// The `osvc-bridge` plugin.
pub struct Bridge;

impl Plugin for Bridge {
    fn name(&self) -> &'static str {
        "osvc-bridge"
    }

    fn add(&self, call: &Call, attachment: &Attachment) -> Result<CniResult, Error> {
        add::add(call, attachment, &Network::of_bridge(call)?)
    }

    fn del(&self, call: &Call, attachment: &Attachment) -> Result<(), Error> {
        del::del(call, attachment)
    }

    fn check(&self, call: &Call, attachment: &Attachment) -> Result<(), Error> {
        check::check(call, attachment, &Network::of_bridge(call)?)
    }

    fn status(&self, call: &Call) -> Result<(), Error> {
        status::status(call, &Network::of_bridge(call)?)
    }

    fn gc(&self, call: &Call) -> Result<(), Error> {
        gc::gc(call)
    }
}

/// What the configuration of a call asks of this host before any container comes; `None` if another plugin
/// gives the addresses, and with them the gateway.
///
/// # Errors
/// The configuration cannot be used.
pub fn wanted(call: &Call) -> Result<Option<Wanted>, Error> {
    Ok(Network::of_bridge(call)?.wanted())
}

/// How the network of a call gives addresses; `None` if it gives none, or lets another plugin do it.
///
/// # Errors
/// The configuration cannot be used.
pub fn addresses(call: &Call) -> Result<Option<IpamConfig>, Error> {
    Ok(Network::of_bridge(call)?.addresses())
}
