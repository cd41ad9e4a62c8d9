//! Containers that setup cannot put back: they run, and their host end is gone.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use osvc_cni::Host;
use osvc_cni::ipam::liveness::{Kernel, Liveness, Witness};
use osvc_cni::ipam::record::{HostEnd, Record};
use osvc_cni::ipam::{snapshot, timestamp};
use osvc_cni::netlink::RouteSocket;
use osvc_cni::netlink::netns::host_id;

use crate::error::Error;
use crate::networks::Network;

/// The record is made before the host end: so long an ADD may take to come to that.
const YOUNG: Duration = Duration::from_secs(5);

/// What is found of a network's containers.
#[derive(Debug, Default)]
pub struct Found {
    /// Those that have no host end any more: only a restart gives them another.
    pub detached: Vec<(IpAddr, Record)>,
    /// Records that cannot be read: of those containers nothing is known.
    pub faults: Vec<Error>,
}

/// The containers of a network that have no host end any more.
///
/// # Errors
/// The addresses or the devices cannot be listed.
pub fn find(host: &Host, network: &Network) -> Result<Vec<(IpAddr, Record)>, Error> {
    look(host, network).map(|found| found.detached)
}

/// As [`find`], with what keeps others from being found.
///
/// # Errors
/// As [`find`].
pub fn look(host: &Host, network: &Network) -> Result<Found, Error> {
    let failed = |source: osvc_cni::Error| Error::Network { network: network.name.clone(), source: Box::new(source) };
    let folder = network.address_folders(host).map(|folders| folders.ours);
    let snapshot = snapshot::take(host, &network.name, folder.as_deref()).map_err(|error| failed(error.into()))?;
    let faults = snapshot.faults.into_iter().map(|fault| failed(fault.into())).collect();
    let mut held = snapshot.records;
    held.retain(|(_, record)| record.is_held() && record.host.is_some());
    if held.is_empty() {
        return Ok(Found { detached: held, faults });
    }
    let netns = host_id()?;
    let links: HashSet<String> = RouteSocket::open()?.links()?.into_iter().map(|link| link.name).collect();
    let mut witness = Kernel::new(host).in_a_hurry();
    held.retain(|(_, record)| {
        let is_gone = |end: &HostEnd| netns.same(&end.netns) && !links.contains(&end.ifname);
        record.host.as_ref().is_some_and(is_gone) && is_old(record) && witness.judge(record) == Liveness::Running
    });
    Ok(Found { detached: held, faults })
}

fn is_old(record: &Record) -> bool {
    let since = timestamp::parse(&record.since).and_then(|since| SystemTime::now().duration_since(since).ok());
    since.is_some_and(|age| age > YOUNG)
}
