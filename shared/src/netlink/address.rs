//! Addresses of devices.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use nix::errno::Errno;
use nix::libc;

use super::attributes::{attributes, ip, number};
use super::{Error, Link, RouteSocket};

/// Bytes of `struct ifaddrmsg`.
const HEADER: usize = 8;

/// An address of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The device's number.
    pub index: u32,
    /// The address, host bits and all, with its prefix length.
    pub address: IpNet,
    /// Scope of the address: 0 universe, 253 link (rtnetlink(7)).
    pub scope: u8,
    /// IFA_F_* (linux/if_addr.h).
    pub flags: u32,
}

impl Address {
    fn read(message: &[u8]) -> Option<Self> {
        let &[_, prefix, flags, scope] = message.get(..4)?.first_chunk()?;
        let mut flags = u32::from(flags);
        let (mut address, mut local) = (None, None);
        for (kind, value) in attributes(message, HEADER) {
            match kind {
                libc::IFA_ADDRESS => address = ip(value),
                libc::IFA_LOCAL => local = ip(value),
                libc::IFA_FLAGS => flags = number(value)?,
                _ => {}
            }
        }
        // With a peer, IFA_ADDRESS is the peer's.
        let address = IpNet::new(local.or(address)?, prefix).ok()?;
        Some(Self { index: number(message.get(4..)?)?, address, scope, flags })
    }

    /// Duplicate address detection is under way: nothing is sent from it yet.
    pub fn is_tentative(&self) -> bool {
        self.flags & libc::IFA_F_TENTATIVE != 0
    }

    /// Duplicate address detection found another owner.
    pub fn is_duplicate(&self) -> bool {
        self.flags & libc::IFA_F_DADFAILED != 0
    }
}

fn message(link: &Link, address: IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address.addr());
    message.header.prefix_len = address.prefix_len();
    message.header.index = link.index;
    message.attributes = vec![AddressAttribute::Local(address.addr()), AddressAttribute::Address(address.addr())];
    message
}

/// The address family of an address.
pub(super) fn family(ip: IpAddr) -> AddressFamily {
    if ip.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

impl RouteSocket {
    /// The addresses of a device, both families.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn addresses(&mut self, link: &Link) -> Result<Vec<Address>, Error> {
        let mut request = AddressMessage::default();
        request.header.index = link.index;
        let what = format_args!("list the addresses of {}", link.name);
        let mut addresses = self.list(libc::RTM_GETADDR, &request, what, Address::read)?;
        addresses.retain(|address| address.index == link.index);
        Ok(addresses)
    }

    /// The addresses of all devices: of one family (IPv6?), or of both.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn all_addresses(&mut self, v6: Option<bool>) -> Result<Vec<Address>, Error> {
        let mut request = AddressMessage::default();
        request.header.family = match v6 {
            None => AddressFamily::Unspec,
            Some(false) => AddressFamily::Inet,
            Some(true) => AddressFamily::Inet6,
        };
        let what = format_args!("list the addresses of all devices");
        let mut addresses = self.list(libc::RTM_GETADDR, &request, what, Address::read)?;
        addresses.retain(|address| v6.is_none_or(|v6| address.address.addr().is_ipv6() == v6));
        Ok(addresses)
    }

    /// Adds an address. `detect` waits for duplicate address detection of IPv6 (RFC 4862, 5.4);
    /// without, the address is usable at once.
    ///
    /// # Errors
    /// EEXIST: the device has it already.
    pub fn add_address(&mut self, link: &Link, address: IpNet, detect: bool) -> Result<(), Error> {
        let mut request = message(link, address);
        match address {
            // As `ip address add … brd +`; RFC 3021 networks have no broadcast address.
            IpNet::V4(net) if net.prefix_len() < 31 => {
                request.attributes.push(AddressAttribute::Broadcast(Ipv4Addr::from(u32::from(net.broadcast()))));
            }
            IpNet::V6(_) if !detect => request.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad)),
            _ => {}
        }
        let what = format_args!("add address {address} to {}", link.name);
        self.change(libc::RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &request, what)
    }

    /// Gives a device an address of this host that leads nowhere: without a network around it, and never chosen as the
    /// source of packets by other devices (`ip address add ADDRESS/32 dev DEVICE scope link`). Another device may have
    /// the same one.
    ///
    /// # Errors
    /// EEXIST: the device has it already.
    pub fn add_bare_address(&mut self, link: &Link, address: Ipv4Addr) -> Result<(), Error> {
        let mut request = message(link, IpNet::from(IpAddr::V4(address)));
        request.header.scope = AddressScope::Link;
        let what = format_args!("add address {address} to {}", link.name);
        self.change(libc::RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &request, what)
    }

    /// Removes an address. One that is not there is no error.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove_address(&mut self, link: &Link, address: IpNet) -> Result<(), Error> {
        let what = format_args!("remove address {address} from {}", link.name);
        match self.change(libc::RTM_DELADDR, 0, &message(link, address), what) {
            Err(error) if error.is(Errno::EADDRNOTAVAIL) || error.is(Errno::ENODEV) => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::route::MAIN;
    use super::super::testing::in_new_netns;
    use super::super::{Mac, NewBridge, RouteFilter};
    use super::*;

    #[test]
    fn br5_addresses_with_their_prefix_and_without_detection() {
        in_new_netns(|| {
            let mut socket = RouteSocket::open().unwrap();
            socket.create_bridge(&NewBridge { name: "br0", mac: Mac([2; 6]), mtu: 1500 }).unwrap();
            let link = socket.link_by_name("br0").unwrap().unwrap();
            let wanted: [IpNet; 2] = ["10.22.0.1/16".parse().unwrap(), "fd77::1/64".parse().unwrap()];
            for address in wanted {
                socket.add_address(&link, address, false).unwrap();
            }
            let again = socket.add_address(&link, wanted[0], false).unwrap_err();
            assert!(again.is(Errno::EEXIST), "{again}");
            assert!(again.to_string().starts_with("cannot add address 10.22.0.1/16 to br0: File exists"), "{again}");
            let found = socket.addresses(&link).unwrap();
            assert_eq!(found.iter().map(|found| found.address).collect::<Vec<_>>(), wanted);
            assert!(found.iter().all(|found| !found.is_tentative() && found.scope == 0));
            let lo = socket.link_by_name("lo").unwrap().unwrap();
            assert_eq!(socket.addresses(&lo).unwrap(), []);
            for address in wanted {
                socket.remove_address(&link, address).unwrap();
                socket.remove_address(&link, address).unwrap();
            }
            assert_eq!(socket.addresses(&link).unwrap(), []);
        });
    }

    #[test]
    fn a_bare_address_of_two_devices_brings_no_route() {
        in_new_netns(|| {
            let mut socket = RouteSocket::open().unwrap();
            let mut links = Vec::new();
            for (name, last) in [("br0", 1), ("br1", 2)] {
                socket.create_bridge(&NewBridge { name, mac: Mac([2, 0, 0, 0, 0, last]), mtu: 1500 }).unwrap();
                let link = socket.link_by_name(name).unwrap().unwrap();
                socket.set_up(&link, true).unwrap();
                links.push(link);
            }
            let address: Ipv4Addr = "10.22.0.1".parse().unwrap();
            socket.add_address(&links[0], "10.22.0.1/16".parse().unwrap(), false).unwrap();
            socket.add_bare_address(&links[1], address).unwrap();
            assert!(socket.add_bare_address(&links[1], address).unwrap_err().is(Errno::EEXIST));
            let all = socket.all_addresses(Some(false)).unwrap();
            let found: Vec<_> = all.iter().map(|it| (it.index, it.address.to_string(), it.scope)).collect();
            let [whole, bare] = ["10.22.0.1/16", "10.22.0.1/32"].map(str::to_owned);
            assert_eq!(found, [(links[0].index, whole, 0), (links[1].index, bare, 253)]);
            let by = |socket: &mut RouteSocket, link: &Link| {
                let filter = RouteFilter { table: Some(MAIN), device: Some(link.index), ..RouteFilter::default() };
                socket.routes(&filter).unwrap().iter().filter(|route| route.dst.addr().is_ipv4()).count()
            };
            assert_eq!((by(&mut socket, &links[0]), by(&mut socket, &links[1])), (1, 0));
            // The host still has it, and its route, when the other device loses it.
            socket.remove_address(&links[1], "10.22.0.1/32".parse().unwrap()).unwrap();
            assert_eq!((by(&mut socket, &links[0]), socket.all_addresses(Some(false)).unwrap().len()), (1, 1));
        });
    }
}
