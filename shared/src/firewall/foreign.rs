//! Rulesets of others that drop what is forwarded.
//!
//! An accept in a table of ours ends the chain it stands in, and no other: where docker, ufw or an
//! administrator drops, the accept has to stand in their chain. Two rules per network and chain, one for
//! each direction, with a comment that names the network: found by it, put back when flushed, removed
//! with the network. They are written so that `iptables` goes on reading and saving its tables.

use std::fmt::Write;

pub mod report;

use super::kernel::{Chain, INET, Rule, mentions};
use super::mark::{FOREIGN, mark};
use super::nft::commit;
use super::snapshot::Snapshot;
use super::state::ChainId;
use super::wanted::{self, TABLE};
use super::{Error, family::Family};
use crate::NetworkName;
use crate::network::record::NetworkRecord;

/// The chain that docker calls first, and never writes to.
pub const DOCKER_USER: &str = "DOCKER-USER";

/// firewalld's table: it is asked, not edited, since it deletes what it does not know.
pub const FIREWALLD: &str = "firewalld";

/// NF_INET_FORWARD.
const FORWARD: u32 = 2;

/// What is accepted for a network, and the device that it is about: what comes from its device and goes to it; and where
/// that is in a VLAN, what stays on the bridge, for with br_netfilter frames between its ports are forwarded packets. No
/// more of the bridge: other networks may be on it, and an uplink.
fn accepts(record: &NetworkRecord) -> Vec<(String, &str)> {
    let (device, bridge) = (record.device(), record.bridge.as_str());
    let mut accepts: Vec<(String, &str)> =
        ["oifname", "iifname"].iter().map(|end| (format!("{end} \"{device}\""), device)).collect();
    if record.vlan_device.is_some() {
        accepts.push((format!("iifname \"{bridge}\" oifname \"{bridge}\""), bridge));
    }
    accepts
}

/// A chain of somebody else that decides about what is forwarded.
#[derive(Debug)]
pub struct ForeignChain {
    /// The chain.
    pub chain: Chain,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// True for the chains that accepts may be put into, or may have been put into when they still dropped.
pub fn concerns_us(chain: &Chain) -> bool {
    // The tables of this suite all begin with the same word.
    family_name(chain.family).is_some()
        && !chain.table.starts_with(TABLE)
        && !chain.table.starts_with(FIREWALLD)
        && (chain.hook == Some(FORWARD) || is_docker_user(chain))
}

fn is_docker_user(chain: &Chain) -> bool {
    chain.name == DOCKER_USER && chain.hook.is_none() && chain.family != INET
}

/// nft's word for the families of tables in which IP is forwarded.
pub fn family_name(number: u8) -> Option<&'static str> {
    let of_one = Family::ALL.into_iter().find(|family| family.number() == number).map(Family::name);
    of_one.or((number == INET).then_some("inet"))
}

impl ForeignChain {
    /// True if it drops, or is meant for what must not be dropped.
    fn is_target(&self, all: &[ForeignChain]) -> bool {
        let called = |docker: &&ForeignChain| {
            (docker.chain.family, &docker.chain.table) == (self.chain.family, &self.chain.table)
                && is_docker_user(&docker.chain)
                && self.rules.iter().any(|rule| mentions(rule, DOCKER_USER))
        };
        is_docker_user(&self.chain) || (self.chain.drops && !all.iter().any(|other| called(&other)))
    }

    /// True if packets of the network meet it.
    fn is_met_by(&self, record: &NetworkRecord) -> bool {
        self.chain.family == INET || wanted::forwards(record).any(|family| family.number() == self.chain.family)
    }

    fn marked(&self, name: &NetworkName) -> impl Iterator<Item = &Rule> {
        let mark = mark(FOREIGN, name);
        self.rules.iter().filter(move |rule| rule.comment.as_deref() == Some(&mark))
    }

    /// True if the network's accepts are there, for the devices that it has now, and no others.
    fn is_open_for(&self, record: &NetworkRecord) -> bool {
        let marked: Vec<&Rule> = self.marked(&record.name).collect();
        let wanted = accepts(record);
        let is_open = |(_, device): &(String, &str)| {
            let of_device = |(_, other): &&(String, &str)| other == device;
            let is = marked.iter().filter(|rule| mentions(rule, device)).count();
            is == wanted.iter().filter(of_device).count()
        };
        marked.len() == wanted.len() && wanted.iter().all(is_open)
    }

    fn position(&self) -> String {
        let Chain { family, table, name, .. } = &self.chain;
        format!("{} {table} {name}", family_name(*family).unwrap_or_default())
    }

    /// Removes what is marked as this network's.
    fn removal(&self, name: &NetworkName) -> String {
        self.marked(name).fold(String::new(), |mut text, rule| {
            let _ = writeln!(text, "delete rule {} handle {}", self.position(), rule.handle);
            text
        })
    }

    /// Puts the network's accepts at the head, in place of whatever is marked as its. The counters make
    /// them rules of iptables.
    fn opening(&self, record: &NetworkRecord) -> String {
        let (at, mark) = (self.position(), mark(FOREIGN, &record.name));
        let mut text = self.removal(&record.name);
        for (test, _) in accepts(record) {
            let _ = writeln!(text, "insert rule {at} {test} counter accept comment \"{mark}\"");
        }
        text
    }

    /// False for a name that nft's language cannot express: it would not be read as a name.
    fn can_be_named(&self) -> bool {
        [&self.chain.table, &self.chain.name].into_iter().all(|name| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/'))
        })
    }
}

/// The chains in which an accept for this network is missing.
pub fn closed<'a>(snapshot: &'a Snapshot, record: &'a NetworkRecord) -> impl Iterator<Item = &'a ForeignChain> {
    let all = &snapshot.foreign;
    all.iter().filter(move |chain| {
        wanted::opens_foreign(record) && chain.is_target(all) && chain.is_met_by(record) && !chain.is_open_for(record)
    })
}

/// Puts the missing accepts into the chains of others, one transaction per chain: one that refuses
/// costs the others nothing. Gives those that refused, and whether anything was done.
pub fn open(snapshot: &Snapshot, records: &[NetworkRecord]) -> (Vec<ChainId>, bool) {
    let mut refused = Vec::new();
    let mut done = false;
    for foreign in &snapshot.foreign {
        let closed = |record: &&NetworkRecord| closed(snapshot, record).any(|chain| chain.chain == foreign.chain);
        let records: Vec<_> = records.iter().filter(closed).collect();
        if records.is_empty() {
            continue;
        }
        let chain = foreign.position();
        let document: String = records.iter().map(|record| foreign.opening(record)).collect();
        let networks = records.iter().map(|record| record.name.as_str()).collect::<Vec<_>>().join(", ");
        if !foreign.can_be_named() {
            tracing::warn!(chain, networks, "this chain drops what is forwarded, and nft cannot name it");
            refused.push(ChainId::from(&foreign.chain));
            continue;
        }
        match commit(&document, &format!("put an accept into the chain {chain}")) {
            Ok(()) => {
                tracing::info!(chain, networks, "foreign chain drops what is forwarded: a marked accept was put in");
                done = true;
            }
            Err(error) => {
                tracing::warn!(chain, networks, %error, "foreign chain drops what is forwarded, and takes no accept");
                refused.push(ChainId::from(&foreign.chain));
            }
        }
    }
    (refused, done)
}

/// Removes the accepts of a network from the chains of others; true if there were any.
///
/// # Errors
/// nft's, of the first chain that refused; the others were seen to.
pub fn close(snapshot: &Snapshot, name: &NetworkName) -> Result<bool, Error> {
    let mut outcome = Ok(());
    let mut done = false;
    for foreign in &snapshot.foreign {
        let document = foreign.removal(name);
        if document.is_empty() {
            continue;
        }
        done = true;
        let what = format!("remove the accepts of network {name} from the chain {}", foreign.position());
        outcome = outcome.and(commit(&document, &what));
    }
    outcome.map(|()| done)
}
