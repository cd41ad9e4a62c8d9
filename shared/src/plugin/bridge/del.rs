//! DEL: link, then address. It needs neither namespace nor configuration nor previous result.

use std::path::Path;

use super::super::ipam;
use super::delegated;
use crate::ipam::config::Folders;
use crate::ipam::host_local::HostLocal;
use crate::netlink::netns::{Netns, Probe, probe};
use crate::netlink::{Link, Mac, RouteSocket};
use crate::network::config::Low;
use crate::network::{self, BridgeConfig, NetworkRecord, port};
use crate::protocol::{Call, Command, delegate};
use crate::{Attachment, Error};

/// Detaches a container.
pub(super) fn del(call: &Call, attachment: &Attachment) -> Result<(), Error> {
    let mut errors: Vec<Error> = Vec::new();
    match RouteSocket::open() {
        Ok(mut socket) => {
            if let Err(error) = delete_link(call, attachment, &mut socket) {
                errors.push(error);
            }
        }
        Err(error) => errors.push(error.into()),
    }
    if let Err(error) = ipam::release(call, attachment) {
        errors.push(error);
    }
    if let Some(plugin) = delegated(call)
        && let Err(error) = delegate(call, &plugin, Command::Del, Some(attachment))
    {
        errors.push(error.into());
    }
    Error::collect(errors)
}

fn delete_link(call: &Call, attachment: &Attachment, socket: &mut RouteSocket) -> Result<(), Error> {
    if port::delete(socket, attachment)? {
        return Ok(());
    }
    let Some(netns) = call.netns.as_deref() else { return Ok(()) };
    match reference_veth(call, attachment, socket, netns) {
        Ok(Some(host)) => {
            tracing::info!("{attachment} was made by the reference plugin: {} deleted", host.name);
            Ok(socket.delete_link(&host)?)
        }
        Ok(None) => Ok(()),
        // The runtime removes the namespace, and with it the pair.
        Err(error) => {
            tracing::debug!("{attachment}: no look for a reference veth: {error}");
            Ok(())
        }
    }
}

/// The host end that the reference plugin made for this attachment. The path may be a successor's by now:
/// so it must be proven to be this attachment's, by host-local's record or by name in the previous result.
fn reference_veth(
    call: &Call,
    attachment: &Attachment,
    socket: &mut RouteSocket,
    path: &Path,
) -> Result<Option<Link>, Error> {
    let recorded = is_host_locals(call, attachment);
    let listed = listed_host_end(call, attachment);
    if !recorded && listed.is_none() || !matches!(probe(path)?, Probe::Network(_)) {
        return Ok(None);
    }
    let Some(bridge) = bridge(call, socket)? else { return Ok(None) };
    let mut inside = Netns::open(path)?.enter(RouteSocket::open)?;
    let found = port::reference_host_end(socket, &mut inside, attachment.ifname.as_str(), bridge)?;
    let Some(host) = found else { return Ok(None) };
    let peer = inside.link_by_name(attachment.ifname.as_str())?;
    let is_listed = listed.is_some_and(|(name, mac)| {
        name == host.name && mac.is_none_or(|mac| peer.is_some_and(|peer| peer.mac == Some(mac.0)))
    });
    Ok((recorded || is_listed).then_some(host))
}

fn is_host_locals(call: &Call, attachment: &Attachment) -> bool {
    let folders = Folders::of_call(call);
    let records = HostLocal::new(&folders.host_local, &call.network);
    records.records_of(&attachment.container, &attachment.ifname).is_ok_and(|found| !found.is_empty())
}

/// The host end that the previous result names, and the MAC address of the container's.
fn listed_host_end(call: &Call, attachment: &Attachment) -> Option<(String, Option<Mac>)> {
    let result = call.config.prev_result().ok()??;
    let host =
        result.interfaces.iter().find(|interface| interface.sandbox.is_none() && interface.name.starts_with("veth"))?;
    let mut inside = result.interfaces.iter().filter(|interface| interface.sandbox.is_some());
    let inside = inside.find(|interface| interface.name == attachment.ifname.as_str())?;
    Some((host.name.clone(), inside.mac.as_deref().and_then(|mac| mac.parse().ok())))
}

/// The number of the network's bridge: that of its record, or as configured.
fn bridge(call: &Call, socket: &mut RouteSocket) -> Result<Option<u32>, Error> {
    let recorded = NetworkRecord::load(&call.host, &call.network).ok().flatten().map(|record| record.bridge);
    let configured = || {
        let low: Low = call.config.low()?;
        Ok::<_, Error>(BridgeConfig::new(&call.network, &low)?.bridge.name)
    };
    for name in [configured().ok(), recorded].into_iter().flatten() {
        if let Some(link) = socket.link_by_name(&name).map_err(network::Error::from)?.filter(|link| link.is_a("bridge"))
        {
            return Ok(Some(link.index));
        }
    }
    Ok(None)
}
