//! Taking a network off this host: tunnels, routes, bridge, rules, and the records of what was set up.
//!
//! What is for ever stays: the addresses and whose they were, which segment is whose, the WireGuard key. A network that
//! comes back is what it was.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::rc::Rc;

use crate::ipam::liveness::{Kernel, Liveness, Witness};
use crate::ipam::record::Record;
use crate::netlink::netns::host_id;
use crate::netlink::{Link, RouteSocket};
use crate::network::names::{BridgeName, is_ours};
use crate::network::setup::{Site, locked};
use crate::network::{NetworkRecord, alias, port};
use crate::routed::{RoutedRecord, node};
use crate::{Error, Host, NetworkName, firewall, ipam, portmap, spoof};

/// How many tenants are told one by one.
const TOLD: usize = 3;

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

/// Who uses a network.
#[derive(Debug, Default)]
pub struct Tenants {
    /// Addresses that are held, and not by what is dead.
    pub addresses: Vec<(IpAddr, Record)>,
    /// Host ports of what is not dead.
    pub ports: Vec<Rc<portmap::Record>>,
    /// Host ends whose containers are there.
    pub ends: Vec<Link>,
}

impl Tenants {
    /// Those of a network. `folder` is where its addresses are by its configuration.
    ///
    /// # Errors
    /// A store cannot be read, or the kernel does not answer.
    pub fn of(host: &Host, name: &NetworkName, folder: Option<&Path>) -> Result<Self, Error> {
        let mut witness = Kernel::new(host);
        let mut addresses = ipam::list(host, name, folder)?;
        addresses.retain(|(_, record)| record.is_held() && witness.judge(record) != Liveness::Dead);
        let (ports, records) = portmap::list(host)?;
        let is_dead =
            |index: usize| ports.iter().any(|port| port.record == index && port.state == portmap::State::Dead);
        let of_network = records.into_iter().enumerate().filter(|(_, record)| record.network == *name);
        let ports = of_network.filter(|(index, _)| !is_dead(*index)).map(|(_, record)| record).collect();
        Ok(Self { addresses, ports, ends: live_ends(&mut RouteSocket::open()?, name)? })
    }

    /// True if there is nobody.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.ports.is_empty() && self.ends.is_empty()
    }
}

impl fmt::Display for Tenants {
    /// `10.11.0.7 of "web" (container …, interface eth0) since …, host ports of …, and 2 more`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = self.addresses.iter().map(|(address, record)| format!("{address} of {}", record.holder()));
        let ports = self.ports.iter().map(|record| format!("host ports of {}", record.holder()));
        // Whose a host end is, is told by its address.
        let known = |end: &&Link| {
            let is_it = |record: &Record| record.host.as_ref().is_some_and(|host| host.ifname == end.name);
            self.addresses.iter().any(|(_, record)| is_it(record))
        };
        let ends = self.ends.iter().filter(|end| !known(end)).map(|end| format!("host end {}", end.name));
        let all: Vec<String> = addresses.chain(ports).chain(ends).collect();
        f.write_str(&all[..all.len().min(TOLD)].join(", "))?;
        match all.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
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
        return would(&mut site, name).map(Outcome::Gone);
    }
    let outcome = locked(host, || Ok(take(&mut site, name, how)))??;
    if let Outcome::Gone(_) = outcome {
        firewall::forget(host, name)?;
    }
    Ok(outcome)
}

/// Under the lock of those who set networks up.
fn take(site: &mut Site<'_>, name: &NetworkName, how: How) -> Result<Outcome, Error> {
    let record = NetworkRecord::load(site.host, name)?;
    // Whoever joins makes a port and looks for the record then: one of the two sees the other.
    NetworkRecord::remove(site.host, name)?;
    let taken = match live_ends(site.socket, name) {
        Ok(ends) if !how.force && !ends.is_empty() => Ok(Outcome::InUse(Tenants { ends, ..Tenants::default() })),
        Ok(_) => remove(site, name, record.as_ref()).map(Outcome::Gone),
        Err(error) => Err(error),
    };
    if !matches!(taken, Ok(Outcome::Gone(_)))
        && let Some(record) = record
    {
        record.save(site.host)?;
    }
    taken
}

fn remove(site: &mut Site<'_>, name: &NetworkName, record: Option<&NetworkRecord>) -> Result<Vec<String>, Error> {
    let mut changes = node::leave(site.host, site.netns, site.socket, name)?;
    port::sweep(site.socket, name, None)?;
    spoof::sweep(site.host, name, None, false)?;
    let here = record.filter(|record| record.is_of(site.host, site.netns));
    if let Some(device) = here.and_then(|record| record.vlan_device.as_deref())
        && let Some(device) = site.delete_vlan_device(name, device)?
    {
        changes.push(format!("removed device {device}"));
    }
    match bridge(site, name, here)? {
        Bridge::None => {}
        Bridge::Empty(link) => {
            site.delete_bridge_and_pairs(&link)?;
            changes.push(format!("removed bridge {}", link.name));
        }
        Bridge::Stays(link, why) => {
            for gateway in here.iter().filter(|record| record.owned).flat_map(|record| &record.gateways) {
                let device = here.map_or(link.name.as_str(), NetworkRecord::device);
                let Some(device) = site.socket.link_by_name(device)? else { continue };
                // One that somebody has removed is no error.
                if site.socket.addresses(&device)?.iter().any(|have| have.address == *gateway) {
                    site.socket.remove_address(&device, *gateway)?;
                    let what = if device.index == link.index { "bridge " } else { "" };
                    changes.push(format!("removed address {gateway} from {what}{}", device.name));
                }
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
fn would(site: &mut Site<'_>, name: &NetworkName) -> Result<Vec<String>, Error> {
    let record = NetworkRecord::load(site.host, name)?.filter(|record| record.is_of(site.host, site.netns));
    let mut changes = node::would_remove(site.host, site.netns, site.socket, name)?;
    if let Some(device) = record.as_ref().and_then(|record| record.vlan_device.as_deref())
        && let Some(device) = site.lone_vlan_device(name, device)?
    {
        changes.push(format!("would remove device {}", device.name));
    }
    match bridge(site, name, record.as_ref())? {
        Bridge::None => {}
        Bridge::Empty(link) => changes.push(format!("would remove bridge {}", link.name)),
        Bridge::Stays(link, why) => {
            if let Some(record) = &record
                && site.ends_promiscuous(record, &link)?
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

/// What is to become of a network's bridge.
enum Bridge {
    None,
    Empty(Link),
    Stays(Link, String),
}

fn bridge(site: &mut Site<'_>, name: &NetworkName, record: Option<&NetworkRecord>) -> Result<Bridge, Error> {
    // Without a record it may be left of a network that was taken away under its containers.
    let device = record.map_or_else(|| BridgeName::of(name).name, |record| record.bridge.clone());
    let link = site.socket.link_by_name(&device)?.filter(|link| link.is_a("bridge"));
    let Some(link) = link.filter(|link| record.is_some() || is_ours(link)) else { return Ok(Bridge::None) };
    if !is_ours(&link) {
        return Ok(Bridge::Stays(link, "it is not ours, and keeps its addresses".to_owned()));
    }
    let mut others = NetworkRecord::all(site.host)?;
    others.retain(|other| other.name != *name && other.is_of(site.host, site.netns) && other.bridge == link.name);
    if let Some(other) = others.first() {
        return Ok(Bridge::Stays(link, format!("it is also that of network {}", other.name)));
    }
    match site.ports(&link)?.len() {
        0 => Ok(Bridge::Empty(link)),
        ports => Ok(Bridge::Stays(link, format!("it has {ports} ports"))),
    }
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
