//! What the kernel's ruleset looks like now, as far as it concerns us.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::Error;
use super::family::Family;
use super::foreign::{self, ForeignChain};
use super::kernel::{Rule, mentions};
use super::mark::OWN;
use super::nfnetlink::Nfnetlink;
use super::wanted::{INSIDE, LOCAL, TABLE};
use crate::attachment::hex;

/// Our table of one family.
#[derive(Debug)]
pub struct Own {
    /// A hash of all that the kernel says of it, handles included: whatever is done to the table, by
    /// whomever, changes it. (No rule of ours counts packets, which would change it as well.)
    pub digest: String,
    /// Its base chains.
    pub chains: Vec<String>,
    /// Its rules.
    pub rules: Vec<Rule>,
    /// The comments of the elements of the set [`INSIDE`].
    pub elements: Vec<String>,
}

impl Own {
    /// The marks of all networks that have something in it.
    pub fn marks(&self) -> impl Iterator<Item = &str> {
        let rules = self.rules.iter().filter_map(|rule| rule.comment.as_deref());
        rules.chain(self.elements.iter().map(String::as_str)).filter(|mark| mark.starts_with(OWN))
    }
}

/// The ruleset of one moment, or nearly: what is committed while it is read shows in the next
/// [generation](Self::generation).
#[derive(Debug)]
pub struct Snapshot {
    /// The generation before anything else was read.
    pub generation: u32,
    /// Our tables.
    pub own: BTreeMap<Family, Own>,
    /// Chains of others that decide about what is forwarded.
    pub foreign: Vec<ForeignChain>,
    /// The handle of firewalld's table, if firewalld runs.
    pub firewalld: Option<u64>,
}

impl Snapshot {
    /// Reads it: some ten questions, 3 to 10 µs each.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(kernel: &mut Nfnetlink) -> Result<Self, Error> {
        let generation = kernel.generation()?;
        let chains = kernel.chains(foreign::DOCKER_USER)?;
        let mut own = BTreeMap::new();
        for family in Family::ALL {
            let Some(handle) = kernel.table(family.number(), TABLE)? else { continue };
            let mut hash = Sha256::new();
            let mut add = |bytes: &[u8]| {
                hash.update((bytes.len() as u64).to_be_bytes());
                hash.update(bytes);
            };
            add(&handle.to_be_bytes());
            let mut names = Vec::new();
            for chain in chains.iter().filter(|chain| chain.family == family.number() && chain.table == TABLE) {
                add(&chain.bytes);
                names.push(chain.name.clone());
            }
            let rules = kernel.rules(family.number(), TABLE, None)?;
            rules.iter().for_each(|rule| add(&rule.bytes));
            let (elements, bytes) = kernel.elements(family.number(), TABLE, INSIDE)?;
            add(&bytes);
            if rules.iter().any(|rule| mentions(rule, LOCAL)) {
                add(&kernel.elements(family.number(), TABLE, LOCAL)?.1);
            }
            let digest = hex(&hash.finalize()[..16]);
            own.insert(family, Own { digest, chains: names, rules, elements });
        }
        let firewalld = match chains.iter().find(|chain| chain.table == foreign::FIREWALLD) {
            Some(chain) => kernel.table(chain.family, foreign::FIREWALLD)?,
            None => None,
        };
        let mut foreign = Vec::new();
        for chain in chains.into_iter().filter(foreign::concerns_us) {
            let rules = kernel.rules(chain.family, &chain.table, Some(&chain.name))?;
            foreign.push(ForeignChain { chain, rules });
        }
        Ok(Self { generation, own, foreign, firewalld })
    }

    /// The hashes of our tables.
    pub fn digests(&self) -> BTreeMap<Family, String> {
        self.own.iter().map(|(family, own)| (*family, own.digest.clone())).collect()
    }
}
