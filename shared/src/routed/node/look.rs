//! Looking whether a routed network is as it should be, thoroughly, for CHECK; and whether it could be, for STATUS.

use super::apply::Site;
use super::own::Own;
use super::{faults, locked, others};
use crate::Host;
use crate::netlink::{self, NetnsId, NewTunnel, RouteSocket, TunnelKind};
use crate::routed::devices::Tunnel;
use crate::routed::reconcile::Kernel;
use crate::routed::resolution::Resolution;
use crate::routed::wanted::Wanted;
use crate::routed::{Error, Plan, RoutedConfig, RoutedRecord};

/// How a network is found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// What [`setup`](super::setup) would make or change, and what the kernel would refuse, as text.
    pub missing: Vec<String>,
    /// Why peers cannot be reached, whatever the kernel has: a peer's name, and why.
    pub faults: Vec<(String, String)>,
}

impl Looked {
    /// All of it, as text.
    pub fn all(self) -> impl Iterator<Item = String> {
        self.missing.into_iter().chain(self.faults.into_iter().map(|(node, text)| format!("{node}: {text}")))
    }
}

/// [`Looked::missing`] of a network.
///
/// # Errors
/// The records cannot be read, or the kernel does not answer.
pub fn missing(
    host: &Host,
    netns: &NetnsId,
    socket: &mut RouteSocket,
    config: &RoutedConfig,
    plan: &Plan,
) -> Result<Vec<String>, Error> {
    Ok(look(host, netns, socket, config, plan)?.missing)
}

/// How a network is found, for CHECK: by the addresses that the last [`setup`](super::setup) found. Nothing is changed.
/// What is missing is looked for once more, when nobody is setting a network up.
///
/// # Errors
/// The records cannot be read, or the kernel does not answer.
pub fn look(
    host: &Host,
    netns: &NetnsId,
    socket: &mut RouteSocket,
    config: &RoutedConfig,
    plan: &Plan,
) -> Result<Looked, Error> {
    match look_once(host, netns, socket, config, plan) {
        Ok(found) if found.missing.is_empty() => Ok(found),
        _ => locked(host, || look_once(host, netns, socket, config, plan)),
    }
}

fn look_once(
    host: &Host,
    netns: &NetnsId,
    socket: &mut RouteSocket,
    config: &RoutedConfig,
    plan: &Plan,
) -> Result<Looked, Error> {
    let record = RoutedRecord::load(host, &config.name)?.filter(|record| record.is_of(host, netns));
    let Some(record) = record else {
        let missing = vec![format!("routed network {} is not set up on this node", config.name)];
        return Ok(Looked { missing, ..Looked::default() });
    };
    let others = others(host, netns, config)?;
    let resolution = Resolution::load(host, &config.name)?;
    let mut wanted = Wanted::new(config, plan, &resolution, socket);
    // What only receives and could not be had at setup was told then: this kernel may lack the kind.
    let was_made = |name: &str| record.tunnels.iter().any(|tunnel| tunnel.name == name);
    let is_finished = record.complete || record.refused.is_some();
    wanted.peers.tunnels.retain(|tunnel| tunnel.sends || !is_finished || was_made(&tunnel.name));
    let own = Own::of(socket, config, &wanted)?;
    let there = socket.tunnels()?;
    let mut kernel = Kernel::look(socket);
    let site = Site { host, config, wanted: &wanted, there: &there, others: &others, own: &own, before: Some(&record) };
    let done = site.apply(&mut kernel)?;
    let mut missing = kernel.changes;
    missing.extend(done.faults.into_iter().map(|(node, text)| format!("{node}: {text}")));
    Ok(Looked { missing, faults: faults(&wanted, Vec::new()) })
}

/// The first kind of tunnel that the network sends by and this kernel has not got, for STATUS: an error that names the
/// module. It is tried out in a network namespace that is there for that long.
///
/// # Errors
/// The records cannot be read, or the kernel does not answer; no CAP_SYS_ADMIN.
pub fn missing_kind(
    host: &Host,
    socket: &mut RouteSocket,
    config: &RoutedConfig,
    plan: &Plan,
) -> Result<Option<netlink::Error>, Error> {
    let resolution = Resolution::load(host, &config.name)?;
    let mut wanted = Wanted::new(config, plan, &resolution, socket);
    wanted.peers.tunnels.retain(|tunnel| tunnel.sends);
    Ok(lacking(&wanted.peers.tunnels)?.into_iter().next().map(|(_, error)| error))
}

/// The kinds of these tunnels that this kernel has not got, each with an error that names the module.
pub(super) fn lacking<'a>(
    tunnels: impl IntoIterator<Item = &'a Tunnel>,
) -> Result<Vec<(TunnelKind, netlink::Error)>, Error> {
    let mut kinds: Vec<netlink::Tunnel> = Vec::new();
    for tunnel in tunnels {
        let parameters = tunnel.kind.tunnel();
        if !kinds.iter().any(|known| known.kind == parameters.kind) {
            kinds.push(parameters);
        }
    }
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let tried = netlink::netns::in_new(move || {
        let mut socket = RouteSocket::open()?;
        let mut lacking = Vec::new();
        for tunnel in &kinds {
            match socket.create_tunnel(&NewTunnel { name: "try", tunnel, mtu: 1280, mac: None }) {
                Err(error @ netlink::Error::NoModule { .. }) => lacking.push((tunnel.kind, error)),
                made => made?,
            }
            if let Some(link) = socket.link_by_name("try")? {
                socket.delete_link(&link)?;
            }
        }
        Ok(lacking)
    })?;
    Ok(tried)
}
