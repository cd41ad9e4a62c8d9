//! The way that the kernel takes to an address.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteMessage};
use nix::errno::Errno;
use nix::libc;

use super::{HEADER, RouteEntry};
use crate::netlink::address::family;
use crate::netlink::{Error, Link, RouteSocket};

/// The way to an address, with what decides whether it is on the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTo {
    /// The destination of the route that is taken; all addresses for a default route.
    pub dst: IpNet,
    /// The router to send to; none if the address itself is asked for on the link.
    pub gateway: Option<IpAddr>,
    /// The device by which packets leave.
    pub device: Link,
    /// The source address of packets that name none.
    pub source: Option<IpAddr>,
    /// The address is this machine's own.
    pub local: bool,
    /// MTU of the route, else of the device, in bytes. What path-MTU discovery found does not count: it passes.
    pub mtu: u32,
}

impl PathTo {
    /// True if a default route is taken.
    pub fn is_default(&self) -> bool {
        self.dst.prefix_len() == 0
    }

    /// True if packets for the address, and for what is behind it, reach it without a router or a tunnel: a route of
    /// its own, without a gateway, by a device where neighbours are asked for.
    pub fn is_on_link(&self) -> bool {
        !self.local && self.gateway.is_none() && !self.is_default() && self.device.arp && !self.device.point_to_point
    }
}

impl RouteSocket {
    /// The route that the kernel would take to an address; none if there is none.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn route_to(&mut self, address: IpAddr) -> Result<Option<RouteEntry>, Error> {
        self.look_up(address, RouteFlags::empty())
    }

    /// The same with the destination of the route that is taken, in place of the address (RTM_F_FIB_MATCH).
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn route_taken_to(&mut self, address: IpAddr) -> Result<Option<RouteEntry>, Error> {
        self.look_up(address, RouteFlags::FibMatch)
    }

    /// The way that the kernel would take to an address; none if there is none.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn path_to(&mut self, address: IpAddr) -> Result<Option<PathTo>, Error> {
        let Some(taken) = self.route_to(address)? else { return Ok(None) };
        // The first answer names the address itself as its destination, the second one the route's.
        let Some(route) = self.route_taken_to(address)? else { return Ok(None) };
        let Some(hop) = taken.next_hops.first() else { return Ok(None) };
        let Some(index) = hop.device else { return Ok(None) };
        let Some(device) = self.link_by_index(index)? else { return Ok(None) };
        Ok(Some(PathTo {
            dst: route.dst,
            gateway: hop.gateway,
            source: taken.source,
            local: taken.is_local(),
            mtu: route.mtu.unwrap_or(device.mtu),
            device,
        }))
    }

    fn look_up(&mut self, address: IpAddr, flags: RouteFlags) -> Result<Option<RouteEntry>, Error> {
        let mut request = RouteMessage::default();
        request.header.address_family = family(address);
        request.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        request.header.flags = flags;
        request.attributes.push(RouteAttribute::Destination(RouteAddress::from(address)));
        let what = format_args!("look up the route to {address}");
        let none = [Errno::ENETUNREACH, Errno::EHOSTUNREACH, Errno::EACCES, Errno::EINVAL];
        // An answer is marked as a clone; it is a route all the same.
        self.one(libc::RTM_GETROUTE, &request, what, &none, |message| {
            let mut message = message.to_vec();
            message.get_mut(8..HEADER)?.fill(0);
            RouteEntry::read(&message)
        })
    }
}
