//! Parameters of tunnels: fixed formulas, so that every node computes the same ones from the same configuration.
//!
//! | what | formula |
//! |---|---|
//! | VNI of `vxlan` | the first 24 bits of SHA-256(`vxlan` NUL network), 1 instead of 0 |
//! | UDP port of `vxlan` | `port`, else [`VXLAN_PORT`] |
//! | MAC of a node in `vxlan` | `0a:4f` + the four bytes of its first IPv4 segment |
//! | … without IPv4 | `06` + 40 bits of SHA-256(`vtep` NUL network NUL the 16 bytes of its first IPv6 segment) |
//! | key of `gre` | the first 32 bits of SHA-256(`gre` NUL network), 1 instead of 0 |
//! | next hops in `vxlan` | [`hop`] |
//! | UDP port of `wireguard` | `port`, else 61000 + the first 32 bits of SHA-256(`wireguard` NUL network) modulo 4536 |
//!
//! Segments of a network never overlap, so that its IPv4 MACs are all different; among n nodes of an IPv6 network two
//! are equal with a probability below n² / 2^41 (1000 nodes: 5e-7). Hashes of network names can be equal too: of n
//! networks in one mode, two VNIs with n² / 2^25 (10 networks: 3e-6), two keys with n² / 2^33, two ports of WireGuard
//! with n² / 9072 (2 networks: 2e-4, 10: 1e-2). Only networks of one node are concerned, and [`Parameters::clash`]
//! tells.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use sha2::{Digest, Sha256};

use super::mode::Mode;
use crate::NetworkName;
use crate::netlink::Mac;

/// UDP port of our VXLAN: neither IANA's (4789) nor Linux's old one (8472), where the networks of others are. IANA has
/// given it to nobody.
pub const VXLAN_PORT: u16 = 4779;
/// The first default UDP port of WireGuard: above the ports that Linux gives to clients (`ip_local_port_range` ends at
/// 60999), and all that IANA registers.
const WIREGUARD_FIRST: u16 = 61000;
/// How many there are.
const WIREGUARD_PORTS: u32 = 65536 - WIREGUARD_FIRST as u32;
/// The first two bytes of the MACs of nodes with IPv4: locally administered; 0x4f is 79, our mark elsewhere.
const VTEP_V4: [u8; 2] = [0x0a, 0x4f];
/// The first byte of those of nodes without: locally administered.
const VTEP_V6: u8 = 0x06;

/// What a network's packets between nodes are told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameters {
    /// The endpoints are all there is.
    Ipip,
    /// The key of GRE.
    Gre {
        /// GRE_KEY, in both directions.
        key: u32,
    },
    /// VXLAN's number and port.
    Vxlan {
        /// VXLAN Network Identifier, 24 bits.
        vni: u32,
        /// UDP port, of sender and receiver.
        port: u16,
    },
    /// WireGuard's port.
    Wireguard {
        /// UDP port on every node.
        port: u16,
    },
}

impl Parameters {
    /// Those of a network; `port` is the configured one.
    pub fn of(network: &NetworkName, mode: Mode, port: Option<u16>) -> Self {
        match mode {
            Mode::Ipip => Self::Ipip,
            Mode::Gre => Self::Gre { key: word("gre", network).max(1) },
            Mode::Vxlan => Self::Vxlan { vni: (word("vxlan", network) >> 8).max(1), port: port.unwrap_or(VXLAN_PORT) },
            Mode::Wireguard => {
                let default = || WIREGUARD_FIRST + (word("wireguard", network) % WIREGUARD_PORTS) as u16;
                Self::Wireguard { port: port.unwrap_or_else(default) }
            }
        }
    }

    /// The UDP port, where there is one.
    pub fn port(self) -> Option<u16> {
        match self {
            Self::Vxlan { port, .. } | Self::Wireguard { port } => Some(port),
            Self::Ipip | Self::Gre { .. } => None,
        }
    }

    /// Why another network of the same node cannot have these; none if it can.
    pub fn clash(self, other: Self) -> Option<Clash> {
        match (self, other) {
            (Self::Gre { key }, Self::Gre { key: other }) if key == other => Some(Clash::Key(key)),
            (Self::Vxlan { vni, port }, Self::Vxlan { vni: other_vni, port: other })
                if (vni, port) == (other_vni, other) =>
            {
                Some(Clash::Vni { vni, port })
            }
            (Self::Vxlan { .. }, Self::Vxlan { .. }) => None,
            _ if self.port().is_some() && self.port() == other.port() => self.port().map(Clash::Port),
            _ => None,
        }
    }
}

/// What two networks of one node have in common, and cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clash {
    /// The key of GRE.
    Key(u32),
    /// VXLAN's number, on one port.
    Vni {
        /// The number.
        vni: u32,
        /// The UDP port.
        port: u16,
    },
    /// A UDP port.
    Port(u16),
}

impl fmt::Display for Clash {
    /// "… and … have …"
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "the same key {key} of GRE: rename one of them on every node"),
            Self::Vni { vni, port } => {
                write!(
                    f,
                    "the same VXLAN number {vni} on UDP port {port}: give one of them another `port` on every node"
                )
            }
            Self::Port(port) => write!(f, "the same UDP port {port}: give one of them another `port` on every node"),
        }
    }
}

/// The Ethernet address of a node in a network's VXLAN, from the node's segments.
pub fn vtep(network: &NetworkName, segments: &[IpNet]) -> Mac {
    let mut hash = Sha256::new().chain_update("vtep\0").chain_update(network.as_str()).chain_update([0]);
    // IPv4 first, wherever it stands.
    match segments.iter().map(IpNet::network).min_by_key(IpAddr::is_ipv6) {
        Some(IpAddr::V4(base)) => {
            let ([x, y], [a, b, c, d]) = (VTEP_V4, base.octets());
            return Mac([x, y, a, b, c, d]);
        }
        Some(IpAddr::V6(base)) => hash.update(base.octets()),
        None => {}
    }
    let hash = hash.finalize();
    Mac([VTEP_V6, hash[0], hash[1], hash[2], hash[3], hash[4]])
}

/// The next hop by which a segment is reached in the VXLAN. A name for the peer's place and no more: nobody asks for it.
///
/// In IPv4 the segment's first address after the base, or the base where that is the only one. In IPv6 a link-local one
/// with 64 bits of SHA-256(`hop` NUL the 16 bytes of the base): the kernel refuses a next hop to which it has a route by
/// another device, such as the one that is to be replaced.
pub fn hop(segment: &IpNet) -> IpAddr {
    let alone = segment.prefix_len() == segment.max_prefix_len();
    match segment.network() {
        IpAddr::V4(base) if alone => IpAddr::V4(base),
        IpAddr::V4(base) => IpAddr::V4((u32::from(base) + 1).into()),
        IpAddr::V6(base) => {
            let hash = Sha256::new().chain_update("hop\0").chain_update(base.octets()).finalize();
            let mut octets = [0; 16];
            (octets[0], octets[1]) = (0xfe, 0x80);
            octets[8..].copy_from_slice(&hash[..8]);
            IpAddr::V6(octets.into())
        }
    }
}

/// The first 32 bits of SHA-256(label NUL network).
fn word(label: &str, network: &NetworkName) -> u32 {
    let hash = Sha256::new().chain_update(label).chain_update([0]).chain_update(network.as_str()).finalize();
    u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
