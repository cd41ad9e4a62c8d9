//! Why a peer cannot be reached. It costs that peer its connection, and no other one.

use std::net::IpAddr;

use ipnet::IpNet;

use super::mode::Family;
use super::record::Awaited;
use crate::netlink;

/// What is wrong with a peer, or with a family of addresses of it. The text follows the peer's name and a colon.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// None of its addresses is known.
    #[error("no address is known{}", Unresolved(.0))]
    NoAddress(
        /// The names that did not resolve.
        Vec<String>,
    ),
    /// This node and the peer have no family in common, but a tunnel needs an address of one family at both ends.
    #[error("it has an {peer} address and this node has none: add an {peer} address to `addr` of this node{}", Unresolved(.unresolved))]
    NoLocal {
        /// The family of the peer's address.
        peer: Family,
        /// Names of this node that did not resolve.
        unresolved: Vec<String>,
    },
    /// This node's address, which the peers send to, is on no device of it.
    #[error(
        "a tunnel would start at {0}, the address of this node, and no device of it has that, or another host has it \
         too: correct `addr` of this node"
    )]
    NotHere(IpAddr),
    /// This node's address is one of the network: what comes for it would have to come through the tunnel.
    #[error(
        "a tunnel would start at {address}, the address of this node, which lies in the network itself ({network}): \
         `addr` of this node must be one outside of it, or a name that resolves to one"
    )]
    StartsInside {
        /// The address.
        address: IpAddr,
        /// The network.
        network: IpNet,
    },
    /// The peer's address is this node's.
    #[error("its address {0} is this node's own: correct `addr`, or the name that resolves to it")]
    OwnAddress(IpAddr),
    /// The peer's address is another one's too.
    #[error("its address {address} is also that of {other}: correct `addr`, or the name that resolves to it")]
    SameAddress {
        /// The address.
        address: IpAddr,
        /// The other node.
        other: String,
    },
    /// An address that packets for the peer would be sent to through the peer.
    #[error("its address {address} lies in the network itself ({network}): `addr` must be one outside of it")]
    Inside {
        /// The address.
        address: IpAddr,
        /// The network.
        network: IpNet,
    },
    /// Loopback, link-local and the like.
    #[error("its address {0} cannot be another node's: give one that the nodes reach each other by")]
    Unusable(IpAddr),
    /// `never`, and there is no route at all.
    #[error("there is no route to {0}: with tunnel \"never\" it must be on a link of this node")]
    NoRoute(IpAddr),
    /// `never`, and the peer is elsewhere.
    #[error("{address} is not on a link of this node (it is reached {}): tunnel \"never\" excludes it, use \"auto\"", Through(.gateway))]
    OffLink {
        /// The address.
        address: IpAddr,
        /// The router to it.
        gateway: Option<IpAddr>,
    },
    /// `never`, and the families do not go together.
    #[error("IPv6 cannot be routed to its IPv4 address {0}: add an IPv6 address to `addr`, or use tunnel \"auto\"")]
    Ipv6ByIpv4(IpAddr),
    /// WireGuard, and the peer has no key.
    #[error("it has no publicKey: `osvc-net wireguard pubkey NETWORK` on it prints it")]
    NoKey,
    /// WireGuard, and two nodes have one key: the kernel could not tell them apart.
    #[error("its publicKey is also that of {0}: each node has its own, printed by `osvc-net wireguard pubkey NETWORK`")]
    SameKey(
        /// The other node.
        String,
    ),
    /// The kernel does not say.
    #[error(transparent)]
    Kernel(#[from] netlink::Error),
}

impl Fault {
    /// What ends it, of a fault that passes by itself.
    pub fn awaits(&self) -> Option<Awaited> {
        match self {
            Self::NoRoute(address) => Some(Awaited::Route(*address)),
            Self::OffLink { address, .. } => Some(Awaited::Link(*address)),
            Self::NotHere(address) => Some(Awaited::Own(*address)),
            _ => None,
        }
    }
}

/// " (… did not resolve)", or nothing.
struct Unresolved<'a>(&'a [String]);

impl std::fmt::Display for Unresolved<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            [] => Ok(()),
            names => write!(f, " ({} did not resolve)", names.join(", ")),
        }
    }
}

/// "through 192.0.2.1", "by several ways".
struct Through<'a>(&'a Option<IpAddr>);

impl std::fmt::Display for Through<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(gateway) => write!(f, "through {gateway}"),
            None => f.write_str("by several ways"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_the_thing_and_the_way_out() {
        let address: IpAddr = "192.0.2.9".parse().unwrap();
        let text = Fault::NoAddress(vec!["n2".into(), "n2.lan".into()]).to_string();
        assert_eq!(text, "no address is known (n2, n2.lan did not resolve)");
        let text = Fault::OffLink { address, gateway: Some("192.0.2.1".parse().unwrap()) }.to_string();
        assert!(text.contains("192.0.2.9") && text.contains("through 192.0.2.1") && text.contains("auto"), "{text}");
        let text = Fault::NoLocal { peer: Family::V6, unresolved: Vec::new() }.to_string();
        assert!(text.ends_with("add an IPv6 address to `addr` of this node"), "{text}");
        assert!(Fault::NoKey.to_string().contains("osvc-net wireguard pubkey"));
    }
}
