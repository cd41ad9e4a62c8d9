//! Asking and changing WireGuard devices.

use std::fmt;

use nix::errno::Errno;

use super::message::{self, GET_DEVICE, about};
use super::{PrivateKey, PublicKey, WireguardChange, WireguardDevice};
use crate::netlink::netns::in_new;
use crate::netlink::{Error, Link, NewTunnel, RouteSocket, Tunnel, TunnelKind, generic};

/// A socket to the WireGuard of one network namespace: that of the thread which opened it.
pub struct WireguardSocket {
    socket: RouteSocket,
    family: u16,
}

/// What the socket holds are messages with keys in them.
impl fmt::Debug for WireguardSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireguardSocket").field("family", &self.family).finish_non_exhaustive()
    }
}

impl WireguardSocket {
    /// Opens a socket in the network namespace of this thread.
    ///
    /// # Errors
    /// [`Error::NoModule`]: the kernel has no WireGuard.
    pub fn open() -> Result<Self, Error> {
        let kind = TunnelKind::Wireguard;
        match generic::open(kind.name())? {
            (socket, Some(family)) => Ok(Self { socket, family }),
            (_, None) => Err(Error::NoModule {
                request: "configure WireGuard".to_owned(),
                kind: kind.name(),
                module: kind.module(),
            }),
        }
    }

    /// A WireGuard device with its peers; none if it is gone, or is none.
    ///
    /// # Errors
    /// EPERM: no CAP_NET_ADMIN, for the private key is among the answers.
    pub fn device(&mut self, link: &Link) -> Result<Option<WireguardDevice>, Error> {
        let request = about(GET_DEVICE, link.index);
        let what = format_args!("look up WireGuard device {}", link.name);
        let messages = match self.socket.list(self.family, &request, what, |message| Some(message.to_vec())) {
            Err(error) if error.is(Errno::ENODEV) || error.is(Errno::EOPNOTSUPP) => return Ok(None),
            messages => messages?,
        };
        let mut device = WireguardDevice::new(link.index);
        for message in messages {
            device.read(&message).ok_or_else(|| Error::Malformed {
                request: what.to_string(),
                what: "a key or a number of another length",
            })?;
        }
        Ok(Some(device))
    }

    /// Changes a device. Peers that are not named go on as they are.
    ///
    /// # Errors
    /// EADDRINUSE: somebody else has the UDP port. ENODEV, EOPNOTSUPP: the device is gone, or is none.
    pub fn change_device(&mut self, link: &Link, change: &WireguardChange) -> Result<(), Error> {
        let what = format_args!("configure WireGuard device {}", link.name);
        for request in message::change(link.index, change) {
            self.socket.change(self.family, 0, &request, what)?;
        }
        Ok(())
    }
}

/// The public key of a private one. The kernel knows how: a device in a network namespace of its own is asked, which is
/// there for that long.
///
/// # Errors
/// The kernel has no WireGuard; no CAP_SYS_ADMIN.
pub fn public_key(private_key: &PrivateKey) -> Result<PublicKey, Error> {
    in_new(|| {
        let mut links = RouteSocket::open()?;
        let name = "key";
        links.create_tunnel(&NewTunnel { name, tunnel: &Tunnel::wireguard(), mtu: 1420, mac: None })?;
        let missing = || Error::Malformed { request: "read a public key".to_owned(), what: "no device or key in it" };
        let link = links.link_by_name(name)?.ok_or_else(missing)?;
        let mut socket = WireguardSocket::open()?;
        let private_key = Some(private_key.clone());
        socket.change_device(&link, &WireguardChange { private_key, ..WireguardChange::default() })?;
        socket.device(&link)?.and_then(|device| device.public_key).ok_or_else(missing)
    })
}
