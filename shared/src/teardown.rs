//! Taking a network off this host: tunnels, routes, bridge, rules, and the records of what was set up.
//!
//! What is for ever stays: the addresses and whose they were, which segment is whose, the WireGuard key. A network that
//! comes back is what it was.

use std::path::Path;

use ipnet::IpNet;

use crate::netlink::netns::host_id;
use crate::netlink::{Link, RouteSocket};
use crate::network::leaving::Leaving;
use crate::network::names::is_ours;
use crate::network::setup::{Site, locked};
use crate::network::{NetworkRecord, alias, port};
use crate::routed::{RoutedRecord, node};
use crate::{Error, Host, NetworkName, firewall, spoof};

use bridge::{Bridge, bridge};

pub use tenants::Tenants;

mod bridge;
mod tenants;

/// How a network is taken away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct How {
    /// Look only.
    pub dry_run: bool,
    /// Whoever may still use it.
    pub force: bool,
}

/// What became of a network that was to be taken away.
#[derive(Debug)]
pub enum Outcome {
    /// It is gone: what was done for that, or would be.
    Gone(Vec<String>),
    /// It stays as it is: somebody uses it.
    InUse(Tenants),
}

/// True if a network was set up on this host in this boot.
///
/// # Errors
/// A record cannot be read.
pub fn is_set_up(host: &Host, name: &NetworkName) -> Result<bool, Error> {
    let netns = host_id()?;
    let bridge = NetworkRecord::load(host, name)?.is_some_and(|record| record.is_of(host, &netns));
    Ok(bridge || RoutedRecord::load(host, name)?.is_some_and(|record| record.is_of(host, &netns)))
}

/// Takes a network off this host, whether it is configured or not: unless somebody uses it, or by force. A bridge that
/// has ports, or that is not ours, stays. One that is not there is no error.
///
/// # Errors
/// A record or lock cannot be had, or the kernel refuses; what could be removed was, and the next call goes on.
pub fn teardown(host: &Host, name: &NetworkName, folder: Option<&Path>, how: How) -> Result<Outcome, Error> {
    act(host, name, folder, how, &Scene::default())
}

/// As [`teardown`] without force, of a network that goes to another bridge: the gateway addresses that we have put on a
/// bridge of somebody else go too.
///
/// # Errors
/// As [`teardown`].
pub fn leave_bridge(host: &Host, name: &NetworkName, folder: Option<&Path>, dry_run: bool) -> Result<Outcome, Error> {
    act(host, name, folder, How { dry_run, force: false }, &Scene { moves: true, ..Scene::default() })
}

/// What [`teardown`] would do, once the networks that are `gone` are.
///
/// # Errors
/// A record cannot be read, or the kernel does not answer.
pub fn rehearse(
    host: &Host,
    name: &NetworkName,
    folder: Option<&Path>,
    force: bool,
    gone: &[NetworkName],
) -> Result<Outcome, Error> {
    act(host, name, folder, How { dry_run: true, force }, &Scene { gone, ..Scene::default() })
}

/// What a network goes in.
#[derive(Debug, Default)]
struct Scene<'a> {
    /// It comes back on another bridge.
    moves: bool,
    /// Networks that would be gone by then.
    gone: &'a [NetworkName],
}

fn act(host: &Host, name: &NetworkName, folder: Option<&Path>, how: How, scene: &Scene<'_>) -> Result<Outcome, Error> {
    let recorded = NetworkRecord::load(host, name)?.and_then(|record| record.ipam);
    let folder = folder.or(recorded.as_deref());
    if !how.force {
        let tenants = Tenants::of(host, name, folder)?;
        if !tenants.is_empty() {
            return Ok(Outcome::InUse(tenants));
        }
    }
    let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
    let mut site = Site { host, netns: &netns, socket: &mut socket };
    if how.dry_run {
        return would(&mut site, name, scene).map(Outcome::Gone);
    }
    let outcome = locked(host, || Ok(take(&mut site, name, how, scene)))??;
    if let Outcome::Gone(_) = outcome {
        firewall::forget(host, name)?;
    }
    Ok(outcome)
}

/// Under the lock of those who set networks up.
fn take(site: &mut Site<'_>, name: &NetworkName, how: How, scene: &Scene<'_>) -> Result<Outcome, Error> {
    let record = NetworkRecord::load(site.host, name)?;
    // Whoever joins makes a port and looks for the record then: one of the two sees the other.
    NetworkRecord::remove(site.host, name)?;
    let taken = match live_ends(site.socket, name) {
        Ok(ends) if !how.force && !ends.is_empty() => Ok(Outcome::InUse(Tenants { ends, ..Tenants::default() })),
        Ok(_) => remove(site, name, record.as_ref(), scene).map(Outcome::Gone),
        Err(error) => Err(error),
    };
    if !matches!(taken, Ok(Outcome::Gone(_)))
        && let Some(record) = record
    {
        record.save(site.host)?;
    }
    taken
}

fn remove(
    site: &mut Site<'_>,
    name: &NetworkName,
    record: Option<&NetworkRecord>,
    scene: &Scene<'_>,
) -> Result<Vec<String>, Error> {
    let mut changes = node::leave(site.host, site.netns, site.socket, name)?;
    port::sweep(site.socket, name, None)?;
    spoof::sweep(site.host, name, None, false)?;
    let here = record.filter(|record| record.is_of(site.host, site.netns));
    if let Some(device) = here.and_then(|record| record.vlan_device.as_deref())
        && let Some(device) = site.delete_vlan_device(name, device)?
    {
        changes.push(format!("removed device {device}"));
    }
    match bridge(site, name, here, scene)? {
        Bridge::None => {}
        Bridge::Empty(link) => {
            site.delete_bridge_and_pairs(&link)?;
            changes.push(format!("removed bridge {}", link.name));
        }
        Bridge::Stays(link, why) => {
            let leaving = here.map(|record| site.leaving(record, scene.moves, &[])).transpose()?.flatten();
            for (device, gateway) in leaving.iter().flat_map(Leaving::addresses) {
                site.socket.remove_address(device, gateway)?;
                changes.push(format!("removed address {}", place(device, gateway, &link)));
            }
            if here.is_some_and(|record| record.promiscuous_by_us) && site.leave_promiscuous(name, &link.name)? {
                changes.push(format!("switched promiscuous mode of bridge {} off", link.name));
            }
            changes.push(format!("bridge {} stays: {why}", link.name));
        }
    }
    if here.is_some() {
        changes.push("removed firewall rules".to_owned());
    }
    Ok(changes)
}

/// What [`take`] would do.
fn would(site: &mut Site<'_>, name: &NetworkName, scene: &Scene<'_>) -> Result<Vec<String>, Error> {
    let record = NetworkRecord::load(site.host, name)?.filter(|record| record.is_of(site.host, site.netns));
    let mut changes = node::would_remove(site.host, site.netns, site.socket, name, scene.gone)?;
    let device = match record.as_ref().and_then(|record| record.vlan_device.as_deref()) {
        Some(device) => site.lone_vlan_device(name, device, scene.gone)?,
        None => None,
    };
    changes.extend(device.iter().map(|device| format!("would remove device {}", device.name)));
    match bridge(site, name, record.as_ref(), scene)? {
        Bridge::None => {}
        Bridge::Empty(link) => changes.push(format!("would remove bridge {}", link.name)),
        Bridge::Stays(link, why) => {
            let leaving = record.as_ref().map(|record| site.leaving(record, scene.moves, scene.gone)).transpose()?;
            // They go with the device.
            let leaving = leaving.flatten().filter(|_| device.is_none());
            for (device, gateway) in leaving.iter().flat_map(Leaving::addresses) {
                changes.push(format!("would remove address {}", place(device, gateway, &link)));
            }
            if let Some(record) = &record
                && site.ends_promiscuous(record, &link, scene.gone)?
            {
                changes.push(format!("would switch promiscuous mode of bridge {} off", link.name));
            }
            changes.push(format!("bridge {} would stay: {why}", link.name));
        }
    }
    if record.is_some() {
        changes.push("would remove firewall rules".to_owned());
    }
    Ok(changes)
}

/// `10.11.0.1/24 from bridge br0`
fn place(device: &Link, gateway: IpNet, bridge: &Link) -> String {
    let what = if device.index == bridge.index { "bridge " } else { "" };
    format!("{gateway} from {what}{}", device.name)
}

/// The host ends of a network whose containers are there.
fn live_ends(socket: &mut RouteSocket, name: &NetworkName) -> Result<Vec<Link>, Error> {
    let is_of_network = |link: &Link| link.alias.as_deref().and_then(alias::network) == Some(name.as_str());
    let mut ends = Vec::new();
    for link in socket.links()?.into_iter().filter(|link| is_ours(link) && link.is_a("veth") && is_of_network(link)) {
        if socket.peer_is_alive(&link)? {
            ends.push(link);
        }
    }
    Ok(ends)
}
