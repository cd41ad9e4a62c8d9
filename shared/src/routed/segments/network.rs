//! The segments of one subnet: what the configuration says, held against what is recorded.

use std::collections::{BTreeMap, HashMap};

use ipnet::IpNet;

use super::fresh::{Fresh, fresh};
use super::slots::Slots;
use super::{Full, NetworkSegments, PlannedNetwork, Refused};
use crate::ipam::range::number;
use crate::network::config::overlap;
use crate::routed::config::Node;
use crate::routed::{Error, RoutedConfig};

/// What became of one subnet.
pub(super) struct Outcome {
    pub(super) planned: PlannedNetwork,
    /// What is to be recorded of it, and in place of which record.
    pub(super) recorded: NetworkSegments,
    pub(super) replaces: Option<usize>,
    pub(super) refused: Vec<Refused>,
}

/// Plans the network of this index, as the node `here`. `former` is the name that this node is recorded by.
///
/// # Errors
/// [`Error::Full`]: nobody has a segment yet, and there are not enough.
pub(super) fn plan(
    config: &RoutedConfig,
    here: usize,
    index: usize,
    records: &[NetworkSegments],
    former: &str,
) -> Result<Outcome, Error> {
    let (wanted, prefix) = (config.networks[index], config.prefixes[index]);
    let (mut recorded, replaces, change) = in_effect(wanted, records);
    for node in config.nodes.iter().filter(|node| recorded.segments.contains_key(&node.name)) {
        if node.retired {
            recorded.retired.insert(node.name.clone());
        } else {
            recorded.retired.remove(&node.name);
        }
    }
    let mut planning = Planning {
        config,
        this_node: &config.nodes[here].name,
        prefix,
        fresh: fresh(wanted, prefix, &config.nodes),
        listed: config.nodes.iter().map(|node| (node.name.as_str(), node)).collect(),
        by_address: recorded
            .segments
            .iter()
            .map(|(name, segment)| (start(segment), (name.clone(), *segment)))
            .collect(),
        recorded,
        edited: change.is_some(),
        planned: BTreeMap::new(),
        refused: change.into_iter().collect(),
    };
    planning.keep_recorded();
    planning.keep_former_name(former);
    planning.place_others()?;
    let Planning { recorded, planned, refused, .. } = planning;
    Ok(Outcome {
        planned: PlannedNetwork { network: recorded.network, segments: planned },
        recorded,
        replaces,
        refused,
    })
}

/// The recorded network that a configured one is, or is an edit of. One that overlaps none is new, and planned from
/// scratch: whatever another node still uses, it is elsewhere.
fn in_effect(wanted: IpNet, records: &[NetworkSegments]) -> (NetworkSegments, Option<usize>, Option<Refused>) {
    let mut alike = records.iter().enumerate().filter(|(_, record)| overlap(&record.network, &wanted));
    let Some((index, record)) = alike.next() else { return (NetworkSegments::new(wanted), None, None) };
    let (mut record, recorded) = (record.clone(), record.network);
    let change = if let Some((_, other)) = alike.next() {
        Some(Refused::Joined { recorded, wanted, other: other.network })
    } else if let Some((node, segment)) = record.segments.iter().find(|(_, segment)| !wanted.contains(*segment)) {
        Some(Refused::Outside { recorded, wanted, node: node.clone(), segment: *segment })
    } else {
        record.network = wanted;
        None
    };
    (record, Some(index), change)
}

struct Planning<'a> {
    config: &'a RoutedConfig,
    this_node: &'a str,
    prefix: u8,
    fresh: Fresh<'a>,
    listed: HashMap<&'a str, &'a Node>,
    /// Who is recorded, by the first address of the segment.
    by_address: BTreeMap<u128, (String, IpNet)>,
    recorded: NetworkSegments,
    /// The network itself was edited, and that was refused.
    edited: bool,
    planned: BTreeMap<String, IpNet>,
    refused: Vec<Refused>,
}

impl Planning<'_> {
    /// Whoever is recorded has what is recorded.
    fn keep_recorded(&mut self) {
        for node in &self.config.nodes {
            let Some(recorded) = self.recorded.segments.get(&node.name).copied() else { continue };
            self.planned.insert(node.name.clone(), recorded);
            let wanted = self.fresh.segments.get(node.name.as_str()).copied();
            // If the network itself is refused, that says it all.
            if wanted != Some(recorded) && !self.edited {
                let fixed = wanted.is_some_and(|wanted| node.subnets.contains(&wanted));
                self.refused.push(Refused::Moved { node: node.name.clone(), recorded, wanted, fixed });
            }
        }
    }

    /// A new name of this node is no reason to move it: here is what it has, whatever the others call it. If the name is
    /// one that another host is known by, that host's segment is nobody's here.
    fn keep_former_name(&mut self, former: &str) {
        let to = self.this_node;
        if former == to || self.listed.contains_key(former) {
            return;
        }
        if let Some(recorded) = self.recorded.segments.get(former).copied() {
            self.planned.insert(to.to_owned(), recorded);
            self.refused.retain(|change| change.node() != Some(to));
            self.refused.push(Refused::Renamed { from: former.to_owned(), to: to.to_owned(), recorded });
        }
    }

    /// Whoever is not has what the configuration gives him: it is what he himself comes to, on a node without a record.
    /// If that is somebody's, he has nothing: a guess that he does not share would lead packets astray.
    fn place_others(&mut self) -> Result<(), Error> {
        let mut new = Vec::new();
        let mut free = None;
        for node in &self.config.nodes {
            let name = node.name.as_str();
            if self.planned.contains_key(name) {
                continue;
            }
            let Some(wanted) = self.fresh.segments.get(name).copied() else {
                let full = self.full(name);
                if self.recorded.segments.is_empty() {
                    return Err(Error::Full(Box::new(full)));
                }
                self.refused.push(Refused::Full(full));
                continue;
            };
            if !self.recorded.network.contains(&wanted) {
                continue;
            }
            let holders = self.holders(&wanted);
            if let Some((holder, held)) = holders.iter().find(|(holder, _)| !self.is_gone(holder)).cloned() {
                let node = name.to_owned();
                let listed = self.listed.contains_key(holder.as_str());
                let free = free.get_or_insert_with(|| self.free()).next();
                self.refused.push(Refused::Taken { node, wanted, holder, held, listed, free });
                continue;
            }
            self.planned.insert(name.to_owned(), wanted);
            new.push((node, wanted, holders));
        }
        // Out of a list that disagrees with the record nothing is learnt, but where this node itself is.
        let agrees = self.refused.is_empty();
        for (node, segment, gone) in new {
            if agrees || node.name == self.this_node {
                for (name, _) in gone {
                    self.recorded.segments.remove(&name);
                    self.recorded.retired.remove(&name);
                }
                self.recorded.segments.insert(node.name.clone(), segment);
                if node.retired {
                    self.recorded.retired.insert(node.name.clone());
                }
            }
        }
        Ok(())
    }

    /// Retired, and removed from the list since: another may have its segment.
    fn is_gone(&self, name: &str) -> bool {
        self.recorded.retired.contains(name) && !self.listed.contains_key(name)
    }

    /// Who has recorded addresses of a segment.
    fn holders(&self, segment: &IpNet) -> Vec<(String, IpNet)> {
        let (first, last) = (start(segment), number(segment.broadcast()));
        let before = self.by_address.range(..first).next_back().map(|(_, holder)| holder);
        let before = before.filter(|(_, held)| number(held.broadcast()) >= first);
        before.into_iter().chain(self.by_address.range(first..=last).map(|(_, holder)| holder)).cloned().collect()
    }

    /// What neither the record nor the configuration gives to anybody.
    fn free(&self) -> Slots {
        let taken = self.recorded.segments.values().chain(self.fresh.segments.values());
        Slots::new(self.recorded.network, self.prefix, taken.copied())
    }

    fn full(&self, node: &str) -> Full {
        Full {
            network: self.recorded.network,
            prefix: self.prefix,
            slots: Slots::new(self.recorded.network, self.prefix, []).how_many(),
            listed: self.config.nodes.len(),
            unlisted: self.recorded.segments.keys().filter(|name| !self.listed.contains_key(name.as_str())).count(),
            node: node.to_owned(),
        }
    }
}

fn start(segment: &IpNet) -> u128 {
    number(segment.network())
}
