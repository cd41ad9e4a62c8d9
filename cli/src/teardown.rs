//! `osvc-net teardown`, and networks that have no part in a configuration any more.

use std::fmt::Write;

use osvc_cni::netlink::RouteSocket;
use osvc_cni::netlink::netns::host_id;
use osvc_cni::plugin::routed::Departed;
use osvc_cni::routed::node;
use osvc_cni::teardown::{How, Outcome, is_set_up, teardown};
use osvc_cni::{Host, NetworkName};

use crate::conf::BRIDGE;
use crate::error::Error;
use crate::networks::{Network, Networks};
use crate::nodes::ROUTED;
use crate::output;

/// Takes the named networks off this node, and prints what was removed.
pub fn run(host: &Host, networks: Networks, names: &[String], how: How) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(names);
    let mut text = String::new();
    for network in &chosen {
        let name = &network.name;
        match one(host, network, how) {
            Ok(Outcome::Gone(changes)) if changes.is_empty() => {
                let _ = writeln!(text, "{name}: nothing of it is set up");
            }
            Ok(Outcome::Gone(changes)) => text += &lines(name, &changes),
            Ok(Outcome::InUse(tenants)) => {
                errors.push(Error::InUse { network: name.clone(), tenants: tenants.to_string() });
            }
            Err(error) => errors.push(error),
        }
    }
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn one(host: &Host, network: &Network, how: How) -> Result<Outcome, Error> {
    let folder = network.address_folders(host).map(|folders| folders.ours);
    teardown(host, &network.name, folder.as_deref(), how).map_err(|error| failed(&network.name, error))
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
    let told = match one(host, network, How { dry_run, force: false })? {
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

/// What a network had as a routed one, now that it is another kind's: removed, or told.
pub fn leave(host: &Host, name: &NetworkName, dry_run: bool) -> Result<String, osvc_cni::Error> {
    let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
    let act = if dry_run { node::would_remove } else { node::leave };
    Ok(lines(name, &act(host, &netns, &mut socket, name)?))
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
