//! Routes of containers, as a network gives them.

use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteScope, RouteType};
use nix::errno::Errno;
use nix::libc;

use super::MAIN;
use crate::Route;
use crate::netlink::address::family;
use crate::netlink::{Error, PROTOCOL, RouteSocket};

/// A route to be added.
#[derive(Debug, Clone, Copy)]
pub struct NewRoute<'a> {
    /// The route; a next hop that it does not name is none.
    pub route: &'a Route,
    /// The device's number.
    pub device: u32,
    /// The device's name, for the message.
    pub name: &'a str,
    /// Another path for a destination that has one is added to it, and not refused.
    pub multipath: bool,
}

fn message(route: &Route, device: u32) -> RouteMessage {
    let dst = route.dst.trunc();
    let mut message = RouteMessage::default();
    message.header.address_family = family(dst.addr());
    message.header.destination_prefix_length = dst.prefix_len();
    message.header.protocol = PROTOCOL.into();
    message.header.kind = RouteType::Unicast;
    message.header.scope = match route.scope {
        Some(scope) => scope.into(),
        // The kernel refuses a wider scope than the next hop's (`fib_check_nh`).
        None if route.gw.is_some() || dst.addr().is_ipv6() => RouteScope::Universe,
        None => RouteScope::Link,
    };
    let table = route.table.unwrap_or(MAIN);
    let attributes = &mut message.attributes;
    match u8::try_from(table) {
        Ok(small) => message.header.table = small,
        Err(_) => attributes.push(RouteAttribute::Table(table)),
    }
    attributes.push(RouteAttribute::Oif(device));
    if dst.prefix_len() > 0 {
        attributes.push(RouteAttribute::Destination(RouteAddress::from(dst.addr())));
    }
    attributes.extend(route.gw.map(|gw| RouteAttribute::Gateway(RouteAddress::from(gw))));
    attributes.extend(route.priority.map(RouteAttribute::Priority));
    let metrics = [route.mtu.map(RouteMetric::Mtu), route.advmss.map(RouteMetric::Advmss)];
    let metrics: Vec<_> = metrics.into_iter().flatten().collect();
    if !metrics.is_empty() {
        attributes.push(RouteAttribute::Metrics(metrics));
    }
    message
}

impl RouteSocket {
    /// Adds a route, marked as ours.
    ///
    /// # Errors
    /// EEXIST: there is one like it. ENETUNREACH, EHOSTUNREACH: its gateway is not on the link.
    pub fn add_route(&mut self, new: &NewRoute<'_>) -> Result<(), Error> {
        let request = message(new.route, new.device);
        let flags = NLM_F_CREATE | if new.multipath { NLM_F_APPEND } else { NLM_F_EXCL };
        let Route { dst, gw, .. } = new.route;
        let name = new.name;
        match gw {
            Some(gw) => {
                self.change(libc::RTM_NEWROUTE, flags, &request, format_args!("add route {dst} via {gw} on {name}"))
            }
            None => self.change(libc::RTM_NEWROUTE, flags, &request, format_args!("add route {dst} on {name}")),
        }
    }

    /// Deletes a route of ours. One that is not there is no error.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn delete_route(&mut self, route: &Route, device: u32) -> Result<(), Error> {
        let what = format_args!("delete route {}", route.dst);
        match self.change(libc::RTM_DELROUTE, 0, &message(route, device), what) {
            Err(error) if error.is(Errno::ESRCH) || error.is(Errno::ENODEV) => Ok(()),
            result => result,
        }
    }
}
