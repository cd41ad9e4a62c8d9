//! DEL: link, then address. It needs neither namespace nor configuration nor previous result.

use serde::Deserialize;

use super::super::ipam;
use crate::ipam::adopt;
use crate::ipam::config::Folders;
use crate::ipam::host_local::HostLocal;
use crate::netlink::netns::{Netns, Probe, host_id, probe};
use crate::netlink::{Link, Mac, RouteSocket};
use crate::network::config::Low;
use crate::network::{self, BridgeConfig, NetworkRecord, port};
use crate::protocol::{Call, Command, delegate, json};
use crate::{Attachment, Error, spoof};

/// Detaches a container.
pub(in crate::plugin) fn del(call: &Call, attachment: &Attachment) -> Result<(), Error> {
    let mut errors: Vec<Error> = Vec::new();
    match RouteSocket::open() {
        Ok(mut socket) => {
            if let Err(error) = delete_link(call, attachment, &mut socket) {
                errors.push(error);
            }
        }
        Err(error) => errors.push(error.into()),
    }
    // The port is gone, or cannot be deleted now and is gone when the runtime comes again.
    if errors.is_empty()
        && let Err(error) = spoof::remove(&call.host, attachment)
    {
        errors.push(error.into());
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
    match reference_veth(call, attachment, socket) {
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

/// The host end that the reference plugin made for this attachment: the one of the previous result, by name and
/// MAC address; else the one of the record of `osvc-net adopt`; else, if host-local has a record of the attachment, the
/// other end of the interface in the namespace. The path alone proves nothing: it may be a successor's by now.
fn reference_veth(call: &Call, attachment: &Attachment, socket: &mut RouteSocket) -> Result<Option<Link>, Error> {
    let Some(bridge) = bridge(call, socket)? else { return Ok(None) };
    if let Some((name, mac)) = listed_host_end(call)
        && let Some(host) = socket.link_by_name(&name)?
        && port::is_reference_port(&host, bridge)
        && host.mac == Some(mac.0)
    {
        return Ok(Some(host));
    }
    if let Some(host) = adopted_host_end(call, attachment)?
        && let Some(host) = socket.link_by_name(&host)?
        && port::is_reference_port(&host, bridge)
    {
        return Ok(Some(host));
    }
    let Some(path) = call.netns.as_deref() else { return Ok(None) };
    if !is_host_locals(call, attachment) || !matches!(probe(path)?, Probe::Network(_)) {
        return Ok(None);
    }
    let mut inside = Netns::open(path)?.enter(RouteSocket::open)?;
    Ok(port::reference_host_end(socket, &mut inside, attachment.ifname.as_str(), bridge)?)
}

fn is_host_locals(call: &Call, attachment: &Attachment) -> bool {
    let folders = Folders::of_call(call);
    let records = HostLocal::new(&folders.host_local, &call.network);
    records.records_of(&attachment.container, &attachment.ifname).is_ok_and(|found| !found.is_empty())
}

/// The host end that is recorded since the attachment was taken over from host-local: not one of ours.
fn adopted_host_end(call: &Call, attachment: &Attachment) -> Result<Option<String>, Error> {
    let folders = Folders::of_call(call);
    let host_end = adopt::host_end_of(&call.host, &folders.ours, attachment)?;
    let here = host_id()?;
    let host_end = host_end.filter(|end| end.netns.same(&here) && end.ifname != attachment.host_end());
    Ok(host_end.map(|end| end.ifname))
}

/// The host end that the previous result names, and its MAC address.
pub(super) fn listed_host_end(call: &Call) -> Option<(String, Mac)> {
    let result = call.config.prev_result().ok()??;
    let host = result
        .interfaces
        .into_iter()
        .find(|interface| interface.sandbox.is_none() && interface.name.starts_with("veth"))?;
    Some((host.name, host.mac?.parse().ok()?))
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

/// The plugin that `ipam.type` names, if that is not osvc-ipam; whatever else is wrong with the
/// configuration. For DEL and GC.
pub(super) fn delegated(call: &Call) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Kind {
        r#type: Option<String>,
    }
    let ipam = call.config.get("ipam")?;
    let Kind { r#type } = json::from_value(ipam).ok()?;
    r#type.filter(|plugin| plugin != "osvc-ipam")
}
