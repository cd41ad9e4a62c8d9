//! Devices, as the kernel tells of them.

use nix::errno::Errno;
use nix::libc;

use super::attributes::{attributes, number, text};
use super::link_request::{HEADER, LinkRequest};
use super::{Error, RouteSocket, request};

/// IFLA_INFO_SLAVE_DATA (linux/if_link.h, which `libc` has in part only).
const INFO_SLAVE_DATA: u16 = 5;
/// IFLA_BRPORT_STATE.
const BRPORT_STATE: u16 = 1;
/// BR_STATE_FORWARDING (linux/if_bridge.h).
const FORWARDING: u8 = 3;
/// IFLA_BRPORT_MODE: hairpin.
pub(super) const BRPORT_MODE: u16 = 4;
/// IFLA_BRPORT_ISOLATED.
pub(super) const BRPORT_ISOLATED: u16 = 33;
/// IFLA_BR_VLAN_FILTERING.
pub(super) const BR_VLAN_FILTERING: u16 = 7;
/// IFLA_BR_VLAN_DEFAULT_PVID.
const BR_VLAN_DEFAULT_PVID: u16 = 39;
/// RTEXT_FILTER_SKIP_STATS: the statistics are most of an answer.
const SKIP_STATS: u32 = 1 << 3;

/// A device, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// Its number in its namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its kind (`veth`, `bridge`, …); none for hardware.
    pub kind: Option<String>,
    /// The bridge of which it is a port.
    pub master: Option<u32>,
    /// Its Ethernet address.
    pub mac: Option<[u8; 6]>,
    /// Its MTU, in bytes.
    pub mtu: u32,
    /// It is administratively up.
    pub up: bool,
    /// It is up and has a carrier (IFF_RUNNING).
    pub running: bool,
    /// It was told to take up all frames (IFF_PROMISC): by a person or program, not by the kernel's own count.
    pub promiscuous: bool,
    /// It sends ARP requests (no IFF_NOARP).
    pub arp: bool,
    /// It has one neighbour only (IFF_POINTOPOINT).
    pub point_to_point: bool,
    /// Its description.
    pub alias: Option<String>,
    /// Its group; [`GROUP`](super::GROUP) for ours.
    pub group: u32,
    /// The number of the device it belongs to; of a pair's other end, in the namespace where that is.
    pub peer: Option<u32>,
    /// The kernel's number here of the namespace where that device is; none if it is here, negative
    /// if it is on its way out.
    pub peer_netns: Option<i32>,
    /// Its other names.
    pub altnames: Vec<String>,
    /// A bridge port's hairpin mode.
    pub hairpin: Option<bool>,
    /// A bridge port's isolation from others that have it.
    pub isolated: Option<bool>,
    /// What a bridge does about VLANs; none for a kernel whose bridges know nothing of them.
    pub vlans: Option<BridgeVlans>,
    /// It is a bridge port in forwarding state: frames pass.
    pub forwarding: bool,
}

/// What a bridge does about VLANs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BridgeVlans {
    /// It forwards by them.
    pub filtering: bool,
    /// The one in which a new port is, untagged; 0 for none.
    pub default: u16,
}

impl Link {
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let flags = number(message.get(8..)?)?;
        let set = |flag: libc::c_int| flags & flag as u32 != 0;
        let mut link = Self {
            index: number(message.get(4..)?)?,
            up: set(libc::IFF_UP),
            running: set(libc::IFF_RUNNING),
            promiscuous: set(libc::IFF_PROMISC),
            arp: !set(libc::IFF_NOARP),
            point_to_point: set(libc::IFF_POINTOPOINT),
            ..Self::default()
        };
        for (kind, value) in attributes(message, HEADER) {
            match kind {
                libc::IFLA_IFNAME => link.name = text(value),
                libc::IFLA_ADDRESS => link.mac = value.try_into().ok(),
                libc::IFLA_MTU => link.mtu = number(value)?,
                libc::IFLA_MASTER => link.master = number(value),
                libc::IFLA_IFALIAS => link.alias = Some(text(value)),
                libc::IFLA_GROUP => link.group = number(value)?,
                libc::IFLA_LINK => link.peer = number(value),
                libc::IFLA_LINK_NETNSID => link.peer_netns = number(value).map(|id| id as i32),
                libc::IFLA_PROP_LIST => link.altnames = attributes(value, 0).map(|(_, name)| text(name)).collect(),
                libc::IFLA_LINKINFO => link.read_info(value),
                _ => {}
            }
        }
        Some(link)
    }

    fn read_info(&mut self, info: &[u8]) {
        for (kind, value) in attributes(info, 0) {
            match kind {
                libc::IFLA_INFO_KIND => self.kind = Some(text(value)),
                // Behind the kind: each has numbers of its own.
                libc::IFLA_INFO_DATA if self.is_a("bridge") => self.vlans = BridgeVlans::read(value),
                INFO_SLAVE_DATA => {
                    for (kind, value) in attributes(value, 0) {
                        match kind {
                            BRPORT_STATE => self.forwarding = value.first() == Some(&FORWARDING),
                            BRPORT_MODE => self.hairpin = Some(value.first().is_some_and(|&on| on != 0)),
                            BRPORT_ISOLATED => self.isolated = Some(value.first().is_some_and(|&on| on != 0)),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// True for a bridge that forwards by VLANs.
    pub fn filters_vlans(&self) -> bool {
        self.vlans.is_some_and(|vlans| vlans.filtering)
    }

    /// True for a device of this kind.
    pub fn is_a(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }
}

impl BridgeVlans {
    /// A kernel without CONFIG_BRIDGE_VLAN_FILTERING tells of no default one, and that it does not filter (`br_fill_info`).
    fn read(data: &[u8]) -> Option<Self> {
        let (mut filtering, mut default) = (false, None);
        for (kind, value) in attributes(data, 0) {
            match kind {
                BR_VLAN_FILTERING => filtering = value.first().is_some_and(|&on| on != 0),
                BR_VLAN_DEFAULT_PVID => default = value.try_into().ok().map(u16::from_ne_bytes),
                _ => {}
            }
        }
        Some(Self { filtering, default: default? })
    }
}

/// A question for devices.
pub(super) fn get(index: u32) -> LinkRequest {
    LinkRequest::about(index).with(request::number(libc::IFLA_EXT_MASK, SKIP_STATS))
}

impl RouteSocket {
    /// The device of a name (or, since 5.5, an alternative name).
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn link_by_name(&mut self, name: &str) -> Result<Option<Link>, Error> {
        let kind = if name.len() < libc::IFNAMSIZ { libc::IFLA_IFNAME } else { libc::IFLA_ALT_IFNAME };
        let request = get(0).with(request::text(kind, name));
        let what = format_args!("look up device {name}");
        // Before 5.5 a long name is out of range.
        self.one(libc::RTM_GETLINK, &request, what, &[Errno::ENODEV, Errno::ERANGE], Link::read)
    }

    /// The device of a number.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn link_by_index(&mut self, index: u32) -> Result<Option<Link>, Error> {
        let what = format_args!("look up device number {index}");
        self.one(libc::RTM_GETLINK, &get(index), what, &[Errno::ENODEV], Link::read)
    }

    /// The ports of a bridge.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn links_with_master(&mut self, index: u32) -> Result<Vec<Link>, Error> {
        let request = get(0).with(request::number(libc::IFLA_MASTER, index));
        let what = format_args!("list the ports of bridge number {index}");
        let mut links = self.list(libc::RTM_GETLINK, &request, what, Link::read)?;
        links.retain(|link| link.master == Some(index));
        Ok(links)
    }

    /// All devices.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn links(&mut self) -> Result<Vec<Link>, Error> {
        self.list(libc::RTM_GETLINK, &get(0), format_args!("list the devices"), Link::read)
    }

    /// True if the other end of a pair is there, in a namespace that is not on its way out. An end
    /// can outlive the other one's namespace for tens of milliseconds.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn peer_is_alive(&mut self, link: &Link) -> Result<bool, Error> {
        let Some(peer) = link.peer.filter(|&peer| peer != 0) else { return Ok(false) };
        let mut request = get(peer);
        match link.peer_netns {
            None => {}
            Some(id) if id < 0 => return Ok(false),
            Some(id) => {
                request = request.with(request::bytes(libc::IFLA_TARGET_NETNSID, &id.to_ne_bytes()));
            }
        }
        let what = format_args!("look up the other end of {}", link.name);
        // EINVAL: no namespace with users has this number any more (`rtnl_get_net_ns_capable`).
        let dead = [Errno::ENODEV, Errno::EINVAL];
        match self.one(libc::RTM_GETLINK, &request, what, &dead, Link::read) {
            Ok(found) => Ok(found.is_some()),
            // It is another user's namespace, and so it is there.
            Err(error) if error.is(Errno::EACCES) => Ok(true),
            Err(error) => Err(error),
        }
    }
}
