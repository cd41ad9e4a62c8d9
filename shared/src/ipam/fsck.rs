//! The folder of a network's records against itself: what is no record, and derived files that do not say what the
//! records say. Nothing is changed by looking.

use std::collections::HashSet;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::record::{FORMAT, Record};
use super::snapshot::Torn;
use super::store::seal::Seal;
use super::store::{Location, OURS, Store, file};
use super::{Error, folders};
use crate::{Host, NetworkName};

mod derived;
mod mend;
#[cfg(test)]
mod tests;

pub use mend::mend;

/// What is wrong with a file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which.
    pub path: PathBuf,
    /// What is wrong with it, to be read after its path.
    pub what: String,
    /// What helps.
    pub cure: Cure,
}

/// What helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cure {
    /// [`mend`] moves it to `corrupt/`.
    SetAside,
    /// [`mend`] makes it again from the records.
    MakeAgain,
    /// [`forget`] removes it.
    Remove,
    /// A later version wrote it: that one reads it.
    Upgrade,
}

/// What is in a folder.
#[derive(Debug, Default)]
pub struct Look {
    /// The records.
    pub records: Vec<(IpAddr, Record)>,
    /// Addresses whose records are of a later format: somebody may have them.
    pub later: Vec<IpAddr>,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

/// Looks through a folder while nobody writes to it. Empty if it is not there. `progress` is told how many more records
/// were read; it must not wait.
///
/// # Errors
/// It cannot be locked or read.
pub fn look(host: &Host, network: &NetworkName, folder: &Path, progress: &(dyn Fn(u64) + Sync)) -> Result<Look, Error> {
    Ok(Location { host, network, folder }.at_rest(|store| through(store, progress))?.unwrap_or_default())
}

fn through(store: &Store, progress: &(dyn Fn(u64) + Sync)) -> Result<Look, Error> {
    let mut look = Look::default();
    let failed = |error| Error::io("read", &store.folder, error);
    for entry in fs::read_dir(&store.folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let address = match name.parse::<IpAddr>() {
            Ok(address) if address.to_string() == *name => address,
            _ if OURS.contains(&&*name) || name.starts_with('.') => continue,
            _ if entry.file_type().is_ok_and(|kind| kind.is_dir()) => continue,
            _ => {
                let what = "is no address record: its name is no address".to_owned();
                look.faults.push(Fault { path, what, cure: Cure::SetAside });
                continue;
            }
        };
        progress(1);
        match record(&path) {
            Ok(Some(record)) => look.records.push((address, record)),
            Ok(None) => {}
            Err(Error::NewerFormat { v, .. }) => {
                let what = format!("has format {v}, this version knows {FORMAT}");
                look.later.push(address);
                look.faults.push(Fault { path, what, cure: Cure::Upgrade });
            }
            Err(Error::Torn(Torn { path, why })) => {
                let what = format!("is no address record: {why}");
                look.faults.push(Fault { path, what, cure: Cure::SetAside });
            }
            Err(error) => return Err(error),
        }
    }
    crate::order::sort_by_key(&mut look.records, |(address, _)| *address);
    match store.look_at_seal() {
        // Made again by the next ADD or DEL, as after each boot.
        Seal::Elsewhere => return Ok(look),
        Seal::Fits => {}
        Seal::Missing if look.records.is_empty() && look.faults.is_empty() => return Ok(look),
        Seal::Missing => look.faults.push(Fault {
            path: store.folder.join("index"),
            what: "is missing: somebody removed it, or a writer was killed".to_owned(),
            cure: Cure::MakeAgain,
        }),
        Seal::Broken => look.faults.push(Fault {
            path: store.folder.join("index"),
            what: "does not fit: somebody else changed the folder, or a writer was killed".to_owned(),
            cure: Cure::MakeAgain,
        }),
    }
    let known: HashSet<IpAddr> = look.records.iter().map(|(address, _)| *address).chain(look.later.clone()).collect();
    look.faults.extend(derived::faults(store, &look.records, &known)?);
    Ok(look)
}

/// Links to folders of a network's addresses that lead nowhere, but for the configured one, which an ADD makes.
///
/// # Errors
/// They cannot be read.
pub fn dangling(host: &Host, network: &NetworkName, configured: Option<&Path>) -> Result<Vec<Fault>, Error> {
    let mut faults = Vec::new();
    for (path, target) in folders::links_of(host, network)? {
        let what = match target {
            Some(target) if target.exists() || Some(target.as_path()) == configured => continue,
            Some(target) => format!("leads to {}, which is not there", target.display()),
            // Whatever somebody put there.
            None => continue,
        };
        faults.push(Fault { path, what, cure: Cure::Remove });
    }
    Ok(faults)
}

/// Removes a link that leads nowhere, if it still does.
///
/// # Errors
/// It cannot be removed.
pub fn forget(fault: &Fault) -> Result<(), Error> {
    match fs::read_link(&fault.path) {
        Ok(target) if target.exists() => return Ok(()),
        Ok(_) => fs::remove_file(&fault.path).map_err(|error| Error::io("remove", &fault.path, error))?,
        // No link: who knows what it is.
        Err(_) => return Ok(()),
    }
    if let Some(folder) = fault.path.parent() {
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}

/// The record in a file; `None` if there is none.
///
/// # Errors
/// It cannot be read, is of a later format, or no record: [`Torn`].
pub fn record(path: &Path) -> Result<Option<Record>, Error> {
    let Some(text) = file::read(path).map_err(|error| Error::io("read", path, error))? else { return Ok(None) };
    match serde_json::from_slice::<Record>(&text) {
        Ok(record) if record.v == FORMAT => Ok(Some(record)),
        Ok(record) => Err(Error::NewerFormat { path: path.to_owned(), v: record.v }),
        Err(error) => Err(Torn { path: path.to_owned(), why: error.to_string() }.into()),
    }
}
