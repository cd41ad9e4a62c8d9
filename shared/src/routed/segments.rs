//! Which segment of a routed network is whose: the [`Plan`] of this node, from the configuration and what is recorded.
//!
//! The configuration alone gives a plan, the same on every node: segments that it fixes first, then for each other
//! node, in the order of the list, the lowest free one. The first setup records it for *all* nodes
//! (`<state>/segments/<network>.json`), and from then on the record decides. An edit after which a node without a
//! record would come to another plan is a refused change: it is told until the configuration agrees with the record
//! again, and nothing moves.
//!
//! The record also says which node this host is. A name that changes, to that of another node too, does not: two hosts
//! would have one segment. Only if the addresses show that the record is that of another host, on a copied disk, it is
//! the other node.
//!
//! What this cannot do: a node that is set up for the first time has no record. If the list that it sees is wrong about
//! nodes in service, it may come to a segment of theirs; they say so, as soon as they see that list, and go on sending
//! to whom they have sent. A list in which segments are fixed, as `osvc-net conf add-node` and `remove-node` leave it,
//! is never wrong.

mod fresh;
mod network;
mod plan;
mod record;
mod refused;
mod slots;

use ipnet::IpNet;

pub use plan::{Plan, PlannedNetwork};
pub use record::{FORMAT, NetworkSegments, SegmentRecord};
pub use refused::{Full, Refused};

use super::config::Node;
use super::{Error, RoutedConfig, file};
use crate::Host;
use crate::lock::exclusively;
use crate::network::NetworkRecord;

/// What a host shows of itself, where the record leaves something open.
pub trait Witness {
    /// The segments that it is known to have although there is no record, by its bridge or the network's record.
    fn segments(&self, config: &RoutedConfig) -> Vec<IpNet>;

    /// True if the host has an address of this node of the configuration, and none of that other one which it is by the
    /// record: the disk is a copy, or the name was wrong then.
    fn is_now(&self, config: &RoutedConfig, former: &Node) -> bool;
}

/// The plan of a network by its record, and nothing is written: for an operator. `config` becomes that of the node that
/// this host is by the record.
///
/// # Errors
/// The record cannot be read, or this node has no segment.
pub fn read(host: &Host, config: &mut RoutedConfig) -> Result<Plan, Error> {
    preview(host, config, &Recorded(host))
}

struct Recorded<'a>(&'a Host);

impl Witness for Recorded<'_> {
    fn segments(&self, config: &RoutedConfig) -> Vec<IpNet> {
        NetworkRecord::load(self.0, &config.name).ok().flatten().map(|record| record.subnets).unwrap_or_default()
    }

    fn is_now(&self, _: &RoutedConfig, _: &Node) -> bool {
        false
    }
}

/// The plan that [`settle`] would record, and nothing is written. It [is new](Plan::is_new) if there is something to
/// record. `config` becomes that of the node that this host is by the record.
///
/// # Errors
/// The record cannot be read, or this node has no segment.
pub fn preview(host: &Host, config: &mut RoutedConfig, witness: &dyn Witness) -> Result<Plan, Error> {
    let plan = planned(host, config, witness)?;
    config.here = plan.node();
    Ok(plan)
}

fn planned(host: &Host, config: &RoutedConfig, witness: &dyn Witness) -> Result<Plan, Error> {
    let found = SegmentRecord::load(host, &config.name)?;
    let mut is_recorded = found.is_some();
    let mut record = found.or_else(|| SegmentRecord::recovered(config, &witness.segments(config)));
    if let Some(record) = &mut record
        && let Some(former) = record.other_than(config)
        && witness.is_now(config, former)
    {
        record.node.clone_from(&config.this_node().name);
        is_recorded = false;
    }
    let plan = Plan::new(config, record.as_ref())?;
    Ok(if is_recorded { plan } else { plan.unrecorded() })
}

/// The plan of a network, recorded: one read when there is nothing new to record. A host of which nothing is recorded is
/// known by what it [shows](Witness); that stays.
///
/// # Errors
/// The record cannot be read or written, or this node has no segment: then nothing is recorded.
pub fn settle(host: &Host, config: &RoutedConfig, witness: &dyn Witness) -> Result<Plan, Error> {
    let plan = planned(host, config, witness)?;
    if !plan.is_new() {
        return Ok(plan);
    }
    let folder = SegmentRecord::folder(host);
    file::make_folder(&folder).map_err(|error| Error::file("make", &folder, error))?;
    exclusively(&folder.join("lock"), || {
        let plan = planned(host, config, witness)?;
        if plan.is_new() {
            plan.record().save(host)?;
        }
        Ok(plan)
    })
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
