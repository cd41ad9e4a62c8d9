//! From host-local to us.

use std::path::PathBuf;

use osvc_cni::Host;
use osvc_cni::ipam::adopt::{Adoption, Fate, Tenant};
use osvc_cni::ipam::config::{Folders, IpamConfig, RESULTS};
use osvc_cni::ipam::host_local::HostLocal;
use osvc_cni::ipam::snapshot;

use super::problem::Problem;
use super::{Move, tell, whose};
use crate::args::Adopt;
use crate::conf::{Definition, Plugin};
use crate::error::Error;
use crate::networks::Network;
use crate::output;

/// multus keeps the results of what it delegates to in a folder of its own.
const MULTUS_RESULTS: &str = "/var/lib/cni/multus/results";

/// Takes over the addresses of a network.
pub(super) fn all(host: &Host, network: &Network, arguments: &Adopt) -> Result<(), Vec<Error>> {
    let one = |error: Error| vec![error];
    let Some(config) = addresses(host, network, !arguments.network.is_empty()).map_err(one)? else { return Ok(()) };
    let results = match arguments.results.as_slice() {
        [] => [RESULTS, MULTUS_RESULTS].map(PathBuf::from).to_vec(),
        folders => folders.to_vec(),
    };
    let cni_args = network.address_call(host).and_then(|call| call.ok()?.config.get("args")?.get("cni").cloned());
    let adoption = Adoption { host, config: &config, cni_args: cni_args.as_ref(), results: &results };
    let failed = |source: osvc_cni::ipam::Error| Error::Network {
        network: network.name.clone(),
        source: Box::new(source.into()),
    };
    let tenants = adoption.tenants().map_err(failed).map_err(one)?;
    let records = arguments.dry_run.then(|| snapshot::folder(&config.folder)).transpose();
    let records = records.map_err(failed).map_err(one)?;
    let barred = |fault: &osvc_cni::ipam::Error| tenants.iter().any(|tenant| is_at(fault, tenant));
    // Those at the addresses of tenants are told with them.
    for fault in records.iter().flat_map(|records| &records.faults).filter(|fault| !barred(fault)) {
        output::complain(&format_args!("network {}: {fault}", network.name));
    }
    let moving = Move { network: &network.name, doing: "taking over", idle: "nothing to take over from host-local" };
    moving.each(&tenants, Vec::new(), |tenant| {
        let fate = match &records {
            Some(records) => adoption.look(tenant, records),
            None => adoption.take(tenant),
        };
        report(network, tenant, fate.map_err(failed).map_err(one)?, arguments.dry_run)
    })
}

/// True if it is the record of one of its addresses that cannot be read.
fn is_at(fault: &osvc_cni::ipam::Error, tenant: &Tenant) -> bool {
    use osvc_cni::ipam::Error::{Io, NewerFormat};
    let (NewerFormat { path, .. } | Io { path, .. }) = fault else { return false };
    tenant.addresses.iter().any(|address| path.ends_with(address.to_string()))
}

/// Tells what came of a tenant; false if that is nothing.
fn report(network: &Network, tenant: &Tenant, fate: Option<Fate>, dry_run: bool) -> Result<bool, Vec<Error>> {
    let tell = |name, line: &str| tell(name, line).map_err(|error| vec![error]);
    let name = &network.name;
    let ifname = tenant.ifname.as_deref().unwrap_or("eth0");
    match fate {
        None => return Ok(false),
        Some(Fate::Taken(taken)) => {
            let done = if dry_run { "would be taken over" } else { "taken over" };
            let hint = if taken.cached { "" } else { "; no result of it is cached: its key is its container id" };
            for address in taken.addresses {
                let (key, whose) = (taken.key.text.escape_debug(), whose(&tenant.container, &taken.ifname));
                tell(name, &format!("{address} of \"{key}\" ({whose}) {done} from host-local{hint}"))?;
            }
        }
        Some(Fate::Gone { addresses, why }) => {
            let done = if dry_run { "would be removed" } else { "removed" };
            for address in addresses {
                let whose = whose(&tenant.container, ifname);
                tell(name, &format!("{address} of {whose} not taken over: {why}; host-local's file {done}"))?;
            }
        }
        Some(Fate::Left(refusals)) => {
            let left = |why| Problem::Left { network: name.clone(), whose: whose(&tenant.container, ifname), why };
            return Err(refusals.into_iter().map(|why| left(why).into()).collect());
        }
    }
    Ok(true)
}

/// How the network gives addresses; `None` if there is nothing to be said of it. `named`: the operator asked for it.
fn addresses(host: &Host, network: &Network, named: bool) -> Result<Option<IpamConfig>, Error> {
    let Some(definition) = &network.definition else {
        return if named { Err(Problem::NoConfiguration(network.name.clone()).into()) } else { Ok(None) };
    };
    if let Some(config) = network.shape(host)?.and_then(|shape| shape.addresses) {
        return Ok(Some(config));
    }
    match host_locals(definition) {
        Some(plugin) if named || has_records(host, network, definition, plugin)? => {
            let (network, file) = (network.name.clone(), definition.file.clone());
            Err(Problem::HostLocals { network, file, what: change(plugin) }.into())
        }
        None if named => Err(Problem::NoAddresses(network.name.clone()).into()),
        _ => Ok(None),
    }
}

/// The plugin that lets host-local allocate.
pub(super) fn host_locals(definition: &Definition) -> Option<&Plugin> {
    definition.plugins.iter().find(|plugin| plugin.ipam() == Some("host-local"))
}

fn change(plugin: &Plugin) -> String {
    let main = match plugin.kind.as_str() {
        "bridge" => "the type from \"bridge\" to \"osvc-bridge\" and ",
        _ => "",
    };
    format!("{main}ipam.type from \"host-local\" to \"osvc-ipam\"")
}

/// True if host-local has containers there: without, its network is of no interest.
fn has_records(host: &Host, network: &Network, definition: &Definition, plugin: &Plugin) -> Result<bool, Error> {
    let folders = Folders::of_call(&definition.call(plugin, host)?);
    let entries = HostLocal::new(&folders.host_local, &network.name).entries();
    Ok(!entries.map_err(osvc_cni::ipam::Error::from).map_err(osvc_cni::Error::from)?.is_empty())
}
