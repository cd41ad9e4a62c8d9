//! Setting one network of osvc-bridge up.

use osvc_cni::netlink::RouteSocket;
use osvc_cni::netlink::netns::host_id;
use osvc_cni::network::NetworkRecord;
use osvc_cni::network::setup::{Setup, Site, Wanted};
use osvc_cni::{Host, firewall};

use super::{Found, line};
use crate::teardown;

/// Says why a network could not be set up on another bridge, before it leaves that of its `record`.
///
/// # Errors
/// Why not.
pub fn refuse_move(host: &Host, wanted: &Wanted, record: &NetworkRecord) -> Result<(), osvc_cni::Error> {
    let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
    Site { host, netns: &netns, socket: &mut socket }.refuse_move(wanted, record)?;
    Ok(())
}

/// Sets a network up, or finds that it is. What was done goes to `told`, which already has what was done before.
///
/// # Errors
/// Something is somebody else's, or the kernel refuses; `told` has what was done.
pub fn establish(host: &Host, wanted: &Wanted, dry_run: bool, told: &mut String) -> Result<Found, osvc_cni::Error> {
    let name = &wanted.name;
    let netns = host_id()?;
    let mut socket = RouteSocket::open()?;
    let mut site = Site { host, netns: &netns, socket: &mut socket };
    let found = site.in_place(wanted)?;
    if found.is_none() {
        site.refuse(wanted)?;
    }
    *told += &teardown::leave(host, name, dry_run)?;
    let has_left = !told.is_empty();
    let made = found.is_none();
    let mut setup = match found {
        Some(setup) => setup,
        None if dry_run => {
            // Its rules may be there all the same.
            let recorded = if site.is_recorded(wanted)? { NetworkRecord::load(host, name)? } else { None };
            let rules = match recorded {
                Some(record) => !has_left && firewall::in_place(host, &record)?,
                None => false,
            };
            let line = std::mem::take(told) + &line(wanted, "would be set up", None);
            return Ok(Found { line, changed: true, rules, faults: Vec::new(), warnings: Vec::new() });
        }
        None => site.establish(wanted)?,
    };
    let mut changes = String::new();
    let mended = mend(&mut site, wanted, &mut setup, dry_run, &mut changes);
    let changed = made || has_left || !changes.is_empty();
    let state = match (changed, dry_run) {
        (false, _) => "in place",
        (true, true) => "would be set up",
        (true, false) => "set up",
    };
    changes.insert_str(0, &line(wanted, state, Some(&setup.record)));
    if changed {
        *told += &changes;
    }
    mended?;
    let rules = !has_left && firewall::in_place(host, &setup.record)?;
    let line = if changed { std::mem::take(told) } else { changes };
    Ok(Found { line, changed, rules, faults: Vec::new(), warnings: Vec::new() })
}

/// Puts ports and MTU of a network right that is set up.
fn mend(
    site: &mut Site<'_>,
    wanted: &Wanted,
    setup: &mut Setup,
    dry_run: bool,
    changes: &mut String,
) -> Result<(), osvc_cni::Error> {
    let name = &wanted.name;
    let strays = match dry_run {
        true => site.strays(wanted, Some(&setup.bridge))?.len() as u64,
        false => site.rejoin(wanted, &setup.bridge)?.into(),
    };
    if strays > 0 {
        let done = if dry_run { "would be" } else { "were" };
        *changes += &format!("{name}: ports of {strays} containers {done} put right in bridge {}\n", setup.bridge.name);
    }
    if let Some(mtu) = site.other_mtu(wanted, setup)? {
        if dry_run {
            *changes += &format!("{name}: MTU would become {mtu}\n");
        } else {
            site.change_mtu(setup, mtu)?;
            *changes += &format!("{name}: MTU is {mtu} now\n");
        }
    }
    Ok(())
}
