//! libcni's cached results: the only place that says where a container of host-local's lives.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::adopt::host_end;
use super::super::store::file::{is_absence, open};
use super::HostLocalError;
use crate::NetworkName;
use crate::netlink::netns::{self, Probe};

/// More than any result, chained plugins included.
const LIMIT: u64 = 8 << 20;

/// What a cached result tells of its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cached {
    /// Its network namespace is gone, as far as can be seen from here.
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

/// The part of a result that says where its container is.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CachedResult {
    interfaces: Option<Vec<Interface>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Interface {
    name: Option<String>,
    sandbox: Option<PathBuf>,
}

impl CachedResult {
    /// The network namespace of the first interface that is in one.
    pub(super) fn sandbox(&self) -> Option<&Path> {
        self.interfaces.iter().flatten().find_map(Interface::inside)
    }

    /// The host end of the pair that the reference plugin made.
    pub(super) fn veth(&self) -> Option<&str> {
        let outside = self.interfaces.iter().flatten().filter(|interface| interface.inside().is_none());
        outside.filter_map(|interface| interface.name.as_deref()).find(|name| name.starts_with("veth"))
    }
}

impl Interface {
    /// The container's namespace that it is in.
    fn inside(&self) -> Option<&Path> {
        self.sandbox.as_deref().filter(|path| path.is_absolute())
    }
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
    let Some(entry) = read::<Entry>(&path)? else { return Ok(Cached::Unknown) };
    // `a-b` and `c` make the same file name as `a` and `b-c`.
    let said = |said: &Option<String>, expected: &str| said.as_deref().is_none_or(|said| said == expected);
    if !said(&entry.container_id, container)
        || !said(&entry.if_name, ifname)
        || !said(&entry.network_name, network.as_str())
    {
        return Ok(Cached::Unknown);
    }
    let result = entry.result.unwrap_or_default();
    let sandbox = || result.sandbox().map(Path::to_owned);
    let Some(netns) = entry.netns.filter(|path| path.is_absolute()).or_else(sandbox) else {
        return Ok(Cached::Unknown);
    };
    // The end of its pair on the host is seen from every mount namespace, the path perhaps not from this one.
    let has_pair = || result.veth().is_some_and(|name| !matches!(host_end(name), Ok(None)));
    match netns::probe(&netns) {
        Ok(Probe::Network(_)) if is_older(&netns, recorded) => Ok(Cached::Same),
        Ok(Probe::Gone) if !has_pair() => Ok(Cached::Gone),
        // A plain file is also what another mount namespace sees of a namespace.
        Ok(_) | Err(_) => Ok(Cached::Unknown),
    }
}

/// True if the namespace was mounted there before the record was written. Not known of links in /proc, whose files
/// the kernel makes anew, and whose process ids it uses again.
pub(in crate::ipam) fn is_older(netns: &Path, recorded: SystemTime) -> bool {
    let recorded = recorded.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    !netns.starts_with("/proc")
        && std::fs::metadata(netns).is_ok_and(|meta| u64::try_from(meta.ctime()).is_ok_and(|made| made <= recorded))
}

/// The entry, if there is one that can be understood: libcni writes in place, so that it may be torn.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, HostLocalError> {
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
