//! What a setup would do, and say: nothing is written, made or locked.

use ipnet::IpNet;

use super::apply::Site;
use super::look::lacking;
use super::own::Own;
use super::strict::strict;
use super::unmakeable::nothing_received;
use super::{faults, others, resolve};
use crate::netlink::wireguard::public_key;
use crate::netlink::{NetnsId, RouteSocket};
use crate::network::cluster::Cluster;
use crate::routed::config::Mode;
use crate::routed::reconcile::{Kernel, kept};
use crate::routed::record::{FORMAT, now};
use crate::routed::resolution::Which;
use crate::routed::wanted::{Wanted, basis};
use crate::routed::{Error, Plan, RoutedConfig, RoutedRecord, identity, private_key};
use crate::{Host, network};

/// What would come of a setup.
#[derive(Debug, Default)]
pub struct Rehearsal {
    /// What would be done, as text.
    pub changes: Vec<String>,
    /// What could not be done: as in [`Outcome`](super::Outcome).
    pub faults: Vec<(String, String)>,
    /// What an operator should know, although it would work.
    pub warnings: Vec<String>,
    /// What of that was told by the setup before.
    pub warned: Vec<String>,
    /// What the network's bridge and containers should have, in bytes.
    pub mtu: u32,
    /// The firewall would need other rules, since peers or tunnels would be others.
    pub rules: bool,
}

/// Finds out what [`setup`](super::setup) with all names looked up would do, once the bridge has these `gateways`. What
/// only the attempt can tell, such as a UDP port that is in use, is not found.
///
/// # Errors
/// What the setup would be refused for; the records cannot be read, or the kernel does not answer.
pub fn rehearse(
    host: &Host,
    netns: &NetnsId,
    socket: &mut RouteSocket,
    config: &RoutedConfig,
    plan: &Plan,
    gateways: &[IpNet],
    prune: bool,
) -> Result<Rehearsal, Error> {
    let old = RoutedRecord::load(host, &config.name)?.filter(|record| record.is_of(host, netns));
    let others = others(host, netns, config)?;
    let (resolution, mut warnings) = resolve(host, config, Which::All, socket)?;
    if plan.is_first() {
        identity::refuse(config, &resolution.now, socket)?;
    }
    let mut wanted = Wanted::new(config, plan, &resolution.now, socket);
    warnings.extend(do_without(config, &mut wanted)?);
    let mut own = Own::of(socket, config, &wanted)?;
    let there = socket.tunnels()?;
    let kept = match &old {
        Some(old) if !prune => kept(old, &wanted, config.mode, &there, now()),
        _ => Vec::new(),
    };
    let mut record = RoutedRecord {
        v: FORMAT,
        name: config.name.clone(),
        basis: basis(config, plan),
        complete: false,
        refused: None,
        mode: config.mode,
        networks: wanted.networks.clone(),
        here: wanted.here.clone(),
        peers: Vec::new(),
        tunnels: kept,
        routes: Vec::new(),
        awaited: Vec::new(),
        warned: Vec::new(),
        boot: host.boot.clone(),
        netns: netns.clone(),
    };
    let mut kernel = Kernel::rehearse(socket);
    if own.bridge.is_none() {
        own.bridge = kernel.imagined(&config.bridge.bridge.name);
        own.gateways = gateways.iter().map(IpNet::addr).collect();
    }
    let before = old.as_ref();
    let site = Site { host, config, wanted: &wanted, there: &there, others: &others, own: &own, before };
    let mut done = site.apply(&mut kernel)?;
    record.tunnels.append(&mut done.tunnels);
    record.routes = std::mem::take(&mut done.routes);
    site.clear(&mut kernel, &mut record, &mut done)?;
    let changes = kernel.changes;
    let more = key_fault(host, config, &site)?.into_iter().chain(done.faults).collect();
    let faults = faults(&wanted, more);
    let former = old.iter().flat_map(|old| &old.peers).filter(|peer| done.lost.contains(&peer.name));
    record.peers = wanted.records(&faults, &done.links, &former.collect::<Vec<_>>());
    warnings.append(&mut done.warnings);
    warnings.extend(strict(&wanted));
    let mtu = wanted.mtu(network::mtu::of_host(socket)?);
    let rules = old.as_ref().map(Cluster::of).as_ref() != Some(&Cluster::of(&record));
    let warned = old.map(|old| old.warned).unwrap_or_default();
    Ok(Rehearsal { changes, faults, warnings, warned, mtu, rules })
}

/// Leaves out the tunnels that only receive and that this kernel has not got, and says which.
fn do_without(config: &RoutedConfig, wanted: &mut Wanted<'_>) -> Result<Vec<String>, Error> {
    let mut warnings = Vec::new();
    let lacking = lacking(&wanted.peers.tunnels).unwrap_or_else(|error| {
        tracing::debug!("network {}: kinds of tunnels were not tried: {error}", config.name);
        Vec::new()
    });
    for (kind, source) in lacking {
        if wanted.peers.tunnels.iter().any(|tunnel| tunnel.sends && tunnel.kind.kind() == kind) {
            return Err(Error::NoKind { network: config.name.clone(), source });
        }
        wanted.peers.tunnels.retain(|tunnel| tunnel.kind.kind() != kind);
        warnings.push(nothing_received(kind.name(), kind.module()));
    }
    Ok(warnings)
}

/// What would be wrong with this node's key, of a device that is not there yet.
fn key_fault(host: &Host, config: &RoutedConfig, site: &Site<'_>) -> Result<Option<(String, String)>, Error> {
    let is_there = |name: &str| site.there.iter().any(|found| found.link.name == name);
    let mut devices = site.wanted.peers.tunnels.iter().filter(|tunnel| tunnel.kind.mode() == Mode::Wireguard);
    if devices.all(|tunnel| is_there(&tunnel.name)) {
        return Ok(None);
    }
    match private_key::load(host, &config.name)? {
        Some(key) => Ok(site.other_key(public_key(&key)?)),
        None => {
            let text = "it has no private key yet: once there is one, add its publicKey to `nodes` on every node";
            Ok(Some((config.this_node().name.clone(), text.to_owned())))
        }
    }
}
