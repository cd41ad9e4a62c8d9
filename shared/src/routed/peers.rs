//! The nodes of a network as they come in, and how they are reached as it comes out of [`ways`](super::ways::ways).

use std::net::IpAddr;

use ipnet::IpNet;

use super::devices::Tunnel;
use super::fault::Fault;
use super::mode::{Addresses, Family, Mode, PerFamily, Policy};
use crate::NetworkName;

/// What decides for all peers of a network.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The network's name.
    pub network: &'a NetworkName,
    /// Its subnets, of which the nodes have segments.
    pub networks: &'a [IpNet],
    /// Which peers are reached through tunnels.
    pub policy: Policy,
    /// Through which tunnels.
    pub mode: Mode,
    /// The configured UDP port.
    pub port: Option<u16>,
}

/// A node as the others see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its addresses in the underlay.
    pub addresses: Addresses,
    /// Those that the configuration gives as such. The others are what its names resolved to: they may be out of date.
    pub literal: Addresses,
    /// Names of it that did not resolve, for messages.
    pub unresolved: Vec<String>,
    /// Its segments, of either family.
    pub segments: Vec<IpNet>,
    /// Its WireGuard key.
    pub public_key: Option<[u8; 32]>,
}

/// How a family of a peer is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// `<segment> via <via> dev <name>`; `via` may be of the other family.
    Direct {
        /// The peer's address.
        via: IpAddr,
        /// The device's number.
        device: u32,
        /// The device's name.
        name: String,
        /// What gets through, in bytes.
        mtu: u32,
    },
    /// `<segment> dev <device>`, or with `onlink` `<segment> via <hop(segment)> dev <device> onlink`.
    Tunnel {
        /// The device's name: one of [`Peers::tunnels`].
        device: String,
        /// The device has several peers, told apart by next hops ([`hop`](super::parameters::hop)).
        onlink: bool,
        /// The peer's address.
        remote: IpAddr,
        /// What gets through, in bytes.
        mtu: u32,
        /// The kernel has a route to `remote` at present.
        routed: bool,
    },
}

/// How a peer is reached.
#[derive(Debug)]
pub struct PeerWays {
    /// The peer's name.
    pub name: String,
    /// The way of each family in which it has a segment.
    pub ways: PerFamily<Result<Way, Fault>>,
}

/// How all peers of a network are reached.
#[derive(Debug)]
pub struct Peers {
    /// Each of them, in the order given.
    pub peers: Vec<PeerWays>,
    /// The devices that it takes, in order of name: those by which this node sends, and the receiving ends of the
    /// configured mode for the peers to which it has plain routes, so that nodes may disagree for a while.
    pub tunnels: Vec<Tunnel>,
}

impl Peers {
    /// What cannot be, by name of the peer and family. One that concerns the whole peer is there for each family.
    pub fn faults(&self) -> impl Iterator<Item = (&str, Family, &Fault)> {
        self.peers.iter().flat_map(|peer| {
            let faults = peer.ways.iter().filter_map(|(family, way)| Some((family, way.as_ref().err()?)));
            faults.map(|(family, fault)| (peer.name.as_str(), family, fault))
        })
    }
}
