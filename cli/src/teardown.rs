//! `osvc-net teardown`, and networks that have no part in a configuration any more.

use std::fmt::Write;

use osvc_cni::netlink::RouteSocket;
use osvc_cni::netlink::netns::host_id;
use osvc_cni::network::NetworkRecord;
use osvc_cni::network::setup::Wanted;
use osvc_cni::plugin::routed::Departed;
use osvc_cni::routed::node;
use osvc_cni::teardown::{How, Outcome, is_set_up, rehearse, teardown};
use osvc_cni::{Host, NetworkName};

use crate::args::Teardown;
use crate::conf::BRIDGE;
use crate::error::Error;
use crate::networks::{Network, Networks};
use crate::nodes::ROUTED;
use crate::waiting::Waiting;
use crate::{interrupt, output};

/// Takes the named networks off this node, and prints what was removed.
pub fn run(host: &Host, networks: Networks, what: &Teardown, how: How) -> Result<(), Vec<Error>> {
    let (mut chosen, mut errors) = networks.choose(&what.networks);
    if what.all {
        chosen.retain(|network| is_of_ours(host, network));
    }
    let (mut text, mut gone) = (String::new(), Vec::new());
    let waiting = Waiting::new("teardown");
    for network in &chosen {
        waiting.at(network.name.as_str());
        if let Err(stopped) = interrupt::check() {
            errors.push(stopped);
            break;
        }
        let name = &network.name;
        match one(host, network, how, &gone) {
            Ok(Outcome::Gone(changes)) => {
                match changes.is_empty() {
                    true => text += &format!("{name}: nothing of it is set up\n"),
                    false => text += &lines(name, &changes),
                }
                gone.push(name.clone());
            }
            Ok(Outcome::InUse(tenants)) => {
                errors.push(Error::InUse { network: name.clone(), tenants: tenants.to_string() });
            }
            Err(error) => errors.push(error),
        }
    }
    drop(waiting);
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// True if a plugin of ours sets the network up, or has done so.
fn is_of_ours(host: &Host, network: &Network) -> bool {
    [BRIDGE, ROUTED].iter().any(|kind| network.plugin(kind).is_some()) || is_set_up(host, &network.name).unwrap_or(true)
}

/// `gone` would be those before it.
fn one(host: &Host, network: &Network, how: How, gone: &[NetworkName]) -> Result<Outcome, Error> {
    let folder = network.address_folders(host).map(|folders| folders.ours);
    let outcome = match how.dry_run {
        true => rehearse(host, &network.name, folder.as_deref(), how.force, gone),
        false => teardown(host, &network.name, folder.as_deref(), how),
    };
    outcome.map_err(|error| failed(&network.name, error))
}

fn lines(name: &NetworkName, changes: &[String]) -> String {
    changes.iter().fold(String::new(), |mut text, change| {
        let _ = writeln!(text, "{name}: {change}");
        text
    })
}

fn failed(network: &NetworkName, source: osvc_cni::Error) -> Error {
    Error::Network { network: network.clone(), source: Box::new(source) }
}

/// Takes a network off a node that is none of its nodes any more, unless containers are on it. What was done, for people;
/// none if nothing of it is set up.
pub fn departed(host: &Host, network: &Network, why: &Departed, dry_run: bool) -> Result<Option<String>, Error> {
    let name = &network.name;
    if !is_set_up(host, name).map_err(|error| failed(name, error))? {
        return Ok(None);
    }
    let told = match one(host, network, How { dry_run, force: false }, &[])? {
        Outcome::Gone(changes) => {
            let done = if dry_run { "it would be taken off this node" } else { "it was taken off this node" };
            format!("{name}: {why}: {done}\n") + &lines(name, &changes)
        }
        Outcome::InUse(tenants) => {
            format!("{name}: {why}, but it is in use by {tenants}: it stays until they are gone\n")
        }
    };
    Ok(Some(told))
}

/// The record of a network that is on another bridge than its configuration names by now; none if it is on none.
pub fn former(host: &Host, wanted: &Wanted) -> Result<Option<NetworkRecord>, Error> {
    let netns = host_id().map_err(|error| failed(&wanted.name, error.into()))?;
    let record = NetworkRecord::load(host, &wanted.name)?.filter(|record| record.is_of(host, &netns));
    Ok(record.filter(|record| record.bridge != wanted.bridge.name))
}

/// Takes a network off the bridge that its configuration named before, so that it can be set up on another.
///
/// # Errors
/// [`Error::StillThere`] while containers use it.
pub fn leave_bridge(host: &Host, wanted: &Wanted, record: &NetworkRecord, dry_run: bool) -> Result<String, Error> {
    let name = &wanted.name;
    let left = osvc_cni::teardown::leave_bridge(host, name, wanted.ipam.as_deref(), dry_run);
    match left.map_err(|error| failed(name, error))? {
        Outcome::Gone(changes) => Ok(lines(name, &changes)),
        Outcome::InUse(tenants) => Err(Error::StillThere {
            network: name.clone(),
            bridge: record.bridge.clone(),
            to: wanted.bridge.name.clone(),
            tenants: tenants.to_string(),
        }),
    }
}

/// What a network had as a routed one, now that it is another kind's: removed, or told.
pub fn leave(host: &Host, name: &NetworkName, dry_run: bool) -> Result<String, osvc_cni::Error> {
    let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
    let changes = match dry_run {
        true => node::would_remove(host, &netns, &mut socket, name, &[])?,
        false => node::leave(host, &netns, &mut socket, name)?,
    };
    Ok(lines(name, &changes))
}

/// What is set up here and in no configuration of ours: told, and left alone. Somebody may have taken away a
/// configuration under running containers.
pub fn report(host: &Host, network: &Network) -> Result<Option<String>, Error> {
    let name = &network.name;
    let is_ours = [BRIDGE, ROUTED].iter().any(|kind| network.plugin(kind).is_some());
    if is_ours || !is_set_up(host, name).map_err(|error| failed(name, error))? {
        return Ok(None);
    }
    let why = match &network.definition {
        Some(definition) => format!("{} gives it to another plugin", definition.file.display()),
        None => "it has no configuration any more".to_owned(),
    };
    Ok(Some(format!("{name}: set up here, but {why}: left alone, `osvc-net teardown {name}` removes it\n")))
}
