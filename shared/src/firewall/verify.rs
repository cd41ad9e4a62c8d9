//! Whether the ruleset is what the record of a network asks for. Reads only, starts no program.

use super::error::Missing;
use super::family::Family;
use super::mark::{OWN, mark};
use super::nfnetlink::Nfnetlink;
use super::snapshot::{Own, Snapshot};
use super::state::State;
use super::wanted::{Place, Share};
use super::{Error, foreign, neighbours};
use crate::Host;
use crate::netlink::netns::host_id;
use crate::network::record::NetworkRecord;

/// See [`super::in_place`].
pub(super) fn in_place(host: &Host, record: &NetworkRecord) -> Result<bool, Error> {
    let netns = host_id()?;
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
    let state = State::load(host, &host_id()?);
    let mut kernel = Nfnetlink::open()?;
    let snapshot = Snapshot::read(&mut kernel)?;
    let mut missing = Vec::new();
    for family in Family::ALL {
        let share = Share::of(record, family);
        if share == Share::default() {
            continue;
        }
        let before = missing.len();
        match snapshot.own.get(&family) {
            None => missing.push(Missing::Table(family)),
            Some(own) => {
                compare(own, &share, family, &mark(OWN, &record.name), &mut missing);
                let made = state.as_ref().and_then(|state| state.tables.get(&family));
                if missing.len() == before && made.is_some_and(|made| *made != own.digest) {
                    missing.push(Missing::Changed(family));
                }
            }
        }
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

fn compare(own: &Own, share: &Share, family: Family, mark: &str, missing: &mut Vec<Missing>) {
    for chain in [Place::Masquerade.chain(), Place::Accept.chain()] {
        if !own.chains.iter().any(|name| name == chain) {
            missing.push(Missing::Chain(family, chain));
            continue;
        }
        let wanted = share.rules.iter().filter(|rule| rule.place.chain() == chain).count();
        let is_ours = |comment: &Option<String>| comment.as_deref() == Some(mark);
        let found = own.rules.iter().filter(|rule| rule.chain == chain && is_ours(&rule.comment)).count();
        if found < wanted {
            missing.push(Missing::Rules { family, chain, wanted, found });
        }
    }
    if !share.elements.is_empty() && !own.elements.iter().any(|comment| comment == mark) {
        missing.push(Missing::Elements(family));
    }
}
