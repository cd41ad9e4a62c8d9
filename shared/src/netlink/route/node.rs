//! Routes of the node itself: to the segments of its peers, and to nowhere for what no peer has.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteScope, RouteType,
};
use nix::errno::Errno;
use nix::libc;
use serde::{Deserialize, Serialize};

use super::{MAIN, NextHop, RouteEntry};
use crate::netlink::address::family;
use crate::netlink::{Error, PROTOCOL, RouteSocket};

/// IP6_RT_PRIO_USER: what the kernel makes of no metric in IPv6.
const METRIC_V6: u32 = 1024;

/// Where a route of the node leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteTarget {
    /// Nowhere: the sender is told at once.
    Unreachable,
    /// Out by a device.
    Device {
        /// The device's number.
        index: u32,
        /// The device's name, for messages.
        name: String,
        /// The neighbour to send to; for an IPv4 destination it may be an IPv6 address (kernel 5.2).
        gateway: Option<IpAddr>,
        /// The gateway is taken for a neighbour though no route says so, as behind a VXLAN.
        onlink: bool,
        /// The source address of this node's own packets: a tunnel device has none.
        source: Option<IpAddr>,
    },
}

/// A route of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRoute {
    /// Destination prefix.
    pub dst: IpNet,
    /// Where it leads.
    pub target: RouteTarget,
    /// Routing table; [`MAIN`](super::MAIN) where none is named.
    pub table: u32,
    /// Metric: lower wins. 0 is the kernel's default, which is 1024 for IPv6.
    pub metric: u32,
    /// RTAX_MTU, in bytes.
    pub mtu: Option<u32>,
}

impl HostRoute {
    /// True if the kernel's route is this one's place: there can be one of both only.
    pub fn is_in_place_of(&self, found: &RouteEntry) -> bool {
        let metric = if self.metric == 0 && self.dst.addr().is_ipv6() { METRIC_V6 } else { self.metric };
        (found.dst, found.table, found.priority) == (self.dst.trunc(), self.table, metric)
    }

    /// True if there can be one of both only.
    pub fn shares_place_with(&self, other: &Self) -> bool {
        (self.dst.trunc(), self.table, self.metric) == (other.dst.trunc(), other.table, other.metric)
    }

    /// The number of the device by which it leads.
    pub fn device(&self) -> Option<u32> {
        match &self.target {
            RouteTarget::Unreachable => None,
            RouteTarget::Device { index, .. } => Some(*index),
        }
    }

    /// True if the kernel's route is this one.
    pub fn is(&self, found: &RouteEntry) -> bool {
        let leads_there = match &self.target {
            // An IPv6 one has the device lo.
            RouteTarget::Unreachable => found.is_unreachable(),
            RouteTarget::Device { index, gateway, source, .. } => {
                let hop = NextHop { gateway: *gateway, device: Some(*index) };
                found.is_unicast() && found.next_hops == [hop] && found.source == *source
            }
        };
        self.is_in_place_of(found) && found.protocol == PROTOCOL && found.mtu == self.mtu && leads_there
    }

    fn message(&self) -> RouteMessage {
        let dst = self.dst.trunc();
        let mut message = header(dst, self.table);
        message.header.protocol = PROTOCOL.into();
        message.header.kind = RouteType::Unicast;
        message.header.scope = RouteScope::Universe;
        let attributes = &mut message.attributes;
        match &self.target {
            RouteTarget::Unreachable => message.header.kind = RouteType::Unreachable,
            RouteTarget::Device { index, gateway, onlink, source, .. } => {
                attributes.push(RouteAttribute::Oif(*index));
                attributes.extend(gateway.map(|gateway| next_hop(dst, gateway)));
                attributes.extend(source.map(|source| RouteAttribute::PrefSource(RouteAddress::from(source))));
                if gateway.is_none() && dst.addr().is_ipv4() {
                    message.header.scope = RouteScope::Link;
                }
                if *onlink {
                    message.header.flags = RouteFlags::Onlink;
                }
            }
        }
        if self.metric != 0 {
            attributes.push(RouteAttribute::Priority(self.metric));
        }
        attributes.extend(self.mtu.map(|mtu| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)])));
        message
    }
}

impl fmt::Display for HostRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            RouteTarget::Unreachable => write!(f, "unreachable {}", self.dst)?,
            RouteTarget::Device { name, gateway: Some(gateway), .. } => {
                write!(f, "{} via {gateway} on {name}", self.dst)?;
            }
            RouteTarget::Device { name, .. } => write!(f, "{} on {name}", self.dst)?,
        }
        if self.table == MAIN { Ok(()) } else { write!(f, " in table {}", self.table) }
    }
}

/// A gateway, of the destination's family or of the other one.
fn next_hop(dst: IpNet, gateway: IpAddr) -> RouteAttribute {
    if dst.addr().is_ipv4() == gateway.is_ipv4() {
        RouteAttribute::Gateway(RouteAddress::from(gateway))
    } else {
        RouteAttribute::Via(gateway.into())
    }
}

/// A route's destination and table.
fn header(dst: IpNet, table: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(dst.addr());
    message.header.destination_prefix_length = dst.prefix_len();
    match u8::try_from(table) {
        Ok(small) => message.header.table = small,
        Err(_) => message.attributes.push(RouteAttribute::Table(table)),
    }
    if dst.prefix_len() > 0 {
        message.attributes.push(RouteAttribute::Destination(RouteAddress::from(dst.addr())));
    }
    message
}

impl RouteSocket {
    /// Has a route, marked as ours: added, or in the place of ours without a moment between. `ours` are the routes of
    /// [`PROTOCOL`]. True if something had to be done.
    ///
    /// # Errors
    /// EEXIST: somebody else has a route to the destination in that table, with that metric; it is left alone.
    /// ENETUNREACH, EHOSTUNREACH: the gateway is not on the link. EINVAL: the source is no address of this machine.
    pub fn put_route(&mut self, route: &HostRoute, ours: &[RouteEntry]) -> Result<bool, Error> {
        if ours.iter().any(|found| route.is(found)) {
            return Ok(false);
        }
        // The kernel replaces whatever is in the place: only what is known to be ours is.
        let mine = |found: &RouteEntry| found.protocol == PROTOCOL && route.is_in_place_of(found);
        let (flag, what) = if ours.iter().any(mine) { (NLM_F_REPLACE, "replace") } else { (NLM_F_EXCL, "add") };
        let what = format_args!("{what} route {route}");
        self.change(libc::RTM_NEWROUTE, NLM_F_CREATE | flag, &route.message(), what)?;
        Ok(true)
    }

    /// Removes a route as it was found; one like it of somebody else stays. One that is not there is no error.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove_route(&mut self, found: &RouteEntry) -> Result<(), Error> {
        let mut request = header(found.dst, found.table);
        request.header.protocol = found.protocol.into();
        request.header.kind = found.kind.into();
        request.header.scope = RouteScope::NoWhere;
        request.attributes.push(RouteAttribute::Priority(found.priority));
        if let ([hop], true) = (found.next_hops.as_slice(), found.is_unicast()) {
            request.attributes.extend(hop.device.map(RouteAttribute::Oif));
            request.attributes.extend(hop.gateway.map(|gateway| next_hop(found.dst, gateway)));
        }
        let what = format_args!("remove route {} from table {}", found.dst, found.table);
        match self.change(libc::RTM_DELROUTE, 0, &request, what) {
            Err(error) if error.is(Errno::ESRCH) || error.is(Errno::ENODEV) => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
