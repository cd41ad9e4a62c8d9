//! Makes the ruleset what the records ask for.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;

use super::mark::{OWN, mark};
use super::nfnetlink::Nfnetlink;
use super::render::document;
use super::snapshot::Snapshot;
use super::state::State;
use super::verify::Found;
use super::wanted::{self, Share, Table};
use super::{Error, carry, family::Family, foreign, neighbours, nft, verify};
use crate::lock::{LockError, exclusively};
use crate::netlink::netns::{NetnsId, host_id};
use crate::network::cluster;
use crate::network::record::NetworkRecord;
use crate::{Host, NetworkName};

/// Runs `act` as the only one that changes the ruleset.
pub(super) fn locked<T>(host: &Host, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let path = host.state.join("firewall.lock");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&host.state);
    made.map_err(|source| LockError::Io { path: path.clone(), source })?;
    exclusively(&path, act)
}

/// The networks that were set up in this boot and network namespace.
#[derive(Debug, Default)]
pub(super) struct Networks {
    /// Those of which all is known, in order of their names.
    pub(super) records: Vec<NetworkRecord>,
    /// Those of whose cluster the record cannot be read. Rules made without it would be wrong ones: the network would be
    /// one of this node alone.
    pub(super) unknown: Vec<NetworkRecord>,
}

pub(super) fn networks(host: &Host, netns: &NetnsId) -> Result<Networks, Error> {
    let mut found = Networks::default();
    for mut record in NetworkRecord::all(host)?.into_iter().filter(|record| record.is_of(host, netns)) {
        match cluster::join(host, netns, &mut record) {
            Ok(()) => found.records.push(record),
            Err(error) => {
                tracing::error!("network {}: its rules stay as they are: {error}", record.name);
                found.unknown.push(record);
            }
        }
    }
    // One set of networks gives one document, whatever the order of the folder.
    crate::order::sort_by(&mut found.records, |a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// How often the ruleset may be flushed under our hands.
const TRIES: u32 = 5;

/// Does whatever is missing, for all networks, and removes everything of `without`, unless that has a record.
///
/// # Errors
/// As [`super::apply`]; [`Error::Unsteady`].
pub(super) fn settle(host: &Host, without: Option<&NetworkName>) -> Result<(), Error> {
    let mut found = Found::Whole;
    for _ in 0..TRIES {
        found = settle_once(host, without)?;
        if found == Found::Whole {
            return Ok(());
        }
        tracing::warn!("the ruleset was changed by somebody else meanwhile: it is made again");
    }
    match found {
        Found::Torn => Err(Error::Unsteady { request: "make the ruleset", tries: TRIES }),
        // The next ADD tries again.
        Found::Whole | Found::Closed => Ok(()),
    }
}

/// Makes the ruleset, and looks what has become of it. Only a whole one is remembered.
fn settle_once(host: &Host, without: Option<&NetworkName>) -> Result<Found, Error> {
    let netns = host_id()?;
    let Networks { records, unknown } = networks(host, &netns)?;
    let before = State::load(host, &netns);

    let mut kernel = Nfnetlink::open()?;
    let snapshot = match Snapshot::read(&mut kernel) {
        // What needs no rule needs no nf_tables.
        Err(Error::NoNftables { .. }) if wanted::tables(&records, &|_| Share::default()).is_empty() => {
            return Ok(Found::Whole);
        }
        snapshot => snapshot?,
    };

    // Whatever is not the rules' own goes by the bridge alone.
    let all: Vec<NetworkRecord> = records.iter().chain(&unknown).cloned().collect();
    // Set up again meanwhile, by an ADD that came behind the one which failed.
    let without = without.filter(|name| !all.iter().any(|record| record.name == **name));
    let gone = without.map(|name| mark(OWN, name));
    let stale = |mark: &str| Some(mark) == gone.as_deref();
    let made = before
        .as_ref()
        .is_some_and(|state| state.tables == snapshot.digests() && records.iter().all(|record| state.made_for(record)));
    let mut changed = !made || snapshot.own.values().any(|own| own.marks().any(stale));
    if changed {
        swap(&snapshot, &records, gone.as_deref())?;
    }
    // The own ruleset is as wanted from here on; a failure to tidy up elsewhere is told at the end.
    // A network that leaves foreign chains alone may have been another one before.
    let shut = all.iter().filter(|record| !wanted::opens_foreign(record)).map(|record| &record.name);
    let mut closed = Ok(false);
    for name in shut.chain(without) {
        closed = match (closed, foreign::close(&snapshot, name)) {
            (Ok(any), Ok(done)) => Ok(any || done),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
    }
    let (refused, opened) = foreign::open(&snapshot, &all);
    changed |= opened || !matches!(closed, Ok(false));
    let told = before.as_ref().and_then(|state| state.firewalld.clone());
    let firewalld = neighbours::settle_firewalld(told, &snapshot, &all, !unknown.is_empty());
    if all.iter().any(wanted::opens_foreign) && changed {
        neighbours::report_legacy();
    }

    let snapshot = if changed { Snapshot::read(&mut kernel)? } else { snapshot };
    let found = if changed { verify::found(&snapshot, &records, &refused) } else { Found::Whole };
    if found != Found::Whole {
        return Ok(found);
    }
    let mut after = State::new(host, &netns);
    after.generation = snapshot.generation;
    after.networks = records.iter().map(|record| (record.name.clone(), wanted::fingerprint(record))).collect();
    after.tables = snapshot.digests();
    after.refused = refused;
    after.firewalld = firewalld;
    if before != Some(after.clone()) {
        after.save(host);
    }
    closed.map(|_| found)
}

/// Swaps our tables for the wanted ones, in one transaction.
fn swap(snapshot: &Snapshot, records: &[NetworkRecord], gone: Option<&str>) -> Result<(), Error> {
    records.iter().for_each(wanted::report_faults);
    let mut known: BTreeSet<String> = records.iter().map(|record| mark(OWN, &record.name)).collect();
    known.extend(gone.map(str::to_owned));
    let mut kept = Vec::new();
    for (family, own) in &snapshot.own {
        let unknown: BTreeSet<_> = own.marks().filter(|mark| !known.contains(*mark)).collect();
        if !unknown.is_empty() {
            tracing::warn!(%family, networks = ?unknown, "networks whose records are lost or cannot be read are in our table: their rules are kept");
            kept.push((*family, carry::unknown(&nft::listing(*family)?, &known)));
        }
    }
    let of = |family| kept.iter().find(|(of, _)| *of == family).map(|(_, share)| share.clone()).unwrap_or_default();
    let whole = commit(snapshot, wanted::tables(records, &of));
    match whole {
        // Rules of another version may name what this one does not define.
        Err(error) if !kept.is_empty() => {
            tracing::warn!(%error, "the rules of networks without a record cannot be kept");
            commit(snapshot, wanted::tables(records, &|_: Family| Share::default()))
        }
        outcome => outcome,
    }
}

fn commit(snapshot: &Snapshot, tables: Vec<Table>) -> Result<(), Error> {
    let has = |family: &Family| tables.iter().any(|table| table.family == *family);
    let gone: Vec<Family> = snapshot.own.keys().filter(|family| !has(family)).copied().collect();
    let text = document(&tables, &gone);
    if text.is_empty() {
        return Ok(());
    }
    nft::commit(&text, &format!("swap the tables {}", wanted::TABLE))
}
