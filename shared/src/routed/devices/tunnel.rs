//! A device that a network needs, and whom it leads to.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{Ends, Kind};
use crate::netlink::Mac;
use crate::routed::config::key;

/// A device that a network needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunnel {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// In bytes: the largest that any of its peers can have, since their routes say what each of them can.
    pub mtu: u32,
    /// This node sends by it; else it is there for peers that have not yet been changed to another way, or have not the
    /// same way to us as we to them.
    pub sends: bool,
    /// Whom it leads to.
    pub peers: Vec<TunnelPeer>,
}

impl Tunnel {
    /// True if packets of IPv4 go through it.
    pub fn carries_v4(&self) -> bool {
        self.peers.iter().flat_map(|peer| &peer.segments).any(|segment| segment.addr().is_ipv4())
    }

    /// Adds a peer, or what is new of one that is there.
    pub(in crate::routed) fn add(&mut self, peer: TunnelPeer) {
        let Some(known) = self.peers.iter_mut().find(|known| known.name == peer.name) else {
            self.peers.push(peer);
            return;
        };
        known.segments.extend(peer.segments);
        if let (PeerLink::Vxlan { hops, .. }, PeerLink::Vxlan { hops: more, .. }) = (&mut known.link, peer.link) {
            hops.extend(more);
        }
    }
}

/// A peer at the other end of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelPeer {
    /// The peer's name.
    pub name: String,
    /// Its address in the underlay.
    pub remote: IpAddr,
    /// Its segments: what comes from it has a source in one of them. WireGuard's AllowedIPs.
    pub segments: Vec<IpNet>,
    /// What the device must be told of it.
    pub link: PeerLink,
}

/// What a device must be told of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerLink {
    /// Nothing: its ends say it.
    Ends,
    /// Its place in the VXLAN: `mac` at `remote` (fdb), and each of `hops` at `mac` (neighbours).
    Vxlan {
        /// The peer's address in the VXLAN.
        mac: Mac,
        /// Next hops of the routes to its segments.
        hops: Vec<IpAddr>,
    },
    /// Its key, and where it listens.
    Wireguard {
        /// Public key.
        #[serde(with = "key::as_text")]
        key: [u8; 32],
        /// Address and UDP port.
        endpoint: SocketAddr,
    },
}

impl fmt::Display for Tunnel {
    /// `ot0123456789abc (gre 192.0.2.1 to 192.0.2.2 of n2)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.name, self.kind.name())?;
        if let Some(Ends { local, remote }) = self.kind.ends() {
            write!(f, " {local} to {remote} of ")?;
            for (index, peer) in self.peers.iter().enumerate() {
                write!(f, "{}{}", if index == 0 { "" } else { ", " }, peer.name)?;
            }
        }
        f.write_str(")")
    }
}
