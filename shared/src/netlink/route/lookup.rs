//! The way that the kernel takes to an address.

use std::net::IpAddr;

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteMessage};
use nix::errno::Errno;
use nix::libc;

use super::{HEADER, RouteEntry};
use crate::netlink::address::family;
use crate::netlink::{Error, RouteSocket};

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
