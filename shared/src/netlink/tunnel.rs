//! Tunnels between nodes: what they are. The same value is what is wanted and what the kernel tells, so that both are
//! compared as a whole.

mod data;
mod device;
mod gre;
mod iptun;
#[cfg(test)]
mod tests;
mod vxlan;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use device::{NewTunnel, TunnelDevice};

/// Time to live of the packets that carry others. Inherited from the inner packet, it would end a packet's way in the
/// middle of a tunnel; and the kernel wants a fixed one for path-MTU discovery.
pub const TTL: u8 = 64;

/// The kinds of tunnel devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TunnelKind {
    /// IPv4 in IPv4.
    Ipip,
    /// IPv6, or both, in IPv4.
    Sit,
    /// Both or one of them in IPv6.
    Ip6tnl,
    /// GRE over IPv4 (RFC 2784, 2890).
    Gre,
    /// GRE over IPv6.
    Ip6gre,
    /// Ethernet in UDP (RFC 7348).
    Vxlan,
    /// WireGuard; its keys and peers are told by [`WireguardSocket`](super::WireguardSocket).
    Wireguard,
}

impl TunnelKind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Ipip, Self::Sit, Self::Ip6tnl, Self::Gre, Self::Ip6gre, Self::Vxlan, Self::Wireguard];

    /// The kernel's name of the kind, as `ip link add … type` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ipip => "ipip",
            Self::Sit => "sit",
            Self::Ip6tnl => "ip6tnl",
            Self::Gre => "gre",
            Self::Ip6gre => "ip6gre",
            Self::Vxlan => "vxlan",
            Self::Wireguard => "wireguard",
        }
    }

    /// The kernel module that has it.
    pub fn module(self) -> &'static str {
        match self {
            Self::Ip6tnl => "ip6_tunnel",
            Self::Gre => "ip_gre",
            Self::Ip6gre => "ip6_gre",
            Self::Ipip | Self::Sit | Self::Vxlan | Self::Wireguard => self.name(),
        }
    }

    /// The kind of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What a tunnel carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// Both.
    Both,
    /// Another IP protocol (MPLS: 137).
    Other(u8),
}

impl Inside {
    /// True if addresses of this family are carried.
    pub fn carries(self, v6: bool) -> bool {
        match self {
            Self::Both => true,
            Self::V4 => !v6,
            Self::V6 => v6,
            Self::Other(_) => false,
        }
    }
}

/// A tunnel's parameters: all that make a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunnel {
    /// Its kind.
    pub kind: TunnelKind,
    /// This node's address; none means any.
    pub local: Option<IpAddr>,
    /// The peer's address; none with many peers, and in the kernel's own `tunl0`, `sit0`, …
    pub remote: Option<IpAddr>,
    /// What it carries.
    pub inside: Inside,
    /// GRE key, of both directions.
    pub key: Option<u32>,
    /// VXLAN network identifier: 24 bits.
    pub vni: Option<u32>,
    /// VXLAN UDP port.
    pub port: Option<u16>,
    /// Time to live of the outer packets; 0 inherits the inner packet's (VXLAN: the kernel's default).
    pub ttl: u8,
    /// Outer packets are not fragmented on their way (DF), always so over IPv6.
    pub pmtudisc: bool,
    /// IPv6 tunnel encapsulation limit (RFC 2473), which costs 8 bytes; none of ours has one.
    pub encap_limit: Option<u8>,
    /// VXLAN: takes from packets where a MAC address is.
    pub learning: bool,
    /// Something else is set that never is in ours: a fixed device, another encapsulation, checksums, marks…
    pub unusual: bool,
}

impl Tunnel {
    fn new(kind: TunnelKind, local: IpAddr, remote: Option<IpAddr>, inside: Inside) -> Self {
        Self {
            kind,
            local: Some(local),
            remote,
            inside,
            key: None,
            vni: None,
            port: None,
            ttl: TTL,
            pmtudisc: true,
            encap_limit: None,
            learning: false,
            unusual: false,
        }
    }

    /// IPv4 in IPv4. Overhead: 20 bytes.
    pub fn ipip(local: Ipv4Addr, remote: Ipv4Addr) -> Self {
        Self::new(TunnelKind::Ipip, local.into(), Some(remote.into()), Inside::V4)
    }

    /// In IPv4: IPv6 alone (`type sit mode ip6ip`) or both families (`mode any`). Overhead: 20 bytes.
    ///
    /// Beside an ipip device with the same ends, IPv4 comes in by that one, whatever the mode: where `rp_filter` is 1, a
    /// route of IPv4 by the sit device then leads into silence. IPv4 by ipip and IPv6 by sit go together.
    pub fn sit(local: Ipv4Addr, remote: Ipv4Addr, inside: Inside) -> Self {
        Self::new(TunnelKind::Sit, local.into(), Some(remote.into()), inside)
    }

    /// In IPv6: both families (`mode any`) or IPv6 alone (`mode ip6ip6`). Overhead: 40 bytes.
    pub fn ip6tnl(local: Ipv6Addr, remote: Ipv6Addr, inside: Inside) -> Self {
        Self::new(TunnelKind::Ip6tnl, local.into(), Some(remote.into()), inside)
    }

    /// GRE with a key, both families, over IPv4. Overhead: 28 bytes.
    pub fn gre(local: Ipv4Addr, remote: Ipv4Addr, key: u32) -> Self {
        let tunnel = Self::new(TunnelKind::Gre, local.into(), Some(remote.into()), Inside::Both);
        Self { key: Some(key), ..tunnel }
    }

    /// GRE with a key, both families, over IPv6. Overhead: 48 bytes.
    pub fn ip6gre(local: Ipv6Addr, remote: Ipv6Addr, key: u32) -> Self {
        let tunnel = Self::new(TunnelKind::Ip6gre, local.into(), Some(remote.into()), Inside::Both);
        Self { key: Some(key), ..tunnel }
    }

    /// A VXLAN to many peers, who are told by neighbours and forwarding entries: nothing is learnt. Overhead: 50 bytes
    /// over IPv4, 70 over IPv6.
    pub fn vxlan(vni: u32, local: IpAddr, port: u16) -> Self {
        Self { vni: Some(vni), port: Some(port), ..Self::new(TunnelKind::Vxlan, local, None, Inside::Both) }
    }

    /// A WireGuard device. Overhead: 80 bytes over IPv6, 60 over IPv4.
    pub fn wireguard() -> Self {
        let any = Self::new(TunnelKind::Wireguard, Ipv4Addr::UNSPECIFIED.into(), None, Inside::Both);
        Self { local: None, ttl: 0, ..any }
    }

    /// True if the outer packets are IPv6.
    pub fn is_over_v6(&self) -> bool {
        self.local.or(self.remote).is_some_and(|address| address.is_ipv6())
    }

    /// True if the kernel does not allow both at once: it could not tell for which one a packet is.
    pub fn excludes(&self, other: &Self) -> bool {
        self.kind == other.kind
            && match self.kind {
                TunnelKind::Wireguard => false,
                TunnelKind::Vxlan => (self.vni, self.port) == (other.vni, other.port),
                _ => (self.local, self.remote, self.key) == (other.local, other.remote, other.key),
            }
    }

    /// True if [`change_tunnel`](super::RouteSocket::change_tunnel) makes the other out of this one; else the device has
    /// to be made anew.
    pub fn can_become(&self, wanted: &Self) -> bool {
        let fixed = |tunnel: &Self| match tunnel.kind {
            // `vxlan_changelink`: neither may change.
            TunnelKind::Vxlan => (tunnel.vni, tunnel.port, tunnel.is_over_v6()),
            _ => (None, None, false),
        };
        self.kind == wanted.kind
            && !self.unusual
            && self.remote.is_some() == wanted.remote.is_some()
            && fixed(self) == fixed(wanted)
    }
}
