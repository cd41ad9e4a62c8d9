//! The container's end of the pair: parameters, addresses, routes.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use nix::errno::Errno;

use super::Error;
use super::sysctl::Sysctl;
use crate::Route;
use crate::netlink::route::MAIN;
use crate::netlink::{Link, Mac, Netns, NetnsId, NewRoute, RouteSocket};

/// How long duplicate address detection may take (the reference plugin's 5 s).
const DETECTION: Duration = Duration::from_secs(5);
/// How often it is asked for.
const PAUSE: Duration = Duration::from_millis(20);

/// A container's network namespace, with a socket there: netlink needs no entering.
#[derive(Debug)]
pub struct Inside<'a> {
    netns: &'a Netns,
    home: &'a Netns,
    /// The socket.
    pub socket: RouteSocket,
    /// The namespace's identity.
    pub id: NetnsId,
}

/// What an interface gets.
#[derive(Debug)]
pub struct Interface<'a> {
    /// Its addresses, with the gateway of each, if any.
    pub addresses: &'a [(IpNet, Option<IpAddr>)],
    /// Its routes; those without gateway take that of the first address of their family.
    pub routes: &'a [Route],
    /// IPv6 addresses wait for duplicate address detection.
    pub detect_duplicates: bool,
    /// It goes up.
    pub up: bool,
}

impl<'a> Inside<'a> {
    /// Opens a socket in the container's namespace; `home` is that of this thread.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn open(netns: &'a Netns, home: &'a Netns) -> Result<Self, Error> {
        let (socket, id) = netns.enter_and_identify(home, RouteSocket::open).map_err(Error::Netns)?;
        Ok(Self { netns, home, socket, id })
    }

    /// The interface of a name.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn interface(&mut self, name: &str) -> Result<Option<Link>, Error> {
        Ok(self.socket.link_by_name(name)?)
    }

    /// Gives an interface all it should have. Returns the routes that it got: a second default route of
    /// the container is not one of them.
    ///
    /// # Errors
    /// The kernel refuses something; [`Error::DuplicateAddress`].
    pub fn configure(&mut self, link: &Link, wanted: &Interface<'_>) -> Result<Vec<Route>, Error> {
        self.netns.enter_from(self.home, || set_parameters(&link.name, wanted))?;
        for (address, _) in wanted.addresses {
            self.socket.add_address(link, *address, wanted.detect_duplicates)?;
        }
        if !wanted.up {
            return Ok(Vec::new());
        }
        self.socket.set_up(link, true)?;
        if wanted.detect_duplicates && wanted.addresses.iter().any(|(address, _)| address.addr().is_ipv6()) {
            self.await_detection(link)?;
        }
        self.add_routes(link, wanted)
    }

    /// Tells the neighbours who has the addresses now: gratuitous ARP, and unsolicited advertisements (RFC 4861, 7.2.6).
    /// The kernel sends them when an address is set, as [`configure`](Self::configure) has asked it to; it did so as
    /// well when the interface went up, but the bridge did not forward yet.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn announce(&mut self, link: &Link, mac: Mac) -> Result<(), Error> {
        Ok(self.socket.set_mac(link, mac)?)
    }

    fn await_detection(&mut self, link: &Link) -> Result<(), Error> {
        let deadline = Instant::now() + DETECTION;
        loop {
            let addresses = self.socket.addresses(link)?;
            if let Some(taken) = addresses.iter().find(|address| address.is_duplicate()) {
                return Err(Error::DuplicateAddress { address: taken.address.addr(), ifname: link.name.clone() });
            }
            if !addresses.iter().any(|address| address.is_tentative() && address.scope == 0) {
                return Ok(());
            }
            if Instant::now() > deadline {
                tracing::warn!("duplicate address detection on {} has not ended after {DETECTION:?}", link.name);
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn add_routes(&mut self, link: &Link, wanted: &Interface<'_>) -> Result<Vec<Route>, Error> {
        let mut got: Vec<Route> = Vec::new();
        let mut refused = Vec::new();
        for route in wanted.routes {
            let full = Route { gw: wanted.gateway(route), dst: route.dst.trunc(), ..route.clone() };
            let at = place(&full);
            // The same twice is once.
            if refused.contains(&at) || got.iter().any(|got| place(got) == at && wanted.gateway(got) == full.gw) {
                continue;
            }
            // A first default route is refused by the kernel if the container has one already; a second
            // one of ours is another path (ECMP), as are routes to any other destination.
            let multipath = !full.is_default() || got.iter().any(|got| place(got) == at);
            let new = NewRoute { route: &full, device: link.index, name: &link.name, multipath };
            match self.socket.add_route(&new) {
                Err(error) if full.is_default() && error.is(Errno::EEXIST) => {
                    tracing::info!("{}: the container has a default route already: {error}", link.name);
                    refused.push(at);
                }
                Err(error) => return Err(Error::Route(error)),
                Ok(()) => got.push(route.clone()),
            }
        }
        Ok(got)
    }
}

impl Interface<'_> {
    /// The gateway of a route: its own, or the first of its family; none for a route of link scope.
    fn gateway(&self, route: &Route) -> Option<IpAddr> {
        let on_link = route.scope.is_some_and(|scope| scope >= LINK);
        let v6 = route.dst.addr().is_ipv6();
        let first = || self.addresses.iter().find_map(|(_, gateway)| gateway.filter(|gateway| gateway.is_ipv6() == v6));
        if on_link { route.gw } else { route.gw.or_else(first) }
    }
}

/// RT_SCOPE_LINK: what is behind a gateway has a wider scope.
const LINK: u8 = 253;

/// What the kernel takes for no priority in IPv6 (net/ip6_route.h).
const IP6_RT_PRIO_USER: u32 = 1024;

/// What routes have in common that the kernel takes for one: destination, table, priority.
fn place(route: &Route) -> (IpNet, u32, u32) {
    let priority = match route.priority.unwrap_or(0) {
        0 if route.dst.addr().is_ipv6() => IP6_RT_PRIO_USER,
        priority => priority,
    };
    (route.dst.trunc(), route.table.filter(|&table| table != 0).unwrap_or(MAIN), priority)
}

/// Sets the parameters of an interface that is not up yet. In the container's namespace.
fn set_parameters(name: &str, wanted: &Interface<'_>) -> Result<(), crate::netlink::Error> {
    // Neighbours that know the address by another MAC address are to be told.
    Sysctl::V4(name, "arp_notify").prefer("1");
    Sysctl::V6(name, "ndisc_notify").prefer("1");
    if wanted.detect_duplicates {
        // With the nonce of RFC 7527 its own probe, sent back by a port in hairpin mode, is no duplicate.
        Sysctl::V6(name, "enhanced_dad").prefer("1");
        Sysctl::V6(name, "accept_dad").prefer("1");
    } else {
        Sysctl::V6(name, "accept_dad").prefer("0");
    }
    if wanted.addresses.iter().any(|(address, _)| address.addr().is_ipv6()) {
        for device in ["lo", name] {
            Sysctl::V6(device, "disable_ipv6").ensure("0")?;
        }
        Sysctl::V6(name, "keep_addr_on_down").prefer("1");
    }
    Ok(())
}

#[cfg(test)]
#[path = "container_tests.rs"]
mod tests;
