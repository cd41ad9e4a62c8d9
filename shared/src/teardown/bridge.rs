//! What is to become of the bridge of a network that goes.

use super::Scene;
use crate::netlink::Link;
use crate::network::names::{BridgeName, is_ours};
use crate::network::setup::Site;
use crate::network::{NetworkRecord, port};
use crate::{Error, NetworkName};

/// What is to become of a network's bridge.
pub(super) enum Bridge {
    None,
    Empty(Link),
    Stays(Link, String),
}

pub(super) fn bridge(
    site: &mut Site<'_>,
    name: &NetworkName,
    record: Option<&NetworkRecord>,
    scene: &Scene<'_>,
) -> Result<Bridge, Error> {
    let link = match record {
        Some(record) => site.socket.link_by_name(&record.bridge)?.filter(|link| link.is_a("bridge")),
        // It may be left of a network that was taken away under its containers, or by a teardown that was killed.
        None => site.socket.links()?.into_iter().find(|link| is_bridge_of(link, name)),
    };
    let Some(link) = link else { return Ok(Bridge::None) };
    if !is_ours(&link) {
        let keeps = if scene.moves { "" } else { ", and keeps its addresses" };
        return Ok(Bridge::Stays(link, format!("it is not ours{keeps}")));
    }
    let mut others = NetworkRecord::all(site.host)?;
    others.retain(|other| other.name != *name && other.is_of(site.host, site.netns) && other.bridge == link.name);
    others.retain(|other| !scene.gone.contains(&other.name));
    if let Some(other) = others.first() {
        return Ok(Bridge::Stays(link, format!("it is also that of network {}", other.name)));
    }
    match ports(site, name, &link, scene)? {
        0 => Ok(Bridge::Empty(link)),
        ports => Ok(Bridge::Stays(link, format!("it has {ports} ports"))),
    }
}

/// The ports of others than the dead of this network and of those that are gone.
fn ports(site: &mut Site<'_>, name: &NetworkName, bridge: &Link, scene: &Scene<'_>) -> Result<usize, Error> {
    let mut ports = site.ports(bridge)?;
    for network in scene.gone.iter().chain([name]) {
        let dead = port::leftovers(site.socket, network)?;
        ports.retain(|port| !dead.contains(&port.name));
    }
    Ok(ports.len())
}

/// True for a bridge that was made for the network, under whatever name.
fn is_bridge_of(link: &Link, name: &NetworkName) -> bool {
    let is_named = || link.name == BridgeName::of(name).name || link.alias.as_deref() == Some(&format!("osvc:{name}"));
    link.is_a("bridge") && is_ours(link) && is_named()
}
