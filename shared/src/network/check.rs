//! CHECK: is everything there that ADD made? Nothing is repaired.
//!
//! What chained plugins and udev may change is no fault: the host end's MAC address, more addresses and
//! routes, another MTU than ours.

mod port;

use std::collections::BTreeSet;
use std::fmt;

use ipnet::IpNet;

use self::port::{check_port, check_vlan_device, host_end};
use super::setup::Site;
use super::{BridgeConfig, Error, NetworkRecord, container::Inside, forwarding};
use crate::netlink::{Link, Mac, RouteEntry, RouteFilter};
use crate::{Attachment, Route};

/// Something that is not as ADD made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The network was not set up in this boot.
    NotSetUp,
    /// No bridge.
    NoBridge(String),
    /// The name is another device's.
    NotABridge(String),
    /// The bridge is down.
    BridgeDown(String),
    /// The bridge does not filter VLANs.
    NoFiltering(String),
    /// The bridge does not take up all frames.
    NotPromiscuous(String),
    /// The host has no device in the network's VLAN.
    NoVlanDevice(String),
    /// … or that is down.
    VlanDeviceDown(String),
    /// A port is in other VLANs than it should be: the missing and the wrong ones.
    OtherVlans(String, Vec<u16>, Vec<u16>),
    /// The host end is isolated and should not be, or the other way round.
    Isolation(String, bool),
    /// The bridge lacks a gateway address.
    NoGateway(String, IpNet),
    /// The host does not forward a family (IPv6?).
    NotForwarding(bool),
    /// No host end.
    NoHostEnd(String),
    /// The host end is down.
    HostEndDown(String),
    /// The host end is no port of the bridge.
    NotAPort(String, String),
    /// No interface in the container.
    NoInterface(String),
    /// The interface is not the other end of the host end.
    NotThePeer(String, String),
    /// The interface is down.
    InterfaceDown(String),
    /// Another MAC address than the result says.
    OtherMac(String, Mac, Mac),
    /// Another MTU than the result says.
    OtherMtu(String, u32, u32),
    /// The interface lacks an address.
    NoAddress(String, IpNet),
    /// The container lacks a route.
    NoRoute(Box<Route>),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSetUp => write!(f, "the network is not set up since this boot"),
            Self::NoBridge(bridge) => write!(f, "bridge {bridge} is missing"),
            Self::NotABridge(bridge) => write!(f, "{bridge} is not a bridge"),
            Self::BridgeDown(bridge) => write!(f, "bridge {bridge} is down"),
            Self::NoFiltering(bridge) => write!(f, "bridge {bridge} does not filter VLANs"),
            Self::NotPromiscuous(bridge) => write!(f, "bridge {bridge} is not in promiscuous mode"),
            Self::NoVlanDevice(device) => write!(f, "{device} is missing, or is in no bridge"),
            Self::VlanDeviceDown(device) => write!(f, "{device} is down"),
            Self::OtherVlans(port, missing, wrong) => {
                write!(f, "{port} is in other VLANs than it should be")?;
                for (what, ids) in [("without", missing), ("and also in", wrong)] {
                    if !ids.is_empty() {
                        write!(f, ", {what} {}", ids.iter().map(u16::to_string).collect::<Vec<_>>().join(" "))?;
                    }
                }
                Ok(())
            }
            Self::Isolation(port, true) => write!(f, "host end {port} is not isolated"),
            Self::Isolation(port, false) => write!(f, "host end {port} is isolated, and should not be"),
            Self::NoGateway(device, address) => write!(f, "{device} has no address {address}"),
            Self::NotForwarding(v6) => write!(f, "the host does not forward {}", if *v6 { "IPv6" } else { "IPv4" }),
            Self::NoHostEnd(host_end) => write!(f, "host end {host_end} is missing"),
            Self::HostEndDown(host_end) => write!(f, "host end {host_end} is down"),
            Self::NotAPort(host_end, bridge) => write!(f, "host end {host_end} is no port of bridge {bridge}"),
            Self::NoInterface(ifname) => write!(f, "interface {ifname} is missing in the container"),
            Self::NotThePeer(ifname, host_end) => write!(f, "interface {ifname} is not the other end of {host_end}"),
            Self::InterfaceDown(ifname) => write!(f, "interface {ifname} is down"),
            Self::OtherMac(ifname, is, should) => {
                write!(f, "interface {ifname} has MAC address {is} instead of {should}")
            }
            Self::OtherMtu(ifname, is, should) => write!(f, "interface {ifname} has MTU {is} instead of {should}"),
            Self::NoAddress(ifname, address) => write!(f, "interface {ifname} has no address {address}"),
            Self::NoRoute(route) => match route.gw {
                Some(gw) => write!(f, "route {} via {gw} is missing in the container", route.dst),
                None => write!(f, "route {} is missing in the container", route.dst),
            },
        }
    }
}

/// What the result of the ADD says of the attachment.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// MAC address of the container's interface.
    pub mac: Option<Mac>,
    /// Its MTU.
    pub mtu: Option<u32>,
    /// Its addresses.
    pub addresses: Vec<IpNet>,
    /// Its routes.
    pub routes: Vec<Route>,
    /// It is up.
    pub up: bool,
    /// The host end that the reference plugin made, before its address was taken over.
    pub host_end: Option<String>,
}

/// Looks for everything that an attachment consists of.
///
/// # Errors
/// [`Error::Check`] with all faults; the kernel does not answer.
pub fn check(
    site: &mut Site<'_>,
    inside: &mut Inside<'_>,
    record: Option<&NetworkRecord>,
    attachment: &Attachment,
    listed: &Listed,
    config: &BridgeConfig,
) -> Result<(), Error> {
    let mut faults = Vec::new();
    let host_end = host_end(site, attachment, listed.host_end.as_deref())?;
    match record.filter(|record| record.is_of(site.host, site.netns)) {
        None => faults.push(Fault::NotSetUp),
        Some(record) => {
            check_host(site, record, attachment, host_end.as_ref(), &mut faults)?;
            check_port(site, record, config, host_end.as_ref(), &mut faults)?;
        }
    }
    check_inside(inside, attachment, host_end.as_ref(), listed, &mut faults)?;
    if faults.is_empty() { Ok(()) } else { Err(Error::Check { attachment: attachment.clone(), faults }) }
}

fn check_host(
    site: &mut Site<'_>,
    record: &NetworkRecord,
    attachment: &Attachment,
    host_end: Option<&Link>,
    faults: &mut Vec<Fault>,
) -> Result<(), Error> {
    let name = || record.bridge.clone();
    let bridge = site.socket.link_by_name(&record.bridge)?;
    match &bridge {
        None => faults.push(Fault::NoBridge(name())),
        Some(bridge) if !bridge.is_a("bridge") => faults.push(Fault::NotABridge(name())),
        Some(bridge) => {
            if !bridge.up {
                faults.push(Fault::BridgeDown(name()));
            }
            if record.promiscuous && !bridge.promiscuous {
                faults.push(Fault::NotPromiscuous(name()));
            }
            let device = match &record.vlan_device {
                Some(device) => check_vlan_device(site, device, bridge, faults)?,
                None => Some(bridge.clone()),
            };
            if let Some(device) = device {
                let there = site.socket.addresses(&device)?;
                let is_missing = |gateway: &&IpNet| !there.iter().any(|have| have.address == **gateway);
                let missing = record.gateways.iter().filter(is_missing);
                faults.extend(missing.map(|gateway| Fault::NoGateway(device.name.clone(), *gateway)));
            }
        }
    }
    let families: BTreeSet<bool> = record.gateways.iter().map(|gateway| gateway.addr().is_ipv6()).collect();
    for v6 in families {
        if !forwarding::is_on(v6)? {
            faults.push(Fault::NotForwarding(v6));
        }
    }
    match host_end {
        None => faults.push(Fault::NoHostEnd(attachment.host_end())),
        Some(link) => {
            if !link.up {
                faults.push(Fault::HostEndDown(link.name.clone()));
            }
            if bridge.is_some_and(|bridge| link.master != Some(bridge.index)) {
                faults.push(Fault::NotAPort(link.name.clone(), name()));
            }
        }
    }
    Ok(())
}

fn check_inside(
    inside: &mut Inside<'_>,
    attachment: &Attachment,
    host_end: Option<&Link>,
    listed: &Listed,
    faults: &mut Vec<Fault>,
) -> Result<(), Error> {
    let name = || attachment.ifname.to_string();
    let Some(link) = inside.interface(attachment.ifname.as_str())? else {
        faults.push(Fault::NoInterface(name()));
        return Ok(());
    };
    if let Some(host_end) = host_end.filter(|host_end| host_end.peer != Some(link.index)) {
        faults.push(Fault::NotThePeer(name(), host_end.name.clone()));
    }
    if listed.up && !link.up {
        faults.push(Fault::InterfaceDown(name()));
    }
    if let (Some(should), Some(is)) = (listed.mac, link.mac)
        && should.0 != is
    {
        faults.push(Fault::OtherMac(name(), Mac(is), should));
    }
    if let Some(should) = listed.mtu.filter(|should| *should != link.mtu) {
        faults.push(Fault::OtherMtu(name(), link.mtu, should));
    }
    if !listed.addresses.is_empty() {
        let there = inside.socket.addresses(&link)?;
        let missing = listed.addresses.iter().filter(|wanted| !there.iter().any(|have| have.address == **wanted));
        faults.extend(missing.map(|address| Fault::NoAddress(name(), *address)));
    }
    if !listed.routes.is_empty() {
        let there = inside.socket.routes(&RouteFilter::default())?;
        let missing = listed.routes.iter().filter(|wanted| !there.iter().any(|route| is_the(route, wanted)));
        faults.extend(missing.map(|route| Fault::NoRoute(Box::new(route.clone()))));
    }
    Ok(())
}

/// Default routes by their destination only, as the reference plugin does: others may have made them.
/// In any table: the `sbr` plugin moves routes.
fn is_the(route: &RouteEntry, wanted: &Route) -> bool {
    let gateway = wanted.gw.filter(|_| !wanted.is_default());
    route.is_unicast()
        && route.dst == wanted.dst.trunc()
        && gateway.is_none_or(|gateway| route.next_hops.iter().any(|hop| hop.gateway == Some(gateway)))
}
