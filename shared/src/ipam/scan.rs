//! Looking at all records of a set: when nothing is new and nothing released, the dead may still hold some.

use std::fs;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::Error;
use super::liveness::Liveness;
use super::range::{Range, RangeSet, number};
use super::record::{Record, State};
use super::search::Search;
use super::store::{Class, Store};
use super::timestamp::{format, parse};

/// As many records as an ADD looks at near its first candidate before it looks at all of them.
const NEAR: usize = 1024;
/// A whole range was just found to be held by the living: for so long, nobody reads it all again.
const QUIET: Duration = Duration::from_secs(5);

/// The last time that everything was held by the living (`exhausted`).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Exhausted {
    boot: String,
    at: String,
    ranges: String,
    /// Addresses held in the set.
    pub held: u64,
    /// Since when the oldest of them is held.
    pub oldest: Option<String>,
}

impl Exhausted {
    fn recent(store: &Store, set: &RangeSet) -> Option<Self> {
        let text = fs::read(store.folder.join("exhausted")).ok()?;
        let last: Self = serde_json::from_slice(&text).ok()?;
        let age = SystemTime::now().duration_since(parse(&last.at)?).ok()?;
        (last.boot == store.boot() && last.ranges == set.to_string() && age < QUIET).then_some(last)
    }
}

/// The better of two finds: what is released in the order of its class, then what the dead hold; the oldest first.
type Rank = (u8, String);

fn rank(record: &Record) -> Rank {
    let class = match (record.state, Class::of(record)) {
        (State::Released, Class::Once) => 0,
        (State::Released, Class::Again) => 1,
        (State::Released, Class::Requested) => 2,
        _ => 3,
    };
    (class, record.since.clone())
}

impl Search<'_> {
    /// The best address that somebody dead holds, or that the derived files have forgotten.
    ///
    /// # Errors
    /// [`Error::Full`] if the living hold everything.
    pub(super) fn scan(&mut self, set: &RangeSet, digest: &[u8; 32]) -> Result<IpAddr, Error> {
        let mut exhausted = Exhausted {
            boot: self.store.boot(),
            at: format(SystemTime::now()),
            ranges: set.to_string(),
            held: 0,
            oldest: None,
        };
        let mut best: Option<(Rank, IpAddr)> = None;
        let mut seen = 0;
        for address in walk(set, digest) {
            if seen == NEAR {
                // Far enough: take what there is, or look at the rest unless somebody just did.
                if best.is_some() {
                    break;
                }
                if let Some(last) = Exhausted::recent(self.store, set) {
                    return Err(full(set, last));
                }
            }
            seen += 1;
            let record = match self.read(address) {
                Err(Error::NewerFormat { .. }) => {
                    exhausted.held += 1;
                    continue;
                }
                record => record?,
            };
            let Some(record) = record else {
                // Its bit says otherwise, or somebody else has it.
                match self.neighbours.holder(address)? {
                    None => return Ok(address),
                    Some(_) => continue,
                }
            };
            if self.may_take(&record, address)? {
                let rank = rank(&record);
                if best.as_ref().is_none_or(|(better, _)| rank < *better) {
                    best = Some((rank, address));
                }
                if seen > NEAR {
                    break;
                }
            } else if record.is_held() {
                exhausted.held += 1;
                if exhausted.oldest.as_ref().is_none_or(|oldest| record.since < *oldest) {
                    exhausted.oldest = Some(record.since);
                }
            }
        }
        match best {
            Some((_, address)) => Ok(address),
            None => {
                if seen > NEAR
                    && !self.store.is_looked_at()
                    && let Ok(text) = serde_json::to_vec(&exhausted)
                {
                    // Only saves the next ones the same work.
                    let _ = fs::write(self.store.folder.join("exhausted"), text);
                }
                Err(full(set, exhausted))
            }
        }
    }

    fn may_take(&mut self, record: &Record, address: IpAddr) -> Result<bool, Error> {
        let free = match record.state {
            State::Released => true,
            State::Reserved => false,
            State::Held => !record.pinned && self.witness.judge(record) == Liveness::Dead,
        };
        Ok(free && self.neighbours.holder(address)?.is_none())
    }
}

fn full(set: &RangeSet, exhausted: Exhausted) -> Error {
    Error::Full { ranges: set.to_string(), held: exhausted.held, oldest: exhausted.oldest }
}

/// All allocatable addresses of a set, each pool from its first candidate around.
fn walk<'s>(set: &'s RangeSet, digest: &'s [u8; 32]) -> impl Iterator<Item = IpAddr> + use<'s> {
    set.0.iter().flat_map(move |range| {
        let (start, end) = (number(range.start), number(range.end));
        let first = number(range.first_candidate(digest)).clamp(start, end);
        allocatable_between(range, first, Some(end)).chain(allocatable_between(range, start, first.checked_sub(1)))
    })
}

fn allocatable_between(range: &Range, from: u128, end: Option<u128>) -> impl Iterator<Item = IpAddr> + use<'_> {
    let mut next = Some(from);
    std::iter::from_fn(move || {
        let found = range.next_allocatable(range.address(next?)).filter(|at| Some(number(*at)) <= end);
        next = found.and_then(|at| number(at).checked_add(1));
        found
    })
}
