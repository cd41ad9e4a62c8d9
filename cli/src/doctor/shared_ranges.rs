//! Others who give out the same addresses: OpenSVC's agent, and host-local.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use osvc_cni::ipam::config::IpamConfig;
use osvc_cni::ipam::host_local::HostLocal;
use osvc_cni::ipam::range::Range;
use osvc_cni::{Host, NetworkName};

use super::{Report, Subject};
use crate::networks::Network;

/// The agent's configurations, of the cluster and of this node.
const OPENSVC: [&str; 2] = ["/etc/opensvc/cluster.conf", "/etc/opensvc/node.conf"];

/// Everybody else who has, or gives, addresses of these networks.
pub fn look(report: &mut Report, networks: &[Network], subjects: &[Subject<'_>]) {
    let opensvc = opensvc_networks(report);
    for subject in subjects {
        let Some(shape) = &subject.shape else { continue };
        let name = &subject.network.name;
        for (theirs, subnet) in &opensvc {
            if let Some(mine) = shape.networks.iter().find(|mine| overlap(mine, subnet)) {
                report.add(
                    "shared-with-opensvc",
                    Some(name),
                    format!("subnet {mine} overlaps {subnet} of OpenSVC's network {theirs}"),
                    "the agent does not look at our records: it gives addresses that our containers have",
                    format!("om cluster set --kw network#{theirs}.network=…, or choose another subnet for {name}"),
                );
            }
        }
        let Some(config) = &shape.addresses else { continue };
        records(report, name, config);
        let mine = || config.sets.iter().flat_map(|set| &set.0);
        for other in networks.iter().filter(|other| other.name != *name) {
            for theirs in host_local_ranges(other) {
                let Some(mine) = mine().find(|mine| mine.overlaps(&theirs)) else { continue };
                let file = other.definition.as_ref().map(|it| it.file.display().to_string()).unwrap_or_default();
                report.add(
                    "shared-with-host-local",
                    Some(name),
                    format!(
                        "{mine} of subnet {} overlaps {theirs} of subnet {}, of which host-local gives addresses \
                         ({file})",
                        mine.subnet, theirs.subnet
                    ),
                    "host-local does not look at our records: it gives addresses that our containers have",
                    format!("choose another subnet or range in {file}, or remove that file"),
                );
            }
        }
    }
}

/// Addresses of this network that others hold by their own records.
fn records(report: &mut Report, name: &NetworkName, config: &IpamConfig) {
    let inside = |address: &IpAddr| config.sets.iter().any(|set| set.contains(*address));
    match HostLocal::new(&config.host_local, name).holders() {
        Ok(found) => {
            let found: Vec<_> = found.into_iter().filter(|(address, _)| inside(address)).collect();
            if let Some((address, holder)) = found.iter().min_by_key(|(address, _)| *address) {
                report.add(
                    "host-local-records",
                    Some(name),
                    format!(
                        "host-local holds {} addresses of it for running containers: {address} {holder}",
                        found.len()
                    ),
                    "these are lost to this network's keys: such a container has another address after its next start",
                    format!("osvc-net adopt --network {name}"),
                );
            }
        }
        Err(error) => report.cannot_tell(Some(name), "what host-local holds of it", &error),
    }
    match HostLocal::opensvc(&config.opensvc, name).holders() {
        Ok(found) => {
            let mut found: Vec<_> = found.into_iter().filter(|(address, _)| inside(address)).collect();
            found.sort_by_key(|(address, _)| *address);
            if let Some((address, holder)) = found.first() {
                report.add(
                    "shared-with-opensvc",
                    Some(name),
                    format!("OpenSVC's agent keeps {} addresses of it: {address} {holder}", found.len()),
                    "the agent does not look at our records: it gives addresses that our containers have",
                    format!("let one of the two give the addresses; {} lists the agent's", config.opensvc.display()),
                );
            }
        }
        Err(error) => report.cannot_tell(Some(name), "what OpenSVC's agent keeps of it", &error),
    }
}

fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

/// The ranges of which host-local gives addresses in a network.
fn host_local_ranges(network: &Network) -> Vec<Range> {
    let Some(definition) = &network.definition else { return Vec::new() };
    let host = Host { state: "/".into(), run: "/".into(), boot: String::new() };
    let plugins = definition.plugins.iter().filter(|plugin| plugin.ipam() == Some("host-local"));
    // A configuration of host-local is one of ours.
    let configs =
        plugins.filter_map(|plugin| IpamConfig::from_call(&definition.call(plugin, &host).ok()?).ok().flatten());
    configs.flat_map(|config| config.sets).flat_map(|set| set.0).collect()
}

/// OpenSVC's networks by its own configuration: `[network#name]` with `network = <subnet>`.
fn opensvc_networks(report: &mut Report) -> Vec<(String, IpNet)> {
    let mut found = Vec::new();
    for file in OPENSVC.map(Path::new) {
        match fs::read_to_string(file) {
            Ok(text) => found.extend(networks_in(&text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => report.cannot_tell(None, &format!("OpenSVC's networks ({})", file.display()), &error),
        }
    }
    found
}

fn networks_in(text: &str) -> Vec<(String, IpNet)> {
    let (mut section, mut found) = (None, Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.strip_prefix("network#").map(str::to_owned);
        } else if let (Some(name), Some((key, value))) = (&section, line.split_once('='))
            && key.trim() == "network"
            && let Ok(subnet) = value.trim().parse()
        {
            found.push((name.clone(), subnet));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_opensvc() {
        let text = "[cluster]\nnetwork = 10.0.0.0/8\n[network#backend]\ntype = bridge\nnetwork = 10.23.0.0/16\n[x]\n";
        assert_eq!(networks_in(text), [("backend".to_owned(), "10.23.0.0/16".parse().unwrap())]);
    }
}
