//! The records of host ports and of source checks against themselves, and against those of addresses.

use osvc_cni::ipam::liveness::{Kernel, Liveness};
use osvc_cni::portmap::store::{folder, fsck};
use osvc_cni::{Host, spoof};

use super::site::Site;
use super::{Finding, Help};
use crate::error::Error;

/// What is wrong with the host ports of these networks, and with `all` of the store.
pub fn host_ports(host: &Host, sites: &[Site<'_>], all: bool) -> Result<Vec<Finding>, Error> {
    let look = fsck::look(host).map_err(|error| Error::from(osvc_cni::Error::from(error)))?;
    let mut found = Vec::new();
    for fault in look.faults.into_iter().filter(|_| all) {
        let help = if fault.later { Help::Other("install the version that wrote it".to_owned()) } else { Help::Ports };
        found.push(Finding::new(None, fault.path.display().to_string(), fault.what, help).for_certain());
    }
    let mut judge = Kernel::new(host).in_a_hurry();
    for record in &look.records {
        let Some(site) = sites.iter().find(|site| *site.name == record.network) else { continue };
        // Without a host end or without records of ours somebody else gives the addresses.
        let is_ours = record.host.is_some() && site.folder.is_some() && record.home.same(&site.home);
        if !is_ours || judge.judge_traces(&record.traces()) == Liveness::Dead {
            continue;
        }
        for target in record.targets.iter().map(ipnet::IpNet::addr) {
            if site.holds(&record.tag(), target) || site.later.contains(&target) {
                continue;
            }
            let by = site.holder(target).unwrap_or_else(|| "nobody".to_owned());
            let what = format!(
                "publishes ports of container {} at {target}, which by its record is held by {by}",
                record.container
            );
            let path = folder(host).join("attachments").join(record.tag());
            let help = Help::Other("restart the container".to_owned());
            found.push(
                Finding::new(Some(site.name), path.display().to_string(), what, help)
                    .marked(&record.since)
                    .after(record.tag()),
            );
        }
    }
    Ok(found)
}

/// What is wrong with the source checks of a network.
pub fn source_checks(site: &Site<'_>) -> Result<Vec<Finding>, Error> {
    let failed = |error: spoof::Error| Error::Network { network: site.name.clone(), source: Box::new(error.into()) };
    let (records, faults) = spoof::fsck::look(site.host, site.name).map_err(failed)?;
    let mut found = Vec::new();
    for fault in faults {
        let (subject, what) = (fault.path.display().to_string(), fault.what.clone());
        let help = match fault.later {
            true => Help::Other("install the version that wrote it".to_owned()),
            false => Help::Checks(fault),
        };
        found.push(Finding::new(Some(site.name), subject, what, help).for_certain());
    }
    let mut judge = Kernel::new(site.host).in_a_hurry();
    for record in records {
        let alive = matches!(judge.judge_traces(&record.traces()), Liveness::Running | Liveness::Attached);
        if !alive || site.folder.is_none() || !record.host.netns.same(&site.home) {
            continue;
        }
        let tag = record.tag();
        for address in record.addresses.iter().filter(|address| !site.holds(&tag, **address)) {
            if site.later.contains(address) {
                continue;
            }
            let what = format!("sends from {address} by its source checks, which by its record it does not hold");
            let help = Help::Other(format!("restart container {}", record.container));
            found.push(
                Finding::new(Some(site.name), &record.host.ifname, what, help)
                    .marked(&record.since)
                    .after(record.tag()),
            );
        }
    }
    Ok(found)
}
