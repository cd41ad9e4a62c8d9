//! CHECK: the part of the result that is ours, in the kernel and in the records.

use std::net::IpAddr;
use std::path::Path;

use super::super::ipam;
use super::del::listed_host_end;
use super::{Network, Source};
use crate::netlink::RouteSocket;
use crate::netlink::netns::Netns;
use crate::network::check::{Listed, check as check_network};
use crate::network::container::Inside;
use crate::network::setup::Site;
use crate::network::{self, NetworkRecord};
use crate::protocol::{self, Call, CniResult, Command, delegate};
use crate::{Attachment, Error, firewall, spoof};

/// Verifies an attachment.
pub(in crate::plugin) fn check(call: &Call, attachment: &Attachment, network: &Network) -> Result<(), Error> {
    let previous = call.config.prev_result()?.ok_or(protocol::Error::PrevResultMissing)?;
    let mut listed = listed(&previous, attachment, network.config.up);
    listed.host_end = listed_host_end(call).map(|(name, _)| name);
    match &network.source {
        Source::Nobody => {}
        Source::Ours(config) => {
            let addresses: Vec<IpAddr> = listed.addresses.iter().map(|address| address.addr()).collect();
            ipam::check(call, config, attachment, &addresses)?;
        }
        Source::Delegate(plugin) => drop(delegate(call, plugin, Command::Check, Some(attachment))?),
    }
    let path = call.netns.as_deref().unwrap_or(Path::new(""));
    let home = Netns::current()?;
    let netns = Netns::open(path).map_err(network::Error::Netns)?;
    let mut inside = Inside::open(&netns, &home)?;
    let (host_netns, mut socket) = (home.id_of_thread()?, RouteSocket::open()?);
    let mut site = Site { host: &call.host, netns: &host_netns, socket: &mut socket };
    let record = NetworkRecord::load(&call.host, &call.network)?;
    check_network(&mut site, &mut inside, record.as_ref(), attachment, &listed, &network.config)?;
    spoof::check(&call.host, attachment, network.config.checks())?;
    if let Some(record) = &record {
        firewall::check(&call.host, record)?;
    }
    network.member.as_ref().map_or(Ok(()), |member| member.check(&mut site))
}

/// The part of a result that is this attachment's. Chained plugins may have added interfaces and addresses.
fn listed(result: &CniResult, attachment: &Attachment, up: bool) -> Listed {
    let is_own =
        |interface: &protocol::Interface| interface.sandbox.is_some() && interface.name == attachment.ifname.as_str();
    let index = result.interfaces.iter().position(is_own);
    let interface = index.and_then(|index| result.interfaces.get(index));
    let is_ours = |ip: &&protocol::Ip| ip.interface.is_none() || ip.interface.map(|at| at as usize) == index;
    Listed {
        mac: interface.and_then(|interface| interface.mac.as_deref()?.parse().ok()),
        mtu: interface.and_then(|interface| interface.mtu),
        addresses: result.ips.iter().filter(is_ours).map(|ip| ip.address).collect(),
        routes: result.routes.clone(),
        up,
        host_end: None,
    }
}
