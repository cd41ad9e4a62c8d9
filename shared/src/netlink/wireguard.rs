//! WireGuard devices: keys and peers (linux/wireguard.h).

mod device;
pub mod key;
mod message;
mod socket;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use ipnet::IpNet;

pub use key::PrivateKey;
pub use socket::{WireguardSocket, public_key};

/// How old a session gets (REJECT_AFTER_TIME of the WireGuard paper, 6.1). One that is younger is in use, or was a moment
/// ago, with the endpoint that the kernel has.
const SESSION: Duration = Duration::from_secs(180);

/// A public key.
pub type PublicKey = [u8; key::LENGTH];

/// A WireGuard device as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireguardDevice {
    /// Its number.
    pub index: u32,
    /// Its key; none as long as none is set.
    pub private_key: Option<PrivateKey>,
    /// The public part of its key.
    pub public_key: Option<PublicKey>,
    /// Its UDP port.
    pub port: u16,
    /// Its peers.
    pub peers: Vec<WireguardPeer>,
}

/// A peer as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireguardPeer {
    /// Its key, by which it is known.
    pub public_key: PublicKey,
    /// Where it was heard of last, or was said to be.
    pub endpoint: Option<SocketAddr>,
    /// Seconds between packets that keep the way open; 0: none.
    pub keepalive: u16,
    /// Its networks: what comes from it is dropped if its source is elsewhere.
    pub allowed: Vec<IpNet>,
    /// When both ends agreed last on the keys of a session.
    pub last_handshake: Option<SystemTime>,
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
}

/// A peer as it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPeer {
    /// Its key.
    pub public_key: PublicKey,
    /// Where it is; none waits for it to come.
    pub endpoint: Option<SocketAddr>,
    /// It may be somewhere else while it has a session: a host with several addresses sends from any of them, and the
    /// kernel takes the source of what it sends for its endpoint. Not so when it was told of another `endpoint` just now.
    pub roams: bool,
    /// Seconds between packets that keep the way open; 0: none.
    pub keepalive: u16,
    /// Its networks. A network of two peers is the last one's.
    pub allowed: Vec<IpNet>,
}

impl WireguardPeer {
    /// True if both ends agreed on keys less than a session's life ago.
    fn has_session(&self, now: SystemTime) -> bool {
        // A clock that was set back makes it a time to come.
        let age = |at| now.duration_since(at).unwrap_or_else(|error| error.duration());
        self.last_handshake.is_some_and(|at| age(at) < SESSION)
    }
}

impl WantedPeer {
    /// True if the peer is as wanted.
    pub fn is(&self, found: &WireguardPeer, now: SystemTime) -> bool {
        let sorted = |networks: &[IpNet]| {
            let mut networks: Vec<_> = networks.iter().map(IpNet::trunc).collect();
            networks.sort_unstable();
            networks.dedup();
            networks
        };
        self.public_key == found.public_key
            && (self.endpoint.is_none_or(|wanted| found.endpoint == Some(wanted)) || self.has_roamed(found, now))
            && self.keepalive == found.keepalive
            && sorted(&self.allowed) == sorted(&found.allowed)
    }

    /// True if it is heard of from somewhere, wherever that is.
    fn has_roamed(&self, found: &WireguardPeer, now: SystemTime) -> bool {
        self.roams && found.endpoint.is_some() && found.has_session(now)
    }
}

/// What is to change of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WireguardChange {
    /// Another key: all sessions begin anew.
    pub private_key: Option<PrivateKey>,
    /// Another UDP port.
    pub port: Option<u16>,
    /// Peers that are to go.
    pub remove: Vec<PublicKey>,
    /// Peers to be added, or changed. Sessions of those that are there go on.
    pub set: Vec<WantedPeer>,
}

impl WireguardChange {
    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl WireguardDevice {
    /// What makes this device the wanted one, and leaves alone what is so already.
    pub fn change_to(&self, private_key: &PrivateKey, port: u16, peers: &[WantedPeer]) -> WireguardChange {
        let now = SystemTime::now();
        let of = |key: &PublicKey| self.peers.iter().find(|found| found.public_key == *key);
        let set = |peer: &WantedPeer| match of(&peer.public_key) {
            Some(found) if peer.is(found, now) => None,
            // What else is to change does not send packets back to where it is not.
            Some(found) if peer.has_roamed(found, now) => Some(WantedPeer { endpoint: None, ..peer.clone() }),
            _ => Some(peer.clone()),
        };
        let wanted = |found: &&WireguardPeer| peers.iter().any(|peer| peer.public_key == found.public_key);
        WireguardChange {
            private_key: (self.private_key.as_ref() != Some(private_key)).then(|| private_key.clone()),
            port: (self.port != port).then_some(port),
            remove: self.peers.iter().filter(|found| !wanted(found)).map(|found| found.public_key).collect(),
            set: peers.iter().filter_map(set).collect(),
        }
    }
}
