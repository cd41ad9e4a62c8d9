//! The nodes of a network as this one sees them, for hooks and other programs: `<run>/peers/<network>.json`.
//!
//! A setup writes it when something in it has changed, and then the hooks are run ([`hooks`]). Nothing else is read from
//! it.

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::config::{Mode, Node, Policy, key};
use super::mode::{Addresses, Family};
use super::record::{PeerRecord, WayRecord};
use super::resolution::Resolution;
use super::{Error, RoutedConfig, RoutedRecord, file, hooks};
use crate::{Host, NetworkName};

/// Format of the files that this version writes.
pub const FORMAT: u32 = 1;

/// The nodes of a network as one of them sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerFile {
    /// [`FORMAT`].
    pub v: u32,
    /// Name of the network.
    pub network: NetworkName,
    /// The subnets of the whole cluster.
    pub networks: Vec<IpNet>,
    /// `auto`, `always` or `never`.
    pub tunnel: String,
    /// `ipip`, `gre`, `vxlan` or `wireguard`.
    pub tunnel_mode: Mode,
    /// This node.
    pub node: NodeEntry,
    /// The others, in the order of the configuration.
    pub peers: Vec<PeerEntry>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeEntry {
    /// Its name.
    pub name: String,
    /// Its addresses in the underlay, as far as they are known.
    pub addresses: Vec<IpAddr>,
    /// Its segments.
    pub segments: Vec<IpNet>,
    /// Its WireGuard key, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
}

/// Another node, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerEntry {
    /// The node.
    #[serde(flatten)]
    pub node: NodeEntry,
    /// How each of its segments is reached.
    pub ways: Vec<WayRecord>,
    /// What is wrong.
    pub faults: Vec<String>,
}

/// Writes the file of a network, as it was set up, and notes for the hooks that it says something else, or that they have
/// not been told of it. True if it says something else.
///
/// # Errors
/// A record cannot be read, or the file cannot be written: the old one is still there.
pub fn publish(host: &Host, config: &RoutedConfig) -> Result<bool, Error> {
    let Some(record) = RoutedRecord::load(host, &config.name)? else { return Ok(false) };
    let file = PeerFile::new(config, &record, &Resolution::load(host, &config.name)?);
    let changed = file.write(host)?;
    announce(PeerFile::path(host, &config.name));
    Ok(changed)
}

/// The same for a network that is in place: its file is as it was written, unless somebody has removed it.
///
/// # Errors
/// As [`publish`].
pub fn look_after(host: &Host, config: &RoutedConfig) -> Result<(), Error> {
    let path = PeerFile::path(host, &config.name);
    if path.exists() {
        announce(path);
        return Ok(());
    }
    publish(host, config).map(drop)
}

/// Notes that hooks are to be told of a peer file, unless they have been.
pub(super) fn announce(path: PathBuf) {
    if !hooks::told::is_told(&path) {
        hooks::announce(path);
    }
}

impl PeerFile {
    /// What is to be told of a network.
    pub fn new(config: &RoutedConfig, record: &RoutedRecord, resolution: &Resolution) -> Self {
        let this_node = config.this_node();
        let (addresses, _) = resolution.of(this_node);
        let peer = |peer: &PeerRecord| {
            let known = config.nodes.iter().find(|node| node.name == peer.name);
            PeerEntry {
                node: NodeEntry::new(&peer.name, &peer.addresses, &peer.segments, known),
                ways: peer.ways.clone(),
                faults: peer.faults.clone(),
            }
        };
        let tunnel = match config.tunnel {
            Policy::Auto => "auto",
            Policy::Always => "always",
            Policy::Never => "never",
        };
        Self {
            v: FORMAT,
            network: config.name.clone(),
            networks: record.networks.clone(),
            tunnel: tunnel.to_owned(),
            tunnel_mode: config.mode,
            node: NodeEntry::new(&this_node.name, &addresses, &record.here, Some(this_node)),
            peers: record.peers.iter().map(peer).collect(),
        }
    }

    /// The file of a network.
    pub fn path(host: &Host, network: &NetworkName) -> PathBuf {
        host.run.join("peers").join(format!("{network}.json"))
    }

    /// The file as it is; none if there is none. A torn one is set aside, and is none.
    ///
    /// # Errors
    /// It cannot be read, or is of a later version.
    pub fn load(host: &Host, network: &NetworkName) -> Result<Option<Self>, Error> {
        file::read(&Self::path(host, network), FORMAT, |_: &Self| None)
    }

    /// Writes the file, if it says something else. True if it did.
    ///
    /// # Errors
    /// It cannot be written: the old one is still there.
    pub fn write(&self, host: &Host) -> Result<bool, Error> {
        // One that cannot be read is written anew.
        if Self::load(host, &self.network).is_ok_and(|known| known.as_ref() == Some(self)) {
            return Ok(false);
        }
        file::write(&Self::path(host, &self.network), self).map(|()| true)
    }

    /// Removes the file of a network, with the network. None is no error.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(host: &Host, network: &NetworkName) -> Result<(), Error> {
        let path = Self::path(host, network);
        file::remove(&path)?;
        hooks::told::forget(&path);
        Ok(())
    }
}

impl NodeEntry {
    fn new(name: &str, addresses: &Addresses, segments: &[IpNet], configured: Option<&Node>) -> Self {
        Self {
            name: name.to_owned(),
            addresses: Family::BOTH.into_iter().filter_map(|family| addresses.get(family)).collect(),
            segments: segments.to_vec(),
            public_key: configured.and_then(|node| node.public_key.as_ref()).map(key::text),
        }
    }
}

#[cfg(test)]
#[path = "peer_file_tests.rs"]
mod tests;
