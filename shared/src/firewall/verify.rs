//! Whether the ruleset is what the record of a network asks for. Reads only, starts no program.

use super::error::Missing;
use super::family::Family;
use super::mark::{OWN, mark};
use super::nfnetlink::Nfnetlink;
use super::snapshot::{Own, Snapshot};
use super::state::{ChainId, State};
use super::wanted::{self, INSIDE, Place, Share, Table};
use super::{Error, apply, foreign, neighbours};
use crate::Host;
use crate::netlink::netns::{NetnsId, host_id};
use crate::network::cluster;
use crate::network::record::NetworkRecord;

/// See [`super::in_place`].
pub(super) fn in_place(host: &Host, record: &NetworkRecord) -> Result<bool, Error> {
    let netns = host_id()?;
    let record = &joined(host, &netns, record);
    let Some(state) = State::load(host, &netns).filter(|state| state.made_for(record)) else {
        return Ok(false);
    };
    let mut kernel = Nfnetlink::open()?;
    // Nobody has committed anything since. (A namespace is only surely the same if it has a cookie.)
    if netns.cookie.is_some() && kernel.generation()? == state.generation {
        return Ok(true);
    }
    let snapshot = Snapshot::read(&mut kernel)?;
    Ok(state.tables == snapshot.digests()
        && foreign::closed(&snapshot, record).all(|closed| state.is_refused(&closed.chain))
        && neighbours::trusts(state.firewalld.as_ref(), &snapshot, record))
}

/// What of a network is not in the ruleset.
pub(super) fn missing(host: &Host, record: &NetworkRecord) -> Result<Vec<Missing>, Error> {
    let netns = host_id()?;
    let record = &joined(host, &netns, record);
    let state = State::load(host, &netns);
    let mut kernel = Nfnetlink::open()?;
    let snapshot = Snapshot::read(&mut kernel)?;
    let tables = wanted::tables(&apply::networks(host, &netns)?.records, &|_| Share::default());
    let mut missing = Vec::new();
    for table in &tables {
        let family = table.family;
        let lacking = lacking(&snapshot, record, table);
        let changed = |own: &Own| {
            let made = state.as_ref().and_then(|state| state.tables.get(&family));
            made.is_some_and(|made| *made != own.digest)
        };
        if lacking.is_empty() && !of_network(record, table).is_empty() && snapshot.own.get(&family).is_some_and(changed)
        {
            missing.push(Missing::Changed(family));
        }
        missing.extend(lacking);
    }
    for closed in foreign::closed(&snapshot, record) {
        if state.as_ref().is_some_and(|state| state.is_refused(&closed.chain)) {
            continue;
        }
        missing.push(Missing::Accept {
            family: foreign::family_name(closed.chain.family).unwrap_or_default(),
            table: closed.chain.table.clone(),
            chain: closed.chain.name.clone(),
        });
    }
    Ok(missing)
}

/// The record with what is known of its other nodes, as [`apply::networks`] gives it.
pub(super) fn joined(host: &Host, netns: &NetnsId, record: &NetworkRecord) -> NetworkRecord {
    let mut record = record.clone();
    if let Err(error) = cluster::join(host, netns, &mut record) {
        tracing::debug!("network {}: {error}", record.name);
    }
    record
}

/// What a ruleset that was made looks like a moment later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// As it was made.
    Whole,
    /// A foreign chain drops and has lost its accepts, or has come since. (Not one that refuses them.)
    Closed,
    /// Our tables lack something.
    Torn,
}

/// Compares the ruleset with what all networks should have.
pub(super) fn found(snapshot: &Snapshot, records: &[NetworkRecord], refused: &[ChainId]) -> Found {
    let tables = wanted::tables(records, &|_| Share::default());
    let is_torn = |record| tables.iter().any(|table| !lacking(snapshot, record, table).is_empty());
    let is_closed =
        |record| foreign::closed(snapshot, record).any(|closed| !refused.contains(&ChainId::from(&closed.chain)));
    match () {
        () if records.iter().any(is_torn) => Found::Torn,
        () if records.iter().any(is_closed) => Found::Closed,
        () => Found::Whole,
    }
}

/// The rules and elements of a network in a wanted table, as far as they are its alone.
fn of_network(record: &NetworkRecord, wanted: &Table) -> Share {
    let mark = mark(OWN, &record.name);
    let mut share = wanted.share.clone();
    share.rules.retain(|rule| rule.mark == mark);
    share.elements.retain(|element| element.mark.as_deref() == Some(&mark));
    share
}

/// What of a network is not in our table of one family, of which `wanted` is all that should be there.
fn lacking(snapshot: &Snapshot, record: &NetworkRecord, wanted: &Table) -> Vec<Missing> {
    let (family, share) = (wanted.family, of_network(record, wanted));
    if share.is_empty() {
        return Vec::new();
    }
    let Some(own) = snapshot.own.get(&family) else { return vec![Missing::Table(family)] };
    let mark = mark(OWN, &record.name);
    let mut missing = Vec::new();
    compare(own, &share, family, &mark, &mut missing);
    // A subnet inside of another network's is no element of its own.
    let is_element = share.elements.iter().any(|element| element.set == INSIDE);
    if is_element && !own.elements.contains(&mark) {
        missing.push(Missing::Elements(family));
    }
    missing
}

fn compare(own: &Own, share: &Share, family: Family, mark: &str, missing: &mut Vec<Missing>) {
    for place in [Place::Guard, Place::Input, Place::Masquerade, Place::Accept] {
        let chain = place.chain();
        let wanted = share.rules.iter().filter(|rule| rule.place.chain() == chain).count();
        if wanted == 0 && matches!(place, Place::Guard | Place::Input) {
            continue;
        }
        if !own.chains.iter().any(|name| name == chain) {
            missing.push(Missing::Chain(family, chain));
            continue;
        }
        let is_ours = |comment: &Option<String>| comment.as_deref() == Some(mark);
        let found = own.rules.iter().filter(|rule| rule.chain == chain && is_ours(&rule.comment)).count();
        if found < wanted {
            missing.push(Missing::Rules { family, chain, wanted, found });
        }
    }
}
