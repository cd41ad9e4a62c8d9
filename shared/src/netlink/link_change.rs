//! Making, changing and deleting devices.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use nix::errno::Errno;
use nix::libc;

use super::link::{BRPORT_ISOLATED, BRPORT_MODE};
use super::link_request::LinkRequest;
use super::request::{bytes, nested, number, text};
use super::{Error, GROUP, Link, Mac, Netns, RouteSocket};

/// A new device, and none of that name.
const CREATE: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// RTM_NEWLINKPROP (linux/rtnetlink.h).
const NEWLINKPROP: u16 = 108;
/// VETH_INFO_PEER (linux/veth.h): the other end of a pair, as a whole request.
const PEER: u16 = 1;
/// IFLA_BR_STP_STATE.
const STP_STATE: u16 = 5;

/// A bridge to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewBridge<'a> {
    /// Its name, 15 bytes at most.
    pub name: &'a str,
    /// Its Ethernet address. Set, it stays when ports come and go.
    pub mac: Mac,
    /// Its MTU, in bytes.
    pub mtu: u32,
}

/// A pair to be made: one end here, the other where its container is.
#[derive(Debug, Clone, Copy)]
pub struct NewPair<'a> {
    /// Name of the end here.
    pub host: &'a str,
    /// Ethernet address of the end here.
    pub host_mac: Mac,
    /// The bridge here of which it becomes a port.
    pub master: u32,
    /// Name of the end in the container.
    pub peer: &'a str,
    /// Ethernet address of the end in the container.
    pub peer_mac: Mac,
    /// The container's namespace.
    pub netns: &'a Netns,
    /// MTU of both ends, in bytes.
    pub mtu: u32,
}

/// A pair to be made of which both ends are here.
#[derive(Debug, Clone, Copy)]
pub struct NewLocalPair<'a> {
    /// Name of the end that is a port.
    pub port: &'a str,
    /// Its Ethernet address.
    pub port_mac: Mac,
    /// The bridge of which it becomes a port.
    pub master: u32,
    /// Name of the other end.
    pub device: &'a str,
    /// Its Ethernet address.
    pub device_mac: Mac,
    /// MTU of both ends, in bytes.
    pub mtu: u32,
}

/// A new device with what all have.
fn new(name: &str, mac: Mac) -> LinkRequest {
    LinkRequest::about(0).with(text(libc::IFLA_IFNAME, name)).with(bytes(libc::IFLA_ADDRESS, &mac.0))
}

/// A pair with this end up, in its bridge and marked.
fn veth(name: &str, mac: Mac, mtu: u32, master: u32, peer: &LinkRequest) -> LinkRequest {
    let data = nested(libc::IFLA_INFO_DATA, &[bytes(PEER, &peer.bytes())]);
    new(name, mac)
        .with(number(libc::IFLA_MTU, mtu))
        .up(true)
        .with(number(libc::IFLA_MASTER, master))
        .with(number(libc::IFLA_GROUP, GROUP))
        .with(nested(libc::IFLA_LINKINFO, &[text(libc::IFLA_INFO_KIND, "veth"), data]))
}

impl RouteSocket {
    /// Makes a bridge, down and without spanning tree: its ports forward at once.
    ///
    /// # Errors
    /// EEXIST: the name is taken.
    pub fn create_bridge(&mut self, bridge: &NewBridge<'_>) -> Result<(), Error> {
        let data = nested(libc::IFLA_INFO_DATA, &[number(STP_STATE, 0)]);
        let request = new(bridge.name, bridge.mac)
            .with(number(libc::IFLA_GROUP, GROUP))
            .with(nested(libc::IFLA_LINKINFO, &[text(libc::IFLA_INFO_KIND, "bridge"), data]));
        self.change(libc::RTM_NEWLINK, CREATE, &request, format_args!("create bridge {}", bridge.name))?;
        // A bridge forgets the MTU of the creating request with its last port: only a change counts as wanted
        // (`br_change_mtu`, `br_mtu_auto_adjust`).
        match self.link_by_name(bridge.name)? {
            Some(link) if link.mtu != bridge.mtu => self.set_mtu(&link, bridge.mtu),
            _ => Ok(()),
        }
    }

    /// Makes a pair, in one request: the end here up and in its bridge, the other one down in its
    /// container. An alias is ignored by this request, and the other end cannot be up (ENOTCONN).
    ///
    /// # Errors
    /// EEXIST: one of the names is taken.
    pub fn create_pair(&mut self, pair: &NewPair<'_>) -> Result<(), Error> {
        let peer = new(pair.peer, pair.peer_mac).with(number(libc::IFLA_MTU, pair.mtu));
        let peer = peer.with(bytes(libc::IFLA_NET_NS_FD, &pair.netns.raw_fd().to_ne_bytes()));
        let request = veth(pair.host, pair.host_mac, pair.mtu, pair.master, &peer);
        let NewPair { host, peer, .. } = pair;
        let what = format_args!("create {host} and its other end {peer} in {}", pair.netns.path().display());
        self.change(libc::RTM_NEWLINK, CREATE, &request, what)
    }

    /// Makes a pair with both ends here, in one request: one up and in its bridge, the other one down.
    ///
    /// # Errors
    /// EEXIST: one of the names is taken.
    pub fn create_local_pair(&mut self, pair: &NewLocalPair<'_>) -> Result<(), Error> {
        let device = new(pair.device, pair.device_mac).with(number(libc::IFLA_MTU, pair.mtu));
        let device = device.with(number(libc::IFLA_GROUP, GROUP));
        let request = veth(pair.port, pair.port_mac, pair.mtu, pair.master, &device);
        let NewLocalPair { port, device, .. } = pair;
        self.change(libc::RTM_NEWLINK, CREATE, &request, format_args!("create {device} and its other end {port}"))
    }

    /// Switches a device up or down.
    ///
    /// # Errors
    /// ENODEV: it is gone.
    pub fn set_up(&mut self, link: &Link, up: bool) -> Result<(), Error> {
        let what = format_args!("set {} {}", link.name, if up { "up" } else { "down" });
        self.change(libc::RTM_NEWLINK, 0, &LinkRequest::about(link.index).up(up), what)
    }

    /// Sets the description of a device: 255 bytes at most.
    ///
    /// # Errors
    /// EINVAL: it is too long. ENODEV: the device is gone.
    pub fn set_alias(&mut self, link: &Link, alias: &str) -> Result<(), Error> {
        let request = LinkRequest::about(link.index).with(text(libc::IFLA_IFALIAS, alias));
        self.change(libc::RTM_NEWLINK, 0, &request, format_args!("set the alias of {}", link.name))
    }

    /// Changes the MTU of a device, in bytes.
    ///
    /// # Errors
    /// EINVAL: the device cannot have it.
    pub fn set_mtu(&mut self, link: &Link, mtu: u32) -> Result<(), Error> {
        let request = LinkRequest::about(link.index).with(number(libc::IFLA_MTU, mtu));
        self.change(libc::RTM_NEWLINK, 0, &request, format_args!("set the MTU of {} to {mtu}", link.name))
    }

    /// Changes the Ethernet address of a device.
    ///
    /// # Errors
    /// EADDRNOTAVAIL: it is a group address, or zero.
    pub fn set_mac(&mut self, link: &Link, mac: Mac) -> Result<(), Error> {
        let request = LinkRequest::about(link.index).with(bytes(libc::IFLA_ADDRESS, &mac.0));
        self.change(libc::RTM_NEWLINK, 0, &request, format_args!("set the MAC address of {} to {mac}", link.name))
    }

    /// Makes a device a port of a bridge.
    ///
    /// # Errors
    /// EINVAL: there is no such bridge.
    pub fn set_master(&mut self, link: &Link, bridge: u32) -> Result<(), Error> {
        let request = LinkRequest::about(link.index).with(number(libc::IFLA_MASTER, bridge));
        let what = format_args!("make {} a port of bridge number {bridge}", link.name);
        self.change(libc::RTM_NEWLINK, 0, &request, what)
    }

    /// Switches the isolation of a bridge port: no frame passes between two ports that have it.
    ///
    /// # Errors
    /// EINVAL: the device is no bridge port.
    pub fn set_isolated(&mut self, link: &Link, on: bool) -> Result<(), Error> {
        let mode = nested(libc::IFLA_PROTINFO, &[bytes(BRPORT_ISOLATED, &[u8::from(on)])]);
        let what = format_args!("set isolation of {} {}", link.name, if on { "on" } else { "off" });
        self.change(libc::RTM_SETLINK, 0, &LinkRequest::port(link.index).with(mode), what)
    }

    /// Has a device take up all frames, or no longer.
    ///
    /// # Errors
    /// ENODEV: it is gone.
    pub fn set_promiscuous(&mut self, link: &Link, on: bool) -> Result<(), Error> {
        let what = format_args!("set promiscuous mode of {} {}", link.name, if on { "on" } else { "off" });
        let request = LinkRequest::about(link.index).flag(libc::IFF_PROMISC, on);
        self.change(libc::RTM_NEWLINK, 0, &request, what)
    }

    /// Switches hairpin mode of a bridge port: frames may leave by the port where they came in.
    ///
    /// # Errors
    /// EINVAL: the device is no bridge port.
    pub fn set_hairpin(&mut self, link: &Link, on: bool) -> Result<(), Error> {
        let mode = nested(libc::IFLA_PROTINFO, &[bytes(BRPORT_MODE, &[u8::from(on)])]);
        let what = format_args!("set hairpin mode of {} {}", link.name, if on { "on" } else { "off" });
        self.change(libc::RTM_SETLINK, 0, &LinkRequest::port(link.index).with(mode), what)
    }

    /// Gives a device another name besides its own, of 127 bytes at most (kernel 5.5).
    ///
    /// # Errors
    /// EEXIST: the name is taken. EOPNOTSUPP: an older kernel.
    pub fn add_altname(&mut self, link: &Link, name: &str) -> Result<(), Error> {
        let names = nested(libc::IFLA_PROP_LIST, &[text(libc::IFLA_ALT_IFNAME, name)]);
        let what = format_args!("give {} the alternative name {name}", link.name);
        self.change(NEWLINKPROP, CREATE, &LinkRequest::about(link.index).with(names), what)
    }

    /// Deletes a device. By its number: a name could be another one's by now.
    ///
    /// # Errors
    /// The kernel refuses. A device that is gone is no error.
    pub fn delete_link(&mut self, link: &Link) -> Result<(), Error> {
        let what = format_args!("delete {}", link.name);
        match self.change(libc::RTM_DELLINK, 0, &LinkRequest::about(link.index), what) {
            Err(error) if error.is(Errno::ENODEV) => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
