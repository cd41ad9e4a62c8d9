//! The records of source checks: what is none. Nothing is changed by looking.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::record::FORMAT;
use super::{Error, Record, store};
use crate::index::make_folder;
use crate::{Host, NetworkName};

/// A file that is no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which.
    pub path: PathBuf,
    /// What is wrong with it, to be read after its path.
    pub what: String,
    /// A later version wrote it: that one reads it.
    pub later: bool,
}

#[derive(serde::Deserialize)]
struct Head {
    v: u32,
}

/// The records of a network, and what is none.
///
/// # Errors
/// They cannot be read.
pub fn look(host: &Host, network: &NetworkName) -> Result<(Vec<Record>, Vec<Fault>), Error> {
    let folder = store::of_network(host, network);
    let failed = |path: &Path, source| Error::File { doing: "read", path: path.to_owned(), source };
    let (mut records, mut faults) = (Vec::new(), Vec::new());
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((records, faults)),
        entries => entries.map_err(|error| failed(&folder, error))?,
    };
    for entry in entries {
        let path = entry.map_err(|error| failed(&folder, error))?.path();
        let Some(tag) = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".json"))
        else {
            continue;
        };
        let text = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            text => text.map_err(|error| failed(&path, error))?,
        };
        let mut say = |what: String, later| faults.push(Fault { path: path.clone(), what, later });
        match serde_json::from_slice::<Record>(&text) {
            Ok(record) if record.v == FORMAT && record.network == *network && record.tag() == tag => {
                records.push(record);
            }
            Ok(record) if record.v == FORMAT => {
                say(format!("is the record of container {} on network {}", record.container, record.network), false);
            }
            parsed => match serde_json::from_slice::<Head>(&text) {
                Ok(Head { v }) if v > FORMAT => say(format!("has format {v}, this version knows {FORMAT}"), true),
                _ => {
                    let why = parsed.err().map(|error| format!(": {error}")).unwrap_or_default();
                    say(format!("is no record of source checks{why}"), false);
                }
            },
        }
    }
    Ok((records, faults))
}

/// Moves what is no record to `corrupt/`. What the kernel checks of a living attachment stays as it is.
///
/// # Errors
/// It cannot be moved.
pub fn set_aside(host: &Host, fault: &Fault) -> Result<(), Error> {
    let failed = |source| Error::File { doing: "move", path: fault.path.clone(), source };
    let act = || {
        let aside = store::folder(host).join("corrupt");
        make_folder(&aside).map_err(|error| failed(error.source))?;
        let name = fault.path.file_name().unwrap_or_default().to_string_lossy();
        let place = (0..)
            .map(|n| aside.join(if n == 0 { name.to_string() } else { format!("{name}.{n}") }))
            .find(|path| fs::symlink_metadata(path).is_err())
            .unwrap_or_else(|| aside.clone());
        match fs::rename(&fault.path, place) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    };
    store::locked(host, act).map(drop)
}
