//! What was done to the ruleset last, so that nothing is done when nothing has changed:
//! `<state>/firewall.json`. It is derived: without it, or when it is torn, the ruleset is made anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::family::Family;
use super::kernel::Chain;
use crate::netlink::netns::NetnsId;
use crate::network::record::NetworkRecord;
use crate::{Host, NetworkName};

/// The format of the file.
const VERSION: u32 = 1;

/// What was done last, in which network namespace of which boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    v: u32,
    boot: String,
    netns: NetnsId,
    /// The generation of the ruleset when it was last seen to be in place.
    pub generation: u32,
    /// [Fingerprints](super::wanted::fingerprint) of the networks whose rules were made.
    pub networks: BTreeMap<NetworkName, String>,
    /// [Hashes](super::snapshot::Own::digest) of our tables; a family without networks has none.
    pub tables: BTreeMap<Family, String>,
    /// Chains that drop, in which nft would not put an accept.
    pub refused: Vec<ChainId>,
    /// What firewalld was told.
    pub firewalld: Option<Firewalld>,
}

/// A chain, and not another one of the same name made later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainId {
    family: u8,
    table: String,
    chain: String,
    handle: u64,
}

impl From<&Chain> for ChainId {
    fn from(chain: &Chain) -> Self {
        let Chain { family, table, name, handle, .. } = chain;
        Self { family: *family, table: table.clone(), chain: name.clone(), handle: *handle }
    }
}

/// What a firewalld was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firewalld {
    /// The handle of its table: a firewalld that was restarted has another one.
    pub table: u64,
    /// The devices that it was asked to trust.
    pub devices: BTreeSet<String>,
    /// The sources that it was asked to trust, by whatever device they come.
    #[serde(default)]
    pub sources: BTreeSet<IpNet>,
}

impl State {
    /// That nothing was done yet.
    pub fn new(host: &Host, netns: &NetnsId) -> Self {
        Self {
            v: VERSION,
            boot: host.boot.clone(),
            netns: netns.clone(),
            generation: 0,
            networks: BTreeMap::new(),
            tables: BTreeMap::new(),
            refused: Vec::new(),
            firewalld: None,
        }
    }

    fn path(host: &Host) -> PathBuf {
        host.state.join("firewall.json")
    }

    /// What was done in this boot and namespace; nothing if that cannot be told.
    pub fn load(host: &Host, netns: &NetnsId) -> Option<Self> {
        let path = Self::path(host);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read what the ruleset was; it is made anew");
                return None;
            }
        };
        match serde_json::from_slice::<Self>(&text) {
            Ok(state) if state.v == VERSION && state.boot == host.boot && state.netns.same(netns) => Some(state),
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the memory of the ruleset is torn; it is made anew");
                None
            }
        }
    }

    /// Keeps it, by the holder of the lock only. A failure costs the next ADD some milliseconds, and is no
    /// reason to fail this one.
    pub fn save(&self, host: &Host) {
        let path = Self::path(host);
        let fresh = path.with_extension("json.tmp");
        let written = serde_json::to_vec(self)
            .map_err(io::Error::from)
            .and_then(|text| fs::write(&fresh, text))
            .and_then(|()| fs::rename(&fresh, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&fresh);
            tracing::warn!(path = %path.display(), %error, "cannot keep what the ruleset is; the next ADD makes it anew");
        }
    }

    /// True if the rules that were made for this network are those that its record asks for.
    pub fn made_for(&self, record: &NetworkRecord) -> bool {
        self.networks.get(&record.name).is_some_and(|made| *made == super::wanted::fingerprint(record))
    }

    /// True if this chain took no accept.
    pub fn is_refused(&self, chain: &Chain) -> bool {
        self.refused.contains(&ChainId::from(chain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_boot_and_namespace_and_whole_files_count() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host { state: folder.path().into(), run: folder.path().into(), boot: "b1".into() };
        let here = NetnsId { cookie: Some(1), dev: 4, ino: 5, ctime: None };
        assert_eq!(State::load(&host, &here), None);
        let mut state = State::new(&host, &here);
        state.tables.insert(Family::Ip6, "digest".into());
        state.networks.insert("web".parse().unwrap(), "print".into());
        state.save(&host);
        assert_eq!(State::load(&host, &here), Some(state));
        assert_eq!(State::load(&Host { boot: "b2".into(), ..host.clone() }, &here), None);
        assert_eq!(State::load(&host, &NetnsId { cookie: Some(2), ..here.clone() }), None);
        fs::write(State::path(&host), "{\"v\":1,").unwrap();
        assert_eq!(State::load(&host, &here), None);
    }
}
