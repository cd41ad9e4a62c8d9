//! Whether a container of host-local's runs, and where: its record does not say, libcni's cached result does.

use std::path::Path;
use std::time::Duration;

use super::super::Error;
use super::super::host_local::cache::Cached;
use super::super::host_local::results::is_older;
use super::super::host_local::{Entry, HostLocal};
use super::super::record::{HostEnd, NetnsRef};
use crate::netlink::netns::{Netns, Probe, host_id, probe};
use crate::netlink::{self, RouteSocket};
use crate::{Attachment, network};

/// So long a pair may outlive its container's namespace, and how often it is asked.
const DYING: Duration = Duration::from_millis(500);
/// See above.
const PAUSE: Duration = Duration::from_millis(10);

/// Where a running container is.
#[derive(Debug, Default)]
pub(super) struct Where {
    /// Its network namespace, if that is known.
    pub netns: Option<NetnsRef>,
    /// Its host end, if the reference plugin made one.
    pub host: Option<HostEnd>,
}

/// What is known of a container.
#[derive(Debug)]
pub(super) enum Life {
    /// It runs, or nothing says that it does not.
    Alive(Where),
    /// It cannot be running; the reason.
    Gone(String),
    /// What is there may be another one; the reason.
    Doubtful(String),
}

/// Looks for the container whose records these are.
pub(super) fn of(
    host_local: &mut HostLocal,
    attachment: &Attachment,
    entries: &[Entry],
    cached: Option<&Cached>,
) -> Result<Life, Error> {
    let Some(first) = entries.first() else { return Ok(Life::Doubtful("no record".to_owned())) };
    // host-local is not called after a reboot, and leaks.
    let of_this_boot = first.since >= host_local.boot_time()?;
    let host = cached.and_then(|cached| cached.veth.as_deref()).map(host_end).transpose();
    let Some(netns) = cached.and_then(|cached| cached.netns.as_deref()) else {
        let host = host.map_err(network::Error::from).unwrap_or_default().flatten();
        return Ok(match of_this_boot {
            true => Life::Alive(Where { netns: None, host }),
            false => Life::Gone("its record is of an earlier boot".to_owned()),
        });
    };
    let host = match host {
        Ok(host) => host.flatten(),
        Err(error) => return Ok(Life::Doubtful(error.to_string())),
    };
    let id = match probe(netns) {
        Ok(Probe::Network(id)) => id,
        Ok(found @ (Probe::Gone | Probe::NotANamespace)) => {
            let has_pair = cached.is_some_and(|cached| cached.veth.is_some());
            return Ok(match outlives(host.as_ref()) {
                Ok(true) => Life::Alive(Where { netns: None, host }),
                // A pair goes with either of its namespaces, and its end here is seen from every mount namespace.
                Ok(false) if has_pair => Life::Gone(format!("its network namespace {} is gone", netns.display())),
                Ok(false) if !of_this_boot => Life::Gone("its record is of an earlier boot".to_owned()),
                Ok(false) => Life::Doubtful(hidden(netns, found)),
                Err(error) => Life::Doubtful(error.to_string()),
            });
        }
        Err(error) => return Ok(Life::Doubtful(error.to_string())),
    };
    let there = || Where { netns: Some(NetnsRef::new(netns.to_owned(), Some(id))), host };
    if is_older(netns, first.since) {
        return Ok(Life::Alive(there()));
    }
    // A process id may be another's by now, a path have been used again: the addresses tell.
    Ok(match addresses_in(netns, attachment) {
        Ok(found) if entries.iter().any(|entry| found.contains(&entry.address)) => Life::Alive(there()),
        Ok(_) if !of_this_boot => Life::Gone("its record is of an earlier boot".to_owned()),
        Ok(_) => Life::Doubtful(format!(
            "its network namespace {} has no {} with this address",
            netns.display(),
            attachment.ifname
        )),
        Err(error) => Life::Doubtful(error.to_string()),
    })
}

/// What is said of a path that tells nothing. It counts only in the mount namespace of the runtime, which nobody has
/// recorded: a runtime may have a /run of its own, and seen from elsewhere its namespaces are plain files, or nothing.
fn hidden(netns: &Path, found: Probe) -> String {
    let what = if found == Probe::Gone { "is not there" } else { "is a plain file here" };
    format!("its network namespace {} {what}: another mount namespace may hide it", netns.display())
}

/// The host end of that name, if it is there and its other end too.
pub(in crate::ipam) fn host_end(name: &str) -> Result<Option<HostEnd>, netlink::Error> {
    let mut socket = RouteSocket::open()?;
    let Some(link) = socket.link_by_name(name)?.filter(|link| link.is_a("veth")) else { return Ok(None) };
    if !socket.peer_is_alive(&link)? {
        return Ok(None);
    }
    Ok(Some(HostEnd { ifname: link.name, netns: host_id()? }))
}

/// True if a pair is still there when its container's namespace has had time to go.
fn outlives(host: Option<&HostEnd>) -> Result<bool, netlink::Error> {
    let Some(host) = host else { return Ok(false) };
    let mut left = DYING;
    while host_end(&host.ifname)?.is_some() {
        if left.is_zero() {
            return Ok(true);
        }
        std::thread::sleep(PAUSE);
        left = left.saturating_sub(PAUSE);
    }
    Ok(false)
}

/// The addresses of the container's interface.
fn addresses_in(netns: &Path, attachment: &Attachment) -> Result<Vec<std::net::IpAddr>, netlink::Error> {
    let mut inside = Netns::open(netns)?.enter(RouteSocket::open)?;
    let Some(link) = inside.link_by_name(attachment.ifname.as_str())? else { return Ok(Vec::new()) };
    Ok(inside.addresses(&link)?.into_iter().map(|have| have.address.addr()).collect())
}
