//! Records against their network, and against each other.

use std::collections::BTreeMap;
use std::net::IpAddr;

use osvc_cni::attachment::tag;
use osvc_cni::ipam::range::RangeSet;
use osvc_cni::ipam::record::State;

use super::site::{Entry, Site};
use super::{Finding, Help};

/// What is wrong with what the records say.
pub fn look(site: &Site<'_>) -> Vec<Finding> {
    let mut found = strangers(site);
    found.extend(outside(site));
    found.extend(twice(site));
    found.extend(in_two_folders(site));
    found
}

fn sets<'a>(site: &'a Site<'_>) -> &'a [RangeSet] {
    let addresses = site.shape.as_ref().and_then(|shape| shape.addresses.as_ref());
    addresses.map(|addresses| addresses.sets.as_slice()).unwrap_or_default()
}

/// Held or reserved, and not of this network's ranges any more.
fn outside(site: &Site<'_>) -> Vec<Finding> {
    let sets = sets(site);
    if sets.is_empty() {
        return Vec::new();
    }
    let is_outside = |entry: &&Entry| {
        let counts = entry.may_live() || entry.record.state == State::Reserved;
        counts && !sets.iter().any(|set| set.contains(entry.address))
    };
    let tell = |entry: &Entry| {
        let family = if entry.address.is_ipv4() { "IPv4" } else { "IPv6" };
        let of_family = sets.iter().any(|set| set.is_ipv4() == entry.address.is_ipv4());
        let why = if of_family {
            "outside of the network's ranges".to_owned()
        } else {
            format!("{family}, and the network has none")
        };
        let (state, help) = match entry.record.state {
            State::Reserved => ("reserved", format!("`osvc-net ip unreserve --network {} …` forgets it", site.name)),
            _ => ("held", format!("container {} gets one of the network when it is restarted", entry.record.container)),
        };
        let what = format!("is {state} for {:?}, but {why}", entry.record.key.text);
        Finding::new(Some(site.name), entry.path(), what, Help::Other(help)).marked(&entry.record.since)
    };
    site.entries.iter().filter(is_outside).map(tell).collect()
}

/// Records of another network: their host ends are named by it.
fn strangers(site: &Site<'_>) -> Vec<Finding> {
    let is_stranger = |entry: &&Entry| {
        let record = &entry.record;
        let theirs = record.host.as_ref().and_then(|end| end.ifname.strip_prefix("ov"));
        // The id of a record that was made again from a host end may be cut.
        let is_whole = record.container.len() < 128;
        entry.may_live()
            && is_whole
            && theirs.is_some_and(|theirs| theirs != tag(site.name.as_str(), &record.container, &record.ifname))
    };
    let tell = |entry: &Entry| {
        let what =
            format!("is not of this network: container {} has no host end of that name on it", entry.record.container);
        let help = format!("move it away, then `osvc-net fsck --repair {}`", site.name);
        Finding::new(Some(site.name), entry.path(), what, Help::Other(help)).marked(&entry.record.since)
    };
    site.entries.iter().filter(is_stranger).map(tell).collect()
}

/// Two addresses of one attachment out of one set: it uses one of them at most.
fn twice(site: &Site<'_>) -> Vec<Finding> {
    let mut held: BTreeMap<(String, usize), Vec<&Entry>> = BTreeMap::new();
    for entry in site.entries.iter().filter(|entry| entry.may_live()) {
        let set = sets(site).iter().position(|set| set.contains(entry.address));
        if let Some(set) = set {
            let held = held.entry((entry.record.tag(site.name.as_str()), set)).or_default();
            // By two folders (`dataDir` was changed): it is one address.
            if !held.iter().any(|other| other.address == entry.address) {
                held.push(entry);
            }
        }
    }
    let tell = |entries: Vec<&Entry>| {
        let (last, others) = entries.split_last()?;
        let others: Vec<String> = others.iter().map(|entry| entry.address.to_string()).collect();
        let what = format!(
            "is held by container {} {}, which holds {} of the same ranges as well",
            last.record.container,
            last.record.ifname,
            others.join(", ")
        );
        let help =
            format!("`osvc-net ip release --network {} ADDRESS --force` for the one that it does not have", site.name);
        (!others.is_empty())
            .then(|| Finding::new(Some(site.name), last.path(), what, Help::Other(help)).marked(&last.record.since))
    };
    held.into_values().filter_map(tell).collect()
}

/// One address, two folders (`dataDir` was changed), two holders.
fn in_two_folders(site: &Site<'_>) -> Vec<Finding> {
    let mut held: BTreeMap<IpAddr, Vec<&Entry>> = BTreeMap::new();
    for entry in site.entries.iter().filter(|entry| entry.may_live()) {
        let held = held.entry(entry.address).or_default();
        let tag = |entry: &Entry| entry.record.tag(site.name.as_str());
        if !held.iter().any(|other| tag(other) == tag(entry)) {
            held.push(entry);
        }
    }
    let tell = |entries: Vec<&Entry>| {
        let [first, second, ..] = entries.as_slice() else { return None };
        let what = format!(
            "says that {} has {}, and {} that {} has it",
            first.record.holder(),
            first.address,
            second.path(),
            second.record.holder()
        );
        let help = "restart one of them: two containers have one address";
        let finding = Finding::new(Some(site.name), first.path(), what, Help::Other(help.to_owned()));
        Some(finding.marked(&second.record.since))
    };
    held.into_values().filter_map(tell).collect()
}
