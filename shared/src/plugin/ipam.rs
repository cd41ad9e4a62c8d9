//! osvc-ipam: addresses for any main plugin. osvc-bridge calls the same functions without an exec.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::ipam::config::{Folders, IpamConfig};
use crate::ipam::host_local::HostLocal;
use crate::ipam::key::Key;
use crate::ipam::record::HostEnd;
use crate::ipam::requested::Requested;
use crate::ipam::{self, Lease, Request};
use crate::netlink::netns::{Netns, NetnsId};
use crate::protocol::{Call, CniResult, Ip, Plugin, ValidAttachments};
use crate::{Attachment, Error, portmap};

/// The `osvc-ipam` plugin.
pub struct Ipam;

impl Plugin for Ipam {
    fn name(&self) -> &'static str {
        "osvc-ipam"
    }

    fn add(&self, call: &Call, attachment: &Attachment) -> Result<CniResult, Error> {
        let config = config(call)?;
        // Any path is taken, as by host-local: only of a real namespace is anything concluded later.
        let netns = call.netns.as_ref().map(|path| (path.clone(), identity(path)));
        let mut result = CniResult { dns: config.load_dns()?, routes: config.routes.clone(), ..CniResult::default() };
        let (lease, _) = allocate(call, &config, attachment, netns, None)?;
        result.ips = ips(&lease);
        match result.check_version(call.version) {
            Ok(()) => Ok(result),
            Err(error) => {
                lease.undo(&call.host, &call.network)?;
                Err(error.into())
            }
        }
    }

    fn del(&self, call: &Call, attachment: &Attachment) -> Result<(), Error> {
        release(call, attachment).map(|_| ())
    }

    fn check(&self, call: &Call, attachment: &Attachment) -> Result<(), Error> {
        check(call, &config(call)?, attachment, &listed(call)?)
    }

    fn status(&self, call: &Call) -> Result<(), Error> {
        Ok(ipam::status(&call.host, &config(call)?)?)
    }

    fn gc(&self, call: &Call) -> Result<(), Error> {
        gc(call).map(|_| ())
    }
}

/// The checked `ipam` section, which this plugin cannot do without.
fn config(call: &Call) -> Result<IpamConfig, Error> {
    Ok(IpamConfig::from_call(call)?.ok_or(ipam::Error::NoIpam)?)
}

fn identity(path: &std::path::Path) -> Option<NetnsId> {
    Netns::open(path).and_then(|netns| netns.id()).ok()
}

/// Takes the addresses of an attachment, one per range set, and tells their key.
///
/// # Errors
/// As [`ipam::add`]; nothing is changed then.
pub fn allocate(
    call: &Call,
    config: &IpamConfig,
    attachment: &Attachment,
    netns: Option<(PathBuf, Option<NetnsId>)>,
    host_end: Option<HostEnd>,
) -> Result<(Lease, Key), Error> {
    let requested = Requested::from_call(call).map_err(ipam::Error::from)?.0;
    let (key, object, rid) =
        Key::from_call(call, &attachment.container, config.key_template.as_ref()).map_err(ipam::Error::from)?;
    let request = Request { attachment: attachment.clone(), key, object, rid, netns, host_end, requested };
    let lease = ipam::add(&call.host, config, &request)?;
    // Host ports of whoever had an address before lead to this attachment now: they go in the same step.
    let addresses: Vec<IpAddr> = lease.addresses.iter().map(|assigned| assigned.address.addr()).collect();
    if let Err(error) = portmap::vacate(&call.host, attachment, &addresses) {
        if let Err(second) = lease.undo(&call.host, &call.network) {
            tracing::error!("{second}: while undoing after: {error}");
        }
        return Err(error.into());
    }
    Ok((lease, request.key))
}

/// The `ips` of a result.
pub fn ips(lease: &Lease) -> Vec<Ip> {
    lease.addresses.iter().map(|assigned| Ip::new(assigned.address, assigned.gateway)).collect()
}

/// Gives back what an attachment has, whatever has become of the configuration. What host-local keeps for it, because the
/// conflist was switched under a running container, is removed there. Returns what was freed.
///
/// # Errors
/// State could not be read or written.
pub fn release(call: &Call, attachment: &Attachment) -> Result<Vec<IpAddr>, Error> {
    let folders = Folders::of_call(call);
    let mut freed = ipam::release(&call.host, &call.network, Some(&folders.ours), attachment)?;
    let host_local = HostLocal::new(&folders.host_local, &call.network);
    // Of what was ours, host-local has something only if `osvc-net adopt` was killed between the two.
    let among = Some(&freed[..]).filter(|freed| !freed.is_empty());
    let removed = host_local.remove(&attachment.container, &attachment.ifname, among).map_err(ipam::Error::from)?;
    // While we looked, `osvc-net adopt` may have taken it over: it was in neither place when we came there.
    if freed.is_empty()
        && removed.is_empty()
        && folders.host_local.is_dir()
        && ipam::adopt::may_hold(&call.host, &call.network, &folders.ours, attachment)?
    {
        return Ok(ipam::release(&call.host, &call.network, Some(&folders.ours), attachment)?);
    }
    freed.extend(removed.iter().filter(|address| !freed.contains(address)).copied().collect::<Vec<_>>());
    Ok(freed)
}

/// Whether the attachment holds what its result lists.
///
/// # Errors
/// What is missing, or other than listed.
pub fn check(call: &Call, config: &IpamConfig, attachment: &Attachment, listed: &[IpAddr]) -> Result<(), Error> {
    Ok(ipam::check(&call.host, config, attachment, listed)?)
}

/// The addresses of the call's prevResult.
///
/// # Errors
/// There is none (CNI spec 1.1.0, "CHECK": it is required), or it cannot be read.
pub fn listed(call: &Call) -> Result<Vec<IpAddr>, Error> {
    let result = call.config.prev_result()?.ok_or(crate::protocol::Error::PrevResultMissing)?;
    Ok(result.ips.iter().map(|ip| ip.address.addr()).collect())
}

/// Frees what is not in the call's list; returns the addresses.
///
/// # Errors
/// State could not be read or written.
pub fn gc(call: &Call) -> Result<Vec<IpAddr>, Error> {
    let folders = Folders::of_call(call);
    let valid = match call.config.valid_attachments()? {
        ValidAttachments::Absent => None,
        ValidAttachments::Listed(list) => Some(list),
    };
    let freed = ipam::gc(&call.host, &call.network, Some(&folders.ours), valid.as_deref())?;
    for (address, record) in &freed {
        tracing::info!("network {}: {address} of {} freed", call.network, record.holder());
    }
    Ok(freed.into_iter().map(|(address, _)| address).collect())
}
