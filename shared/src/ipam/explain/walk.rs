//! The way from the first candidate on, address by address.

use std::net::IpAddr;

use super::Counts;
use crate::ipam::Error;
use crate::ipam::liveness::{Liveness, Witness};
use crate::ipam::range::{Range, RangeSet, number};
use crate::ipam::record::{Record, State};
use crate::ipam::search::Neighbours;
use crate::ipam::store::Store;

/// So many steps are told one by one.
const SHOWN: usize = 10;
/// Records that are looked at; whoever wants to know more has `osvc-net ip ls`.
const MOST: usize = 70_000;

/// The way through a set.
#[derive(Debug)]
pub struct Walk {
    /// Where it begins: the key's digest in the first pool's subnet.
    pub first: IpAddr,
    /// What stood in the way, the first ones.
    pub steps: Vec<Step>,
    /// How many more addresses did, by kind.
    pub more: Counts,
    /// The first one that was never used; none if the walk ended at the key's own address, or there is none.
    pub free: Option<IpAddr>,
    /// Not all was looked at.
    pub cut: bool,
}

/// Addresses that were passed over.
#[derive(Debug)]
pub struct Step {
    /// The first one.
    pub from: IpAddr,
    /// The last one.
    pub to: IpAddr,
    /// Why.
    pub why: Obstacle,
}

/// Why an address was passed over.
#[derive(Debug)]
pub enum Obstacle {
    /// The address of the network itself.
    Network,
    /// The broadcast address.
    Broadcast,
    /// The gateway.
    Gateway,
    /// Not between `rangeStart` and `rangeEnd`.
    Outside,
    /// In `exclude`.
    Excluded,
    /// Held by one that lives, or that may.
    Held(Box<Record>),
    /// Held by one that does not.
    Dead(Box<Record>),
    /// Reserved for another key.
    Reserved(Box<Record>),
    /// Used before, and passed over as long as something never used is there.
    Used(Box<Record>),
    /// Another allocator's: host-local, OpenSVC, an older folder of this network. In words.
    Neighbour(String),
    /// A record of a later version.
    Newer,
}

impl Obstacle {
    /// The kind, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Network => "network address",
            Self::Broadcast => "broadcast address",
            Self::Gateway => "gateway",
            Self::Outside => "outside of the range",
            Self::Excluded => "excluded",
            Self::Held(_) => "held",
            Self::Dead(_) => "held by the dead",
            Self::Reserved(_) => "reserved",
            Self::Used(_) => "used before",
            Self::Neighbour(_) => "of another allocator",
            Self::Newer => "of a later version",
        }
    }

    /// The record that is there.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Held(record) | Self::Dead(record) | Self::Reserved(record) | Self::Used(record) => Some(record),
            _ => None,
        }
    }
}

/// Walks through a set until its end, `target`, or an address that was never used.
pub(super) fn of(
    store: &Store,
    witness: &mut dyn Witness,
    others: &mut dyn Neighbours,
    set: &RangeSet,
    digest: &[u8; 32],
    target: Option<IpAddr>,
) -> Result<Walk, Error> {
    let first = set.0.first().map(|range| range.first_candidate(digest));
    let first = first.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED));
    let mut walk = Walk { first, steps: Vec::new(), more: Counts::new(), free: None, cut: false };
    let mut looked = 0;
    for range in &set.0 {
        let (low, high) = (number(range.subnet.network()), number(range.subnet.broadcast()));
        let begin = number(range.first_candidate(digest));
        for (mut at, last) in [(Some(begin), Some(high)), (Some(low), begin.checked_sub(1))] {
            while let Some(here) = at.filter(|at| last.is_some_and(|last| *at <= last)) {
                let address = range.address(here);
                if target == Some(address) {
                    walk.free = store.read(address).is_ok_and(|record| record.is_none()).then_some(address);
                    return Ok(walk);
                }
                let last = last.unwrap_or(here);
                let (why, to) = match unusable(range, here) {
                    Some((why, to)) => (why, to.min(last)),
                    None => {
                        looked += 1;
                        if looked > MOST {
                            walk.cut = true;
                            return Ok(walk);
                        }
                        match taken(store, witness, others, address)? {
                            Some(why) => (why, here),
                            None => {
                                walk.free = Some(address);
                                return Ok(walk);
                            }
                        }
                    }
                };
                // An address that was asked for may lie among what is not usable otherwise.
                let inside = target.map(number).filter(|target| (here..=to).contains(target));
                walk.pass(range.address(here), range.address(inside.map_or(to, |target| target - 1)), why);
                if inside.is_some() {
                    return Ok(walk);
                }
                at = to.checked_add(1);
            }
        }
    }
    Ok(walk)
}

impl Walk {
    fn pass(&mut self, from: IpAddr, to: IpAddr, why: Obstacle) {
        if self.steps.len() < SHOWN {
            self.steps.push(Step { from, to, why });
        } else {
            let count = (number(to) - number(from)).saturating_add(1);
            let more = self.more.entry(why.kind()).or_default();
            *more = more.saturating_add(count);
        }
    }
}

/// Why nobody gets an address unasked, and up to which one the same holds.
fn unusable(range: &Range, at: u128) -> Option<(Obstacle, u128)> {
    let address = range.address(at);
    if range.allocatable(address) {
        return None;
    }
    if range.gateway == Some(address) {
        return Some((Obstacle::Gateway, at));
    }
    let (start, end) = (number(range.start), number(range.end));
    let few = range.subnet.max_prefix_len() - range.subnet.prefix_len() < 2;
    if !few && address == range.subnet.network() {
        return Some((Obstacle::Network, at));
    }
    if !few && address.is_ipv4() && address == range.subnet.broadcast() {
        return Some((Obstacle::Broadcast, at));
    }
    let special = |number: &u128| *number > at;
    if at < start {
        // The gateway usually lies there: told on its own.
        let gateway = range.gateway.filter(|gateway| range.subnet.contains(gateway)).map(number).filter(special);
        return Some((Obstacle::Outside, gateway.unwrap_or(start).min(start) - 1));
    }
    if at > end {
        let broadcast = number(range.subnet.broadcast());
        let last = if few || address.is_ipv6() { broadcast } else { broadcast - 1 };
        let gateway = range.gateway.filter(|gateway| range.subnet.contains(gateway)).map(number).filter(special);
        return Some((Obstacle::Outside, gateway.map_or(last, |gateway| last.min(gateway - 1))));
    }
    let span = range.exclude.iter().find(|(first, last)| (number(*first)..=number(*last)).contains(&at));
    Some((Obstacle::Excluded, span.map_or(at, |(_, last)| number(*last))))
}

/// Who has, or had, an address.
fn taken(
    store: &Store,
    witness: &mut dyn Witness,
    others: &mut dyn Neighbours,
    address: IpAddr,
) -> Result<Option<Obstacle>, Error> {
    let record = match store.read(address) {
        Err(Error::NewerFormat { .. }) => return Ok(Some(Obstacle::Newer)),
        record => record?.map(Box::new),
    };
    let Some(record) = record else {
        return Ok(others.holder(address)?.map(Obstacle::Neighbour));
    };
    Ok(Some(match record.state {
        State::Reserved => Obstacle::Reserved(record),
        State::Released => Obstacle::Used(record),
        State::Held if witness.judge(&record) == Liveness::Dead => Obstacle::Dead(record),
        State::Held => Obstacle::Held(record),
    }))
}
