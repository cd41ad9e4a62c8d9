//! `osvc-net gc`: gives back the addresses and host ports of what is provably dead, and what a node keeps of networks that
//! it has left.

use std::fmt::Write;

use osvc_cni::netlink::RouteSocket;
use osvc_cni::network::port;
use osvc_cni::plugin::routed::departed;
use osvc_cni::{Host, firewall, ipam, portmap, spoof};

use crate::conf::BRIDGE;
use crate::error::Error;
use crate::networks::{Network, Networks};
use crate::nodes::ROUTED;
use crate::{output, teardown};

/// Sweeps the named networks, or all, and prints what was given back.
pub fn run(host: &Host, networks: Networks, names: &[String], dry_run: bool) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(names);
    let done = if dry_run { "would be given back" } else { "given back" };
    let mut text = String::new();
    for network in &chosen {
        let folder = network.address_folders(host).map(|folders| folders.ours);
        let failed = |source| Error::Network { network: network.name.clone(), source: Box::new(source) };
        match ipam::gc(host, &network.name, folder.as_deref(), None, dry_run) {
            Ok(freed) => {
                for (address, record) in freed {
                    let key = record.key.text.escape_debug();
                    let _ = writeln!(
                        text,
                        "{}: {address} of {key} (container {} {}, since {}) {done}",
                        network.name, record.container, record.ifname, record.since
                    );
                }
            }
            Err(error) => errors.push(failed(error.into())),
        }
        match portmap::sweep(host, Some(&network.name), None, dry_run) {
            Ok(swept) => {
                for record in swept {
                    let ports: Vec<_> = record.mappings.iter().map(ToString::to_string).collect();
                    let key = record.key.text.escape_debug();
                    let _ = writeln!(
                        text,
                        "{}: host ports {} of {key} (container {} {}, since {}) {done}",
                        network.name,
                        ports.join(", "),
                        record.container,
                        record.ifname,
                        record.since
                    );
                }
            }
            Err(error) => errors.push(failed(error.into())),
        }
        match spoof::sweep(host, &network.name, None, dry_run) {
            Ok(swept) => {
                for record in swept {
                    let _ = writeln!(
                        text,
                        "{}: source checks of container {} {} (since {}) {}",
                        network.name,
                        record.container,
                        record.ifname,
                        record.since,
                        if dry_run { "would be ended" } else { "ended" }
                    );
                }
            }
            Err(error) => errors.push(failed(error.into())),
        }
        match outlived(host, network, dry_run) {
            Ok(told) => text += &told,
            Err(error) => errors.push(error),
        }
        if dry_run {
            continue;
        }
        // A host end outlives its container when the runtime died between the two.
        let swept = RouteSocket::open()
            .map_err(osvc_cni::Error::from)
            .and_then(|mut socket| Ok(port::sweep(&mut socket, &network.name, None)?));
        match swept {
            Ok(0) => {}
            Ok(count) => {
                let _ = writeln!(text, "{}: {count} host ends without a container removed", network.name);
            }
            Err(error) => errors.push(failed(error)),
        }
    }
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// What is set up of a network that this node has left, or that is no routed one any more.
fn outlived(host: &Host, network: &Network, dry_run: bool) -> Result<String, Error> {
    if let Some((definition, plugin)) = network.plugin(ROUTED) {
        // What else is wrong with a configuration is none of a sweep's business.
        let why = definition.call(plugin, host).ok().and_then(|call| departed(&call).ok().flatten());
        return match why {
            Some(why) => Ok(teardown::departed(host, network, &why, dry_run)?.unwrap_or_default()),
            None => Ok(String::new()),
        };
    }
    if network.plugin(BRIDGE).is_none() {
        return Ok(String::new());
    }
    let failed = |source| Error::Network { network: network.name.clone(), source: Box::new(source) };
    let told = teardown::leave(host, &network.name, dry_run).map_err(failed)?;
    if !told.is_empty() && !dry_run {
        firewall::apply(host).map_err(|error| failed(error.into()))?;
    }
    Ok(told)
}
