//! The tunnels of a routed network, one for each device and peer.

use std::net::IpAddr;

use osvc_cni::routed::RoutedRecord;
use osvc_cni::routed::devices::{Kind, PeerLink, TunnelPeer};
use osvc_cni::routed::peer_file::PeerFile;
use osvc_cni::routed::record::TunnelRecord;
use serde_json::{Value, json};

/// What is to be told of them. What is only kept to receive after a change of mode is told, too (`sends` is false).
pub fn of(record: &RoutedRecord, file: Option<&PeerFile>) -> Vec<Value> {
    let mut told = Vec::new();
    for tunnel in &record.tunnels {
        told.extend(tunnel.peers.iter().map(|peer| tell(record, tunnel, peer, file)));
    }
    told
}

fn tell(record: &RoutedRecord, tunnel: &TunnelRecord, peer: &TunnelPeer, file: Option<&PeerFile>) -> Value {
    let local = local(tunnel, peer, file);
    let word = |text: String| text.replace([':', '.'], "-");
    let ends = format!("{}-{}", local.map(|local| local.to_string()).unwrap_or_default(), peer.remote);
    // Networks may share a tunnel: the same packets have the same id.
    let port = tunnel.kind.port().map(|port| format!("-{port}")).unwrap_or_default();
    let id = format!("{}-{ends}{port}", carrier(&tunnel.kind));
    // The other end of WireGuard says itself where it listens.
    let remote_port = match &peer.link {
        PeerLink::Wireguard { endpoint, .. } => Some(endpoint.port()),
        _ => tunnel.kind.port(),
    };
    let mtu = record.peers.iter().filter(|known| known.name == peer.name).flat_map(|known| &known.ways);
    let mtu = mtu.filter(|way| way.device == tunnel.name).map(|way| way.mtu).min().unwrap_or(tunnel.mtu);
    json!({
        "id": word(id),
        "ends": word(ends),
        "network": record.name,
        "peer": peer.name,
        "mode": tunnel.kind.mode(),
        "kind": tunnel.kind.name(),
        "device": tunnel.name,
        "local": local,
        "remote": peer.remote,
        "protocols": protocols(&tunnel.kind, &peer.segments),
        "port": tunnel.kind.port(),
        "remote_port": remote_port,
        "mtu": mtu,
        "local_segments": record.here.iter().filter(|segment| carried(&tunnel.kind, segment)).collect::<Vec<_>>(),
        "remote_segments": peer.segments,
        "sends": tunnel.sends,
        "leaving": tunnel.kept.is_some(),
    })
}

/// This node's end.
fn local(tunnel: &TunnelRecord, peer: &TunnelPeer, file: Option<&PeerFile>) -> Option<IpAddr> {
    match &tunnel.kind {
        Kind::Vxlan { local, .. } => Some(*local),
        Kind::Wireguard { .. } => {
            let mut addresses = file?.node.addresses.iter();
            addresses.find(|address| address.is_ipv4() == peer.remote.is_ipv4()).copied()
        }
        kind => kind.ends().map(|ends| ends.local),
    }
}

/// What such a device's packets are called in `id`.
fn carrier(kind: &Kind) -> &'static str {
    match kind {
        Kind::Ipip(_) => "ipip",
        Kind::Sit(_) => "sit",
        Kind::Ip6tnl(_) => "ip6tnl",
        Kind::Gre { .. } | Kind::Ip6gre { .. } => "gre",
        Kind::Vxlan { .. } => "vxlan",
        Kind::Wireguard { .. } => "wireguard",
    }
}

/// The protocols of the outer packets (IANA, "Assigned Internet Protocol Numbers"): those of what is in IP are one for
/// each family.
fn protocols(kind: &Kind, segments: &[ipnet::IpNet]) -> Vec<u8> {
    match kind {
        Kind::Ipip(_) => vec![4],
        Kind::Sit(_) => vec![41],
        Kind::Ip6tnl(_) => {
            let has = |v4: bool| segments.iter().any(|segment| segment.addr().is_ipv4() == v4);
            [(4, has(true)), (41, has(false))].into_iter().filter(|(_, has)| *has).map(|(number, _)| number).collect()
        }
        Kind::Gre { .. } | Kind::Ip6gre { .. } => vec![47],
        Kind::Vxlan { .. } | Kind::Wireguard { .. } => vec![17],
    }
}

/// True if packets of a segment's family go by such a device.
fn carried(kind: &Kind, segment: &ipnet::IpNet) -> bool {
    match kind {
        Kind::Ipip(_) => segment.addr().is_ipv4(),
        Kind::Sit(_) => segment.addr().is_ipv6(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node's record of a dual-stack network with one peer, by such a device.
    fn record(kind: Value, remote: &str, link: Value) -> RoutedRecord {
        let segments = json!(["10.11.4.0/22", "fd11:0:0:1::/64"]);
        let peer = json!({"name": "node2", "remote": remote, "segments": segments, "link": link});
        serde_json::from_value(json!({
            "v": 1, "name": "net", "basis": "", "complete": true, "mode": "ipip", "networks": ["10.11.0.0/16", "fd11::/48"],
            "here": ["10.11.0.0/22", "fd11::/64"], "peers": [], "routes": [], "boot": "b",
            "netns": {"cookie": 1, "dev": 4, "ino": 5},
            "tunnels": [{"name": "ot1", "index": 7, "kind": kind, "mtu": 1480, "owned": true, "sends": true, "peers": [peer]}]
        }))
        .unwrap()
    }

    fn told(kind: Value, remote: &str, link: Value) -> Value {
        of(&record(kind, remote, link), None).remove(0)
    }

    #[test]
    fn both_ends_tell_the_same_of_every_kind() {
        let (a, b, a6, b6) = ("192.0.2.1", "192.0.2.2", "fd00::1", "fd00::2");
        for (name, more, [local, remote], protocols) in [
            ("ipip", None, [a, b], json!([4])),
            ("sit", None, [a, b], json!([41])),
            ("ip6tnl", None, [a6, b6], json!([4, 41])),
            ("gre", Some(7), [a, b], json!([47])),
            ("ip6gre", Some(7), [a6, b6], json!([47])),
        ] {
            let kind = |local: &str, remote: &str| {
                let ends = json!({"local": local, "remote": remote});
                match more {
                    Some(key) => json!({name: {"ends": ends, "key": key}}),
                    None => json!({name: ends}),
                }
            };
            let here = told(kind(local, remote), remote, json!("ends"));
            let there = told(kind(remote, local), local, json!("ends"));
            assert_eq!((&here["local"], &here["remote"]), (&there["remote"], &there["local"]), "{name}");
            assert_eq!((&here["protocols"], &there["protocols"]), (&protocols, &protocols), "{name}");
            assert_eq!(here["port"], Value::Null, "{name}");
        }
        let sit = told(json!({"sit": {"local": a, "remote": b}}), b, json!("ends"));
        assert_eq!(sit["local_segments"], json!(["fd11::/64"]), "what it carries");
        assert_eq!((&sit["id"], &sit["ends"]), (&json!("sit-192-0-2-1-192-0-2-2"), &json!("192-0-2-1-192-0-2-2")));
    }

    #[test]
    fn wireguard_tells_ports_and_no_private_key() {
        let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let link = json!({"wireguard": {"key": key, "endpoint": "192.0.2.2:51821"}});
        let told = told(json!({"wireguard": {"port": 51820}}), "192.0.2.2", link);
        assert_eq!(
            (&told["port"], &told["remote_port"], &told["mode"]),
            (&json!(51820), &json!(51821), &json!("wireguard"))
        );
        assert!(!told.to_string().contains(key) && !told.to_string().contains("rivate"), "{told}");
    }
}
