//! WireGuard's answers: a device in as many messages as it takes.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::{Duration, SystemTime};

use ipnet::IpNet;

use super::message::{allowed, device, peer};
use super::{PrivateKey, WireguardDevice, WireguardPeer};
use crate::netlink::attributes::{attributes, ip, number};

/// Bytes of `struct genlmsghdr`.
const HEADER: usize = 4;

impl WireguardDevice {
    pub(super) fn new(index: u32) -> Self {
        Self { index, private_key: None, public_key: None, port: 0, peers: Vec::new() }
    }

    /// Takes one more message in. A peer whose networks did not fit goes on in the next one.
    pub(super) fn read(&mut self, message: &[u8]) -> Option<()> {
        for (kind, value) in attributes(message, HEADER) {
            match kind {
                device::PRIVATE_KEY => self.private_key = Some(PrivateKey::new(value.try_into().ok()?)),
                device::PUBLIC_KEY => self.public_key = Some(value.try_into().ok()?),
                device::LISTEN_PORT => self.port = short(value)?,
                device::PEERS => {
                    for (_, value) in attributes(value, 0) {
                        let peer = WireguardPeer::read(value)?;
                        match self.peers.last_mut().filter(|last| last.public_key == peer.public_key) {
                            Some(last) => last.allowed.extend(peer.allowed),
                            None => self.peers.push(peer),
                        }
                    }
                }
                _ => {}
            }
        }
        Some(())
    }
}

impl WireguardPeer {
    fn read(message: &[u8]) -> Option<Self> {
        let mut found = Self {
            public_key: [0; 32],
            endpoint: None,
            keepalive: 0,
            allowed: Vec::new(),
            last_handshake: None,
            received: 0,
            sent: 0,
        };
        for (kind, value) in attributes(message, 0) {
            match kind {
                peer::PUBLIC_KEY => found.public_key = value.try_into().ok()?,
                peer::ENDPOINT => found.endpoint = socket_address(value),
                peer::KEEPALIVE => found.keepalive = short(value)?,
                peer::LAST_HANDSHAKE => found.last_handshake = time(value),
                peer::RX_BYTES => found.received = long(value)?,
                peer::TX_BYTES => found.sent = long(value)?,
                peer::ALLOWED => found.allowed = attributes(value, 0).filter_map(|(_, value)| network(value)).collect(),
                _ => {}
            }
        }
        Some(found)
    }
}

fn network(message: &[u8]) -> Option<IpNet> {
    let find = |wanted| attributes(message, 0).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    IpNet::new(ip(find(allowed::ADDRESS)?)?, *find(allowed::MASK)?.first()?).ok()
}

/// `struct sockaddr_in` or `struct sockaddr_in6`.
fn socket_address(value: &[u8]) -> Option<SocketAddr> {
    let port = value.get(2..4)?.try_into().map(u16::from_be_bytes).ok()?;
    match value.len() {
        16 => Some(SocketAddr::new(ip(value.get(4..8)?)?, port)),
        28 => match ip(value.get(8..24)?)? {
            IpAddr::V6(address) => {
                let flow = value.get(4..8)?.try_into().map(u32::from_be_bytes).ok()?;
                Some(SocketAddrV6::new(address, port, flow, number(value.get(24..)?)?).into())
            }
            IpAddr::V4(_) => None,
        },
        _ => None,
    }
}

/// `struct __kernel_timespec`; none if it never was.
fn time(value: &[u8]) -> Option<SystemTime> {
    let (seconds, nanoseconds) = (long(value)?, long(value.get(8..)?)?);
    let since = Duration::new(seconds, u32::try_from(nanoseconds).ok()?);
    if since.is_zero() { None } else { SystemTime::UNIX_EPOCH.checked_add(since) }
}

fn short(value: &[u8]) -> Option<u16> {
    value.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

fn long(value: &[u8]) -> Option<u64> {
    value.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}
