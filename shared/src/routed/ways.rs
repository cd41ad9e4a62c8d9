//! How each peer is reached: by a plain route, or through which tunnel.
//!
//! Peers, and the families of each, are independent: what cannot be is a [`Fault`] of that one. Which underlay carries
//! a family: that of the same family when both nodes have an address of it, else the other one; with WireGuard, whose
//! peers have one endpoint, IPv4 first unless the network has IPv6 only. So both ends choose the same.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::devices::{Ends, Kind, PeerLink, Tunnel, TunnelPeer};
use super::fault::Fault;
use super::mode::{Family, Mode, PerFamily, Policy};
use super::mtu;
use super::parameters::{Parameters, hop, vtep};
use super::path::{Asked, Path, Paths};
use super::peers::{Node, PeerWays, Peers, Rules, Way};
use super::usable::is_usable;

/// Decides how the peers of `here` are reached. The kernel is asked, and nothing is changed.
pub fn ways(rules: &Rules<'_>, here: &Node, peers: &[Node], paths: &mut impl Paths) -> Peers {
    let parameters = Parameters::of(rules.network, rules.mode, rules.port);
    let asked = Asked::new(paths);
    let mut work = Work { rules, here, peers, parameters, asked, tunnels: BTreeMap::new() };
    let of = |peer: &Node| PeerWays { name: peer.name.clone(), ways: PerFamily::make(|family| work.way(peer, family)) };
    let peers = peers.iter().map(of).collect();
    Peers { peers, tunnels: work.tunnels.into_values().collect() }
}

struct Work<'a, P: Paths> {
    rules: &'a Rules<'a>,
    here: &'a Node,
    peers: &'a [Node],
    parameters: Parameters,
    asked: Asked<'a, P>,
    tunnels: BTreeMap<String, Tunnel>,
}

impl<P: Paths> Work<'_, P> {
    fn way(&mut self, peer: &Node, family: Family) -> Option<Result<Way, Fault>> {
        let concerned = peer.segments.iter().any(|segment| Family::of(segment.addr()) == family);
        concerned.then(|| self.try_way(peer, family))
    }

    fn try_way(&mut self, peer: &Node, family: Family) -> Result<Way, Fault> {
        self.check_key(peer)?;
        let remote = self.remote(peer, family)?;
        if self.asked.is_own(remote)? {
            return Err(Fault::OwnAddress(remote));
        }
        let path = self.asked.path_to(remote)?;
        let Some(path) = self.direct(family, remote, path.as_ref())? else {
            return self.tunnel(peer, family, remote, path.as_ref(), true);
        };
        if let Err(fault) = self.tunnel(peer, family, remote, Some(path), false) {
            tracing::debug!("network {}: {} cannot send through a tunnel: {fault}", self.rules.network, peer.name);
        }
        Ok(Way::Direct { via: remote, device: path.device, name: path.name.clone(), mtu: path.mtu })
    }

    /// The path, if it is to be taken without a tunnel.
    fn direct<'p>(&self, inside: Family, remote: IpAddr, path: Option<&'p Path>) -> Result<Option<&'p Path>, Fault> {
        let fits = inside == Family::V4 || remote.is_ipv6();
        if self.rules.mode == Mode::Wireguard {
            return Ok(None);
        }
        match self.rules.policy {
            Policy::Always => Ok(None),
            Policy::Auto => Ok(path.filter(|path| fits && path.is_direct())),
            Policy::Never if !fits => Err(Fault::Ipv6ByIpv4(remote)),
            Policy::Never => match path {
                None => Err(Fault::NoRoute(remote)),
                Some(path) if !path.on_link => Err(Fault::OffLink { address: remote, gateway: path.gateway }),
                path => Ok(path),
            },
        }
    }

    /// The peer's address that packets of a family are sent to.
    fn remote(&self, peer: &Node, inside: Family) -> Result<IpAddr, Fault> {
        let first = match self.rules.mode {
            Mode::Wireguard => {
                // One endpoint for both families.
                let v4 = self.rules.networks.iter().any(|network| network.addr().is_ipv4());
                if v4 { Family::V4 } else { Family::V6 }
            }
            _ => inside,
        };
        let both = |family: &Family| self.here.addresses.get(*family).and(peer.addresses.get(*family));
        let choice = [first, first.other()];
        // Without an address of ours in common a plain route may still do.
        let remote = choice.iter().find_map(both).or_else(|| choice.iter().find_map(|&it| peer.addresses.get(it)));
        let remote = remote.ok_or_else(|| Fault::NoAddress(peer.unresolved.clone()))?;
        if !is_usable(remote) {
            return Err(Fault::Unusable(remote));
        }
        if let Some(network) = self.around(remote) {
            return Err(Fault::Inside { address: remote, network });
        }
        let family = Family::of(remote);
        // If this node's name resolved to it, the kernel says whether that is so.
        if self.here.literal.get(family) == Some(remote) {
            return Err(Fault::OwnAddress(remote));
        }
        // A name that resolves to somebody else's address costs nobody but the one who is called so.
        let has = |other: &&Node| other.addresses.get(family) == Some(remote);
        let owner = self.peers.iter().filter(has).min_by_key(|other| other.literal.get(family) != Some(remote));
        match owner.filter(|owner| owner.name != peer.name) {
            Some(owner) => Err(Fault::SameAddress { address: remote, other: owner.name.clone() }),
            None => Ok(remote),
        }
    }

    /// The subnet of the network that an address lies in.
    fn around(&self, address: IpAddr) -> Option<IpNet> {
        self.rules.networks.iter().find(|network| network.contains(&address)).copied()
    }

    fn check_key(&self, peer: &Node) -> Result<(), Fault> {
        if self.rules.mode != Mode::Wireguard {
            return Ok(());
        }
        // All zeros is what the kernel takes for none (wireguard, `curve25519_null_point`).
        let key = peer.public_key.filter(|key| *key != [0; 32]).ok_or(Fault::NoKey)?;
        let others = self.peers.iter().filter(|other| other.name != peer.name).chain([self.here]);
        match others.into_iter().find(|other| other.public_key == Some(key)) {
            Some(other) => Err(Fault::SameKey(other.name.clone())),
            None => Ok(()),
        }
    }

    /// This node's end of tunnels over a family.
    fn local(&mut self, underlay: Family) -> Result<IpAddr, Fault> {
        let missing = || Fault::NoLocal { peer: underlay, unresolved: self.here.unresolved.clone() };
        let local = self.here.addresses.get(underlay).ok_or_else(missing)?;
        if let Some(network) = self.around(local) {
            return Err(Fault::StartsInside { address: local, network });
        }
        if self.asked.is_own(local)? { Ok(local) } else { Err(Fault::NotHere(local)) }
    }

    /// Makes a peer's end of a tunnel part of the plan.
    fn tunnel(
        &mut self,
        peer: &Node,
        inside: Family,
        remote: IpAddr,
        path: Option<&Path>,
        sends: bool,
    ) -> Result<Way, Fault> {
        let segments = || peer.segments.iter().filter(|segment| Family::of(segment.addr()) == inside);
        let underlay = Family::of(remote);
        let (kind, link) = match self.parameters {
            Parameters::Vxlan { vni, port } => {
                let mac = vtep(self.rules.network, &self.here.segments);
                let kind = Kind::Vxlan { local: self.local(underlay)?, vni, port, mac };
                let mac = vtep(self.rules.network, &peer.segments);
                (kind, PeerLink::Vxlan { mac, hops: segments().map(hop).collect() })
            }
            Parameters::Wireguard { port } => {
                let key = peer.public_key.ok_or(Fault::NoKey)?;
                (Kind::Wireguard { port }, PeerLink::Wireguard { key, endpoint: SocketAddr::new(remote, port) })
            }
            Parameters::Ipip => (Kind::ipip(inside, Ends { local: self.local(underlay)?, remote }), PeerLink::Ends),
            Parameters::Gre { key } => (Kind::gre(key, Ends { local: self.local(underlay)?, remote }), PeerLink::Ends),
        };
        let onlink = matches!(kind, Kind::Vxlan { .. });
        let name = kind.device_name(self.rules.network);
        let mtu = mtu::through(self.rules.mode, inside, underlay, path.map(|path| path.mtu));
        let new = || Tunnel { name: name.clone(), kind, mtu, sends, peers: Vec::new() };
        let tunnel = self.tunnels.entry(name.clone()).or_insert_with(new);
        tunnel.mtu = tunnel.mtu.max(mtu);
        tunnel.sends |= sends;
        tunnel.add(TunnelPeer { name: peer.name.clone(), remote, segments: segments().copied().collect(), link });
        Ok(Way::Tunnel { device: name, onlink, remote, mtu, routed: path.is_some() })
    }
}

#[cfg(test)]
mod tests;
