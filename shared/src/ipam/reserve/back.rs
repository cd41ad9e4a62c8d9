//! Taking back what was reserved, and what is held in vain.

use std::fs::File;
use std::net::IpAddr;
use std::path::Path;
use std::time::SystemTime;

use super::{Decision, Which};
use crate::ipam::liveness::{Kernel, Liveness, Witness};
use crate::ipam::record::{Record, State};
use crate::ipam::store::{Change, Location, Store};
use crate::ipam::timestamp::format;
use crate::ipam::{Error, folders, sweep};
use crate::{Host, NetworkName};

/// Takes reservations back. What is held stays held until its holder ends; what was never used is forgotten.
///
/// # Errors
/// A store cannot be locked, read or written.
pub fn unreserve(
    host: &Host,
    network: &NetworkName,
    configured: Option<&Path>,
    which: &Which,
    dry_run: bool,
) -> Result<Vec<Decision>, Error> {
    let place = Place { host, network, configured, dry_run };
    each(&place, which, |store, address, record| {
        let after = match record.state {
            State::Held => Some(Record { pinned: false, ..record.clone() }),
            State::Reserved if record.uses == 0 => None,
            State::Reserved => {
                let unpinned = Record { pinned: false, ..record.clone() };
                Some(unpinned.released(&format(SystemTime::now())))
            }
            State::Released => Some(record.clone()),
        };
        let decision = Decision { address, before: Some(record), after, liveness: None, elsewhere: None };
        if decision.is_change() && !dry_run {
            let (before, after) = (decision.before.clone(), decision.after.clone());
            store.apply(&Change { address, before, after })?;
            settle(store, address)?;
        }
        Ok(decision)
    })
}

/// Gives back what is held by the dead; with `force` also what is held by the living, and by those of whom it cannot be
/// told whether they live.
///
/// # Errors
/// A store cannot be locked, read or written.
pub fn release(
    host: &Host,
    network: &NetworkName,
    configured: Option<&Path>,
    which: &Which,
    force: bool,
    dry_run: bool,
) -> Result<Vec<Decision>, Error> {
    let mut witness = Kernel::new(host);
    let place = Place { host, network, configured, dry_run };
    each(&place, which, |store, address, record| {
        let liveness = record.is_held().then(|| witness.judge(&record));
        let refused = liveness != Some(Liveness::Dead) && !force;
        let mut after = Some(record.clone());
        if record.is_held() && !refused {
            after = Some(record.released(&format(SystemTime::now())));
            if !dry_run {
                sweep::set_free(store, address, record.clone())?;
            }
        }
        Ok(Decision { address, before: Some(record), after, liveness, elsewhere: None })
    })
}

/// Where records are looked for.
struct Place<'a> {
    host: &'a Host,
    network: &'a NetworkName,
    configured: Option<&'a Path>,
    /// Nothing is written, whatever there is.
    dry_run: bool,
}

/// The records that are meant, in every folder that the network ever had.
fn each(
    &Place { host, network, configured, dry_run }: &Place<'_>,
    which: &Which,
    mut act: impl FnMut(&mut Store, IpAddr, Record) -> Result<Decision, Error>,
) -> Result<Vec<Decision>, Error> {
    let mut decisions = Vec::new();
    for folder in folders::known(host, network, configured)? {
        let location = Location { host, network, folder: &folder };
        let look = |store: &mut Store| {
            let addresses = match which {
                Which::Address(address) => vec![*address],
                Which::Key(key) => store.of_key(&key.hash())?,
            };
            let mut decisions = Vec::new();
            for address in addresses {
                let Some(record) = store.read(address)? else { continue };
                if matches!(which, Which::Address(_)) || matches!(which, Which::Key(key) if *key == record.key) {
                    decisions.push(act(store, address, record)?);
                }
            }
            Ok(decisions)
        };
        let found = if dry_run { location.looking_if_there(look)? } else { location.existing(look)? };
        decisions.extend(found.unwrap_or_default());
    }
    crate::order::sort_by_key(&mut decisions, |decision| decision.address);
    Ok(decisions)
}

/// What an operator decided is on the disk before it is told.
fn settle(store: &Store, address: IpAddr) -> Result<(), Error> {
    let path = store.path(address);
    if let Ok(file) = File::open(&path) {
        file.sync_all().map_err(|error| Error::io("write", &path, error))?;
    }
    File::open(&store.folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| Error::io("write", &store.folder, error))
}
