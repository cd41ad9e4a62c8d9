//! The plan of a routed network.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::network::{Outcome, plan};
use super::{Refused, SegmentRecord};
use crate::Host;
use crate::routed::config::{Contradiction, is_v6};
use crate::routed::{Error, RoutedConfig};

/// Which segments are whose, as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Which of the configuration's nodes this host is.
    node: usize,
    networks: Vec<PlannedNetwork>,
    /// The segments of this node, one of each of `networks`.
    here: Vec<IpNet>,
    refused: Vec<Refused>,
    record: SegmentRecord,
    is_first: bool,
    is_new: bool,
}

/// One subnet and its segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedNetwork {
    /// The subnet: that of the configuration, or the recorded one, when the change to it is refused.
    pub network: IpNet,
    /// Node → segment, for the nodes of the configuration, retired ones included: inside the network as a rule, and
    /// disjoint. A node that is not here has no segment; why is told by [`Plan::refused`].
    pub segments: BTreeMap<String, IpNet>,
}

impl Plan {
    /// The plan of a configuration, on a node where this is recorded. Nothing is read or written.
    ///
    /// # Errors
    /// [`Error::Full`] when nothing is recorded yet, and [`Error::NoSegment`]: this node would have none.
    pub fn new(config: &RoutedConfig, recorded: Option<&SegmentRecord>) -> Result<Self, Error> {
        let mut record = recorded.cloned().unwrap_or_else(|| SegmentRecord::empty(config));
        let (mut networks, mut here, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        let (node, change) = this_node(config, &record)?;
        refused.extend(change);
        let this_node = &config.nodes[node].name;
        let mut is_recorded = true;
        for index in 0..config.networks.len() {
            let outcome = plan(config, node, index, &record.networks, &record.node)?;
            let Outcome { planned, recorded, replaces, refused: changes } = outcome;
            let segment = planned.segments.get(this_node);
            is_recorded &= recorded.segments.get(this_node) == segment;
            match segment {
                Some(segment) => here.push(*segment),
                None => return Err(no_segment(this_node, changes)),
            }
            networks.push(planned);
            refused.extend(changes);
            match replaces {
                Some(place) => record.networks[place] = recorded,
                None => record.networks.push(recorded),
            }
        }
        if is_recorded {
            record.node.clone_from(this_node);
        }
        let is_new = recorded != Some(&record);
        Ok(Self { node, networks, here, refused, record, is_first: recorded.is_none(), is_new })
    }

    /// Which of the configuration's nodes this host is: the one of its name, unless it was another one when the plan was
    /// recorded, which is told by [`Self::refused`].
    pub fn node(&self) -> usize {
        self.node
    }

    /// The subnets of the whole cluster, in the order of the configuration: those to be used for routes and rules.
    pub fn networks(&self) -> &[PlannedNetwork] {
        &self.networks
    }

    /// The segments of this node, in the order of [`Self::networks`]: one of each.
    pub fn here(&self) -> &[IpNet] {
        &self.here
    }

    /// The segments of a node, in the order of [`Self::networks`]: one of each at most.
    pub fn of(&self, node: &str) -> impl Iterator<Item = IpNet> {
        self.networks.iter().filter_map(move |network| network.segments.get(node).copied())
    }

    /// The segment of a node in IPv6, or IPv4.
    pub fn segment(&self, node: &str, v6: bool) -> Option<IpNet> {
        self.of(node).find(|segment| is_v6(segment) == v6)
    }

    /// The node in whose segment an address is.
    pub fn holder(&self, address: IpAddr) -> Option<&str> {
        let all = self.networks.iter().flat_map(|network| &network.segments);
        all.into_iter().find(|(_, segment)| segment.contains(&address)).map(|(node, _)| node.as_str())
    }

    /// The changes that the configuration asks for and that are refused: the recorded plan stays.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// What keeps a node, or the network, from being planned as configured: for a message about that node.
    pub fn refusal_of(&self, node: &str) -> Option<&Refused> {
        let of_network = || self.refused.iter().find(|change| change.node().is_none());
        self.refused.iter().find(|change| change.node() == Some(node)).or_else(of_network)
    }

    /// For STATUS, CHECK and setup, after all else is in order.
    ///
    /// # Errors
    /// [`Error::Refused`]: all refused changes, each with its way out, and the record.
    pub fn agrees(&self, host: &Host) -> Result<(), Error> {
        if self.refused.is_empty() {
            return Ok(());
        }
        Err(Error::Refused { path: SegmentRecord::path(host, &self.record.name), changes: self.refused.clone() })
    }

    /// What is to be recorded before anything is made of the plan.
    pub fn record(&self) -> &SegmentRecord {
        &self.record
    }

    /// The same plan, of which nothing is recorded: it was recovered, or it is the first one.
    pub(super) fn unrecorded(self) -> Self {
        Self { is_new: true, ..self }
    }

    /// True if this host had no part in the network yet: nothing is recorded, and nothing of it is there.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// True if [`Self::record`] is not what was recorded.
    pub fn is_new(&self) -> bool {
        self.is_new
    }
}

/// Which of the nodes this host is. One that has a segment by another name in the list stays that node: whoever has the
/// new name has a segment of his own, or will have.
///
/// # Errors
/// [`Error::NoSegment`]: the former node is retired, and the other one is in service, as far as is known here.
fn this_node(config: &RoutedConfig, record: &SegmentRecord) -> Result<(usize, Option<Refused>), Error> {
    let to = &config.this_node().name;
    let Some(former) = record.other_than(config).filter(|former| record.knows(&former.name)) else {
        return Ok((config.here, None));
    };
    let change = Refused::OtherNode { from: former.name.clone(), to: to.clone(), retired: former.retired };
    match config.nodes.iter().position(|node| node.name == former.name) {
        Some(index) if !former.retired => Ok((index, Some(change))),
        _ if record.knows(to) => Err(Error::NoSegment(Box::new(change))),
        // It has left, and joins anew.
        _ => Ok((config.here, None)),
    }
}

fn no_segment(this_node: &str, changes: Vec<Refused>) -> Error {
    let rank = |change: &Refused| match change.node() {
        Some(node) if node == this_node => 0,
        None => 1,
        Some(_) => 2,
    };
    match changes.into_iter().min_by_key(rank) {
        Some(Refused::Full(full)) => Error::Full(Box::new(full)),
        Some(change) => Error::NoSegment(Box::new(change)),
        None => Error::Contradiction(Contradiction::NoNetwork),
    }
}
