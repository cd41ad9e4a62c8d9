//! The keys and peers of a WireGuard device.

use super::{Kernel, Refusal, Verb};
use crate::netlink::wireguard::{PublicKey, WantedPeer};
use crate::netlink::{Error, Link, WireguardSocket};
use crate::routed::devices::{PeerLink, TunnelPeer};
use crate::routed::private_key;
use crate::{Host, NetworkName};

impl Kernel<'_> {
    /// Has the keys and peers of a WireGuard device of ours, and no others; `before` are the peers as they were told last.
    /// Returned is its public key.
    pub fn wireguard(
        &mut self,
        link: &Link,
        host: &Host,
        network: &NetworkName,
        port: u16,
        peers: &[TunnelPeer],
        before: &[TunnelPeer],
    ) -> Result<Option<PublicKey>, Refusal> {
        let key = match private_key::load(host, network)? {
            Some(key) => key,
            None if self.act => private_key::load_or_make(host, network)?,
            None => {
                let what = format_args!("the private key of network {network}");
                return self.step(Verb::Make, what, |_| Ok(())).map(|_| None).map_err(Refusal::from);
            }
        };
        if link.index == 0 {
            return Ok(None);
        }
        let mut socket = WireguardSocket::open()?;
        let gone = || Error::Malformed { request: format!("read WireGuard device {}", link.name), what: "none there" };
        let found = socket.device(link)?.ok_or_else(gone)?;
        let wanted: Vec<(&str, WantedPeer)> = peers.iter().filter_map(|it| peer(it, before)).collect();
        let all: Vec<WantedPeer> = wanted.iter().map(|(_, peer)| peer.clone()).collect();
        let change = found.change_to(&key, port, &all);
        if change.is_empty() {
            return Ok(found.public_key);
        }
        let mut parts = Vec::new();
        parts.extend(change.private_key.as_ref().map(|_| "key".to_owned()));
        parts.extend(change.port.map(|port| format!("port {port}")));
        let is_set = |key: &PublicKey| change.set.iter().any(|peer| peer.public_key == *key);
        parts
            .extend(wanted.iter().filter(|(_, peer)| is_set(&peer.public_key)).map(|(name, _)| format!("peer {name}")));
        if !change.remove.is_empty() {
            parts.push(format!("{} former peers", change.remove.len()));
        }
        let what = format!("WireGuard device {} ({})", link.name, parts.join(", "));
        self.step(Verb::Change, what, |_| socket.change_device(link, &change))
            .map_err(|error| Refusal::of(error, Some(port)))?;
        Ok(socket.device(link)?.ok_or_else(gone)?.public_key)
    }
}

fn peer<'a>(peer: &'a TunnelPeer, before: &[TunnelPeer]) -> Option<(&'a str, WantedPeer)> {
    let PeerLink::Wireguard { key, endpoint } = peer.link else { return None };
    let wanted = WantedPeer {
        public_key: key,
        endpoint: Some(endpoint),
        // Where the configuration has it now is told at once.
        roams: before.iter().any(|known| known.link == peer.link),
        keepalive: 0,
        allowed: peer.segments.clone(),
    };
    Some((&peer.name, wanted))
}
