//! Neighbours: who has an IP address on a link (`ip neigh`), and behind which peer of a VXLAN an Ethernet address is
//! (`bridge fdb`). Both are set by us and never learnt, asked for or forgotten.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use nix::errno::Errno;
use nix::libc;

use super::attributes::{attributes, ip, number};
use super::request::{Request, address, byte, bytes, number as word};
use super::{Error, Link, Mac, PROTOCOL, RouteSocket};

/// Bytes of `struct ndmsg` (linux/neighbour.h).
const HEADER: usize = 12;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NDA_IFINDEX: u16 = 8;
const NDA_PROTOCOL: u16 = 12;
/// NUD_PERMANENT.
const PERMANENT: u16 = 0x80;
/// NTF_SELF: the device's own table, and not that of its bridge.
const SELF: u8 = 2;
const BRIDGE: u8 = libc::AF_BRIDGE as u8;

/// An address of a link, and who has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The IP address.
    pub address: IpAddr,
    /// Its Ethernet address, if it is known.
    pub mac: Option<Mac>,
    /// It stays until it is removed.
    pub permanent: bool,
    /// Who set it (RTPROT_*, kernel 5.0); [`PROTOCOL`] for ours.
    pub protocol: Option<u8>,
}

/// An Ethernet address behind a peer of a VXLAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardingEntry {
    /// The Ethernet address.
    pub mac: Mac,
    /// The peer's address on the underlay.
    pub peer: IpAddr,
    /// It stays until it is removed.
    pub permanent: bool,
}

/// `struct ndmsg`.
fn request(family: u8, index: u32, state: u16, flags: u8) -> Request {
    let mut header = [0; HEADER];
    header[0] = family;
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..10].copy_from_slice(&state.to_ne_bytes());
    header[10] = flags;
    Request::new(&header)
}

fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

/// What both kinds of entries have in common.
struct Entry {
    family: u8,
    index: u32,
    permanent: bool,
    address: Option<IpAddr>,
    mac: Option<Mac>,
    protocol: Option<u8>,
}

impl Entry {
    fn read(message: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER] = message.first_chunk()?;
        let mut entry = Self {
            family: header[0],
            index: number(&header[4..])?,
            permanent: u16::from_ne_bytes([header[8], header[9]]) & PERMANENT != 0,
            address: None,
            mac: None,
            protocol: None,
        };
        for (kind, value) in attributes(message, HEADER) {
            match kind {
                NDA_DST => entry.address = ip(value),
                NDA_LLADDR => entry.mac = value.try_into().ok().map(Mac),
                NDA_PROTOCOL => entry.protocol = value.first().copied(),
                _ => {}
            }
        }
        Some(entry)
    }

    /// As a neighbour of a device.
    fn neighbour(self, device: u32) -> Option<Neighbour> {
        let Self { address, mac, permanent, protocol, .. } = self;
        let address = address.filter(|address| self.index == device && self.family == family(*address))?;
        Some(Neighbour { address, mac, permanent, protocol })
    }

    /// As a forwarding entry of a device.
    fn forwarding(self, device: u32) -> Option<ForwardingEntry> {
        let wanted = self.index == device && self.family == BRIDGE;
        let (mac, peer) = self.mac.zip(self.address).filter(|_| wanted)?;
        Some(ForwardingEntry { mac, peer, permanent: self.permanent })
    }
}

impl RouteSocket {
    /// The neighbours of a device, both families.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn neighbours(&mut self, link: &Link) -> Result<Vec<Neighbour>, Error> {
        let request = request(0, 0, 0, 0).with(word(NDA_IFINDEX, link.index));
        let what = format_args!("list the neighbours of {}", link.name);
        self.list(libc::RTM_GETNEIGH, &request, what, |message| Entry::read(message)?.neighbour(link.index))
    }

    /// Says who has an address, for good (`ip neigh replace … nud permanent proto 79`).
    ///
    /// # Errors
    /// ENODEV: the device is gone.
    pub fn set_neighbour(&mut self, link: &Link, neighbour: IpAddr, mac: Mac) -> Result<(), Error> {
        let request = request(family(neighbour), link.index, PERMANENT, 0)
            .with(address(NDA_DST, neighbour))
            .with(bytes(NDA_LLADDR, &mac.0))
            .with(byte(NDA_PROTOCOL, PROTOCOL));
        let what = format_args!("set neighbour {neighbour} of {}", link.name);
        self.change(libc::RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &request, what)
    }

    /// Removes a neighbour. One that is not there is no error.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove_neighbour(&mut self, link: &Link, neighbour: IpAddr) -> Result<(), Error> {
        let request = request(family(neighbour), link.index, 0, 0).with(address(NDA_DST, neighbour));
        let what = format_args!("remove neighbour {neighbour} of {}", link.name);
        gone(self.change(libc::RTM_DELNEIGH, 0, &request, what))
    }

    /// The forwarding entries of a VXLAN.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn forwarding_entries(&mut self, link: &Link) -> Result<Vec<ForwardingEntry>, Error> {
        let request = request(BRIDGE, 0, 0, 0).with(word(NDA_IFINDEX, link.index));
        let what = format_args!("list the forwarding entries of {}", link.name);
        self.list(libc::RTM_GETNEIGH, &request, what, |message| Entry::read(message)?.forwarding(link.index))
    }

    /// Says behind which peer an Ethernet address is (`bridge fdb replace MAC dev VXLAN dst PEER self permanent`).
    ///
    /// # Errors
    /// ENODEV: the device is gone. EOPNOTSUPP: it is no VXLAN. EAFNOSUPPORT: the peer is of the other family than the
    /// VXLAN.
    pub fn set_forwarding(&mut self, link: &Link, mac: Mac, peer: IpAddr) -> Result<(), Error> {
        let request =
            request(BRIDGE, link.index, PERMANENT, SELF).with(bytes(NDA_LLADDR, &mac.0)).with(address(NDA_DST, peer));
        let what = format_args!("set forwarding of {mac} on {} to {peer}", link.name);
        self.change(libc::RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &request, what)
    }

    /// Removes a forwarding entry. One that is not there is no error.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove_forwarding(&mut self, link: &Link, mac: Mac) -> Result<(), Error> {
        let request = request(BRIDGE, link.index, 0, SELF).with(bytes(NDA_LLADDR, &mac.0));
        let what = format_args!("remove forwarding of {mac} on {}", link.name);
        gone(self.change(libc::RTM_DELNEIGH, 0, &request, what))
    }
}

/// Success for what is not there, nor its device.
fn gone(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if error.is(Errno::ENOENT) || error.is(Errno::ENODEV) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::testing::in_new_netns;
    use super::super::{NewTunnel, Tunnel};
    use super::*;

    #[test]
    fn neighbours_and_forwarding_entries_of_a_vxlan() {
        in_new_netns(|| {
            let mut socket = RouteSocket::open().unwrap();
            let tunnel = Tunnel::vxlan(7, Ipv4Addr::LOCALHOST.into(), 4799);
            socket.create_tunnel(&NewTunnel { name: "vx", tunnel: &tunnel, mtu: 1450, mac: None }).unwrap();
            let link = socket.link_by_name("vx").unwrap().unwrap();
            socket.set_up(&link, true).unwrap();
            let (old, new) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
            let addresses: [IpAddr; 2] = ["10.11.4.1".parse().unwrap(), "fd11:4::1".parse().unwrap()];
            for (address, mac) in addresses.iter().flat_map(|address| [(*address, old), (*address, new)]) {
                socket.set_neighbour(&link, address, mac).unwrap();
            }
            let mut found = socket.neighbours(&link).unwrap();
            found.retain(|neighbour| neighbour.permanent);
            let wanted = addresses.map(|address| Neighbour {
                address,
                mac: Some(new),
                permanent: true,
                protocol: Some(PROTOCOL),
            });
            assert_eq!(found, wanted);

            for peer in ["192.0.2.1", "192.0.2.2"] {
                socket.set_forwarding(&link, old, peer.parse().unwrap()).unwrap();
            }
            let entry = ForwardingEntry { mac: old, peer: "192.0.2.2".parse().unwrap(), permanent: true };
            assert_eq!(socket.forwarding_entries(&link).unwrap(), [entry], "replaced in place");
            let other = socket.set_forwarding(&link, new, addresses[1]).unwrap_err();
            assert!(other.is(Errno::EAFNOSUPPORT), "{other}");
            let lo = socket.link_by_name("lo").unwrap().unwrap();
            assert_eq!(socket.forwarding_entries(&lo).unwrap(), []);

            for _ in 0..2 {
                socket.remove_forwarding(&link, old).unwrap();
                socket.remove_neighbour(&link, addresses[0]).unwrap();
                socket.remove_neighbour(&link, addresses[1]).unwrap();
            }
            assert_eq!(socket.forwarding_entries(&link).unwrap(), []);
            assert!(socket.neighbours(&link).unwrap().iter().all(|neighbour| !neighbour.permanent));
        });
    }
}
