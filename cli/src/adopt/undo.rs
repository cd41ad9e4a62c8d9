//! From us to host-local.

use std::net::IpAddr;

use osvc_cni::Host;
use osvc_cni::ipam::adopt::{Back, Return};
use osvc_cni::ipam::config::Folders;
use osvc_cni::ipam::record::Record;

use super::problem::Problem;
use super::take::host_locals;
use super::{Move, tell, whose};
use crate::args::Adopt;
use crate::error::Error;
use crate::networks::Network;

/// Gives back the addresses of a network.
pub(super) fn all(host: &Host, network: &Network, arguments: &Adopt) -> Result<(), Vec<Error>> {
    let one = |error: Error| vec![error];
    if arguments.network.is_empty() && !may_be_host_locals(network) {
        return Ok(());
    }
    let failed = |source: osvc_cni::ipam::Error| Error::Network {
        network: network.name.clone(),
        source: Box::new(source.into()),
    };
    let folders = folders(host, network).map_err(one)?;
    let back = Return { host, network: &network.name, ours: Some(&folders.ours), host_local: &folders.host_local };
    let (tenancies, faults) = back.tenancies().map_err(failed).map_err(one)?;
    let faults = faults.into_iter().map(failed).collect();
    let moving = Move { network: &network.name, doing: "giving back", idle: "nothing to give back to host-local" };
    moving.each(&tenancies, faults, |tenancy| {
        let done = if arguments.dry_run { back.look(tenancy) } else { back.give(tenancy) };
        let done = done.map_err(failed).map_err(one)?;
        report(network, &tenancy.held, done, arguments.dry_run).map_err(one)
    })
}

/// Tells what was done; false if that is nothing.
fn report(network: &Network, held: &[(IpAddr, Record)], done: Option<Back>, dry_run: bool) -> Result<bool, Error> {
    let name = &network.name;
    let owner = |record: &Record| whose(&record.container, &record.ifname);
    let owner_of = |address: IpAddr| {
        let record = held.iter().find(|(at, _)| *at == address).map(|(_, record)| record);
        record.map(owner).unwrap_or_default()
    };
    match done {
        None => return Ok(false),
        Some(Back::Given(held)) => {
            let done = if dry_run { "would be given back" } else { "given back" };
            for (address, record) in held {
                let (key, owner) = (record.key.text.escape_debug(), owner(&record));
                tell(name, &format!("{address} of \"{key}\" ({owner}) {done} to host-local"))?;
            }
        }
        Some(Back::Gone(held)) => {
            let done = if dry_run { "would be released" } else { "released" };
            for (address, record) in held {
                let (key, owner) = (record.key.text.escape_debug(), owner(&record));
                tell(name, &format!("{address} of \"{key}\" ({owner}) not given back: it is gone; {done}"))?;
            }
        }
        Some(Back::Taken(address, by)) => {
            return Err(Problem::Taken { network: name.clone(), address, whose: owner_of(address), by }.into());
        }
        Some(Back::CutId(address)) => {
            return Err(Problem::CutId { network: name.clone(), address, whose: owner_of(address) }.into());
        }
    }
    Ok(true)
}

/// True if the network's configuration is or was host-local's: the one-line form never was.
fn may_be_host_locals(network: &Network) -> bool {
    match &network.definition {
        None => true,
        Some(definition) => {
            definition.plugins.iter().any(|plugin| matches!(plugin.ipam(), Some("host-local" | "osvc-ipam")))
        }
    }
}

/// Where records are: by the configuration, be it ours or host-local's again, else the usual places.
fn folders(host: &Host, network: &Network) -> Result<Folders, Error> {
    let Some(definition) = &network.definition else { return Ok(Folders::usual(&network.name, host)) };
    let ours = || definition.plugins.iter().find(|plugin| plugin.gives_addresses());
    match host_locals(definition).or_else(ours) {
        Some(plugin) => Ok(Folders::of_call(&definition.call(plugin, host)?)),
        None => Ok(Folders::usual(&network.name, host)),
    }
}
