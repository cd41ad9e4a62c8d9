//! The MTU of a network: the configured one, or that of the host. It is decided when the bridge is made, and changed
//! by an operator.

use ipnet::IpNet;

use super::names::is_ours;
use super::setup::{Setup, Site, locked};
use super::wanted::Wanted;
use super::{Error as NetworkError, NetworkRecord};
use crate::netlink::route::MAIN;
use crate::netlink::{Error, RouteFilter, RouteSocket};

/// What Ethernet has, in bytes.
const ETHERNET: u32 = 1500;
/// What a bridge can have (`ETH_MAX_MTU`), in bytes; the loopback device has more.
const LARGEST: u32 = 65535;

/// The MTU of the device of the host's default route, IPv4 first; 1500 without one. In bytes.
///
/// # Errors
/// The kernel does not answer.
pub fn of_host(socket: &mut RouteSocket) -> Result<u32, Error> {
    for v6 in [false, true] {
        let filter = RouteFilter { v6: Some(v6), table: Some(MAIN), ..RouteFilter::default() };
        let routes = socket.routes(&filter)?;
        let defaults = routes.iter().filter(|route| route.is_default() && route.is_unicast());
        let device = defaults.min_by_key(|route| route.priority).and_then(|route| route.next_hops.first()?.device);
        if let Some(device) = device
            && let Some(link) = socket.link_by_index(device)?
        {
            return Ok(link.mtu);
        }
    }
    Ok(ETHERNET)
}

/// The least MTU of a link with IPv6 (RFC 8200, 5), in bytes.
pub const LEAST_V6: u32 = 1280;

/// What a network of these subnets can have, when the host's is this much: a small uplink is no reason to go without IPv6.
pub fn for_families(host: u32, subnets: &[IpNet]) -> u32 {
    let v6 = subnets.iter().any(|subnet| subnet.addr().is_ipv6());
    host.clamp(if v6 { LEAST_V6 } else { 0 }, LARGEST)
}

impl Site<'_> {
    /// The MTU that the network should have by now, in bytes, if its bridge has another. A bridge that is not ours keeps
    /// its own.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn other_mtu(&mut self, wanted: &Wanted, setup: &Setup) -> Result<Option<u32>, NetworkError> {
        if !setup.record.owned {
            return Ok(None);
        }
        let mtu = match wanted.mtu {
            Some(mtu) => mtu,
            None => for_families(of_host(self.socket)?, &wanted.subnets),
        };
        Ok(Some(mtu).filter(|mtu| (*mtu, *mtu) != (setup.bridge.mtu, setup.record.mtu)))
    }

    /// Gives the network another MTU: its bridge, and with the record the containers to come.
    ///
    /// The pairs that are there keep theirs, since a veth drops silently what is larger than its peer's: their
    /// containers send as before, and the host tells them by ICMP where that is too much.
    ///
    /// # Errors
    /// The kernel refuses, or the record cannot be written: the bridge has its old MTU then.
    pub fn change_mtu(&mut self, setup: &mut Setup, mtu: u32) -> Result<(), NetworkError> {
        locked(self.host, || {
            let record = NetworkRecord::load(self.host, &setup.record.name)?;
            let record = NetworkRecord { mtu, ..record.unwrap_or_else(|| setup.record.clone()) };
            self.socket.set_mtu(&setup.bridge, mtu)?;
            if let Some(device) = setup.vlan.as_mut().filter(|device| is_ours(device)) {
                let port = device.peer.map(|port| self.socket.link_by_index(port)).transpose()?.flatten();
                for end in port.iter().chain([&*device]) {
                    self.socket.set_mtu(end, mtu)?;
                }
                device.mtu = mtu;
            }
            if let Err(error) = record.save(self.host) {
                self.socket.set_mtu(&setup.bridge, setup.bridge.mtu)?;
                return Err(error);
            }
            setup.bridge.mtu = mtu;
            setup.record = record;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Route;
    use crate::netlink::testing::in_new_netns;
    use crate::netlink::{Mac, NewBridge, NewRoute};

    #[test]
    fn a_small_uplink_leaves_room_for_ipv6() {
        let (v4, v6): (IpNet, IpNet) = ("10.1.0.0/24".parse().unwrap(), "fd00::/64".parse().unwrap());
        assert_eq!(for_families(1000, &[v4]), 1000);
        assert_eq!(for_families(1000, &[v4, v6]), 1280);
        assert_eq!(for_families(65536, &[v4]), 65535);
    }

    #[test]
    fn the_mtu_is_that_of_the_default_routes_device() {
        in_new_netns(|| {
            let mut socket = RouteSocket::open().unwrap();
            assert_eq!(of_host(&mut socket).unwrap(), 1500);
            for (name, mtu, address, priority) in [("up0", 1400, "10.1.0.1/24", 100), ("up1", 1300, "10.2.0.1/24", 200)]
            {
                socket.create_bridge(&NewBridge { name, mac: Mac([2; 6]), mtu }).unwrap();
                let link = socket.link_by_name(name).unwrap().unwrap();
                socket.set_up(&link, true).unwrap();
                let address: ipnet::IpNet = address.parse().unwrap();
                socket.add_address(&link, address, false).unwrap();
                let gateway = address.hosts().nth(8);
                let route = Route { priority: Some(priority), ..Route::new("0.0.0.0/0".parse().unwrap(), gateway) };
                socket.add_route(&NewRoute { route: &route, device: link.index, name, multipath: false }).unwrap();
            }
            assert_eq!(of_host(&mut socket).unwrap(), 1400);
        });
    }
}
