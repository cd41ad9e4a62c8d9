//! `osvc-net peers`: the other nodes of routed networks, and how their containers are reached.

use std::collections::BTreeMap;
use std::time::SystemTime;

use osvc_cni::netlink::netns::host_id;
use osvc_cni::netlink::wireguard::{PublicKey, WireguardPeer, WireguardSocket};
use osvc_cni::netlink::{self, RouteSocket};
use osvc_cni::routed::config::Mode;
use osvc_cni::routed::config::key;
use osvc_cni::routed::devices::PeerLink;
use osvc_cni::routed::record::{PeerRecord, WayRecord};
use osvc_cni::routed::{self, RoutedRecord};
use osvc_cni::{Host, NetworkName};
use serde_json::{Value, json};

use crate::args::Format;
use crate::error::Error;
use crate::networks::{Network, Networks};
use crate::nodes::ROUTED;
use crate::output;

/// Prints the peers of the named networks, or of all that are routed, as they were set up; and says what is not so any
/// more.
pub fn list(host: &Host, networks: Networks, names: &[String], format: Format) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(names);
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for network in &chosen {
        let found = RoutedRecord::load(host, &network.name).map_err(|error| failed(&network.name, error.into()));
        let record = match found {
            Ok(Some(record)) => record,
            Ok(None) if names.is_empty() && !is_routed(network) => continue,
            Ok(None) => {
                let what =
                    format!("it is not set up as a routed network on this node: run `osvc-net setup {}`", network.name);
                errors.push(Error::Missing { network: network.name.clone(), what });
                continue;
            }
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        let handshakes = handshakes(&record);
        rows.extend(record.peers.iter().flat_map(|peer| cells(&record.name, peer)));
        values.push(json(&record, &handshakes));
        match missing(host, network) {
            Ok(missing) => {
                errors.extend(missing.into_iter().map(|what| Error::Missing { network: network.name.clone(), what }))
            }
            Err(error) => errors.push(error),
        }
    }
    let text = match format {
        Format::Table => {
            output::table(["NETWORK", "NODE", "SEGMENT", "BY", "DEVICE", "ADDRESS", "MTU", "FAULT"], &rows)
        }
        Format::Json => format!("{:#}\n", Value::from(values)),
    };
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn is_routed(network: &Network) -> bool {
    network.definition.iter().flat_map(|definition| &definition.plugins).any(|plugin| plugin.kind == ROUTED)
}

fn failed(network: &NetworkName, source: osvc_cni::Error) -> Error {
    Error::Network { network: network.clone(), source: Box::new(source) }
}

/// What of the network is not there any more; nothing if it is not configured, and so nobody knows what should be.
fn missing(host: &Host, network: &Network) -> Result<Vec<String>, Error> {
    let Some((definition, plugin)) = network.plugin(ROUTED) else { return Ok(Vec::new()) };
    let look = || {
        let call = definition.call(plugin, host)?;
        let mut config = routed::RoutedConfig::from_call(&call)?;
        let plan = routed::segments::read(host, &mut config)?;
        let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
        Ok(routed::node::missing(host, &netns, &mut socket, &config, &plan)?)
    };
    look().map_err(|error| failed(&network.name, error))
}

/// A row for each segment, or one for a peer that is not reached at all.
fn cells(network: &NetworkName, peer: &PeerRecord) -> Vec<[String; 8]> {
    let row = |segment: String, way: Option<&WayRecord>, fault: String| {
        let by = way.map(|way| if way.tunnel { "tunnel" } else { "direct" });
        [
            network.to_string(),
            peer.name.clone(),
            segment,
            by.unwrap_or_default().to_owned(),
            way.map(|way| way.device.clone()).unwrap_or_default(),
            way.map(|way| way.remote.to_string()).unwrap_or_default(),
            way.map(|way| way.mtu.to_string()).unwrap_or_default(),
            fault,
        ]
    };
    let faults = || peer.faults.join("; ");
    if peer.segments.is_empty() {
        return vec![row(String::new(), None, faults())];
    }
    let of = |segment: &ipnet::IpNet| {
        let way = peer.ways.iter().find(|way| way.segment == *segment);
        row(segment.to_string(), way, if way.is_none() { faults() } else { String::new() })
    };
    peer.segments.iter().map(of).collect()
}

/// When WireGuard agreed last with each peer on keys, in seconds of the epoch, by their keys as text. A device that is
/// not there, and a peer with whom that never was, are left out.
fn handshakes(record: &RoutedRecord) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let devices = record.tunnels.iter().filter(|tunnel| tunnel.kind.mode() == Mode::Wireguard);
    for tunnel in devices {
        match device_peers(&tunnel.name) {
            Ok(peers) => found.extend(peers.iter().filter_map(handshake)),
            Err(error) => output::complain(&format_args!("network {}: {error}", record.name)),
        }
    }
    found
}

fn device_peers(name: &str) -> Result<Vec<WireguardPeer>, netlink::Error> {
    let Some(link) = RouteSocket::open()?.link_by_name(name)? else { return Ok(Vec::new()) };
    Ok(WireguardSocket::open()?.device(&link)?.map_or_else(Vec::new, |device| device.peers))
}

fn handshake(peer: &WireguardPeer) -> Option<(String, u64)> {
    let since = peer.last_handshake?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some((key::text(&peer.public_key), since.as_secs()))
}

/// All that is recorded of a network's peers.
fn json(record: &RoutedRecord, handshakes: &BTreeMap<String, u64>) -> Value {
    let public_key = |name: &str| -> Option<&PublicKey> {
        let peers = record.tunnels.iter().flat_map(|tunnel| &tunnel.peers);
        peers.filter(|peer| peer.name == name).find_map(|peer| match &peer.link {
            PeerLink::Wireguard { key, .. } => Some(key),
            _ => None,
        })
    };
    let peer = |peer: &PeerRecord| {
        let key = public_key(&peer.name).map(key::text);
        let handshake = key.as_ref().and_then(|key| handshakes.get(key));
        json!({
            "name": peer.name, "addresses": peer.addresses, "segments": peer.segments, "ways": peer.ways,
            "faults": peer.faults, "publicKey": key, "lastHandshake": handshake,
        })
    };
    json!({
        "network": record.name, "networks": record.networks, "segments": record.here, "tunnelMode": record.mode,
        "peers": record.peers.iter().map(peer).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_peer_that_was_never_heard_of_hides_no_other() {
        let peer = |number: u8, seconds: Option<u64>| WireguardPeer {
            public_key: [number; 32],
            endpoint: None,
            keepalive: 0,
            allowed: Vec::new(),
            last_handshake: seconds.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
            received: 0,
            sent: 0,
        };
        let found: BTreeMap<_, _> =
            [peer(1, None), peer(2, Some(77)), peer(3, None)].iter().filter_map(handshake).collect();
        assert_eq!(found, BTreeMap::from([(key::text(&[2; 32]), 77)]));
    }
}
