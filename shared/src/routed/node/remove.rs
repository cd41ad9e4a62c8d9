//! Taking a routed network off this node.

use super::apply::our_routes;
use super::locked;
use crate::netlink::{NetnsId, RouteSocket};
use crate::routed::peer_file::PeerFile;
use crate::routed::reconcile::Kernel;
use crate::routed::record::TunnelRecord;
use crate::routed::resolution::Resolution;
use crate::routed::{Error, RoutedRecord};
use crate::{Host, NetworkName};

/// Removes the tunnels and routes of a network, and the records of its setup and of its names. What other networks need
/// stays, and so do the plan of segments and the WireGuard key: they are for ever. A network that is not there is no
/// error. Returned is what was done, as text.
///
/// # Errors
/// The lock or a record cannot be had, or the kernel does not answer. The record stays if a tunnel does.
pub fn remove(
    host: &Host,
    netns: &NetnsId,
    socket: &mut RouteSocket,
    network: &NetworkName,
) -> Result<Vec<String>, Error> {
    locked(host, || {
        let mut changes = Vec::new();
        if let Some(mut record) = here(host, netns, network)? {
            let mut kernel = Kernel::change(socket);
            let left = clear(host, netns, &mut kernel, &record, &[])?;
            changes = kernel.changes;
            if !left.is_empty() {
                let names: Vec<String> = left.iter().map(|tunnel| tunnel.name.clone()).collect();
                (record.tunnels, record.complete) = (left, false);
                record.save(host)?;
                return Err(Error::Left { network: network.clone(), devices: names.join(", ") });
            }
        }
        RoutedRecord::remove(host, network)?;
        Resolution::remove(host, network)?;
        Ok(changes)
    })
}

/// A network of this name is no routed one any more, or is to go: [`remove`], and the file that tells its peers. Costs a
/// look for a file where it never was one.
///
/// # Errors
/// As [`remove`].
pub fn leave(
    host: &Host,
    netns: &NetnsId,
    socket: &mut RouteSocket,
    network: &NetworkName,
) -> Result<Vec<String>, Error> {
    if !RoutedRecord::path(host, network).exists() {
        return Ok(Vec::new());
    }
    PeerFile::remove(host, network)?;
    remove(host, netns, socket, network)
}

/// What [`remove`] would do, as text, once the networks that are `gone` are. Nothing is written, removed or locked.
///
/// # Errors
/// A record cannot be read, or the kernel does not answer.
pub fn would_remove(
    host: &Host,
    netns: &NetnsId,
    socket: &mut RouteSocket,
    network: &NetworkName,
    gone: &[NetworkName],
) -> Result<Vec<String>, Error> {
    let Some(record) = here(host, netns, network)? else { return Ok(Vec::new()) };
    let mut kernel = Kernel::rehearse(socket);
    clear(host, netns, &mut kernel, &record, gone)?;
    Ok(kernel.changes)
}

/// The record of a network that was set up in this boot and namespace.
fn here(host: &Host, netns: &NetnsId, network: &NetworkName) -> Result<Option<RoutedRecord>, Error> {
    Ok(RoutedRecord::load(host, network)?.filter(|record| record.is_of(host, netns)))
}

/// Has the kernel lose what is in a record and no other network needs; the tunnels that stay.
fn clear(
    host: &Host,
    netns: &NetnsId,
    kernel: &mut Kernel<'_>,
    record: &RoutedRecord,
    gone: &[NetworkName],
) -> Result<Vec<TunnelRecord>, Error> {
    let mut others = RoutedRecord::all(host)?;
    others.retain(|other| other.name != record.name && other.is_of(host, netns) && !gone.contains(&other.name));
    let ours = our_routes(kernel.socket)?;
    for error in kernel.stale_routes(&record.networks, &[], &ours, &others) {
        tracing::warn!("{error}");
    }
    let left = kernel.stale_tunnels(&record.tunnels, |_| false, &others);
    kernel.stale_addresses(&record.tunnels, &left, &others)?;
    Ok(left)
}
