//! libcni's cached results: the only place that says where a container of host-local's lives.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

use super::super::store::file::{is_absence, open};
use super::HostLocalError;
use crate::NetworkName;
use crate::netlink::netns::{self, Probe};

/// More than any result, chained plugins included.
const LIMIT: u64 = 8 << 20;

/// What a cached result tells of its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cached {
    /// Its network namespace is gone.
    Gone,
    /// Its network namespace is there, and was there before the record.
    Same,
    /// No result, or one that names no namespace, or none that tells whose it is by now.
    Unknown,
}

/// `cniCacheV1` (libcni). `netns` is written since libcni 1.2; podman 4 and containerd 1.7 have 1.1.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    container_id: Option<String>,
    if_name: Option<String>,
    network_name: Option<String>,
    netns: Option<PathBuf>,
    result: Option<CachedResult>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CachedResult {
    interfaces: Option<Vec<Interface>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Interface {
    sandbox: Option<PathBuf>,
}

/// What the cached result of an attachment tells.
pub(super) fn liveness(
    results: &Path,
    network: &NetworkName,
    container: &str,
    ifname: &str,
    recorded: SystemTime,
) -> Result<Cached, HostLocalError> {
    // The names are a foreign file's: they must not lead out of the folder.
    if container.contains('/') || ifname.contains('/') {
        return Ok(Cached::Unknown);
    }
    let path = results.join(format!("{network}-{container}-{ifname}"));
    let Some(entry) = read(&path)? else { return Ok(Cached::Unknown) };
    // `a-b` and `c` make the same file name as `a` and `b-c`.
    let said = |said: &Option<String>, expected: &str| said.as_deref().is_none_or(|said| said == expected);
    if !said(&entry.container_id, container)
        || !said(&entry.if_name, ifname)
        || !said(&entry.network_name, network.as_str())
    {
        return Ok(Cached::Unknown);
    }
    let sandboxes = entry.result.and_then(|result| result.interfaces).unwrap_or_default();
    let sandbox = sandboxes.into_iter().filter_map(|interface| interface.sandbox).find(|path| path.is_absolute());
    let Some(netns) = entry.netns.filter(|path| path.is_absolute()).or(sandbox) else {
        return Ok(Cached::Unknown);
    };
    match netns::probe(&netns) {
        Ok(Probe::Gone | Probe::NotANamespace) => Ok(Cached::Gone),
        Ok(Probe::Network(_)) if is_older(&netns, recorded) => Ok(Cached::Same),
        Ok(Probe::Network(_)) | Err(_) => Ok(Cached::Unknown),
    }
}

/// True if the namespace was mounted there before the record was written. Not known of links in /proc, whose files
/// the kernel makes anew, and whose process ids it uses again.
fn is_older(netns: &Path, recorded: SystemTime) -> bool {
    let recorded = recorded.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    !netns.starts_with("/proc")
        && std::fs::metadata(netns).is_ok_and(|meta| u64::try_from(meta.ctime()).is_ok_and(|made| made <= recorded))
}

/// The entry, if there is one that can be understood: libcni writes in place, so that it may be torn.
fn read(path: &Path) -> Result<Option<Entry>, HostLocalError> {
    let fault = |source| HostLocalError::Read { path: path.to_owned(), source };
    let file = match open(path) {
        // A name of more than 255 bytes cannot have been written either.
        Err(error) if is_absence(&error) => return Ok(None),
        file => file.map_err(fault)?,
    };
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes).map_err(fault)?;
    Ok(serde_json::from_slice(&bytes).ok())
}
