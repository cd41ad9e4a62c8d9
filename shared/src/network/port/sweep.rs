//! Host ends that outlived their containers.

use std::collections::HashSet;

use crate::NetworkName;
use crate::netlink::{Link, RouteSocket};
use crate::network::names::is_ours;
use crate::network::{Error, alias};

/// Deletes the host ends of a network that are not those of the `valid` attachments, if there is a list, and whose other
/// ends are gone. What is not listed but lives belongs to another runtime. Returns their names, in no order.
///
/// # Errors
/// The kernel refuses; the first error, after everything was tried.
pub fn sweep(
    socket: &mut RouteSocket,
    network: &NetworkName,
    valid: Option<&HashSet<String>>,
) -> Result<Vec<String>, Error> {
    let (mut swept, mut failed) = (Vec::new(), None);
    for link in socket.links()? {
        if !is_host_end(&link, network) || valid.is_some_and(|valid| valid.contains(&link.name)) {
            continue;
        }
        match socket.peer_is_alive(&link) {
            Ok(true) if valid.is_none() => {}
            Ok(true) => tracing::warn!("{} is not listed but its container is there: kept", link.name),
            Ok(false) => match socket.delete_link(&link) {
                Ok(()) => swept.push(link.name),
                Err(error) => failed = failed.or(Some(error)),
            },
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(swept), |error| Err(error.into()))
}

/// What a [`sweep`] without a list would delete.
///
/// # Errors
/// The kernel does not answer.
pub fn leftovers(socket: &mut RouteSocket, network: &NetworkName) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for link in socket.links()? {
        if is_host_end(&link, network) && !socket.peer_is_alive(&link)? {
            found.push(link.name);
        }
    }
    Ok(found)
}

/// True for a host end of ours on this network.
pub fn is_host_end(link: &Link, network: &NetworkName) -> bool {
    is_ours(link) && link.is_a("veth") && link.alias.as_deref().and_then(alias::network) == Some(network.as_str())
}
