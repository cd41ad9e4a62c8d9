//! A routed network on this node: tunnels and routes to the peers, made under one lock and recorded.
//!
//! It is set up after the network's bridge, whose address in the network the routes have as their source. The peers are
//! independent: what cannot be done for one of them is its fault, and the others work.

mod ahead;
mod apply;
mod in_place;
mod look;
mod own;
mod rehearse;
mod remove;
mod strict;
mod tell;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod unmakeable;

use super::config::Mode;
use super::fault::Fault;
use super::reconcile::{Kernel, kept};
use super::record::{FORMAT, now};
use super::resolution::{Resolution, Which};
use super::resolve::Getent;
use super::wanted::{Wanted, basis};
use super::{Error, Plan, RoutedConfig, RoutedRecord, file, own_address, private_key};
use crate::lock::exclusively;
use crate::netlink::{NetnsId, RouteSocket};
use crate::{Host, network};

use ahead::Ahead;
pub use ahead::Guard;
use apply::Site;
pub use in_place::in_place;
pub use look::{Looked, look, missing, missing_kind};
use own::Own;
pub use rehearse::{Rehearsal, rehearse};
pub use remove::{leave, remove, would_remove};
use strict::strict;
use tell::{faults, told};
use unmakeable::unmakeable;

/// What came of a setup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What was done, as text; nothing when all was in place.
    pub changes: Vec<String>,
    /// What could not be done: the node's name, and why. This node's own name when the fault is here.
    pub faults: Vec<(String, String)>,
    /// What an operator should know, although it works.
    pub warnings: Vec<String>,
    /// What of that was told by the setup before.
    pub warned: Vec<String>,
    /// The peers, their segments or the ways to them are others than before.
    pub peers_changed: bool,
    /// What the network's bridge and containers should have by now, in bytes.
    pub mtu: u32,
}

/// What is asked of a setup.
pub struct Order<'a> {
    /// Which names are looked up.
    pub which: Which,
    /// The devices of an older mode go at once.
    pub prune: bool,
    /// What keeps strangers out of new tunnels.
    pub guard: Guard<'a>,
}

/// Sets a routed network up on this node, or brings it to what the configuration says; nothing stale is left, but for
/// the devices of an older mode, which receive for a day more, unless `prune`, and for the former way to a peer, as long
/// as the kernel refuses the one that is wanted. Names are looked up if they never were, or all of them. The peer file
/// says so, before the record does.
///
/// # Errors
/// The lock, a record or the kernel's lists cannot be had, or no rules for the tunnels. What the kernel refuses for a
/// peer is no error, but a fault.
pub fn setup(
    host: &Host,
    netns: &NetnsId,
    socket: &mut RouteSocket,
    config: &RoutedConfig,
    plan: &Plan,
    order: &Order<'_>,
) -> Result<Outcome, Error> {
    locked(host, || setup_alone(host, netns, socket, config, plan, order))
}

/// As [`setup`] of an ADD, unless all is in place: of many that come together one does it, and the others wait for it.
///
/// # Errors
/// As [`setup`].
pub fn establish(
    host: &Host,
    netns: &NetnsId,
    socket: &mut RouteSocket,
    config: &RoutedConfig,
    plan: &Plan,
    guard: Guard<'_>,
) -> Result<Option<Outcome>, Error> {
    locked(host, || {
        if in_place(host, netns, socket, config, plan)? {
            return Ok(None);
        }
        let order = Order { which: Which::New, prune: false, guard };
        setup_alone(host, netns, socket, config, plan, &order).map(Some)
    })
}

fn setup_alone(
    host: &Host,
    netns: &NetnsId,
    socket: &mut RouteSocket,
    config: &RoutedConfig,
    plan: &Plan,
    order: &Order<'_>,
) -> Result<Outcome, Error> {
    let old = RoutedRecord::load(host, &config.name)?.filter(|record| record.is_of(host, netns));
    let others = others(host, netns, config)?;
    let (resolution, mut warnings) = resolve(host, config, order.which, socket)?;
    if config.mode == Mode::Wireguard {
        private_key::load_or_make(host, &config.name)?;
    }
    let mut wanted = Wanted::new(config, plan, &resolution.now, socket);
    let there = socket.tunnels()?;
    warnings.extend(old.as_ref().map(|old| unmakeable(&mut wanted, old, &there)).unwrap_or_default());
    let own = Own::of(socket, config, &wanted)?;
    let now = now();
    let kept = match &old {
        Some(old) if !order.prune => kept(old, &wanted, config.mode, &there, now),
        _ => Vec::new(),
    };
    let mut record = RoutedRecord {
        v: FORMAT,
        name: config.name.clone(),
        basis: basis(config, plan),
        complete: false,
        refused: None,
        mode: config.mode,
        networks: wanted.networks.clone(),
        here: wanted.here.clone(),
        peers: Vec::new(),
        tunnels: kept,
        routes: Vec::new(),
        awaited: wanted.awaited(),
        warned: old.as_ref().map(|old| old.warned.clone()).unwrap_or_default(),
        boot: host.boot.clone(),
        netns: netns.clone(),
    };
    let ahead = Ahead { record: &record, old: old.as_ref(), renamed: resolution.is_new() };
    ahead.write(host, &wanted, own.v4(), order.guard)?;
    resolution.save(host)?;
    let mut kernel = Kernel::change(socket);
    let site = Site { host, config, wanted: &wanted, there: &there, others: &others, own: &own, before: old.as_ref() };
    let mut done = site.apply(&mut kernel)?;
    record.tunnels.append(&mut done.tunnels);
    record.routes = std::mem::take(&mut done.routes);
    site.clear(&mut kernel, &mut record, &mut done)?;
    let changes = kernel.changes;
    // What the kernel did not even answer is tried again, too.
    let unanswered = wanted.peers.faults().any(|(_, _, fault)| matches!(fault, Fault::Kernel(_)));
    record.complete = !done.refused && !unanswered;
    record.refused = (!record.complete).then_some(now);
    let faults = faults(&wanted, done.faults);
    let former = old.iter().flat_map(|old| &old.peers).filter(|peer| done.lost.contains(&peer.name));
    record.peers = wanted.records(&faults, &done.links, &former.collect::<Vec<_>>());
    warnings.append(&mut done.warnings);
    warnings.extend(strict(&wanted));
    warnings.extend(told(host, config, &record, &resolution.now));
    let warned = record.warned.clone();
    if matches!(order.which, Which::All) {
        record.warned.clone_from(&warnings);
    }
    if RoutedRecord::load(host, &config.name)?.as_ref() != Some(&record) {
        record.save(host)?;
    }
    let mtu = wanted.mtu(network::mtu::of_host(socket)?);
    let peers_changed = old.is_none_or(|old| old.peers != record.peers);
    Ok(Outcome { changes, faults, warnings, warned, peers_changed, mtu })
}

/// The MTU that the network's bridge and containers should have, in bytes: to be known before there is a bridge.
///
/// # Errors
/// As [`setup`].
pub fn network_mtu(host: &Host, socket: &mut RouteSocket, config: &RoutedConfig, plan: &Plan) -> Result<u32, Error> {
    if let Some(mtu) = config.bridge.mtu {
        return Ok(mtu);
    }
    locked(host, || {
        let (resolution, _) = resolve(host, config, Which::New, socket)?;
        resolution.save(host)?;
        let wanted = Wanted::new(config, plan, &resolution.now, socket);
        Ok(wanted.mtu(network::mtu::of_host(socket)?))
    })
}

/// Runs `act` as the only one on this host that changes what routed networks have.
fn locked<T>(host: &Host, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let folder = RoutedRecord::folder(host);
    file::make_folder(&folder).map_err(|error| Error::file("make", &folder, error))?;
    exclusively(&folder.join("lock"), act)
}

/// The records of the other routed networks of this boot and namespace.
fn others(host: &Host, netns: &NetnsId, config: &RoutedConfig) -> Result<Vec<RoutedRecord>, Error> {
    let mut records = RoutedRecord::all(host)?;
    records.retain(|record| record.name != config.name && record.is_of(host, netns));
    Ok(records)
}

/// What the names resolve to, and what is recorded of that.
struct Resolved {
    before: Resolution,
    now: Resolution,
}

impl Resolved {
    /// Somebody is elsewhere than before.
    fn is_new(&self) -> bool {
        self.now != self.before
    }

    fn save(&self, host: &Host) -> Result<(), Error> {
        if self.is_new() { self.now.save(host) } else { Ok(()) }
    }
}

fn resolve(
    host: &Host,
    config: &RoutedConfig,
    which: Which,
    socket: &mut RouteSocket,
) -> Result<(Resolved, Vec<String>), Error> {
    let before = Resolution::load(host, &config.name)?;
    let mut now = before.clone();
    let failed = own_address::refresh(config, &mut now, which, socket, |names| Getent::default().lookup(names));
    Ok((Resolved { before, now }, failed.iter().map(ToString::to_string).collect()))
}
