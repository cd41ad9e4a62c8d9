//! `osvc-net ip reserve`, `unreserve` and `release`: what an operator decides about addresses.

use std::fmt::Write;
use std::path::PathBuf;

use osvc_cni::ipam::liveness::Liveness;
use osvc_cni::ipam::record::{Record, State};
use osvc_cni::ipam::reserve::{self as decide, Decision, Which};
use osvc_cni::{Host, NetworkName, portmap};

use super::select;
use crate::args::{Release, Reserve, Unreserve};
use crate::error::Error;
use crate::networks::{Network, Networks};
use crate::output::{self, seconds, short};

/// An address that is not given back.
#[derive(Debug, thiserror::Error)]
#[error(
    "network {network}: {address} is held by {key:?}{}: container {container} {ifname}, network namespace {netns}, since \
     {since}; stop it, or use --force, and another may get its address while it runs",
    if *.is_seen { ", which runs" } else { ", and it cannot be told from here whether it runs" }
)]
struct Alive {
    network: NetworkName,
    address: std::net::IpAddr,
    key: String,
    container: String,
    ifname: String,
    netns: String,
    since: String,
    /// It runs, for certain.
    is_seen: bool,
}

fn failed(network: &Network, error: osvc_cni::ipam::Error) -> Vec<Error> {
    vec![Error::Network { network: network.name.clone(), source: Box::new(error.into()) }]
}

/// Prints what was done.
fn end(text: &str, mut errors: Vec<Error>) -> Result<(), Vec<Error>> {
    errors.extend(output::print(text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// `osvc-net ip reserve`.
pub fn reserve(host: &Host, networks: Networks, arguments: &Reserve) -> Result<(), Vec<Error>> {
    let whose = &arguments.whose;
    let network = networks.one(&whose.network)?;
    let one = |error| vec![error];
    let config = select::config(host, &network).map_err(one)?;
    let (snapshot, errors) = select::records(host, &network);
    let (key, why) = select::key(&config, &snapshot, &whose.key, whose.source.as_deref()).map_err(one)?;
    crate::interrupt::check().map_err(one)?;
    let decisions = decide::reserve(host, &config, &key, arguments.address, arguments.dry_run)
        .map_err(|error| failed(&network, error))?;
    let name = format!("{:?} (source {}, {})", key.text, key.source.name(), why.words());
    let mut text = String::new();
    for decision in &decisions {
        let Decision { address, before, elsewhere, .. } = decision;
        let done = match (decision.is_change(), arguments.dry_run) {
            (false, _) => "is reserved already",
            (true, false) => "reserved",
            (true, true) => "would be reserved",
        };
        let _ = write!(text, "{}: {address} {done} for {name}", network.name);
        if let Some(before) = before.as_ref().filter(|before| decision.is_change() && before.key != key) {
            let word = if before.is_held() { "container gone" } else { "released" };
            let _ = write!(text, "; it was last {:?}'s ({word}, {})", before.key.text, seconds(&before.since));
        }
        if let Some(elsewhere) = elsewhere {
            let _ = write!(text, "; it runs with {elsewhere} until it ends, and gets {address} at its next start");
        }
        text.push('\n');
    }
    end(&text, errors)
}

/// What is meant, and the folder that is configured.
fn meant(host: &Host, network: &Network, what: &str) -> Result<(Which, Option<PathBuf>, Vec<Error>), Vec<Error>> {
    let (snapshot, errors) = select::records(host, network);
    let which = select::which(&network.name, &snapshot, what).map_err(|error| vec![error])?;
    crate::interrupt::check().map_err(|error| vec![error])?;
    Ok((which, network.address_folders(host).map(|folders| folders.ours), errors))
}

/// `osvc-net ip unreserve`.
pub fn unreserve(host: &Host, networks: Networks, arguments: &Unreserve) -> Result<(), Vec<Error>> {
    let network = networks.one(&arguments.network)?;
    let (which, folder, errors) = meant(host, &network, &arguments.what)?;
    let decisions = decide::unreserve(host, &network.name, folder.as_deref(), &which, arguments.dry_run)
        .map_err(|error| failed(&network, error))?;
    let mut text = String::new();
    for decision in decisions.iter().filter(|decision| decision.is_change()) {
        let Decision { address, before: Some(before), after, .. } = decision else { continue };
        let done = if arguments.dry_run { "would be reserved no longer" } else { "is reserved no longer" };
        let left = match after {
            None => "it was never used, and is free".to_owned(),
            Some(after) if after.is_held() => format!("container {} keeps it until it ends", short(&after.container)),
            Some(_) => "it is free, and goes back to its key as long as nobody else got it".to_owned(),
        };
        let _ = writeln!(text, "{}: {address} {done} for {:?}: {left}", network.name, before.key.text);
    }
    if text.is_empty() {
        let _ = writeln!(
            text,
            "{}: nothing to do: nothing is reserved for {}",
            network.name,
            arguments.what.escape_debug()
        );
    }
    end(&text, errors)
}

/// `osvc-net ip release`.
pub fn release(host: &Host, networks: Networks, arguments: &Release) -> Result<(), Vec<Error>> {
    let network = networks.one(&arguments.network)?;
    let (which, folder, mut errors) = meant(host, &network, &arguments.what)?;
    let (force, dry_run) = (arguments.force, arguments.dry_run);
    let decisions = decide::release(host, &network.name, folder.as_deref(), &which, force, dry_run)
        .map_err(|error| failed(&network, error))?;
    let mut text = String::new();
    for decision in &decisions {
        let Decision { address, before: Some(before), after, liveness, .. } = decision else { continue };
        let done = if dry_run { "would be given back" } else { "given back" };
        match before.state {
            State::Released => {
                let _ = writeln!(
                    text,
                    "{}: nothing to do: {address} is released since {}",
                    network.name,
                    seconds(&before.since)
                );
            }
            State::Reserved => {
                let _ = writeln!(
                    text,
                    "{}: nothing to do: {address} is held by nobody, it is reserved for {:?}: `osvc-net ip unreserve` takes that back",
                    network.name, before.key.text
                );
            }
            State::Held if !decision.is_change() => {
                errors.push(Error::specific(alive(&network.name, *address, before, *liveness)))
            }
            State::Held => {
                let _ = write!(
                    text,
                    "{}: {address} of {:?} (container {} {}, {}, since {}) {done}",
                    network.name,
                    before.key.text,
                    before.container,
                    before.ifname,
                    word(*liveness),
                    seconds(&before.since)
                );
                if after.as_ref().is_some_and(|after| after.state == State::Reserved) {
                    text += ", and reserved for it";
                }
                if has_ports(host, &network.name, before) {
                    text += "; its host ports go with `osvc-net gc` once it is gone, or when another gets the address";
                }
                text.push('\n');
            }
        }
    }
    end(&text, errors)
}

fn word(liveness: Option<Liveness>) -> &'static str {
    match liveness {
        Some(Liveness::Dead) => "gone",
        Some(Liveness::Running | Liveness::Attached) => "running",
        _ => "not to be seen from here",
    }
}

fn alive(network: &NetworkName, address: std::net::IpAddr, record: &Record, liveness: Option<Liveness>) -> Alive {
    let netns = record.netns.as_ref().map(|netns| netns.path.display().to_string());
    Alive {
        network: network.clone(),
        address,
        key: record.key.text.clone(),
        container: record.container.clone(),
        ifname: record.ifname.clone(),
        netns: netns.unwrap_or_else(|| "unknown".to_owned()),
        since: seconds(&record.since),
        is_seen: matches!(liveness, Some(Liveness::Running | Liveness::Attached)),
    }
}

/// True if host ports lead to the attachment. What cannot be told is not said.
fn has_ports(host: &Host, network: &NetworkName, record: &Record) -> bool {
    portmap::list(host).is_ok_and(|(_, records)| {
        records.iter().any(|ports| {
            ports.network == *network && ports.container == record.container && ports.ifname == record.ifname
        })
    })
}
