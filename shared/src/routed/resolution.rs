//! What the names of a network's nodes resolved to: `<state>/peers/<network>.json`.
//!
//! A setup looks all of them up; an ADD only those that the record does not have, which are none after the first setup,
//! whatever became of them. What a name resolved to is kept when a lookup fails, and when the answer still has it in
//! another order. A lookup that succeeds is the truth: a family that it leaves out is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::config::{Address, Node};
use super::mode::{Addresses, Family};
use super::resolve::{Answer, LookupError};
use super::{Error, file};
use crate::{Host, NetworkName};

/// Format of the records that this version writes.
const FORMAT: u32 = 1;

/// An entry of `addr` of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed<'a> {
    /// An address.
    Ip(IpAddr),
    /// A name to be resolved.
    Name(&'a str),
}

/// Which names are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those that are not in the record: an ADD.
    New,
    /// All: a setup.
    All,
}

/// The names of a network's nodes, and what they resolved to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// [`FORMAT`].
    v: u32,
    /// The network.
    network: NetworkName,
    /// Each name that was looked up; without addresses if it never resolved.
    names: BTreeMap<String, Addresses>,
}

impl Resolution {
    /// That of a network of which nothing has been looked up.
    pub fn new(network: &NetworkName) -> Self {
        Self { v: FORMAT, network: network.clone(), names: BTreeMap::new() }
    }

    /// The file of a network's record.
    pub fn path(host: &Host, network: &NetworkName) -> PathBuf {
        host.state.join("peers").join(format!("{network}.json"))
    }

    /// The record of a network, an empty one if there is none. A torn one is set aside.
    ///
    /// # Errors
    /// It cannot be read, or is of a later version.
    pub fn load(host: &Host, network: &NetworkName) -> Result<Self, Error> {
        let fault = |record: &Self| {
            (record.network != *network).then(|| format!("it is the record of network {}", record.network))
        };
        let record = file::read(&Self::path(host, network), FORMAT, fault)?;
        Ok(record.unwrap_or_else(|| Self::new(network)))
    }

    /// Writes the record, whole or not at all, and to the disk.
    ///
    /// # Errors
    /// It cannot be written: the old one is still there.
    pub fn save(&self, host: &Host) -> Result<(), Error> {
        file::write(&Self::path(host, &self.network), self)
    }

    /// Removes the record of a network. None is no error.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(host: &Host, network: &NetworkName) -> Result<(), Error> {
        file::remove(&Self::path(host, network))
    }

    /// Looks names up and takes what comes; `names` are all of the network, and others are forgotten. `lookup` gives
    /// the answers in the order of what it is given ([`Getent::lookup`](super::resolve::Getent::lookup)), and is not
    /// called without need.
    ///
    /// Returned is what failed: the record has what it had, or a name without addresses.
    pub fn refresh<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
        which: Which,
        lookup: impl FnOnce(&[&str]) -> Vec<Answer>,
    ) -> Vec<LookupError> {
        let names: BTreeSet<&str> = names.into_iter().collect();
        self.names.retain(|name, _| names.contains(name.as_str()));
        let open = |name: &&str| which == Which::All || !self.names.contains_key(*name);
        let wanted: Vec<&str> = names.into_iter().filter(open).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut failed = Vec::new();
        for (name, answer) in wanted.iter().zip(lookup(&wanted)) {
            let known = self.names.entry((*name).to_owned()).or_default();
            match answer {
                Ok(addresses) => *known = choose(known, &addresses),
                Err(error) => failed.push(error),
            }
        }
        failed
    }

    /// The addresses of a node, the first of each family; and its names that have none.
    pub fn of(&self, node: &Node) -> (Addresses, Vec<String>) {
        let listed = node.addresses.iter().map(|address| match address {
            Address::Ip(ip) => Listed::Ip(*ip),
            Address::Name(name) => Listed::Name(name),
        });
        self.addresses(&listed.collect::<Vec<_>>())
    }

    /// Takes this address of a name for that of its family.
    pub fn prefer(&mut self, name: &str, address: IpAddr) {
        if let Some(known) = self.names.get_mut(name) {
            let other = known.get(Family::of(address).other());
            *known = [address].into_iter().chain(other).collect();
        }
    }

    /// The addresses of a node from its list, the first of each family; and the names on it that have none.
    pub fn addresses(&self, listed: &[Listed<'_>]) -> (Addresses, Vec<String>) {
        let (mut addresses, mut unresolved) = (Addresses::default(), Vec::new());
        for entry in listed {
            match *entry {
                Listed::Ip(address) => addresses.add(address),
                Listed::Name(name) => match self.names.get(name).filter(|known| !known.is_empty()) {
                    Some(known) => {
                        Family::BOTH
                            .into_iter()
                            .filter_map(|family| known.get(family))
                            .for_each(|it| addresses.add(it));
                    }
                    None => unresolved.push(name.to_owned()),
                },
            }
        }
        (addresses, unresolved)
    }
}

/// Of each family the address that is known, if it is still among the answers, else the lowest one: name servers change
/// their order from answer to answer, and all nodes should choose the same.
fn choose(known: &Addresses, answers: &[IpAddr]) -> Addresses {
    let of = |family| {
        let mut all: Vec<_> = answers.iter().copied().filter(|&address| Family::of(address) == family).collect();
        all.sort_unstable();
        known.get(family).filter(|known| all.contains(known)).or_else(|| all.first().copied())
    };
    Family::BOTH.into_iter().filter_map(of).collect()
}

#[cfg(test)]
#[path = "resolution_tests.rs"]
mod tests;
