//! `nodes`: who is in the cluster, where the others reach it, and what is fixed of its segments.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use serde_json::Value;

use super::sizes::LEAST_BITS;
use super::{Contradiction, LowNode, Reason, is_v6, key, texts, unsupported};
use crate::protocol::json::{self, shown};
use crate::routed::Error;

/// The longest name of a host (RFC 1035, section 2.3.4).
const LONGEST: usize = 253;
/// What of a malformed key a message shows, in characters: somebody may have pasted a private one.
const SHOWN_OF_KEY: usize = 4;

/// Where a node is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// An address, never an IPv4-mapped one.
    Ip(IpAddr),
    /// A name to be resolved, in lower case: letters, digits, `.`, `-` and `_`, no `-` in front.
    Name(String),
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name, in lower case.
    pub name: String,
    /// Where the others reach it: an address, a name, or one address of each family; its name, when the configuration
    /// says nothing. Empty only for a retired one.
    pub addresses: Vec<Address>,
    /// Its segments, as far as the configuration fixes them: one of a network at most.
    pub subnets: Vec<IpNet>,
    /// It is gone, and its segment stays empty.
    pub retired: bool,
    /// Its WireGuard key.
    pub public_key: Option<[u8; 32]>,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Node {
    /// The segment of this network that the configuration fixes.
    pub fn subnet_in(&self, network: &IpNet) -> Option<IpNet> {
        self.subnets.iter().find(|subnet| network.contains(*subnet)).copied()
    }
}

/// All nodes, each by itself and beside the others.
pub(super) fn nodes(list: &[Value], networks: &[IpNet]) -> Result<Vec<Node>, Error> {
    if list.is_empty() {
        return Err(Contradiction::NoNodes.into());
    }
    let nodes: Vec<Node> = list
        .iter()
        .enumerate()
        .map(|(index, value)| node(index, &low(index, value)?, networks))
        .collect::<Result<_, _>>()?;
    refuse_twice(&nodes)?;
    refuse_overlaps(&nodes)?;
    Ok(nodes)
}

fn low(index: usize, value: &Value) -> Result<LowNode, Error> {
    let is_unknown = |key: &&String| !LowNode::KEYS.iter().any(|known| known.eq_ignore_ascii_case(key));
    if let Some(key) = value.as_object().and_then(|object| object.keys().find(is_unknown)) {
        // Whatever it is the value of, it may be a secret.
        let key = format!("nodes[{index}].{}", shown(&key.as_str().into()).trim_matches('"'));
        return Err(Error::Unsupported { key, value: "…".to_owned(), reason: Reason::NoKey });
    }
    json::from_value(value).map_err(|error| error.at(index).under("nodes").into())
}

fn node(index: usize, low: &LowNode, networks: &[IpNet]) -> Result<Node, Error> {
    let given = low.name.as_deref().ok_or(Contradiction::NoName(index))?;
    let name = given.to_lowercase();
    if !is_name(&name) {
        let what = "a name of letters, digits, `.`, `-` and `_`, with a letter or digit in front, of 253 at most";
        return Err(unsupported(format!("nodes[{index}].name"), given, Reason::MustBe(what)));
    }
    let of = |key: &str, value| texts(value).map_err(|error| error.under(key).at(index).under("nodes"));
    let at = |key: &str| format!("nodes[{index}].{key} of {name}");
    let public_key = match &low.public_key {
        None => None,
        Some(text) => Some(key::parse(text).ok_or_else(|| bad_key(at("publicKey"), text))?),
    };
    let addresses = match &low.addr {
        Some(value) => addresses(&of("addr", value)?, &at("addr"), networks)?,
        None if low.retired => Vec::new(),
        None => vec![address(&name, &at("addr"), networks)?],
    };
    let subnets = match &low.subnet {
        Some(value) => subnets(&of("subnet", value)?, &at("subnet"), networks)?,
        None => Vec::new(),
    };
    Ok(Node { addresses, subnets, retired: low.retired, public_key, name })
}

/// A private key is as long as a public one: a malformed key is not shown whole.
fn bad_key(key: String, text: &str) -> Error {
    let begins: String = text.chars().take(SHOWN_OF_KEY).collect();
    let value = format!("{} ({} characters)", shown(&format!("{begins}…").into()), text.chars().count());
    let reason = Reason::Not("a public key of WireGuard: 44 characters, as `osvc-net wireguard pubkey` prints them");
    Error::Unsupported { key, value, reason }
}

fn addresses(texts: &[String], key: &str, networks: &[IpNet]) -> Result<Vec<Address>, Error> {
    let mut addresses: Vec<Address> = Vec::with_capacity(texts.len());
    for text in texts {
        let address = address(text, key, networks)?;
        let alike = |other: &Address| match (other, &address) {
            (Address::Ip(a), Address::Ip(b)) => a.is_ipv4() == b.is_ipv4(),
            _ => true,
        };
        if addresses.iter().any(alike) {
            return Err(unsupported(key, texts.to_vec(), Reason::TooMany));
        }
        addresses.push(address);
    }
    if addresses.is_empty() {
        return Err(unsupported(key, texts.to_vec(), Reason::Not("an address or a name")));
    }
    Ok(addresses)
}

fn address(text: &str, key: &str, networks: &[IpNet]) -> Result<Address, Error> {
    let refuse = |reason| Err(unsupported(key, text, reason));
    let Ok(ip) = text.parse::<IpAddr>() else {
        let name = text.to_lowercase();
        // What has no letter in its last label was meant to be an address (RFC 1123, section 2.1).
        let last = name.rsplit('.').next().unwrap_or_default();
        return if is_name(&name) && last.contains(|c: char| c.is_ascii_alphabetic()) {
            Ok(Address::Name(name))
        } else {
            refuse(Reason::Not("an IP address or the name of a host"))
        };
    };
    let ip = ip.to_canonical();
    let is_one_hosts = match ip {
        IpAddr::V4(ip) => ip != Ipv4Addr::BROADCAST,
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    if !is_one_hosts || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() {
        return refuse(Reason::Not("an address at which other nodes reach this one"));
    }
    match networks.iter().find(|network| network.contains(&ip)) {
        Some(network) => refuse(Reason::InNetwork(*network)),
        None => Ok(Address::Ip(ip)),
    }
}

/// What a program can be given as the name of a host, and a file as its own.
fn is_name(name: &str) -> bool {
    name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

fn subnets(texts: &[String], key: &str, networks: &[IpNet]) -> Result<Vec<IpNet>, Error> {
    let mut subnets: Vec<IpNet> = Vec::with_capacity(texts.len());
    for text in texts {
        let refuse = |reason| Err(unsupported(key, text.as_str(), reason));
        let Ok(subnet) = text.parse::<IpNet>() else {
            return refuse(Reason::Not("a subnet such as 10.11.4.0/22"));
        };
        if subnet.trunc() != subnet {
            return refuse(Reason::HostBits(subnet.trunc()));
        }
        if !networks.iter().any(|network| network.contains(&subnet)) {
            return refuse(Reason::NotInside(networks.to_vec()));
        }
        if subnet.max_prefix_len() - subnet.prefix_len() < LEAST_BITS {
            return refuse(Reason::TooSmall);
        }
        if subnets.iter().any(|other| is_v6(other) == is_v6(&subnet)) {
            return Err(unsupported(key, texts.to_vec(), Reason::Not("one segment of each network")));
        }
        subnets.push(subnet);
    }
    Ok(subnets)
}

/// Names of all nodes; addresses and keys of those that are there: what replaces a retired one may have its address.
fn refuse_twice(nodes: &[Node]) -> Result<(), Error> {
    let (mut names, mut addresses, mut keys) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (second, node) in nodes.iter().enumerate() {
        if let Some(first) = before(&mut names, &node.name, second) {
            return Err(Contradiction::SameName { name: node.name.clone(), first, second }.into());
        }
        if node.retired {
            continue;
        }
        let name = |index: usize| nodes[index].name.clone();
        for address in &node.addresses {
            if let Some(first) = before(&mut addresses, address, second) {
                let address = address.to_string();
                return Err(Contradiction::SameAddress { address, first: name(first), second: name(second) }.into());
            }
        }
        if let Some(key) = &node.public_key
            && let Some(first) = before(&mut keys, key, second)
        {
            return Err(Contradiction::SameKey { first: name(first), second: name(second) }.into());
        }
    }
    Ok(())
}

/// Which node had this before; else this node has it now.
fn before<'a, T: Eq + std::hash::Hash + ?Sized>(
    had: &mut HashMap<&'a T, usize>,
    it: &'a T,
    node: usize,
) -> Option<usize> {
    match had.entry(it) {
        Entry::Occupied(first) => Some(*first.get()),
        Entry::Vacant(place) => {
            place.insert(node);
            None
        }
    }
}

fn refuse_overlaps(nodes: &[Node]) -> Result<(), Error> {
    let mut all: Vec<(IpNet, &str)> =
        nodes.iter().flat_map(|node| node.subnets.iter().map(|subnet| (*subnet, node.name.as_str()))).collect();
    // By address: what holds a subnet comes before it, and an overlap is with the one before.
    crate::order::sort_by_key(&mut all, |(subnet, _)| (is_v6(subnet), subnet.addr(), subnet.prefix_len()));
    for pair in all.windows(2) {
        let [(a, first), (b, second)] = pair else { continue };
        if crate::network::config::overlap(a, b) {
            let (first, second) = ((*first).to_owned(), (*second).to_owned());
            return Err(Contradiction::Overlap { first, a: *a, second, b: *b }.into());
        }
    }
    Ok(())
}
