//! The plan that the configuration alone gives: what a node without a record would come to.

use std::collections::HashMap;

use ipnet::IpNet;

use super::slots::Slots;
use crate::routed::config::Node;

/// The segments of one network, from the configuration alone.
#[derive(Debug)]
pub(super) struct Fresh<'a> {
    /// Node → segment: disjoint.
    pub(super) segments: HashMap<&'a str, IpNet>,
    /// Those for whom there is none left, in the order of the list.
    pub(super) without: Vec<&'a str>,
}

/// Fixed segments first; then, in the order of the list, the lowest free one. Retired nodes have theirs: nobody behind
/// them in the list moves.
pub(super) fn fresh(network: IpNet, prefix: u8, nodes: &[Node]) -> Fresh<'_> {
    let fixed: HashMap<&str, IpNet> =
        nodes.iter().filter_map(|node| Some((node.name.as_str(), node.subnet_in(&network)?))).collect();
    let mut free = Slots::new(network, prefix, fixed.values().copied());
    let mut fresh = Fresh { segments: fixed, without: Vec::new() };
    for node in nodes {
        let name = node.name.as_str();
        if fresh.segments.contains_key(name) {
            continue;
        }
        match free.next() {
            Some(segment) => {
                fresh.segments.insert(name, segment);
            }
            None => fresh.without.push(name),
        }
    }
    fresh
}
