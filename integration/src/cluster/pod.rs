//! Containers of a [`Cluster`](super::Cluster) that talk to each other.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

use super::{Cluster, Node};
use crate::{Answer, Netns, Plugin, Server, addresses_of};

/// Bytes of a bulk transfer, in each direction.
const BULK: usize = 100_000;
/// Room that TCP may take for timestamps in each segment, in bytes.
const TIMESTAMPS: u32 = 12;
/// The port that tells whom it sees.
const ANSWERS: u16 = 80;
/// The port that sends back what it is sent.
const ECHOES: u16 = 81;

/// A container on a network, with servers.
pub struct Pod<'a> {
    /// Where it runs.
    pub node: &'a Node,
    /// Its namespace.
    pub netns: Netns,
    /// Its addresses on the network, in the order of the result.
    pub addresses: Vec<IpAddr>,
    /// What the plugin answered.
    pub result: Value,
    /// A call of the plugin for it.
    pub call: Plugin<'a>,
    ifname: String,
    servers: Vec<Server>,
}

impl fmt::Display for Pod<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} ({:?})", self.netns.name, self.node.name, self.addresses)
    }
}

fn bare(address: &str) -> IpAddr {
    let (address, _) = address.split_once('/').expect("addresses of a result have a length");
    address.parse().expect("an address")
}

impl<'a> Pod<'a> {
    #[track_caller]
    pub(super) fn new(node: &'a Node, call: Plugin<'a>, netns: &Netns, ifname: &str) -> Self {
        let result = call.add();
        let addresses = addresses_of(&result).iter().map(|address| bare(address)).collect();
        // A namespace with two interfaces has its servers from the first one.
        let servers = if ifname == "eth0" {
            let server = node.sandbox.answer(&netns.path, ANSWERS, &netns.name);
            vec![server, node.sandbox.echo(&netns.path, ECHOES)]
        } else {
            Vec::new()
        };
        Self { node, netns: netns.clone(), addresses, result, call, ifname: ifname.to_owned(), servers }
    }

    /// Its address of the family of another one.
    pub fn address_like(&self, other: IpAddr) -> Option<IpAddr> {
        self.addresses.iter().find(|address| address.is_ipv4() == other.is_ipv4()).copied()
    }

    /// Asks a server of any kind at an address who it is and whom it sees; none if there is no answer.
    #[track_caller]
    pub fn ask(&self, to: IpAddr) -> Option<Answer> {
        let to = SocketAddr::new(to, ANSWERS).to_string();
        self.node.sandbox.connect_to(Some(&self.netns.path), &to)
    }

    /// True if another one answers at all its addresses of families in common, and sees this one's own address.
    #[track_caller]
    pub fn reaches(&self, other: &Pod<'_>) -> bool {
        let own = other.addresses.iter().filter_map(|to| Some((*to, self.address_like(*to)?)));
        own.into_iter().all(|(to, from)| {
            self.ask(to).is_some_and(|answer| answer.server == other.netns.name && answer.client == from)
        })
    }

    /// True if an echo request comes back, in packets of this size that nobody may fragment.
    #[track_caller]
    pub fn pings(&self, to: IpAddr, size: u32) -> bool {
        let data = (size - if to.is_ipv4() { 28 } else { 48 }).to_string();
        let to = to.to_string();
        let words = ["ping", "-n", "-q", "-c", "1", "-W", "3", "-M", "do", "-s", &data, &to];
        self.node.sandbox.run_in(&self.netns, &words).rc == 0
    }

    /// The MTU of its interface.
    #[track_caller]
    pub fn mtu(&self) -> u32 {
        let mtu = &self.node.sandbox.link_in(&self.netns, &self.ifname)["mtu"];
        mtu.as_u64().and_then(|mtu| mtu.try_into().ok()).expect("a device has an MTU")
    }

    /// CHECK, which must pass.
    #[track_caller]
    pub fn check(&self) {
        self.call.check(&self.result);
    }

    /// CHECK, which must fail: its message.
    #[track_caller]
    pub fn check_fails(&self) -> String {
        self.call.check_fails(&self.result).1
    }

    /// Ends its servers: they hold the namespace.
    pub fn silence(&mut self) {
        self.servers.clear();
    }

    /// DEL, and the namespace is gone.
    #[track_caller]
    pub fn end(mut self) {
        self.silence();
        self.call.del();
        self.node.sandbox.delete_netns(&self.netns);
    }
}

/// All of them reach each other as [`talk`] says.
#[track_caller]
pub fn all_talk(pods: &[Pod<'_>]) {
    for from in pods {
        let mtu = from.mtu();
        for to in pods.iter().filter(|to| to.addresses != from.addresses) {
            talk_with(from, to, mtu);
        }
    }
}

/// All of them answer each other's echo requests as long as the MTU. (A program for each, where [`all_talk`] needs none.)
#[track_caller]
pub fn all_ping(pods: &[Pod<'_>]) {
    for from in pods {
        let mtu = from.mtu();
        for to in pods.iter().filter(|to| to.addresses != from.addresses) {
            for target in to.addresses.iter().filter(|target| from.address_like(**target).is_some()) {
                assert!(from.pings(*target, mtu), "{from} pings {to} with {mtu} bytes at {target}");
            }
        }
    }
}

/// One reaches the other in each family that both have: it sees the real address, and takes and sends 100 kB in full
/// segments.
#[track_caller]
pub fn talk(from: &Pod<'_>, to: &Pod<'_>) {
    talk_with(from, to, from.mtu());
}

#[track_caller]
fn talk_with(from: &Pod<'_>, to: &Pod<'_>, mtu: u32) {
    let mut families = 0;
    for target in &to.addresses {
        let Some(own) = from.address_like(*target) else { continue };
        families += 1;
        let answer = from.ask(*target).unwrap_or_else(|| panic!("{to} does not answer {from} at {target}"));
        assert_eq!((answer.server.as_str(), answer.client), (to.netns.name.as_str(), own), "{to} sees {from}");
        let echo = SocketAddr::new(*target, ECHOES).to_string();
        let done = from.node.sandbox.transfer(Some(&from.netns.path), &echo, BULK);
        let done = done.unwrap_or_else(|| panic!("{BULK} bytes from {from} to {target} of {to} and back"));
        let full = mtu - if target.is_ipv4() { 40 } else { 60 };
        assert!((full - TIMESTAMPS..=full).contains(&done.segment), "{done:?} with {mtu} from {from} to {target}");
    }
    assert!(families > 0, "{from} and {to} have no family in common");
}

/// How many packets were fragmented or put together again, on all nodes and between them.
#[track_caller]
pub fn fragments(cluster: &Cluster) -> u64 {
    let machines = cluster.nodes.iter().map(|node| &node.sandbox).chain([&cluster.world]);
    machines.map(|machine| fragments_in(&machine.sh("cat /proc/net/snmp /proc/net/snmp6").ok())).sum()
}

/// `Ip: NAME…` and below it `Ip: NUMBER…`; `Ip6NAME NUMBER`.
fn fragments_in(text: &str) -> u64 {
    let mut sum = 0;
    let mut heads: Vec<&str> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Ip:", ..] if heads.is_empty() => heads = words,
            ["Ip:", ..] => {
                let named = heads.iter().zip(&words).filter(|(name, _)| matches!(**name, "FragCreates" | "ReasmReqds"));
                sum += named.filter_map(|(_, number)| number.parse::<u64>().ok()).sum::<u64>();
            }
            ["Ip6FragCreates" | "Ip6ReasmReqds", number] => sum += number.parse().unwrap_or(0),
            _ => {}
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    #[test]
    fn counters_of_fragments() {
        let text =
            "Ip: Forwarding ReasmReqds FragCreates\nIp: 1 3 4\nIcmp: A\nIcmp: 1\nIp6ReasmReqds   2\nIp6InReceives 9\n";
        assert_eq!(super::fragments_in(text), 9);
    }
}
