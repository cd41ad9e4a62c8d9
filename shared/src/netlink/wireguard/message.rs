//! Requests to WireGuard, as bytes.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use netlink_packet_core::DefaultNla;
use nix::libc;

use super::{PublicKey, WantedPeer, WireguardChange};
use crate::netlink::request::{Request, address, byte, bytes, nested, number};

pub(super) const GET_DEVICE: u8 = 0;
pub(super) const SET_DEVICE: u8 = 1;
/// WG_GENL_VERSION.
const VERSION: u8 = 1;

/// WGDEVICE_A_*.
pub(super) mod device {
    pub const IFINDEX: u16 = 1;
    pub const PRIVATE_KEY: u16 = 3;
    pub const PUBLIC_KEY: u16 = 4;
    pub const LISTEN_PORT: u16 = 6;
    pub const PEERS: u16 = 8;
}

/// WGPEER_A_*.
pub(super) mod peer {
    pub const PUBLIC_KEY: u16 = 1;
    pub const FLAGS: u16 = 3;
    pub const ENDPOINT: u16 = 4;
    pub const KEEPALIVE: u16 = 5;
    pub const LAST_HANDSHAKE: u16 = 6;
    pub const RX_BYTES: u16 = 7;
    pub const TX_BYTES: u16 = 8;
    pub const ALLOWED: u16 = 9;
    /// WGPEER_F_REMOVE_ME.
    pub const REMOVE: u32 = 1;
    /// WGPEER_F_REPLACE_ALLOWEDIPS.
    pub const REPLACE_ALLOWED: u32 = 2;
}

/// WGALLOWEDIP_A_*.
pub(super) mod allowed {
    pub const FAMILY: u16 = 1;
    pub const ADDRESS: u16 = 2;
    pub const MASK: u16 = 3;
}

/// Peers of one request: an attribute holds 64 KiB, and a peer with some networks takes some 200 bytes.
const TOGETHER: usize = 100;

/// A request about a device. After `struct genlmsghdr` the attributes begin.
pub(super) fn about(command: u8, index: u32) -> Request {
    Request::new(&[command, VERSION, 0, 0]).with(number(device::IFINDEX, index))
}

/// The requests that make a change, in order: first the device and who goes, so that a network can move on.
pub(super) fn change(index: u32, change: &WireguardChange) -> Vec<Request> {
    let mut first = about(SET_DEVICE, index);
    if let Some(key) = &change.private_key {
        first = first.with(bytes(device::PRIVATE_KEY, key.expose()));
    }
    if let Some(port) = change.port {
        first = first.with(bytes(device::LISTEN_PORT, &port.to_ne_bytes()));
    }
    let peers: Vec<_> = change.remove.iter().map(removed).chain(change.set.iter().map(wanted)).collect();
    let mut parts = peers.chunks(TOGETHER);
    let mut requests = vec![match parts.next() {
        Some(peers) => first.with(nested(device::PEERS, peers)),
        None => first,
    }];
    requests.extend(parts.map(|peers| about(SET_DEVICE, index).with(nested(device::PEERS, peers))));
    requests
}

fn removed(key: &PublicKey) -> DefaultNla {
    nested(0, &[bytes(peer::PUBLIC_KEY, key), number(peer::FLAGS, peer::REMOVE)])
}

fn wanted(wanted: &WantedPeer) -> DefaultNla {
    let mut peer = vec![
        bytes(peer::PUBLIC_KEY, &wanted.public_key),
        number(peer::FLAGS, peer::REPLACE_ALLOWED),
        bytes(peer::KEEPALIVE, &wanted.keepalive.to_ne_bytes()),
    ];
    peer.extend(wanted.endpoint.map(|endpoint| bytes(peer::ENDPOINT, &socket_address(endpoint))));
    let networks: Vec<_> = wanted.allowed.iter().map(network).collect();
    peer.push(nested(peer::ALLOWED, &networks));
    nested(0, &peer)
}

fn network(network: &IpNet) -> DefaultNla {
    let base = network.network();
    let family = family(base).to_ne_bytes();
    let parts =
        [bytes(allowed::FAMILY, &family), address(allowed::ADDRESS, base), byte(allowed::MASK, network.prefix_len())];
    nested(0, &parts)
}

pub(super) fn family(address: IpAddr) -> u16 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u16
}

/// `struct sockaddr_in` or `struct sockaddr_in6`.
fn socket_address(address: SocketAddr) -> Vec<u8> {
    let mut bytes = family(address.ip()).to_ne_bytes().to_vec();
    bytes.extend(address.port().to_be_bytes());
    match address {
        SocketAddr::V4(v4) => {
            bytes.extend(v4.ip().octets());
            bytes.extend([0; 8]);
        }
        SocketAddr::V6(v6) => {
            bytes.extend(v6.flowinfo().to_be_bytes());
            bytes.extend(v6.ip().octets());
            bytes.extend(v6.scope_id().to_ne_bytes());
        }
    }
    bytes
}
