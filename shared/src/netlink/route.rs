//! Routes: reading, adding and deleting them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteScope, RouteType,
};
use nix::errno::Errno;
use nix::libc;

use super::address::family;
use super::attributes::{attributes, ip, number};
use super::{Error, PROTOCOL, RouteSocket};
use crate::Route;

/// Bytes of `struct rtmsg`.
const HEADER: usize = 12;
/// Bytes of `struct rtnexthop`.
const NEXT_HOP: usize = 8;
/// RTM_F_CLONED: an entry of the cache of exceptions, no route (linux/rtnetlink.h).
const CLONED: u32 = 0x200;
/// RTN_UNICAST.
const UNICAST: u8 = 1;
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
    /// Who made it (RTPROT_*); [`PROTOCOL`] for ours.
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
        request.header.flags = flags;
        request.header.address_family = family(address);
        request.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
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

#[cfg(test)]
mod tests {
    use super::super::testing::in_new_netns;
    use super::super::{Link, Mac, NewBridge};
    use super::*;

    fn device(socket: &mut RouteSocket) -> Link {
        socket.create_bridge(&NewBridge { name: "br0", mac: Mac([2; 6]), mtu: 1500 }).unwrap();
        let link = socket.link_by_name("br0").unwrap().unwrap();
        socket.set_up(&link, true).unwrap();
        for address in ["10.22.0.1/16", "fd77::1/64"] {
            socket.add_address(&link, address.parse().unwrap(), false).unwrap();
        }
        link
    }

    fn add(socket: &mut RouteSocket, link: &Link, route: &Route) -> Result<(), Error> {
        socket.add_route(&NewRoute { route, device: link.index, name: &link.name, multipath: true })
    }

    fn ours() -> RouteFilter {
        RouteFilter { protocol: Some(PROTOCOL), ..RouteFilter::default() }
    }

    #[test]
    fn ci1_routes_with_mtu_advmss_priority_table_and_scope() {
        in_new_netns(|| {
            let mut socket = RouteSocket::open().unwrap();
            let link = device(&mut socket);
            let gw = Some("10.22.0.9".parse().unwrap());
            let full = Route {
                mtu: Some(1400),
                advmss: Some(1300),
                priority: Some(5),
                table: Some(1000),
                ..Route::new("1.0.0.0/8".parse().unwrap(), gw)
            };
            let link_scope = Route { scope: Some(253), ..Route::new("2.0.0.0/8".parse().unwrap(), None) };
            let v6 = Route { mtu: Some(1280), ..Route::new("::/0".parse().unwrap(), Some("fd77::9".parse().unwrap())) };
            for route in [&full, &link_scope, &v6] {
                add(&mut socket, &link, route).unwrap();
            }
            let found = socket.routes(&ours()).unwrap();
            assert_eq!(found.len(), 3, "{found:?}");
            let first = found.iter().find(|route| route.dst == full.dst).unwrap();
            assert_eq!((first.mtu, first.advmss, first.priority, first.table), (Some(1400), Some(1300), 5, 1000));
            assert_eq!(first.next_hops, [NextHop { gateway: gw, device: Some(link.index) }]);
            assert_eq!(found.iter().find(|route| route.dst == link_scope.dst).unwrap().scope, 253);
            assert!(found.iter().any(|route| route.is_default() && route.mtu == Some(1280)));
            let main = RouteFilter { table: Some(MAIN), v6: Some(false), ..ours() };
            assert_eq!(socket.routes(&main).unwrap().len(), 1);
            socket.delete_route(&full, link.index).unwrap();
            socket.delete_route(&full, link.index).unwrap();
            assert_eq!(socket.routes(&ours()).unwrap().len(), 2);
        });
    }

    #[test]
    fn ci2_several_routes_to_one_destination() {
        in_new_netns(|| {
            let mut socket = RouteSocket::open().unwrap();
            let link = device(&mut socket);
            for (dst, gateways) in [("3.0.0.0/8", ["10.22.0.8", "10.22.0.9"]), ("fd99::/64", ["fd77::8", "fd77::9"])] {
                for gateway in gateways {
                    let route = Route::new(dst.parse().unwrap(), Some(gateway.parse().unwrap()));
                    add(&mut socket, &link, &route).unwrap();
                    let again = add(&mut socket, &link, &route).unwrap_err();
                    assert!(again.is(Errno::EEXIST), "{again}");
                }
            }
            let found = socket.routes(&ours()).unwrap();
            let hops = |v6: bool| -> usize {
                found.iter().filter(|route| route.dst.addr().is_ipv6() == v6).map(|route| route.next_hops.len()).sum()
            };
            assert_eq!((hops(false), hops(true)), (2, 2), "{found:?}");
        });
    }

    #[test]
    fn the_route_to_an_address() {
        in_new_netns(|| {
            let mut socket = RouteSocket::open().unwrap();
            assert_eq!(socket.route_to("8.8.8.8".parse().unwrap()).unwrap(), None);
            assert_eq!(socket.route_to("2001:db8::1".parse().unwrap()).unwrap(), None);
            let link = device(&mut socket);
            let found = socket.route_to("10.22.7.7".parse().unwrap()).unwrap().unwrap();
            assert_eq!(found.next_hops, [NextHop { gateway: None, device: Some(link.index) }]);
            assert!(socket.route_to("fd77::7".parse().unwrap()).unwrap().is_some());
            let bad = Route::new("9.0.0.0/8".parse().unwrap(), Some("172.16.0.1".parse().unwrap()));
            let text = add(&mut socket, &link, &bad).unwrap_err().to_string();
            assert!(
                text.starts_with("cannot add route 9.0.0.0/8 via 172.16.0.1 on br0: Network is unreachable"),
                "{text}"
            );
        });
    }
}
