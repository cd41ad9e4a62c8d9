//! What a template is told: networks as they are configured and as they were set up.

use std::sync::Arc;

use minijinja::value::Value;
use minijinja::{Environment, ErrorKind};
use osvc_cni::Host;
use osvc_cni::network::NetworkRecord;
use osvc_cni::routed::RoutedRecord;
use osvc_cni::routed::peer_file::{NodeEntry, PeerFile};
use osvc_cni::routed::record::PeerRecord;
use serde_json::{Value as Json, json};

use super::tunnels;
use crate::error::Error;
use crate::nearest::nearest;
use crate::networks::Network;

/// The networks of this node, read once: a template sees one moment.
#[derive(Debug)]
pub struct Facts {
    /// Each with what it is, or why that cannot be told.
    networks: Vec<(String, Result<Json, String>)>,
    tunnels: Vec<Json>,
}

impl Facts {
    /// All that is known of these networks.
    pub fn new(host: &Host, networks: Vec<Network>) -> Self {
        let mut facts = Self { networks: Vec::new(), tunnels: Vec::new() };
        for network in &networks {
            let told = tell(host, network).map(|(told, tunnels)| {
                facts.tunnels.extend(tunnels);
                told
            });
            facts.networks.push((network.name.to_string(), told.map_err(|error| error.to_string())));
        }
        facts
    }

    /// Gives a template its functions.
    pub fn lend_to(self, environment: &mut Environment<'_>) {
        let facts = Arc::new(self);
        let of = facts.clone();
        environment.add_function("network", move |name: String| of.network(&name));
        let of = facts.clone();
        environment.add_function("networks", move || Value::from_serialize(of.networks()));
        environment.add_function("tunnels", move || Value::from_serialize(&facts.tunnels));
    }

    fn network(&self, name: &str) -> Result<Value, minijinja::Error> {
        let refused = |why: String| minijinja::Error::new(ErrorKind::InvalidOperation, why);
        match self.networks.iter().find(|(known, _)| known == name) {
            Some((_, Ok(told))) => Ok(Value::from_serialize(told)),
            Some((_, Err(why))) => Err(refused(why.clone())),
            None => {
                let known: Vec<String> = self.networks.iter().map(|(known, _)| known.clone()).collect();
                let nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
                Err(refused(Error::Unknown { name: name.to_owned(), nearest, known }.to_string()))
            }
        }
    }

    /// All networks: of one that cannot be told, the name and why.
    fn networks(&self) -> Vec<Json> {
        let told = |(name, told): &(String, Result<Json, String>)| match told {
            Ok(told) => told.clone(),
            Err(why) => json!({"name": name, "error": why}),
        };
        self.networks.iter().map(told).collect()
    }
}

/// A network and its tunnels.
fn tell(host: &Host, network: &Network) -> Result<(Json, Vec<Json>), Error> {
    let shape = network.shape(host)?;
    let bridge = NetworkRecord::load(host, &network.name)?;
    let failed = |source| Error::Routed { network: network.name.clone(), source: Box::new(source) };
    let routed = RoutedRecord::load(host, &network.name).map_err(failed)?;
    let file = PeerFile::load(host, &network.name).map_err(failed)?;
    let node = shape.as_ref().map(|shape| shape.node.clone()).unwrap_or_else(crate::shape::node_name);
    let here = routed.as_ref().map(|record| this_node(&node, record, file.as_ref()));
    let peers: Vec<Json> =
        routed.iter().flat_map(|record| &record.peers).map(|peer| tell_peer(peer, file.as_ref())).collect();
    let tunnels = routed.iter().flat_map(|record| tunnels::of(record, file.as_ref())).collect();
    let told = json!({
        "name": network.name,
        "kind": shape.as_ref().map(|shape| &shape.kind),
        "configured": network.definition.is_some(),
        "networks": shape.as_ref().map(|shape| shape.networks.clone()).unwrap_or_default(),
        "segments": shape.as_ref().map(|shape| shape.segments.clone()).unwrap_or_default(),
        "bridge": bridge.as_ref().map(|record| &record.bridge),
        "device": bridge.as_ref().map(NetworkRecord::device),
        "gateways": bridge.as_ref().map(|record| record.gateways.clone()).unwrap_or_default(),
        "mtu": bridge.as_ref().map(|record| record.mtu),
        "mode": routed.as_ref().map(|record| record.mode),
        "tunnel": file.as_ref().map(|file| &file.tunnel),
        "node": node,
        "nodes": here.iter().chain(&peers).collect::<Vec<_>>(),
        "peers": peers,
        "error": Json::Null,
    });
    Ok((told, tunnels))
}

fn this_node(name: &str, record: &RoutedRecord, file: Option<&PeerFile>) -> Json {
    let known = file.map(|file| &file.node);
    json!({
        "name": name, "here": true, "segments": record.here, "addresses": known.map(|node| node.addresses.clone()).unwrap_or_default(),
        "public_key": known.and_then(|node| node.public_key.clone()), "ways": [], "faults": [],
    })
}

fn tell_peer(peer: &PeerRecord, file: Option<&PeerFile>) -> Json {
    let known: Option<&NodeEntry> =
        file.and_then(|file| file.peers.iter().map(|entry| &entry.node).find(|node| node.name == peer.name));
    let addresses: Vec<std::net::IpAddr> =
        peer.addresses.v4.map(Into::into).into_iter().chain(peer.addresses.v6.map(Into::into)).collect();
    json!({
        "name": peer.name, "here": false, "segments": peer.segments, "addresses": addresses,
        "public_key": known.and_then(|node| node.public_key.clone()),
        // segment, remote, device, tunnel (true, or false for a plain route), mtu
        "ways": peer.ways, "faults": peer.faults,
    })
}
