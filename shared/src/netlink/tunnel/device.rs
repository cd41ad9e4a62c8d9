//! Tunnel devices: making, changing and listing them.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use nix::errno::Errno;
use nix::libc;

use super::{Tunnel, TunnelKind, data};
use crate::netlink::attributes::{attributes, number as number_of};
use crate::netlink::link;
use crate::netlink::link_request::{HEADER, LinkRequest};
use crate::netlink::request::{bytes, nested, number, text};
use crate::netlink::{Error, GROUP, Link, Mac, RouteSocket};

/// A new device, and none of that name.
const CREATE: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// What the kernel says of a kind that it has no module for (`rtnl_newlink`); older ones say nothing.
const UNKNOWN: &str = "Unknown device type";

/// IFLA_INET_CONF (linux/if_link.h): what is below `net/ipv4/conf/<device>`, 32 bits each.
const INET_CONF: u16 = 1;
/// Where `rp_filter` is there (IPV4_DEVCONF_RP_FILTER, linux/ip.h, less the first number).
const RP_FILTER: usize = 7;

/// A tunnel device to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewTunnel<'a> {
    /// Its name, 15 bytes at most.
    pub name: &'a str,
    /// What it is.
    pub tunnel: &'a Tunnel,
    /// Its MTU, in bytes.
    pub mtu: u32,
    /// Its Ethernet address: of a VXLAN only.
    pub mac: Option<Mac>,
}

/// A tunnel device that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunnelDevice {
    /// The device; its group tells whether it is ours.
    pub link: Link,
    /// What it is.
    pub tunnel: Tunnel,
    /// `rp_filter` of the device, if it has IPv4.
    pub rp_filter: Option<u32>,
}

impl TunnelDevice {
    /// None for a device that is no tunnel.
    fn read(message: &[u8]) -> Option<Option<Self>> {
        let link = Link::read(message)?;
        let Some(kind) = link.kind.as_deref().and_then(TunnelKind::of) else { return Some(None) };
        let find = |message, skip, wanted| attributes(message, skip).find(|(kind, _)| *kind == wanted);
        let parameters = find(message, HEADER, libc::IFLA_LINKINFO)
            .and_then(|(_, info)| find(info, 0, libc::IFLA_INFO_DATA))
            .map_or(&[][..], |(_, data)| data);
        let rp_filter = find(message, HEADER, libc::IFLA_AF_SPEC)
            .and_then(|(_, families)| find(families, 0, libc::AF_INET as u16))
            .and_then(|(_, v4)| find(v4, 0, INET_CONF))
            .and_then(|(_, values)| number_of(values.get(4 * RP_FILTER..)?));
        Some(Some(Self { tunnel: data::read(kind, parameters), link, rp_filter }))
    }

    /// True if it is ours, by its group.
    pub fn is_ours(&self) -> bool {
        self.link.group == GROUP
    }
}

fn info(tunnel: &Tunnel, change: bool) -> netlink_packet_core::DefaultNla {
    let data = nested(libc::IFLA_INFO_DATA, &data::write(tunnel, change));
    nested(libc::IFLA_LINKINFO, &[text(libc::IFLA_INFO_KIND, tunnel.kind.name()), data])
}

impl RouteSocket {
    /// Makes a tunnel device in one request, down: what is set per device in /proc/sys has to be there before it goes
    /// up. The kernel loads the module that it needs.
    ///
    /// # Errors
    /// [`Error::NoModule`]: there is none. EEXIST: the name is taken, or another device [excludes](Tunnel::excludes)
    /// it.
    pub fn create_tunnel(&mut self, new: &NewTunnel<'_>) -> Result<(), Error> {
        let NewTunnel { name, tunnel, mtu, mac } = *new;
        let mut request = LinkRequest::about(0)
            .with(text(libc::IFLA_IFNAME, name))
            .with(number(libc::IFLA_MTU, mtu))
            .with(number(libc::IFLA_GROUP, GROUP))
            .with(info(tunnel, false));
        if let Some(mac) = mac {
            request = request.with(bytes(libc::IFLA_ADDRESS, &mac.0));
        }
        let kind = tunnel.kind;
        match self.change(libc::RTM_NEWLINK, CREATE, &request, format_args!("create {} {name}", kind.name())) {
            Err(Error::Refused { request, errno: Errno::EOPNOTSUPP, hint })
                if hint.as_deref().is_none_or(|hint| hint == UNKNOWN) =>
            {
                Err(Error::NoModule { request, kind: kind.name(), module: kind.module() })
            }
            result => result,
        }
    }

    /// Changes a tunnel's parameters in place, as far as [`Tunnel::can_become`] says. Routes by it stay. The MTU is told
    /// again: with a new peer, the kernel takes one of its own.
    ///
    /// # Errors
    /// EEXIST: another device [excludes](Tunnel::excludes) it. EOPNOTSUPP, EINVAL: it cannot become that.
    pub fn change_tunnel(&mut self, link: &Link, tunnel: &Tunnel, mtu: u32) -> Result<(), Error> {
        // Of a VXLAN the MTU cannot change together with the others, and does not by them (`vxlan_nl2conf`).
        let apart = tunnel.kind == TunnelKind::Vxlan;
        let mut request = LinkRequest::about(link.index).with(info(tunnel, true));
        if !apart {
            request = request.with(number(libc::IFLA_MTU, mtu));
        }
        let what = format_args!("change {} {}", tunnel.kind.name(), link.name);
        self.change(libc::RTM_NEWLINK, 0, &request, what)?;
        if apart && link.mtu != mtu { self.set_mtu(link, mtu) } else { Ok(()) }
    }

    /// The tunnel device of a name; none if there is no device of that name, or it is no tunnel.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn tunnel_by_name(&mut self, name: &str) -> Result<Option<TunnelDevice>, Error> {
        let request = link::get(0).with(text(libc::IFLA_IFNAME, name));
        let what = format_args!("look up device {name}");
        let missing = [Errno::ENODEV, Errno::ERANGE];
        Ok(self.one(libc::RTM_GETLINK, &request, what, &missing, TunnelDevice::read)?.flatten())
    }

    /// All tunnel devices, with all their parameters; also foreign ones, and the kernel's own (`tunl0`, …).
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn tunnels(&mut self) -> Result<Vec<TunnelDevice>, Error> {
        let read = |message: &[u8]| TunnelDevice::read(message).flatten();
        self.list(libc::RTM_GETLINK, &link::get(0), format_args!("list the tunnels"), read)
    }

    /// The tunnel devices of a kind: the kernel leaves out the others.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn tunnels_of(&mut self, kind: TunnelKind) -> Result<Vec<TunnelDevice>, Error> {
        let filter = nested(libc::IFLA_LINKINFO, &[text(libc::IFLA_INFO_KIND, kind.name())]);
        let read = |message: &[u8]| TunnelDevice::read(message).flatten();
        let what = format_args!("list the {} devices", kind.name());
        let mut found = self.list(libc::RTM_GETLINK, &link::get(0).with(filter), what, read)?;
        // A kernel that has not got the kind does not filter.
        found.retain(|device| device.tunnel.kind == kind);
        Ok(found)
    }
}
