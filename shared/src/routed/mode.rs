//! How packets get to the peers: in which encapsulation, over which family of addresses, and whether at all.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// A family of addresses: that of the packets of containers, or that of the packets between nodes (the underlay).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// One of something for each family, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerFamily<T> {
    /// That of IPv4.
    pub v4: Option<T>,
    /// That of IPv6.
    pub v6: Option<T>,
}

impl<T> PerFamily<T> {
    /// What `make` gives for each family.
    pub fn make(mut make: impl FnMut(Family) -> Option<T>) -> Self {
        Self { v4: make(Family::V4), v6: make(Family::V6) }
    }

    /// That of one family.
    pub fn get(&self, family: Family) -> Option<&T> {
        match family {
            Family::V4 => self.v4.as_ref(),
            Family::V6 => self.v6.as_ref(),
        }
    }

    /// Those that are there.
    pub fn iter(&self) -> impl Iterator<Item = (Family, &T)> {
        Family::BOTH.into_iter().filter_map(|family| Some((family, self.get(family)?)))
    }
}

/// The addresses of a node in the underlay: at most one in each family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// The IPv4 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v4: Option<Ipv4Addr>,
    /// The IPv6 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v6: Option<Ipv6Addr>,
}

impl Addresses {
    /// The address of a family.
    pub fn get(&self, family: Family) -> Option<IpAddr> {
        match family {
            Family::V4 => self.v4.map(IpAddr::V4),
            Family::V6 => self.v6.map(IpAddr::V6),
        }
    }

    /// Takes an address, unless there is one of its family.
    pub fn add(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => _ = self.v4.get_or_insert(address),
            IpAddr::V6(address) => _ = self.v6.get_or_insert(address),
        }
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.v4.is_none() && self.v6.is_none()
    }
}

impl FromIterator<IpAddr> for Addresses {
    fn from_iter<I: IntoIterator<Item = IpAddr>>(addresses: I) -> Self {
        let mut all = Self::default();
        addresses.into_iter().for_each(|address| all.add(address));
        all
    }
}

/// `tunnel`: when packets to another node are put into a tunnel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// When the node is not on one of this node's links.
    #[default]
    Auto,
    /// To all nodes.
    Always,
    /// To none.
    Never,
}

/// `tunnelMode`: what packets to another node are put into.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// IP in IP (RFC 2003, 4213, 2473), of either family in either.
    #[default]
    Ipip,
    /// GRE over either family, with a key (RFC 2784, 2890).
    Gre,
    /// VXLAN over either family (RFC 7348).
    Vxlan,
    /// WireGuard: encrypted.
    Wireguard,
}

impl Mode {
    /// What the encapsulation adds to a packet, in bytes.
    ///
    /// The outer header is 20 bytes in IPv4 and 40 in IPv6 (without encapsulation limit). GRE adds 4, and 4 for the
    /// key. VXLAN adds 8 of UDP, 8 of its own and 14 of Ethernet. WireGuard adds 8 of UDP and 32 of its own; its 80 are
    /// those over IPv6 for both, since an endpoint may move from one family to the other.
    pub fn overhead(self, underlay: Family) -> u32 {
        let outer = match underlay {
            Family::V4 => 20,
            Family::V6 => 40,
        };
        match self {
            Self::Ipip => outer,
            Self::Gre => outer + 8,
            Self::Vxlan => outer + 30,
            Self::Wireguard => 80,
        }
    }
}

impl Policy {
    /// True if packets of the network may be encapsulated: room must be left for it. WireGuard is never done without,
    /// or packets would leave in clear.
    pub fn may_tunnel(self, mode: Mode) -> bool {
        self != Self::Never || mode == Mode::Wireguard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overheads() {
        let of = |mode: Mode| Family::BOTH.map(|underlay| mode.overhead(underlay));
        assert_eq!(of(Mode::Ipip), [20, 40]);
        assert_eq!(of(Mode::Gre), [28, 48]);
        assert_eq!(of(Mode::Vxlan), [50, 70]);
        assert_eq!(of(Mode::Wireguard), [80, 80]);
    }

    #[test]
    fn the_first_address_of_a_family_is_taken() {
        let list = ["fd00::1", "10.0.0.1", "10.0.0.2", "fd00::2"].map(|text| text.parse::<IpAddr>().unwrap());
        let all: Addresses = list.into_iter().collect();
        assert_eq!((all.get(Family::V6), all.get(Family::V4)), (Some(list[0]), Some(list[1])));
        assert!(Addresses::default().is_empty() && !all.is_empty());
    }
}
