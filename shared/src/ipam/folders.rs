//! Every folder that a network's addresses were ever kept in.
//!
//! `dataDir` may change between an ADD and its DEL. A folder that is not the default one is remembered by a
//! symbolic link in `<state>/folders/<network>/`, so that a DEL finds what an older configuration made.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Error;
use crate::attachment::hex;
use crate::index::make_folder;
use crate::{Host, NetworkName};

/// Where the addresses of a network lie unless `dataDir` says otherwise.
pub fn default_folder(host: &Host, network: &NetworkName) -> PathBuf {
    host.state.join("ipam").join(network.as_str())
}

fn links(host: &Host, network: &NetworkName) -> PathBuf {
    host.state.join("folders").join(network.as_str())
}

/// Remembers a folder, unless it is the default one. It is no reason to refuse an address: only a DEL after `dataDir` was
/// changed needs it.
pub fn remember(host: &Host, network: &NetworkName, folder: &Path) {
    use std::os::unix::ffi::OsStrExt;
    if folder == default_folder(host, network) {
        return;
    }
    let links = links(host, network);
    let link = links.join(&hex(&Sha256::digest(folder.as_os_str().as_bytes()))[..16]);
    if fs::read_link(&link).is_ok() {
        return;
    }
    let made = make_folder(&links).map_err(Error::from).and_then(|()| match symlink(folder, &link) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(Error::io("make", &link, error)),
        _ => Ok(()),
    });
    if let Err(error) = made {
        tracing::warn!("{error}: should ipam.dataDir change, {} is not looked into", folder.display());
    }
}

/// The links of a network, and where they lead; none for what is no link.
///
/// # Errors
/// They cannot be read.
pub fn links_of(host: &Host, network: &NetworkName) -> Result<Vec<(PathBuf, Option<PathBuf>)>, Error> {
    let links = links(host, network);
    let failed = |error| Error::io("read", &links, error);
    let entries = match fs::read_dir(&links) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let target = fs::read_link(&path).ok();
        found.push((path, target));
    }
    Ok(found)
}

/// The given folder, the default one and all remembered ones, each once.
pub fn known(host: &Host, network: &NetworkName, configured: Option<&Path>) -> Result<Vec<PathBuf>, Error> {
    let mut found: Vec<PathBuf> = configured.map(Path::to_owned).into_iter().collect();
    let mut add = |folder: PathBuf| {
        if !found.contains(&folder) {
            found.push(folder);
        }
    };
    add(default_folder(host, network));
    let links = links(host, network);
    match fs::read_dir(&links) {
        Ok(entries) => {
            for entry in entries {
                let path = entry.map_err(|error| Error::io("read", &links, error))?.path();
                if let Ok(folder) = fs::read_link(&path) {
                    add(folder);
                }
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io("read", &links, error)),
    }
    Ok(found)
}
