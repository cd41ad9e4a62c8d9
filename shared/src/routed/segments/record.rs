//! What is recorded of a plan: `<state>/segments/<network>.json`.
//!
//! It is read and written whole, and fsynced with its folder: it is what keeps two nodes from one segment, so it has to
//! outlive a power failure. A node is in it for ever once it is, unless it was retired and removed from the list, and
//! another one needs its segment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::network::config::overlap;
use crate::routed::config::{Node, is_v6};
use crate::routed::{Error, RoutedConfig, file};
use crate::{Host, NetworkName};

/// Format of the records that this version writes.
pub const FORMAT: u32 = 1;

/// The recorded plan of a routed network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRecord {
    /// [`FORMAT`].
    pub v: u32,
    /// Name of the network.
    pub name: NetworkName,
    /// The name that this node has in the list.
    pub node: String,
    /// Its subnets, those that it had before too: disjoint.
    pub networks: Vec<NetworkSegments>,
}

/// The segments of one subnet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkSegments {
    /// The subnet of the whole cluster, without host bits.
    pub network: IpNet,
    /// Node → segment, without host bits: inside `network`, disjoint.
    pub segments: BTreeMap<String, IpNet>,
    /// Those of them that the configuration called retired when it last named them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub retired: BTreeSet<String>,
}

impl NetworkSegments {
    /// A subnet of which nobody has anything.
    pub(super) fn new(network: IpNet) -> Self {
        Self { network, segments: BTreeMap::new(), retired: BTreeSet::new() }
    }
}

impl SegmentRecord {
    /// A record that knows nothing yet but who this node is.
    pub(super) fn empty(config: &RoutedConfig) -> Self {
        let node = config.this_node().name.clone();
        Self { v: FORMAT, name: config.name.clone(), node, networks: Vec::new() }
    }

    /// The folder of all these records.
    pub fn folder(host: &Host) -> PathBuf {
        host.state.join("segments")
    }

    /// The file of one network's record.
    pub fn path(host: &Host, name: &NetworkName) -> PathBuf {
        Self::folder(host).join(format!("{name}.json"))
    }

    /// The record of a network; none if it was never set up. A torn one is set aside, and is none.
    ///
    /// # Errors
    /// It cannot be read, or is of a later version.
    pub fn load(host: &Host, name: &NetworkName) -> Result<Option<Self>, Error> {
        file::read(&Self::path(host, name), FORMAT, |record: &Self| record.fault(name))
    }

    /// Writes the record, whole or not at all, and to the disk.
    ///
    /// # Errors
    /// It cannot be written: the old one is still there.
    pub fn save(&self, host: &Host) -> Result<(), Error> {
        file::write(&Self::path(host, &self.name), self)
    }

    /// Removes the record of a network, with the network. None is no error.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(host: &Host, name: &NetworkName) -> Result<(), Error> {
        file::remove(&Self::path(host, name))
    }

    /// The node of the configuration that this host was when this was recorded, if it is another one by its name now.
    pub(super) fn other_than<'a>(&self, config: &'a RoutedConfig) -> Option<&'a Node> {
        config.nodes.iter().find(|node| node.name == self.node).filter(|node| node.name != config.this_node().name)
    }

    /// True if a node of this name has a segment.
    pub(super) fn knows(&self, node: &str) -> bool {
        self.networks.iter().any(|network| network.segments.contains_key(node))
    }

    /// What is known of a plan whose record was lost: the segments that this node is seen to have. Only those of the
    /// size and network of the configuration; `None` if there is none.
    pub fn recovered(config: &RoutedConfig, seen: &[IpNet]) -> Option<Self> {
        let mut record = Self::empty(config);
        for (network, prefix) in config.networks.iter().zip(&config.prefixes) {
            let own = seen.iter().map(IpNet::trunc).find(|seen| {
                network.contains(seen) && (seen.prefix_len() == *prefix || config.this_node().subnets.contains(seen))
            });
            if let Some(own) = own {
                let mut segments = NetworkSegments::new(*network);
                segments.segments.insert(record.node.clone(), own);
                record.networks.push(segments);
            }
        }
        (!record.networks.is_empty()).then_some(record)
    }

    /// What no record that we wrote can have.
    fn fault(&self, name: &NetworkName) -> Option<String> {
        if self.name != *name {
            return Some(format!("it is the record of network {}", self.name));
        }
        let mut networks: Vec<IpNet> = Vec::new();
        for NetworkSegments { network, segments, .. } in &self.networks {
            if let Some(other) = networks.iter().find(|other| overlap(other, network)) {
                return Some(format!("networks {other} and {network} overlap"));
            }
            networks.push(*network);
            let mut all: Vec<(&IpNet, &String)> = segments.iter().map(|(node, segment)| (segment, node)).collect();
            if let Some((segment, node)) =
                all.iter().find(|(segment, _)| !network.contains(*segment) || segment.trunc() != **segment)
            {
                return Some(format!("{segment} of {node} is no segment of {network}"));
            }
            crate::order::sort_by_key(&mut all, |(segment, _)| (is_v6(segment), segment.addr(), segment.prefix_len()));
            if let Some(pair) = all.windows(2).find(|pair| overlap(pair[0].0, pair[1].0)) {
                return Some(format!("{} and {} have one segment, {}", pair[0].1, pair[1].1, pair[1].0));
            }
        }
        None
    }
}
