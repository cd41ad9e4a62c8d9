//! At which of several addresses this node's tunnels start.
//!
//! Here, this node's name may resolve to every address that it has (nss-myhostname before dns): container bridges of other
//! software, the network's own bridge. Elsewhere it resolves to what /etc/hosts or DNS say, and there the others send.
//! That is, of all that it may be, the address from which the kernel sends to them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::RoutedConfig;
use super::config::{Address, Node};
use super::mode::Family;
use super::path::Paths;
use super::resolution::{Resolution, Which};
use super::resolve::{Answer, LookupError};
use super::wanted::names;

/// Looks the names of a network's nodes up ([`Resolution::refresh`]), and chooses among this node's own addresses.
/// Addresses of the network itself are left out wherever there is another one: a node may be known by that of its bridge
/// too. Returned is what failed.
pub fn refresh(
    config: &RoutedConfig,
    resolution: &mut Resolution,
    which: Which,
    paths: &mut impl Paths,
    lookup: impl FnOnce(&[&str]) -> Vec<Answer>,
) -> Vec<LookupError> {
    let mut several = Vec::new();
    let failed = resolution.refresh(names(config), which, |names| {
        let mut answers = lookup(names);
        for (name, answer) in names.iter().zip(&mut answers) {
            let Ok(addresses) = answer else { continue };
            leave_out_inside(config, addresses);
            if is_name_of(config.this_node(), name) {
                several.push(((*name).to_owned(), addresses.clone()));
            }
        }
        answers
    });
    for (name, answers) in several {
        for family in Family::BOTH {
            let of_family = |address: &&IpAddr| Family::of(**address) == family;
            let among: Vec<IpAddr> = answers.iter().filter(of_family).copied().collect();
            if among.len() > 1
                && let Some(address) = towards_peers(config, resolution, paths, &among)
            {
                resolution.prefer(&name, address);
                let node = &config.this_node().name;
                tracing::info!("network {}: of {among:?}, {address} is that of {node} towards the others", config.name);
            }
        }
    }
    failed
}

fn is_name_of(node: &Node, name: &str) -> bool {
    node.addresses.iter().any(|address| matches!(address, Address::Name(known) if known == name))
}

fn leave_out_inside(config: &RoutedConfig, addresses: &mut Vec<IpAddr>) {
    let is_inside = |address: &IpAddr| config.networks.iter().any(|network| network.contains(address));
    for family in Family::BOTH {
        if addresses.iter().any(|address| Family::of(*address) == family && !is_inside(address)) {
            addresses.retain(|address| Family::of(*address) != family || !is_inside(address));
        }
    }
}

/// The one of these, all of one family, from which packets to most of the peers leave; none if there is no way to any.
fn towards_peers(
    config: &RoutedConfig,
    resolution: &Resolution,
    paths: &mut impl Paths,
    among: &[IpAddr],
) -> Option<IpAddr> {
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for peer in config.peers() {
        let (addresses, _) = resolution.of(peer);
        let address = among.first().and_then(|own| addresses.get(Family::of(*own)));
        // What the kernel does not tell now it does not tell of this peer: the others decide.
        if let Some(Ok(Some(source))) = address.map(|address| paths.source_to(address))
            && among.contains(&source)
        {
            *counts.entry(source).or_default() += 1;
        }
    }
    // Of equals the lowest one, which is what the others would choose.
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(address, _)| address)
}

#[cfg(test)]
#[path = "own_address_tests.rs"]
mod tests;
