//! Putting right what was found. Each step is whole by itself, and what is not done is found again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use osvc_cni::{Host, NetworkName, ipam, portmap, spoof};

use super::{Finding, Help};
use crate::error::Error;
use crate::interrupt;
use crate::networks::Network;

/// Does what the findings call for; what fails keeps nothing else from being done.
pub fn all(host: &Host, networks: &[Network], found: &[Finding]) -> Vec<Error> {
    let mut errors = Vec::new();
    for network in networks {
        if let Err(stopped) = interrupt::check() {
            errors.push(stopped);
            return errors;
        }
        let of = |finding: &&Finding| finding.network() == Some(&network.name);
        if let Err(error) = one(host, &network.name, found.iter().filter(of)) {
            let network = network.name.clone();
            errors.push(Error::Network { network, source: Box::new(error) });
        }
    }
    if found.iter().any(|finding| finding.help == Help::Ports) {
        let mended = portmap::store::fsck::distrust(host).and_then(|()| portmap::mend(host, false));
        errors.extend(mended.err().map(|error| Error::from(osvc_cni::Error::from(error))));
    }
    errors
}

fn one<'a>(
    host: &Host,
    network: &NetworkName,
    found: impl Iterator<Item = &'a Finding>,
) -> Result<(), osvc_cni::Error> {
    // A folder once, with the host ends whose records are lost in it.
    let mut folders: BTreeMap<&PathBuf, BTreeSet<String>> = BTreeMap::new();
    for finding in found {
        match &finding.help {
            Help::Folder(folder, _) => _ = folders.entry(folder).or_default(),
            Help::Record(folder, end) => _ = folders.entry(folder).or_default().insert(end.clone()),
            Help::Link(fault) => ipam::fsck::forget(fault)?,
            Help::Checks(fault) => spoof::fsck::set_aside(host, fault)?,
            Help::Ports | Help::Other(_) => {}
        }
    }
    for (folder, ends) in folders {
        ipam::fsck::mend(host, network, folder, &Vec::from_iter(ends))?;
    }
    Ok(())
}
