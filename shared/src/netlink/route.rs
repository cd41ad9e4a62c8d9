//! Routes: what the kernel has. The parts below look one up, and change those of containers and those of the node.

mod container;
mod lookup;
mod node;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use nix::errno::Errno;
use nix::libc;

use super::attributes::{attributes, ip, number};
use super::{Error, RouteSocket};

pub use container::NewRoute;
pub use node::{HostRoute, RouteTarget};

/// Bytes of `struct rtmsg`.
const HEADER: usize = 12;
/// Bytes of `struct rtnexthop`.
const NEXT_HOP: usize = 8;
/// RTM_F_CLONED: an entry of the cache of exceptions, no route (linux/rtnetlink.h).
const CLONED: u32 = 0x200;
/// RTN_UNICAST.
const UNICAST: u8 = 1;
/// RTN_LOCAL.
const LOCAL: u8 = 2;
/// RTN_UNREACHABLE.
const UNREACHABLE: u8 = 7;
/// The table of a route for which none is named.
pub const MAIN: u32 = 254;

/// A next hop of a route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NextHop {
    /// The neighbour to send to; none on the link.
    pub gateway: Option<IpAddr>,
    /// The device's number.
    pub device: Option<u32>,
}

/// A route as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteEntry {
    /// Destination prefix.
    pub dst: IpNet,
    /// Where it leads: more than one with several paths, none if it is unreachable.
    pub next_hops: Vec<NextHop>,
    /// The preferred source address.
    pub source: Option<IpAddr>,
    /// Routing table.
    pub table: u32,
    /// Who made it (RTPROT_*); [`PROTOCOL`](super::PROTOCOL) for ours.
    pub protocol: u8,
    /// Lower wins.
    pub priority: u32,
    /// RTN_*: 1 unicast, 7 unreachable, …
    pub kind: u8,
    /// 0 universe, 253 link, 254 host.
    pub scope: u8,
    /// RTAX_MTU, in bytes.
    pub mtu: Option<u32>,
    /// RTAX_ADVMSS, in bytes.
    pub advmss: Option<u32>,
}

impl RouteEntry {
    fn read(message: &[u8]) -> Option<Self> {
        let &[family, prefix, _, _, table, protocol, scope, kind] = message.first_chunk()?;
        if number(message.get(8..)?)? & CLONED != 0 {
            return None;
        }
        let any = match i32::from(family) {
            libc::AF_INET => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            libc::AF_INET6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => return None,
        };
        let mut route = Self {
            dst: IpNet::new(any, 0).ok()?,
            next_hops: Vec::new(),
            source: None,
            table: u32::from(table),
            protocol,
            priority: 0,
            kind,
            scope,
            mtu: None,
            advmss: None,
        };
        let mut dst = any;
        let mut hop = NextHop::default();
        for (attribute, value) in attributes(message, HEADER) {
            match attribute {
                libc::RTA_DST => dst = ip(value)?,
                libc::RTA_PREFSRC => route.source = ip(value),
                libc::RTA_TABLE => route.table = number(value)?,
                libc::RTA_PRIORITY => route.priority = number(value)?,
                libc::RTA_METRICS => route.read_metrics(value),
                libc::RTA_MULTIPATH => route.next_hops = next_hops(value),
                _ => hop.read(attribute, value),
            }
        }
        if hop != NextHop::default() {
            route.next_hops.push(hop);
        }
        route.dst = IpNet::new(dst, prefix).ok()?;
        Some(route)
    }

    fn read_metrics(&mut self, metrics: &[u8]) {
        for (kind, value) in attributes(metrics, 0) {
            match i32::from(kind) {
                RTAX_MTU => self.mtu = number(value),
                RTAX_ADVMSS => self.advmss = number(value),
                _ => {}
            }
        }
    }

    /// True for a route by which packets leave: no unreachable, broadcast, local one.
    pub fn is_unicast(&self) -> bool {
        self.kind == UNICAST
    }

    /// True for a route by which nothing leaves: the sender is told that there is no way.
    pub fn is_unreachable(&self) -> bool {
        self.kind == UNREACHABLE
    }

    /// True for a route to this machine itself.
    pub fn is_local(&self) -> bool {
        self.kind == LOCAL
    }

    /// True for `0.0.0.0/0` and `::/0`.
    pub fn is_default(&self) -> bool {
        self.dst.prefix_len() == 0
    }
}

/// Metrics (linux/rtnetlink.h).
const RTAX_MTU: i32 = 2;
/// Metrics (linux/rtnetlink.h).
const RTAX_ADVMSS: i32 = 8;

impl NextHop {
    fn read(&mut self, attribute: u16, value: &[u8]) {
        match attribute {
            libc::RTA_GATEWAY => self.gateway = ip(value),
            // An address of the other family, after its family.
            libc::RTA_VIA => self.gateway = value.get(2..).and_then(ip),
            libc::RTA_OIF => self.device = number(value),
            _ => {}
        }
    }
}

/// The `struct rtnexthop` of a route with several paths.
fn next_hops(mut rest: &[u8]) -> Vec<NextHop> {
    let mut hops = Vec::new();
    while let Some(header) = rest.first_chunk::<NEXT_HOP>() {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let Some(one) = rest.get(..length).filter(|one| one.len() >= NEXT_HOP) else { break };
        let mut hop = NextHop { gateway: None, device: number(&one[4..]) };
        for (attribute, value) in attributes(one, NEXT_HOP) {
            hop.read(attribute, value);
        }
        hops.push(hop);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    hops
}

/// Which routes to list; the kernel filters.
#[derive(Debug, Clone, Copy, Default)]
pub struct RouteFilter {
    /// One family, or both.
    pub v6: Option<bool>,
    /// Routes made by this one.
    pub protocol: Option<u8>,
    /// Routes of this table.
    pub table: Option<u32>,
    /// Routes by this device.
    pub device: Option<u32>,
}

impl RouteSocket {
    /// The routes that a filter lets through.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn routes(&mut self, filter: &RouteFilter) -> Result<Vec<RouteEntry>, Error> {
        let mut found = Vec::new();
        for v6 in [false, true] {
            if filter.v6.is_none_or(|wanted| wanted == v6) {
                found.extend(self.routes_of(filter, v6)?);
            }
        }
        Ok(found)
    }

    fn routes_of(&mut self, filter: &RouteFilter, v6: bool) -> Result<Vec<RouteEntry>, Error> {
        let mut request = RouteMessage::default();
        request.header.address_family = if v6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        request.header.protocol = filter.protocol.unwrap_or_default().into();
        request.attributes.extend(filter.table.map(RouteAttribute::Table));
        request.attributes.extend(filter.device.map(RouteAttribute::Oif));
        let what = format_args!("list the {} routes", if v6 { "IPv6" } else { "IPv4" });
        let mut found = match self.list(libc::RTM_GETROUTE, &request, what, RouteEntry::read) {
            Ok(found) => found,
            // A table that is not there (ENOENT), a kernel without IPv6 (EAFNOSUPPORT and the like).
            Err(error) if error.is(Errno::ENOENT) => Vec::new(),
            Err(error) if v6 && (error.is(Errno::EOPNOTSUPP) || error.is(Errno::EAFNOSUPPORT)) => Vec::new(),
            Err(error) => return Err(error),
        };
        found.retain(|route| {
            filter.protocol.is_none_or(|wanted| route.protocol == wanted)
                && filter.table.is_none_or(|wanted| route.table == wanted)
                && filter.device.is_none_or(|wanted| route.next_hops.iter().any(|hop| hop.device == Some(wanted)))
        });
        Ok(found)
    }
}
