//! The two families of addresses, each with a table of its own.

use std::fmt;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A family of nftables tables. `inet` tables are never ours: they cannot masquerade before kernel 5.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
}

impl Family {
    /// Both, in the order of the document.
    pub const ALL: [Self; 2] = [Self::Ip, Self::Ip6];

    /// nft's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
        }
    }

    /// nft's type of an address of the family.
    pub fn address_type(self) -> &'static str {
        match self {
            Self::Ip => "ipv4_addr",
            Self::Ip6 => "ipv6_addr",
        }
    }

    /// NFPROTO_IPV4 or NFPROTO_IPV6 (linux/netfilter.h).
    pub fn number(self) -> u8 {
        match self {
            Self::Ip => 2,
            Self::Ip6 => 10,
        }
    }

    /// Destinations that no masqueraded packet may have: multicast, limited broadcast, and link-local
    /// addresses of IPv6. Those of IPv4 (169.254.0.0/16) are masqueraded as any outside address: cloud
    /// metadata services answer there.
    pub fn link_scope(self) -> &'static [&'static str] {
        match self {
            Self::Ip => &["224.0.0.0/4", "255.255.255.255/32"],
            Self::Ip6 => &["ff00::/8", "fe80::/10"],
        }
    }

    /// True if the subnet is of this family.
    pub fn holds(self, subnet: &IpNet) -> bool {
        matches!((self, subnet), (Self::Ip, IpNet::V4(_)) | (Self::Ip6, IpNet::V6(_)))
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
