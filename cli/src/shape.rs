//! What a network is, whatever plugin serves it: its kind, its subnets, and how it gives addresses.

use std::path::Path;

use ipnet::IpNet;
use osvc_cni::Host;
use osvc_cni::ipam::config::IpamConfig;
use osvc_cni::network::NetworkRecord;
use osvc_cni::plugin::{bridge, routed};
use osvc_cni::routed::{self as cluster, RoutedConfig, RoutedRecord};

use crate::conf::BRIDGE;
use crate::error::Error;
use crate::networks::Network;
use crate::nodes::ROUTED;

/// What a network is on this node.
#[derive(Debug)]
pub struct Shape {
    /// The plugin that serves it: `osvc-bridge`, `osvc-routed`, or another one that has osvc-ipam.
    pub kind: String,
    /// This node, as the network calls it.
    pub node: String,
    /// The subnets of the whole network.
    pub networks: Vec<IpNet>,
    /// Of a routed network: this node's part of each.
    pub segments: Vec<IpNet>,
    /// How addresses are given; none for layer 2, for addresses of another plugin, and without configuration.
    pub addresses: Option<IpamConfig>,
}

impl Network {
    /// What it is, by its configuration, else by its records; `None` if no plugin of ours has to do with it but, perhaps,
    /// publishing ports.
    ///
    /// # Errors
    /// The configuration cannot be used, or a record cannot be read.
    pub fn shape(&self, host: &Host) -> Result<Option<Shape>, Error> {
        let Some(definition) = &self.definition else { return self.recorded(host) };
        let Some(plugin) = definition.plugins.iter().find(|plugin| plugin.gives_addresses()) else {
            return self.recorded(host);
        };
        let wrong = |source: osvc_cni::Error| Error::Config {
            place: plugin.place.clone(),
            network: self.name.clone(),
            source: Box::new(source),
        };
        let call = definition.call(plugin, host).map_err(wrong)?;
        let addresses = match plugin.kind.as_str() {
            BRIDGE => bridge::addresses(&call),
            ROUTED => routed::addresses(&call),
            _ => IpamConfig::from_call(&call).map_err(Into::into),
        }
        .map_err(wrong)?;
        let ranges = addresses.iter().flat_map(|config| &config.sets).flat_map(|set| &set.0);
        let mut subnets: Vec<IpNet> = ranges.map(|range| range.subnet).collect();
        subnets.dedup();
        let shape =
            Shape { kind: plugin.kind.clone(), node: node_name(), networks: subnets, segments: Vec::new(), addresses };
        if plugin.kind != ROUTED {
            return Ok(Some(shape));
        }
        let config = RoutedConfig::from_call(&call).map_err(|error| wrong(error.into()))?;
        Ok(Some(Shape {
            node: config.this_node().name.clone(),
            segments: shape.networks,
            networks: config.networks,
            ..shape
        }))
    }

    /// What was set up, of a network that has no configuration of ours.
    fn recorded(&self, host: &Host) -> Result<Option<Shape>, Error> {
        let shape = |kind: &str, networks, segments| {
            Some(Shape { kind: kind.to_owned(), node: node_name(), networks, segments, addresses: None })
        };
        if let Some(record) = RoutedRecord::load(host, &self.name).map_err(|error| self.routed(error))? {
            return Ok(shape(ROUTED, record.networks, record.here));
        }
        let failed = |source| Error::Network { network: self.name.clone(), source };
        let record = NetworkRecord::load(host, &self.name).map_err(|error| failed(Box::new(error.into())))?;
        Ok(record.and_then(|record| shape(BRIDGE, record.subnets, Vec::new())))
    }

    fn routed(&self, source: cluster::Error) -> Error {
        Error::Routed { network: self.name.clone(), source: Box::new(source) }
    }
}

/// How this node calls itself: `/etc/osvc-cni/node`, else the host name.
pub fn node_name() -> String {
    let word = |path: &str| {
        let text = std::fs::read_to_string(Path::new(path)).ok()?;
        Some(text.trim().trim_end_matches('.').to_owned()).filter(|name| !name.is_empty())
    };
    word("/etc/osvc-cni/node").or_else(|| word("/proc/sys/kernel/hostname")).unwrap_or_default()
}
