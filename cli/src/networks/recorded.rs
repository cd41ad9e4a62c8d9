//! Networks of which there are records.

use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use osvc_cni::network::NetworkRecord;
use osvc_cni::routed::RoutedRecord;
use osvc_cni::{Host, NetworkName};

use super::{Fault, Source};
use crate::error::Error;

/// The networks of which there is a record of what was set up, also one that cannot be read.
///
/// # Errors
/// A folder cannot be read.
pub fn recorded(host: &Host, faults: &mut Vec<Fault>) -> Result<BTreeSet<NetworkName>, Error> {
    let mut all = BTreeSet::new();
    for name in names_in(&NetworkRecord::folder(host))? {
        let read = NetworkRecord::load(host, &name).map(|record| record.is_some()).map_err(osvc_cni::Error::from);
        note(&mut all, faults, name.clone(), NetworkRecord::path(host, &name), read);
    }
    for name in names_in(&RoutedRecord::folder(host))? {
        let read = RoutedRecord::load(host, &name).map(|record| record.is_some()).map_err(osvc_cni::Error::from);
        note(&mut all, faults, name.clone(), RoutedRecord::path(host, &name), read);
    }
    Ok(all)
}

fn note(
    all: &mut BTreeSet<NetworkName>,
    faults: &mut Vec<Fault>,
    name: NetworkName,
    path: PathBuf,
    read: Result<bool, osvc_cni::Error>,
) {
    let is_there = match read {
        // A torn one stays where it is while somebody only looks.
        Ok(is_record) => is_record || path.exists(),
        Err(error) => {
            let of = if is_newer(&error) { Source::Newer } else { Source::Record };
            let error = Error::Network { network: name.clone(), source: Box::new(error) };
            faults.push(Fault { of, network: Some(name.clone()), error });
            true
        }
    };
    if is_there {
        all.insert(name);
    }
}

/// True if a record was written by a later version.
pub fn is_newer(error: &osvc_cni::Error) -> bool {
    match error {
        osvc_cni::Error::Network(error) => matches!(error, osvc_cni::network::Error::NewerFormat { .. }),
        osvc_cni::Error::Routed(error) => matches!(**error, osvc_cni::routed::Error::NewerFormat { .. }),
        _ => false,
    }
}

/// The networks that files of a folder are named after: `<network>.json`.
fn names_in(folder: &Path) -> Result<Vec<NetworkName>, Error> {
    let json = |path: PathBuf| match path.extension() {
        Some(extension) if extension == "json" => path.file_stem()?.to_str()?.parse().ok(),
        _ => None,
    };
    Ok(entries(folder)?.into_iter().filter_map(|entry| json(entry.path())).collect())
}

/// What is in a folder; nothing if it is not there.
fn entries(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.and_then(Iterator::collect),
    };
    entries.map_err(|source| Error::Read { path: folder.to_owned(), source })
}

/// The folders of a folder that are named by a network.
///
/// # Errors
/// It cannot be read.
pub fn folders_of(folder: &Path) -> Result<Vec<NetworkName>, Error> {
    let mut found = entries(folder)?;
    found.retain(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(found.iter().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}
