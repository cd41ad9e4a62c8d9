//! What an operator's `setup` does for a routed network: all of it, with names looked up anew and nothing stale left.

use std::cell::Cell;
use std::fmt::Display;

use super::{Member, network};
use crate::netlink::RouteSocket;
use crate::netlink::netns::host_id;
use crate::network::setup::{Setup, Site};
use crate::network::{NetworkRecord, Wanted};
use crate::protocol::Call;
use crate::routed::resolution::Which;
use crate::routed::{self, node, peer_file};
use crate::{Error, Host, firewall};

/// How a setup deals with what there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct How {
    /// Look only.
    pub dry_run: bool,
    /// What receives in an older mode goes at once.
    pub prune: bool,
}

/// What was found of a network, and done for it.
#[derive(Debug)]
pub struct Found {
    /// This node's part of it.
    pub wanted: Wanted,
    /// Its record; none if it has none, which happens when nothing is done only.
    pub record: Option<NetworkRecord>,
    /// What was done, or would be.
    pub changes: Vec<String>,
    /// What could not be done: the node's name, and why.
    pub faults: Vec<(String, String)>,
    /// What should be known although it works.
    pub warnings: Vec<String>,
    /// What of that was told by the setup before.
    pub warned: Vec<String>,
    /// What the configuration would change of the plan, if it does not agree with it.
    pub refused: Option<routed::Error>,
    /// The firewall would need other rules, or has got some on the way.
    pub rules: bool,
    /// What went wrong once something was done.
    pub failed: Option<Error>,
}

/// Sets a routed network up: its bridge, and the ways to its peers. Its firewall rules are left to the caller, and so is
/// running the hooks.
///
/// # Errors
/// The configuration cannot be used, or something is somebody else's; the kernel refuses, or lacks what the tunnels are
/// made of: then nothing was changed. What cannot be done for a peer is in [`Found::faults`].
pub fn setup(call: &Call, how: How) -> Result<Found, Error> {
    let network = network(call)?;
    let (Some(wanted), Some(member)) = (network.wanted(), network.member()) else {
        return Err(routed::Error::from(routed::config::Contradiction::NoNetwork).into());
    };
    let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
    let mut site = Site { host: &call.host, netns: &netns, socket: &mut socket };
    let there = site.in_place(&wanted)?;
    if there.is_none() {
        site.refuse(&wanted)?;
    }
    let mut found = Found {
        wanted,
        record: there.as_ref().map(|setup| setup.record.clone()),
        changes: Vec::new(),
        faults: Vec::new(),
        warnings: Vec::new(),
        warned: Vec::new(),
        refused: member.plan.agrees(&call.host).err(),
        rules: false,
        failed: None,
    };
    if how.dry_run {
        rehearse(member, &mut site, how, there, &mut found)?;
        return Ok(found);
    }
    member.refuse(&mut site, there.is_some())?;
    match make(call, member, &mut site, how, &mut found) {
        Err(error) if found.changes.is_empty() => return Err(error),
        made => found.failed = made.err(),
    }
    // Hooks hear of it another time.
    if let Err(error) = peer_file::publish(&call.host, &member.config) {
        found.warnings.push(error.to_string());
    }
    Ok(found)
}

/// Says why a network could not be set up on another bridge, before it leaves the one of its `record`. Nothing is written
/// or looked up by name.
///
/// # Errors
/// The configuration cannot be used, something is somebody else's, or the kernel lacks what the tunnels are made of.
pub fn refuse_move(call: &Call, record: &NetworkRecord) -> Result<(), Error> {
    let network = network(call)?;
    let (Some(wanted), Some(member)) = (network.wanted(), network.member()) else { return Ok(()) };
    let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
    let mut site = Site { host: &call.host, netns: &netns, socket: &mut socket };
    let leaving = site.refuse_move(&wanted, record)?;
    member.refuse_overlaps(&mut site, leaving.as_ref())?;
    member.refuse_kinds(&mut site)
}

/// Says what [`make`] would do and find.
fn rehearse(
    member: &Member,
    site: &mut Site<'_>,
    how: How,
    there: Option<Setup>,
    found: &mut Found,
) -> Result<(), Error> {
    member.refuse_overlaps(site, None)?;
    let Site { host, netns, socket } = site;
    let outcome = node::rehearse(host, netns, socket, &member.config, &member.plan, &found.wanted.gateways, how.prune)?;
    let bridge = &found.wanted.bridge.name;
    match there {
        Some(setup) => {
            let by_now = Wanted { mtu: Some(outcome.mtu), ..found.wanted.clone() };
            let mtu = site.other_mtu(&by_now, &setup)?;
            found.changes.extend(mtu.map(|mtu| format!("would change the MTU of bridge {bridge} to {mtu}")));
        }
        None => {
            let verb = if site.socket.link_by_name(bridge)?.is_some() { "change" } else { "make" };
            found.changes.push(format!("would {verb} bridge {bridge}"));
            // Its rules may be there all the same.
            if site.is_recorded(&found.wanted)? {
                let record = NetworkRecord::load(site.host, &found.wanted.name)?;
                found.record = record.map(|record| NetworkRecord { mtu: outcome.mtu, ..record });
            }
        }
    }
    match strays(site, &found.wanted)? {
        0 => {}
        ports => found.changes.push(format!("would put {ports} containers back into bridge {bridge}")),
    }
    found.changes.extend(outcome.changes);
    (found.faults, found.warnings, found.warned) = (outcome.faults, outcome.warnings, outcome.warned);
    found.rules = outcome.rules;
    Ok(())
}

/// How many host ends are not ports of the bridge as they should be.
fn strays(site: &mut Site<'_>, wanted: &Wanted) -> Result<usize, Error> {
    let bridge = site.socket.link_by_name(&wanted.bridge.name)?;
    Ok(site.strays(wanted, bridge.as_ref())?.len())
}

fn make(call: &Call, member: &Member, site: &mut Site<'_>, how: How, found: &mut Found) -> Result<(), Error> {
    let Found { wanted, changes, .. } = found;
    let mut say = |what: &dyn Display| changes.push(what.to_string());
    member.settle(&call.host)?;
    let sized = member.sized(site, wanted)?;
    let verb = if site.socket.link_by_name(&wanted.bridge.name)?.is_some() { "changed" } else { "made" };
    let strays = strays(site, &sized)?;
    let mut setup = site.establish(&sized)?;
    if setup.is_new() {
        say(&format_args!("{verb} bridge {}", setup.bridge.name));
    }
    site.rejoin(&sized, &setup.bridge)?;
    match strays.saturating_sub(self::strays(site, &sized)?) {
        0 => {}
        ports => say(&format_args!("put {ports} containers back into bridge {}", setup.bridge.name)),
    }
    let Site { host, netns, socket } = site;
    let guarded = Cell::new(false);
    let guard = |host: &Host| {
        guarded.set(true);
        firewall::apply(host)
    };
    let order = node::Order { which: Which::All, prune: how.prune, guard: &guard };
    let outcome = node::setup(host, netns, socket, &member.config, &member.plan, &order)?;
    let by_now = Wanted { mtu: Some(outcome.mtu), ..sized };
    if let Some(mtu) = site.other_mtu(&by_now, &setup)? {
        site.change_mtu(&mut setup, mtu)?;
        say(&format_args!("changed the MTU of bridge {} to {mtu}", setup.bridge.name));
    }
    found.record = Some(setup.record);
    found.changes.extend(outcome.changes);
    found.faults = outcome.faults;
    (found.warnings, found.warned) = (outcome.warnings, outcome.warned);
    found.rules = guarded.get();
    Ok(())
}
