//! The rules of a routed network that concern its other nodes.
//!
//! What comes out of a tunnel has a source in a segment of the peer at its other end, or is dropped, and so are packets
//! of a VXLAN that no peer has sent. Packets of a VXLAN's peers are told by their Ethernet addresses, which are the
//! peers' own by a fixed formula. All that is checked before the route is looked up: what is meant for this host as
//! well as what it forwards.
//!
//! A node-local network has the same addresses on every node, and no other node could answer it. One of another routed
//! network has a source that the other nodes drop, as they do with whatever is not of this node's segment. Towards other
//! nodes both take the address of this node's gateway in the network that they go to. (Not `masquerade`: a tunnel device
//! has no address to take.) A network whose addresses are not to be translated stays what it is, and is dropped there.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use super::family::Family;
use super::mark::is_device;
use super::wanted::{LOCAL, Place, outermost};
use crate::network::cluster::{Cluster, Entrance, Sender};
use crate::network::record::NetworkRecord;

/// Which sources packets from a tunnel may have: it may be that of several networks.
#[derive(Debug, Default)]
pub struct Sources<'a>(BTreeMap<&'a str, Vec<IpNet>>);

impl<'a> Sources<'a> {
    /// Those of the tunnels of these networks.
    pub fn of(records: impl IntoIterator<Item = &'a NetworkRecord>) -> Self {
        let mut sources = BTreeMap::<_, Vec<_>>::new();
        for entrance in records.into_iter().flat_map(|record| &record.cluster).flat_map(|cluster| &cluster.entrances) {
            let segments = entrance.peers.iter().flat_map(|peer| &peer.segments).map(IpNet::trunc);
            sources.entry(entrance.device.as_str()).or_default().extend(segments);
        }
        Self(sources)
    }
}

/// The rules of a network in the table of a family.
pub fn rules(record: &NetworkRecord, cluster: &Cluster, family: Family, sources: &Sources<'_>) -> Vec<(Place, String)> {
    let mut rules = Vec::new();
    let is_concerned = cluster.networks.iter().any(|network| family.holds(network));
    for entrance in cluster.entrances.iter().filter(|entrance| is_device(&entrance.device)) {
        rules.extend(from_peers_only(entrance, family));
        if is_concerned {
            let sources = sources.0.get(entrance.device.as_str()).map_or(&[][..], |all| all);
            match entrance.owned {
                true => checked(entrance, family, sources, &mut rules),
                false => rules.extend(foreign(entrance, &cluster.networks, family, sources)),
            }
        }
    }
    for network in cluster.networks.iter().filter(|network| family.holds(network)) {
        translated(record, network, family, &mut rules);
    }
    rules
}

/// Packets of a VXLAN that come from elsewhere than its peers are dropped as they come in. Its number is that of bits
/// 96 to 119 from the UDP header on (RFC 7348, section 5). Those that this host only forwards, or bridges, are of another
/// cluster, whose network has the same number by the same name.
fn from_peers_only(entrance: &Entrance, family: Family) -> Option<(Place, String)> {
    let vxlan = entrance.vxlan?;
    let remotes: Vec<IpNet> =
        entrance.peers.iter().map(|peer| peer.remote.into()).filter(|it| family.holds(it)).collect();
    let (port, vni) = (vxlan.port, vxlan.vni);
    let rule =
        |remotes| format!("udp dport {port} @th,96,24 {vni:#x} {family} saddr != {remotes} fib daddr type local drop");
    Some((Place::Guard, rule(one_of(&remotes)?)))
}

/// A tunnel of somebody else, with the same ends, may have other uses: packets out of it with a source that is none of
/// the peer's are dropped only if they say to come from the network, or go there.
fn foreign(entrance: &Entrance, networks: &[IpNet], family: Family, sources: &[IpNet]) -> Vec<(Place, String)> {
    let of_family = |all: &[IpNet]| all.iter().copied().filter(|it| family.holds(it)).collect::<Vec<_>>();
    let Some(networks) = one_of(&of_family(networks)) else { return Vec::new() };
    let strange =
        one_of(&of_family(sources)).map(|sources| format!(" {family} saddr != {sources}")).unwrap_or_default();
    let rule = |end| (Place::Guard, format!("iifname \"{}\" {family} {end} {networks}{strange} drop", entrance.device));
    vec![rule("saddr"), rule("daddr")]
}

/// Packets out of a tunnel with a source that is none of the peer's are dropped.
fn checked(entrance: &Entrance, family: Family, sources: &[IpNet], rules: &mut Vec<(Place, String)>) {
    let device = format!("iifname \"{}\"", entrance.device);
    let elsewhere = |segments: &[IpNet]| {
        let segments: Vec<IpNet> = segments.iter().copied().filter(|segment| family.holds(segment)).collect();
        // Without a segment in this family there is nothing that a peer may send.
        one_of(&segments).map(|segments| format!(" {family} saddr != {segments}")).unwrap_or_default()
    };
    if entrance.vxlan.is_none() {
        rules.push((Place::Guard, format!("{device}{} drop", elsewhere(sources))));
        return;
    }
    let peers: Vec<(String, &Sender)> =
        entrance.peers.iter().filter_map(|peer| Some((peer.mac?.to_string(), peer))).collect();
    let macs: BTreeSet<&str> = peers.iter().map(|(mac, _)| mac.as_str()).collect();
    let strangers = match macs.is_empty() {
        true => String::new(),
        false => format!(" ether saddr != {{ {} }}", macs.into_iter().collect::<Vec<_>>().join(", ")),
    };
    rules.push((Place::Guard, format!("{device}{strangers} drop")));
    for (mac, peer) in peers {
        rules.push((Place::Guard, format!("{device} ether saddr {mac}{} drop", elsewhere(&peer.segments))));
    }
}

/// Other networks take the address of this node's gateway towards the other nodes.
fn translated(record: &NetworkRecord, network: &IpNet, family: Family, rules: &mut Vec<(Place, String)>) {
    let Some(gateway) = record.gateways.iter().map(IpNet::addr).find(|gateway| network.contains(gateway)) else {
        return;
    };
    let own: Vec<IpNet> = record.subnets.iter().map(IpNet::trunc).filter(|own| network.contains(own)).collect();
    let Some(own) = one_of(&own) else { return };
    let network = network.trunc();
    let leaves =
        format!("{family} saddr @{LOCAL} {family} saddr != {network} {family} daddr {network} {family} daddr != {own}");
    rules.push((Place::Translate, format!("{leaves} snat to {gateway}")));
    // The kernel translates no packet of a connection that it does not know.
    rules.push((Place::Drop, format!("{leaves} ct state invalid drop")));
}

/// One network, or a set of several: none twice, and none inside another, which nft refuses.
pub(super) fn one_of(networks: &[IpNet]) -> Option<String> {
    let texts: Vec<String> = outermost(networks.to_vec(), |network| *network).iter().map(ToString::to_string).collect();
    match &texts[..] {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("{{ {} }}", several.join(", "))),
    }
}
