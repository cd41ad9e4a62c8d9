//! STATUS: would an ADD be served?

use super::{Network, Source};
use crate::netlink::RouteSocket;
use crate::netlink::netns::host_id;
use crate::network::setup::Site;
use crate::network::{self, NetworkRecord};
use crate::protocol::{Call, Command, delegate};
use crate::{Error, firewall, ipam as addresses};

/// Looks for what would keep an ADD from working.
pub(in crate::plugin) fn status(call: &Call, network: &Network) -> Result<(), Error> {
    crate::host::writable(&NetworkRecord::folder(&call.host)).map_err(network::Error::from)?;
    if !matches!(network.source, Source::Nobody) {
        firewall::available()?;
    }
    let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
    let mut site = Site { host: &call.host, netns: &netns, socket: &mut socket };
    if let Some(wanted) = network.wanted()
        && site.in_place(&wanted)?.is_none()
    {
        site.refuse(&wanted).map_err(|error| network::Error::WouldFail(Box::new(error)))?;
    }
    if let Some(member) = &network.member {
        member.available(&mut site)?;
    }
    match &network.source {
        Source::Nobody => {}
        Source::Ours(config) => addresses::status(&call.host, config)?,
        Source::Delegate(plugin) => drop(delegate(call, plugin, Command::Status, None)?),
    }
    // After all else: an ADD would work.
    network.member.as_ref().map_or(Ok(()), |member| member.agrees(&call.host))
}
