//! STATUS and CHECK: what an ADD would meet, and whether an attachment has what it was given.

use std::net::IpAddr;
use std::time::Duration;

use super::config::IpamConfig;
use super::liveness::Kernel;
use super::search::Search;
use super::store::Location;
use super::{Error, held_by};
use crate::host::writable;
use crate::{Attachment, Host};

/// Who asks for the status has no time to wait as an ADD does; a lock held for so long is held by something that hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether an ADD for a new key would find an address and could write its record.
///
/// # Errors
/// [`Error::NotWritable`], or [`Error::WouldFail`]: the store cannot be locked or read, or a set is full, unless the
/// configuration says that this does not count.
pub fn status(host: &Host, config: &IpamConfig) -> Result<(), Error> {
    writable(&config.folder)?;
    if !config.status_when_full {
        return Ok(());
    }
    let location = Location { host, network: &config.network, folder: &config.folder };
    let look = |store: &mut super::store::Store| {
        let (mut witness, mut neighbours) = (Kernel::new(host).in_a_hurry(), config.neighbours(host, None)?);
        let changes = Vec::new();
        let mut search = Search { store, changes, witness: &mut witness, neighbours: &mut neighbours };
        config.sets.iter().try_for_each(|set| search.free(set, &[0; 32]).map(drop))
    };
    location.existing_within(PATIENCE, look).map(drop).map_err(|error| Error::WouldFail(Box::new(error)))
}

/// Whether the attachment holds an address of each of its ranges, and those that its result lists.
///
/// # Errors
/// [`Error::NotReserved`] or [`Error::OtherAddress`].
pub fn check(host: &Host, config: &IpamConfig, attachment: &Attachment, listed: &[IpAddr]) -> Result<(), Error> {
    let location = Location { host, network: &config.network, folder: &config.folder };
    let held = location.existing(|store| held_by(store, attachment))?.unwrap_or_default();
    let missing = || Error::NotReserved(attachment.clone());
    if held.is_empty() {
        return Err(missing());
    }
    for (address, _) in &held {
        if !listed.is_empty() && !listed.contains(address) {
            let listed = listed.to_vec();
            return Err(Error::OtherAddress { attachment: attachment.clone(), held: *address, listed });
        }
    }
    let is_held = |address: &IpAddr| held.iter().any(|(held, _)| held == address);
    let ours = |address: &&IpAddr| config.sets.iter().any(|set| set.contains(**address));
    if listed.iter().filter(ours).all(is_held) { Ok(()) } else { Err(missing()) }
}
