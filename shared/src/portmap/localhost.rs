//! Ports on 127.0.0.1: without `route_localnet` the kernel takes no packet with such an address to a device.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::Error;
use super::mapping::Mapping;
use super::record::Record;
use crate::netlink::route::NextHop;
use crate::netlink::{Link, RouteSocket};
use crate::network::names::is_ours;
use crate::network::sysctl::Sysctl;

const KEY: &str = "route_localnet";

/// The devices that lead to containers whose ports are on 127.0.0.1. A bridge is looked for once.
#[derive(Default)]
pub struct Doors {
    socket: Option<RouteSocket>,
    seen: BTreeMap<IpNet, Option<String>>,
}

impl Doors {
    /// Opens the device of a record that has ports on 127.0.0.1. Our table's chain `localhost` has to be in place before.
    ///
    /// There is no such parameter for IPv6: `::1` cannot be published by translation.
    ///
    /// # Errors
    /// The kernel does not answer, or /proc/sys cannot be written to.
    pub fn open(&mut self, record: &Record) -> Result<(), Error> {
        match self.device_of(record)? {
            Some(device) => Ok(Sysctl::V4(&device, KEY).ensure("1").map(drop)?),
            None => Ok(()),
        }
    }

    /// The device of a record that is closed although it should be open.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn closed(&mut self, record: &Record) -> Result<Option<String>, Error> {
        let Some(device) = self.device_of(record)? else { return Ok(None) };
        let value = Sysctl::V4(&device, KEY).get()?;
        Ok(value.is_some_and(|value| value != "1").then_some(device))
    }

    fn device_of(&mut self, record: &Record) -> Result<Option<String>, Error> {
        let Some(target) = record.targets.iter().find(|target| target.addr().is_ipv4()) else { return Ok(None) };
        let is_local = |address: IpAddr| address.is_ipv4() && (address.is_unspecified() || address.is_loopback());
        let is_on_localhost = |mapping: &Mapping| mapping.host_ip.is_none_or(is_local);
        if !record.snat || !record.mappings.iter().any(is_on_localhost) {
            return Ok(None);
        }
        if let Some(known) = self.seen.get(&target.trunc()) {
            return Ok(known.clone());
        }
        let socket = match &mut self.socket {
            Some(socket) => socket,
            None => self.socket.insert(RouteSocket::open()?),
        };
        let found = device(socket, target.addr())?;
        let is_bridge = found.as_ref().is_some_and(|link| link.is_a("bridge") || is_ours(link));
        let device = found.map(|link| link.name);
        if device.is_none() {
            tracing::debug!("{target} is behind no device that could be opened: its ports are not on 127.0.0.1");
        }
        // Of a bridge's subnet all are behind the bridge, or the device of its VLAN; host ends have one address each.
        if is_bridge {
            self.seen.insert(target.trunc(), device.clone());
        }
        Ok(device)
    }
}

/// The bridge, or the host end of a pair, on whose link an address is. Nothing else is opened: an uplink would let its
/// neighbours in.
fn device(socket: &mut RouteSocket, target: IpAddr) -> Result<Option<Link>, Error> {
    let Some(route) = socket.route_taken_to(target)?.filter(|route| route.is_unicast()) else { return Ok(None) };
    let [NextHop { gateway: None, device: Some(device) }] = route.next_hops.as_slice() else { return Ok(None) };
    // A veth may be the uplink of a machine in a machine: only one that leads to this address alone is a container's.
    let alone = route.dst.prefix_len() == route.dst.max_prefix_len();
    // One of ours is the device by which the host is in a VLAN of a bridge.
    let is_door = |link: &Link| link.is_a("bridge") || (link.is_a("veth") && (alone || is_ours(link)));
    Ok(socket.link_by_index(*device)?.filter(is_door))
}
