//! Records against the host ends of containers.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;

use osvc_cni::ipam::liveness::Liveness;
use osvc_cni::ipam::rebuild::Alias;
use osvc_cni::netlink::{Link, RouteSocket};
use osvc_cni::network::{names, port};

use super::site::Site;
use super::{Finding, Help};
use crate::error::Error;

/// The devices of this host.
pub struct Links {
    all: Vec<Link>,
    names: HashSet<String>,
    /// The numbers of those of ours whose containers are there.
    alive: HashSet<u32>,
}

/// The devices of this host.
///
/// # Errors
/// The kernel does not answer.
pub fn links() -> Result<Links, Error> {
    let look = || {
        let mut socket = RouteSocket::open()?;
        let all = socket.links()?;
        let names = all.iter().map(|link| link.name.clone()).collect();
        let mut alive = HashSet::new();
        for link in all.iter().filter(|link| names::is_ours(link) && link.is_a("veth")) {
            if socket.peer_is_alive(link)? {
                alive.insert(link.index);
            }
        }
        Ok::<_, osvc_cni::netlink::Error>(Links { all, names, alive })
    };
    look().map_err(|error| osvc_cni::Error::from(error).into())
}

/// What is wrong with a network's host ends.
pub fn look(site: &Site<'_>, links: &Links) -> Result<Vec<Finding>, Error> {
    let ends: Vec<&Link> = links.all.iter().filter(|link| port::is_host_end(link, site.name)).collect();
    let (alive, dead): (Vec<&Link>, Vec<&Link>) = ends.iter().partition(|link| links.alive.contains(&link.index));
    let gone = |link: &&Link| {
        let help = format!("`osvc-net gc {}` removes it", site.name);
        let what = "is left over from a container that is gone";
        Finding::new(Some(site.name), &link.name, what, Help::Other(help)).marked(link.index)
    };
    let mut found: Vec<Finding> = dead.iter().map(gone).collect();
    found.extend(unconnected(site, links));
    found.extend(elsewhere(site, links, &alive));
    found.extend(unrecorded(site, &alive));
    Ok(found)
}

/// Containers that are there, without their host ends.
fn unconnected(site: &Site<'_>, links: &Links) -> Vec<Finding> {
    let mut found = Vec::new();
    for entry in site.entries.iter().filter(|entry| entry.liveness == Some(Liveness::Running)) {
        let Some(end) = entry.record.host.as_ref().filter(|end| end.netns.same(&site.home)) else { continue };
        if links.names.contains(&end.ifname) {
            continue;
        }
        let (key, container) = (&entry.record.key.text, &entry.record.container);
        let what = format!("is missing: {key:?} (container {container}) has {} and is not connected", entry.address);
        let help = Help::Other("restart the container".to_owned());
        found.push(Finding::new(Some(site.name), &end.ifname, what, help).marked(&entry.record.since));
    }
    found
}

/// Host ends that are not in their network's bridge.
fn elsewhere(site: &Site<'_>, links: &Links, alive: &[&Link]) -> Vec<Finding> {
    let Some(set_up) = &site.set_up else { return Vec::new() };
    let help = || Help::Other(format!("`osvc-net setup {}` puts that right", site.name));
    let Some(bridge) = links.all.iter().find(|link| link.name == set_up.bridge) else {
        if alive.is_empty() {
            return Vec::new();
        }
        return vec![Finding::new(Some(site.name), &set_up.bridge, "is missing: it is the network's bridge", help())];
    };
    let out = alive.iter().filter(|link| link.master != Some(bridge.index));
    let tell = |link: &&Link| {
        let what = format!("is not in bridge {}", bridge.name);
        Finding::new(Some(site.name), &link.name, what, help()).marked(link.index)
    };
    out.map(tell).collect()
}

/// Addresses that host ends have by their own word, and that no record tells of, or that several have.
fn unrecorded(site: &Site<'_>, alive: &[&Link]) -> Vec<Finding> {
    let Some(folder) = &site.folder else { return Vec::new() };
    let mut having: BTreeMap<IpAddr, Vec<&Link>> = BTreeMap::new();
    for link in alive {
        let alias = link.alias.as_deref().and_then(|alias| Alias::parse(alias, site.name.as_str()));
        for address in alias.into_iter().flat_map(|alias| alias.addresses) {
            having.entry(address).or_default().push(link);
        }
    }
    let mut found = Vec::new();
    for (address, links) in having {
        if let [first, others @ ..] = links.as_slice()
            && !others.is_empty()
        {
            let others: Vec<&str> = others.iter().map(|link| link.name.as_str()).collect();
            let what = format!("has {address}, as {} has", others.join(", "));
            let help = "restart one of the containers: two have one address".to_owned();
            found.push(Finding::new(Some(site.name), &first.name, what, Help::Other(help)).marked(first.index));
            continue;
        }
        for link in links {
            let tag = link.name.strip_prefix("ov").unwrap_or_default();
            if site.holds(tag, address) || site.later.contains(&address) {
                continue;
            }
            let (what, help) = match site.holder(address) {
                Some(holder) => (
                    format!("has {address}, which by its record is held by {holder}"),
                    Help::Other("restart one of the containers: two have one address".to_owned()),
                ),
                None => {
                    (format!("has {address}, which no record says"), Help::Record(folder.clone(), link.name.clone()))
                }
            };
            found.push(Finding::new(Some(site.name), &link.name, what, help).marked(link.index));
        }
    }
    found
}
