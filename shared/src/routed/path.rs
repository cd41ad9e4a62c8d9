//! What the kernel says of the way to a peer's address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::netlink::{Error, Link, RouteEntry, RouteSocket};

/// RTN_LOCAL (linux/rtnetlink.h).
const LOCAL: u8 = 2;

/// The kernel's route to an address, as far as it decides between a plain route and a tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The address is this node's own, and has been found to be nobody else's.
    pub local: bool,
    /// The route's only next hop is the address itself.
    pub on_link: bool,
    /// The router to it, where there is one.
    pub gateway: Option<IpAddr>,
    /// It is a default route: it says of no address in particular that it is there.
    pub default: bool,
    /// The device's number.
    pub device: u32,
    /// The device's name.
    pub name: String,
    /// The device asks for its neighbours' addresses (no IFF_NOARP).
    pub arp: bool,
    /// The device has one neighbour only (IFF_POINTOPOINT).
    pub point_to_point: bool,
    /// What the route lets through, or else its device, in bytes.
    pub mtu: u32,
}

impl Path {
    /// The path of a route as the kernel has it in its table (`ip route get fibmatch`, RTM_F_FIB_MATCH: an answer
    /// without it hides the default route), by the device of its first next hop.
    pub fn new(route: &RouteEntry, device: &Link) -> Self {
        let gateway = route.next_hops.iter().find_map(|hop| hop.gateway);
        Self {
            local: route.kind == LOCAL,
            on_link: route.next_hops.len() == 1 && gateway.is_none(),
            gateway,
            default: route.is_default(),
            device: device.index,
            name: device.name.clone(),
            arp: device.arp,
            point_to_point: device.point_to_point,
            mtu: route.mtu.unwrap_or(device.mtu),
        }
    }

    /// True if packets for the address can be sent without a tunnel, and that is sure to reach nobody else: by a route
    /// made for its neighbourhood, over a device that finds out whether it is there.
    pub fn is_direct(&self) -> bool {
        self.on_link && !self.local && !self.default && self.arp && !self.point_to_point
    }
}

/// The kernel that is asked for paths.
pub trait Paths {
    /// The path to an address; none if there is none.
    ///
    /// # Errors
    /// The kernel does not answer.
    fn path_to(&mut self, address: IpAddr) -> Result<Option<Path>, Error>;

    /// The addresses of this node's devices; also those of IPv6 for which duplicate address detection is under way, a
    /// second or two after the device has come up: no route leads to them yet.
    ///
    /// # Errors
    /// The kernel does not answer.
    fn own(&mut self) -> Result<Vec<IpAddr>, Error>;

    /// The source of packets to an address that name none; none if there is no way to it.
    ///
    /// # Errors
    /// The kernel does not answer.
    fn source_to(&mut self, address: IpAddr) -> Result<Option<IpAddr>, Error>;
}

impl Paths for RouteSocket {
    fn path_to(&mut self, address: IpAddr) -> Result<Option<Path>, Error> {
        let Some(route) = self.route_taken_to(address)? else { return Ok(None) };
        let Some(index) = route.next_hops.first().and_then(|hop| hop.device) else { return Ok(None) };
        Ok(self.link_by_index(index)?.map(|device| Path::new(&route, &device)))
    }

    fn own(&mut self) -> Result<Vec<IpAddr>, Error> {
        let mut all = self.all_addresses(None)?;
        all.retain(|found| !found.is_duplicate());
        Ok(all.into_iter().map(|found| found.address.addr()).collect())
    }

    fn source_to(&mut self, address: IpAddr) -> Result<Option<IpAddr>, Error> {
        Ok(self.route_to(address)?.and_then(|route| route.source))
    }
}

/// Each path asked for once, and the addresses too.
pub(super) struct Asked<'a, P: Paths> {
    paths: &'a mut P,
    known: BTreeMap<IpAddr, Option<Path>>,
    own: Option<BTreeSet<IpAddr>>,
}

impl<'a, P: Paths> Asked<'a, P> {
    pub(super) fn new(paths: &'a mut P) -> Self {
        Self { paths, known: BTreeMap::new(), own: None }
    }

    pub(super) fn path_to(&mut self, address: IpAddr) -> Result<Option<Path>, Error> {
        if let Some(path) = self.known.get(&address) {
            return Ok(path.clone());
        }
        let path = self.paths.path_to(address)?;
        self.known.insert(address, path.clone());
        Ok(path)
    }

    /// True for an address of this node.
    pub(super) fn is_own(&mut self, address: IpAddr) -> Result<bool, Error> {
        if self.own.is_none() {
            self.own = Some(self.paths.own()?.into_iter().collect());
        }
        // A route may make whole networks this node's (`ip route add local …`).
        let has = self.own.as_ref().is_some_and(|own| own.contains(&address));
        Ok(has || self.path_to(address)?.is_some_and(|path| path.local))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::route::NextHop;

    fn route(dst: &str, gateways: &[Option<&str>]) -> RouteEntry {
        let hop =
            |gateway: &Option<&str>| NextHop { gateway: gateway.map(|text| text.parse().unwrap()), device: Some(2) };
        RouteEntry {
            dst: dst.parse().unwrap(),
            next_hops: gateways.iter().map(hop).collect(),
            source: None,
            table: 254,
            protocol: 2,
            priority: 0,
            kind: 1,
            scope: 253,
            mtu: None,
            advmss: None,
        }
    }

    fn ethernet() -> Link {
        Link { index: 2, name: "eth0".into(), mtu: 1500, arp: true, ..Link::default() }
    }

    #[test]
    fn a_neighbour_on_ethernet_is_direct_and_nothing_else() {
        let direct = |route: &RouteEntry, link: &Link| Path::new(route, link).is_direct();
        let lan = route("192.168.1.0/24", &[None]);
        assert!(direct(&lan, &ethernet()));
        assert!(!direct(&route("192.168.0.0/16", &[Some("192.168.1.254")]), &ethernet()));
        assert!(!direct(&route("0.0.0.0/0", &[None]), &ethernet()), "a default route says nothing of an address");
        assert!(!direct(&route("192.168.1.0/24", &[None, None]), &ethernet()));
        assert!(!direct(&RouteEntry { kind: 2, ..lan.clone() }, &ethernet()));
        assert!(!direct(&lan, &Link { arp: false, ..ethernet() }));
        assert!(!direct(&lan, &Link { point_to_point: true, ..ethernet() }));
    }

    #[test]
    fn the_routes_mtu_wins() {
        let lan = route("192.168.1.0/24", &[None]);
        assert_eq!(Path::new(&lan, &ethernet()).mtu, 1500);
        assert_eq!(Path::new(&RouteEntry { mtu: Some(1400), ..lan }, &ethernet()).mtu, 1400);
    }
}
