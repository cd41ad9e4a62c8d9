//! When WireGuard agreed last with each peer on keys.

use std::time::SystemTime;

use osvc_cni::netlink::wireguard::{WireguardPeer, WireguardSocket};
use osvc_cni::netlink::{self, RouteSocket};
use osvc_cni::routed::RoutedRecord;
use osvc_cni::routed::config::Mode;
use osvc_cni::routed::devices::PeerLink;
use osvc_cni::routed::record::TunnelRecord;

use crate::output;

/// The peers by name, with the second of the epoch. One with whom that never was is left out.
pub fn of(record: &RoutedRecord) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for tunnel in record.tunnels.iter().filter(|tunnel| tunnel.kind.mode() == Mode::Wireguard && tunnel.sends) {
        match known(&tunnel.name) {
            Ok(known) => found.extend(known.iter().filter_map(|peer| Some((name(tunnel, peer)?, seconds(peer)?)))),
            Err(error) => output::complain(&format_args!("network {}: {error}", record.name)),
        }
    }
    found
}

fn known(device: &str) -> Result<Vec<WireguardPeer>, netlink::Error> {
    let Some(link) = RouteSocket::open()?.link_by_name(device)? else { return Ok(Vec::new()) };
    Ok(WireguardSocket::open()?.device(&link)?.map_or_else(Vec::new, |device| device.peers))
}

fn name(tunnel: &TunnelRecord, known: &WireguardPeer) -> Option<String> {
    let has_key = |link: &PeerLink| matches!(link, PeerLink::Wireguard { key, .. } if *key == known.public_key);
    tunnel.peers.iter().find(|peer| has_key(&peer.link)).map(|peer| peer.name.clone())
}

fn seconds(known: &WireguardPeer) -> Option<u64> {
    let since = known.last_handshake?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}
