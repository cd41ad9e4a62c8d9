//! Putting a folder of records right, without losing anything: killed anywhere, the next one does the rest.

use std::path::Path;

use crate::ipam::Error;
use crate::ipam::rebuild::Alias;
use crate::ipam::record::Record;
use crate::ipam::store::{Change, Location, Store};
use crate::ipam::timestamp::format;
use crate::netlink::{Link, RouteSocket, netns};
use crate::network::port::is_host_end;
use crate::{Host, NetworkName, netlink};

/// Sets aside what is no record, makes the derived files again, and the records that the host ends of living attachments
/// tell of (`ends`: their names) and that are lost. What somebody else holds, and what a later version wrote, stays as it
/// is. Returns how many records were made again.
///
/// # Errors
/// The folder cannot be made, locked, read or written, or the kernel does not answer.
pub fn mend(host: &Host, network: &NetworkName, folder: &Path, ends: &[String]) -> Result<u32, Error> {
    let failed = |source| Error::Ports { network: network.clone(), source };
    let home = netns::host_id().map_err(failed)?;
    let mut socket = RouteSocket::open().map_err(failed)?;
    let now = format(std::time::SystemTime::now());
    let location = Location { host, network, folder };
    let act = |store: &mut Store| {
        store.break_seal();
        store.rebuild(None)?;
        let mut made = 0;
        for end in ends {
            // Now that nobody can give an address back: DEL removes the link first.
            let Some(link) = living(&mut socket, network, end).map_err(failed)? else { continue };
            let Some(alias) = link.alias.as_deref().and_then(|alias| Alias::parse(alias, network.as_str())) else {
                continue;
            };
            for address in &alias.addresses {
                let before = match store.read(*address) {
                    Err(Error::NewerFormat { .. }) => continue,
                    before => before?,
                };
                if before.as_ref().is_some_and(Record::is_held) {
                    continue;
                }
                let fresh = alias.record(&link, &host.boot, &home, &now);
                // The same workload: what is remembered of it goes on.
                let after = match before.as_ref().filter(|before| before.key == fresh.key) {
                    Some(Record { instance, uses, requested, pinned, .. }) => {
                        Record { instance: *instance, uses: *uses, requested: *requested, pinned: *pinned, ..fresh }
                    }
                    // Reserved for another one: that one gets it when this one has ended.
                    None => Record { pinned: false, ..fresh },
                };
                store.apply(&Change { address: *address, before, after: Some(after) })?;
                made += 1;
            }
        }
        Ok(made)
    };
    if ends.is_empty() { Ok(location.existing(act)?.unwrap_or_default()) } else { location.created(act) }
}

/// The host end of that name, if it is ours and its container is there.
fn living(socket: &mut RouteSocket, network: &NetworkName, name: &str) -> Result<Option<Link>, netlink::Error> {
    let Some(link) = socket.link_by_name(name)?.filter(|link| is_host_end(link, network)) else { return Ok(None) };
    Ok(socket.peer_is_alive(&link)?.then_some(link))
}
