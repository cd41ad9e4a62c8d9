//! `ipam.claims`: the most addresses of this network that a namespace may hold on this node.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use super::Error;
use super::allocator::Allocator;
use super::config::{ConfigError, low};
use super::liveness::Liveness;
use super::record::Record;
use super::store::Change;
use crate::protocol::Call;
use crate::{Code, NetworkName};

/// The claim of every namespace that has none of its own.
const OTHERS: &str = "*";
/// A namespace that holds more was just found to be all alive: for [`QUIET`] nobody looks at all of it again.
const MANY: u64 = 1024;
const QUIET: Duration = Duration::from_secs(5);

/// Limits by namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims(BTreeMap<String, u64>);

impl Claims {
    /// `{"prod": 20, "*": 100}`, checked.
    ///
    /// # Errors
    /// A name that no namespace has, or a limit that is no number of addresses.
    pub(super) fn check(low: &Map<String, Value>) -> Result<Self, ConfigError> {
        let fault = |name: &str, value: &Value, reason| ConfigError::Claim {
            at: format!("ipam.claims.{name:?}"),
            value: value.clone(),
            reason,
        };
        let claim = |(name, value): (&String, &Value)| {
            if name.is_empty() {
                return Err(fault(name, value, "a namespace has a name; `*` stands for all that are not listed"));
            }
            if name.contains('/') {
                return Err(fault(name, value, "a namespace is the part of a key before its first `/`"));
            }
            let limit = value.as_u64().ok_or_else(|| fault(name, value, "a number of addresses, 0 or more, is needed"));
            Ok((name.clone(), limit?))
        };
        low.iter().filter(|(_, value)| !value.is_null()).map(claim).collect::<Result<_, _>>().map(Self)
    }

    /// The claims of a call's network, for whoever only wants to know.
    ///
    /// # Errors
    /// As for an ADD.
    pub fn of_call(call: &Call) -> Result<Self, Error> {
        let network: low::Network = call.config.low().map_err(ConfigError::from)?;
        let claims = network.ipam.and_then(|ipam| ipam.claims).unwrap_or_default();
        Ok(Self::check(&claims)?)
    }

    /// How many addresses a namespace may hold; `None`: any number.
    pub fn limit(&self, namespace: &str) -> Option<u64> {
        self.0.get(namespace).or_else(|| self.0.get(OTHERS)).copied()
    }

    /// The namespaces with a claim of their own.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|name| *name != OTHERS)
    }
}

/// A namespace that has all that it may have.
#[derive(Debug, thiserror::Error)]
#[error(
    "namespace {namespace:?} may hold {limit} addresses of network {network} on this node (ipam.claims), holds {held} and \
     asks for {asked} more: {}",
    if self.is_final() { "raise the claim".to_owned() } else {
        format!("try again when one of its containers has ended (`osvc-net ip ls --network {network}` lists them), or raise the claim")
    }
)]
pub struct ClaimError {
    /// The namespace.
    pub namespace: String,
    /// The network.
    pub network: NetworkName,
    /// The most it may hold.
    pub limit: u64,
    /// What it holds.
    pub held: u64,
    /// What it would hold in addition.
    pub asked: u64,
}

impl ClaimError {
    /// True if it would be refused though the namespace held nothing.
    fn is_final(&self) -> bool {
        self.asked > self.limit
    }

    /// The CNI error code: whether it is any use to try again.
    pub fn code(&self) -> Code {
        if self.is_final() { Code::InvalidConfig } else { Code::TryAgainLater }
    }
}

/// True if the record counts for the namespace.
pub(super) fn counts(record: Option<&Record>, namespace: &str) -> bool {
    record.is_some_and(|record| record.is_held() && record.key.namespace() == namespace)
}

impl Allocator<'_> {
    /// Refuses what would make the namespace hold more than it may. Only now, after all sets: an address that takes
    /// another's place is no growth. What the dead hold is given back first.
    pub(super) fn claim(&mut self, claims: &Claims) -> Result<(), Error> {
        let namespace = self.request.key.namespace();
        let Some(limit) = claims.limit(namespace) else { return Ok(()) };
        let counted = |pick: fn(&Change) -> Option<&Record>| {
            self.search.changes.iter().filter(|change| counts(pick(change), namespace)).count() as u64
        };
        let asked = counted(|change| change.after.as_ref()).saturating_sub(counted(|change| change.before.as_ref()));
        if asked == 0 {
            return Ok(());
        }
        let mut held = self.search.store.held_in(namespace)?;
        if let Some(room) = limit.checked_sub(asked) {
            if held > room {
                held = self.reap(namespace, held, room)?;
            }
            if held <= room {
                return Ok(());
            }
        }
        let (namespace, network) = (namespace.to_owned(), self.request.attachment.network.clone());
        Err(Error::Claim(Box::new(ClaimError { namespace, network, limit, held, asked })))
    }

    /// Gives back what the dead of a namespace hold, until it holds no more than `most`. Returns how many it holds then.
    fn reap(&mut self, namespace: &str, mut held: u64, most: u64) -> Result<u64, Error> {
        let looked = self.search.store.looked_at(namespace);
        if held > MANY && looked.is_some_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age < QUIET)) {
            return Ok(held);
        }
        let mut freed = Vec::new();
        for address in self.search.store.list_of(namespace)? {
            if held <= most {
                break;
            }
            // What this ADD gives up itself is part of what it asks for.
            if self.search.changes.iter().any(|change| change.address == address) {
                continue;
            }
            let Some(record) = self.search.store.read(address)? else { continue };
            if counts(Some(&record), namespace) && self.search.witness.judge(&record) == Liveness::Dead {
                let after = Some(record.released(&self.now));
                freed.push(Change { address, before: Some(record), after });
                held = held.saturating_sub(1);
            }
        }
        if held > most {
            self.search.store.note_look_at(namespace);
        }
        // Before what takes their place: at no moment more is held than may be.
        self.search.changes.splice(0..0, freed);
        Ok(held)
    }
}

/// Claims for a test.
#[cfg(test)]
pub(super) fn of(claims: &[(&str, u64)]) -> Claims {
    Claims(claims.iter().map(|(name, limit)| ((*name).to_owned(), *limit)).collect())
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod allocation;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(claims: Value) -> Result<Claims, ConfigError> {
        Claims::check(claims.as_object().unwrap())
    }

    #[test]
    fn every_namespace_has_its_own_limit_or_that_of_the_others() {
        let claims = check(json!({"prod": 20, "*": 100, "none": 0, "absent": null})).unwrap();
        assert_eq!(["prod", "none", "absent", "test"].map(|name| claims.limit(name)), [20, 0, 100, 100].map(Some));
        assert_eq!(claims.names().collect::<Vec<_>>(), ["none", "prod"]);
        assert_eq!(check(json!({"prod": 20})).unwrap().limit("test"), None);
        assert_eq!(Claims::default().limit("default"), None);
    }

    #[test]
    fn what_is_no_claim_is_named_with_its_value() {
        for (claims, words) in [
            (json!({"prod": -1}), ["ipam.claims.\"prod\"", "-1", "0 or more"]),
            (json!({"prod": 1.5}), ["ipam.claims.\"prod\"", "1.5", "0 or more"]),
            (json!({"prod": "20"}), ["ipam.claims.\"prod\"", "\"20\"", "0 or more"]),
            (json!({"prod": {"max": 1}}), ["ipam.claims.\"prod\"", "{\"max\":1}", "0 or more"]),
            (json!({"": 20}), ["ipam.claims.\"\"", "20", "has a name"]),
            (json!({"prod/web": 20}), ["ipam.claims.\"prod/web\"", "20", "before its first `/`"]),
        ] {
            let error = check(claims).unwrap_err();
            assert_eq!(error.code(), Code::InvalidConfig);
            assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
        }
    }
}
