//! The devices by which packets go to the peers: which they are, what they are called, what is in them.
//!
//! | mode | device | one for each |
//! |---|---|---|
//! | ipip over IPv4 | `ipip` for IPv4, `sit` (mode ip6ip) for IPv6 | (local, remote), shared by networks |
//! | ipip over IPv6 | `ip6tnl` (mode any, no encapsulation limit) for both | (local, remote), shared by networks |
//! | gre | `gre`, `ip6gre` for both | (network, local, remote): networks are told apart by their keys |
//! | vxlan | `vxlan` for both | (network, family of the underlay) |
//! | wireguard | `wireguard` for both | network |
//!
//! IPv4 in IPv4 is always that of `ipip`, in a dual-stack network too, although `sit` in mode any could carry it: of
//! two devices with the same ends the kernel gives what comes to `ipip` (`xfrm_tunnel.priority` in ipip.c and sit.c),
//! so that packets of one network would arrive by the device of another, and with rp_filter=1 go no further.
//!
//! A name is `ot` and 13 hex digits, 15 bytes, of SHA-256 over the fields that identify the device, each but the last
//! with a NUL behind: kind, then what the table says, addresses as text, families as `4` and `6`. No other software has
//! such names. 52 bits: among n devices of a node two names are equal with a probability below n² / 2^53 (1000: 1e-10).

mod tunnel;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use tunnel::{PeerLink, Tunnel, TunnelPeer};

use super::mode::{Family, Mode};
use crate::NetworkName;
use crate::attachment::hex;
use crate::netlink::tunnel::Inside;
use crate::netlink::{self, Mac, TunnelKind};

/// What the names of our tunnels begin with.
const PREFIX: &str = "ot";

/// The two ends of a tunnel in the underlay, both of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ends {
    /// This node's address.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
}

/// What a device is, with everything that the kernel knows it by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// IPv4 in IPv4.
    Ipip(Ends),
    /// IPv6 in IPv4.
    Sit(Ends),
    /// Mode any, for both in IPv6.
    Ip6tnl(Ends),
    /// GRE over IPv4.
    Gre {
        /// Its ends.
        ends: Ends,
        /// Of both directions.
        key: u32,
    },
    /// GRE over IPv6.
    Ip6gre {
        /// Its ends.
        ends: Ends,
        /// Of both directions.
        key: u32,
    },
    /// Without learning: all neighbours are given.
    Vxlan {
        /// This node's address in the underlay.
        local: IpAddr,
        /// VXLAN Network Identifier.
        vni: u32,
        /// UDP port.
        port: u16,
        /// This node's address in the VXLAN.
        mac: Mac,
    },
    /// Encrypted.
    Wireguard {
        /// UDP port of this node, in both families.
        port: u16,
    },
}

impl Kind {
    /// The kernel's kind of the device.
    pub fn kind(&self) -> TunnelKind {
        match self {
            Self::Ipip(_) => TunnelKind::Ipip,
            Self::Sit(_) => TunnelKind::Sit,
            Self::Ip6tnl(_) => TunnelKind::Ip6tnl,
            Self::Gre { .. } => TunnelKind::Gre,
            Self::Ip6gre { .. } => TunnelKind::Ip6gre,
            Self::Vxlan { .. } => TunnelKind::Vxlan,
            Self::Wireguard { .. } => TunnelKind::Wireguard,
        }
    }

    /// The kernel's name of the kind (IFLA_INFO_KIND).
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// The mode in which a network has such a device.
    pub fn mode(&self) -> Mode {
        match self {
            Self::Ipip(_) | Self::Sit(_) | Self::Ip6tnl(_) => Mode::Ipip,
            Self::Gre { .. } | Self::Ip6gre { .. } => Mode::Gre,
            Self::Vxlan { .. } => Mode::Vxlan,
            Self::Wireguard { .. } => Mode::Wireguard,
        }
    }

    /// The device as the kernel is told of it.
    pub fn tunnel(&self) -> netlink::Tunnel {
        let between =
            |ends: &Ends, tunnel| netlink::Tunnel { local: Some(ends.local), remote: Some(ends.remote), ..tunnel };
        let (v4, v6) = (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
        match self {
            Self::Ipip(ends) => between(ends, netlink::Tunnel::ipip(v4, v4)),
            Self::Sit(ends) => between(ends, netlink::Tunnel::sit(v4, v4, Inside::V6)),
            Self::Ip6tnl(ends) => between(ends, netlink::Tunnel::ip6tnl(v6, v6, Inside::Both)),
            Self::Gre { ends, key } => between(ends, netlink::Tunnel::gre(v4, v4, *key)),
            Self::Ip6gre { ends, key } => between(ends, netlink::Tunnel::ip6gre(v6, v6, *key)),
            Self::Vxlan { local, vni, port, .. } => netlink::Tunnel::vxlan(*vni, *local, *port),
            Self::Wireguard { .. } => netlink::Tunnel::wireguard(),
        }
    }

    /// The Ethernet address of the device, where it has one.
    pub fn mac(&self) -> Option<Mac> {
        match self {
            Self::Vxlan { mac, .. } => Some(*mac),
            _ => None,
        }
    }

    /// The UDP port that it listens on.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Vxlan { port, .. } | Self::Wireguard { port } => Some(*port),
            _ => None,
        }
    }

    /// The device that carries packets of a family in IP between these ends.
    pub fn ipip(inside: Family, ends: Ends) -> Self {
        match (Family::of(ends.remote), inside) {
            (Family::V4, Family::V4) => Self::Ipip(ends),
            (Family::V4, Family::V6) => Self::Sit(ends),
            (Family::V6, _) => Self::Ip6tnl(ends),
        }
    }

    /// The device that carries packets in GRE between these ends.
    pub fn gre(key: u32, ends: Ends) -> Self {
        match Family::of(ends.remote) {
            Family::V4 => Self::Gre { ends, key },
            Family::V6 => Self::Ip6gre { ends, key },
        }
    }

    /// True if networks share the device, so that it goes with the last of them.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Ipip(_) | Self::Sit(_) | Self::Ip6tnl(_))
    }

    /// The ends, of a device with one peer.
    pub fn ends(&self) -> Option<Ends> {
        match self {
            Self::Ipip(ends) | Self::Sit(ends) | Self::Ip6tnl(ends) => Some(*ends),
            Self::Gre { ends, .. } | Self::Ip6gre { ends, .. } => Some(*ends),
            Self::Vxlan { .. } | Self::Wireguard { .. } => None,
        }
    }

    /// The name of the device, in a network.
    pub fn device_name(&self, network: &NetworkName) -> String {
        let kind = self.name();
        let network = network.as_str();
        let fields: Vec<String> = match self {
            Self::Ipip(ends) | Self::Sit(ends) | Self::Ip6tnl(ends) => {
                vec![ends.local.to_string(), ends.remote.to_string()]
            }
            Self::Gre { ends, .. } | Self::Ip6gre { ends, .. } => {
                vec![network.to_owned(), ends.local.to_string(), ends.remote.to_string()]
            }
            Self::Vxlan { local, .. } => {
                vec![network.to_owned(), if local.is_ipv4() { "4" } else { "6" }.to_owned()]
            }
            Self::Wireguard { .. } => vec![network.to_owned()],
        };
        let mut hash = Sha256::new().chain_update(kind);
        for field in fields {
            hash = hash.chain_update([0]).chain_update(field);
        }
        format!("{PREFIX}{}", &hex(&hash.finalize()[..7])[..13])
    }
}

#[cfg(test)]
#[path = "devices_tests.rs"]
mod tests;
