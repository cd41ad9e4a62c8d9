//! The records of others who allocate in the same ranges: the reference host-local plugin, OpenSVC's agent.
//!
//! Both keep one file per address, named by its text; host-local's says `<container id>\r\n<interface>` (of old, the
//! id alone), OpenSVC's says the key. They are read, so that no address is given away under a running container when
//! a conflist is switched to osvc-ipam. Only [`HostLocal::remove`] writes, for a DEL that host-local no longer gets, and
//! `osvc-net adopt`.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use self::results::Cached;
use super::config::RESULTS;
use super::store::file::{is_absence, open};
use crate::NetworkName;

pub mod cache;
mod error;
mod remove;
pub(in crate::ipam) mod results;
mod transfer;

pub use error::HostLocalError;
pub use transfer::Entry;

/// More than any record of theirs.
const LIMIT: u64 = 64 << 10;

/// Somebody whose address was not given by us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignHolder {
    /// The container id; for OpenSVC, the key.
    pub container: String,
    /// The interface, if the record says it.
    pub ifname: Option<String>,
    /// When the record was written.
    pub since: SystemTime,
    /// The record.
    pub path: PathBuf,
}

impl fmt::Display for ForeignHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "held by {:?}", self.container)?;
        if let Some(ifname) = &self.ifname {
            write!(f, " interface {ifname:?}")?;
        }
        write!(f, " since {} according to {}", super::timestamp::format(self.since), self.path.display())
    }
}

/// Whose folder it is, and with it how long a record counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeper {
    /// A record counts while its container may live.
    HostLocal,
    /// A record counts until the agent removes it: it belongs to a service, which keeps it over reboots.
    OpenSvc,
}

/// One network's folder of records of others. It need not be there.
#[derive(Debug, Clone)]
pub struct HostLocal {
    folder: PathBuf,
    network: NetworkName,
    keeper: Keeper,
    results: PathBuf,
    boot: Option<SystemTime>,
}

impl HostLocal {
    /// host-local's folder of a network.
    pub fn new(folder: &Path, network: &NetworkName) -> Self {
        Self {
            folder: folder.to_owned(),
            network: network.clone(),
            keeper: Keeper::HostLocal,
            results: PathBuf::from(RESULTS),
            boot: None,
        }
    }

    /// OpenSVC's folder of a network.
    pub fn opensvc(folder: &Path, network: &NetworkName) -> Self {
        Self { keeper: Keeper::OpenSvc, ..Self::new(folder, network) }
    }

    /// The same, with libcni's results in another folder than `/var/lib/cni/results`.
    pub fn with_results(self, results: &Path) -> Self {
        Self { results: results.to_owned(), ..self }
    }

    /// The same, with another time of boot than the kernel's.
    pub fn with_boot(self, boot: SystemTime) -> Self {
        Self { boot: Some(boot), ..self }
    }

    /// Who has the address: one failing open(2) when nobody does, however many records there are.
    ///
    /// An empty file is nobody's: host-local writes in place, so that a crash leaves one.
    ///
    /// # Errors
    /// The record, or what tells whether it counts, cannot be read.
    pub fn holder(&mut self, ip: IpAddr) -> Result<Option<ForeignHolder>, HostLocalError> {
        let path = self.folder.join(ip.to_string());
        let Some((text, since)) = read(&path)? else { return Ok(None) };
        let (container, ifname) = split(&text);
        if container.is_empty() {
            return Ok(None);
        }
        if self.keeper == Keeper::HostLocal && !self.is_alive(container, ifname, since)? {
            return Ok(None);
        }
        Ok(Some(ForeignHolder { container: container.to_owned(), ifname: ifname.map(str::to_owned), since, path }))
    }

    /// All addresses that are held, in no order.
    ///
    /// # Errors
    /// The folder or a record cannot be read.
    pub fn holders(&mut self) -> Result<Vec<(IpAddr, ForeignHolder)>, HostLocalError> {
        let mut found = Vec::new();
        for ip in self.addresses()? {
            if let Some(holder) = self.holder(ip)? {
                found.push((ip, holder));
            }
        }
        Ok(found)
    }

    /// True if any address is held: whether the records of the other plugin still matter.
    ///
    /// # Errors
    /// The folder or a record cannot be read.
    pub fn any_alive(&mut self) -> Result<bool, HostLocalError> {
        for ip in self.addresses()? {
            if self.holder(ip)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The addresses that have a file. `lock` and `last_reserved_ip.*` are not named by one.
    fn addresses(&self) -> Result<Vec<IpAddr>, HostLocalError> {
        let fault = |source| HostLocalError::Read { path: self.folder.clone(), source };
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if is_absence(&error) => return Ok(Vec::new()),
            entries => entries.map_err(fault)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(fault)?;
            if let Some(ip) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                found.push(ip);
            }
        }
        Ok(found)
    }

    /// Whether the container of a host-local record may live.
    ///
    /// The record counts if it is newer than this boot: host-local is not called after a reboot, and leaks. It does
    /// not if the network namespace that libcni's cached result names is gone. Where that is still the one that was
    /// there when the record was written, it counts in any case: a clock that was wrong at boot makes it look old.
    fn is_alive(&mut self, container: &str, ifname: Option<&str>, since: SystemTime) -> Result<bool, HostLocalError> {
        // Records without an interface are older than the results; most containers have but an eth0.
        let ifname = ifname.unwrap_or("eth0");
        match results::liveness(&self.results, &self.network, container, ifname, since)? {
            Cached::Gone => Ok(false),
            Cached::Same => Ok(true),
            Cached::Unknown => Ok(since >= self.boot_time()?),
        }
    }

    pub(in crate::ipam) fn boot_time(&mut self) -> Result<SystemTime, HostLocalError> {
        if let Some(boot) = self.boot {
            return Ok(boot);
        }
        let boot = boot_time()?;
        self.boot = Some(boot);
        Ok(boot)
    }
}

/// When the kernel started, in the time of today's clock: now less the time since boot (proc_uptime(5)), which
/// follows every correction of the clock.
fn boot_time() -> Result<SystemTime, HostLocalError> {
    let path = Path::new("/proc/uptime");
    let fault = |source| HostLocalError::Boot { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(fault)?;
    let uptime = text.split_whitespace().next().and_then(|seconds| seconds.parse::<f64>().ok());
    let uptime = uptime.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let uptime = uptime.ok_or_else(|| fault(ErrorKind::InvalidData.into()))?;
    Ok(SystemTime::now().checked_sub(uptime).unwrap_or(SystemTime::UNIX_EPOCH))
}

/// A record's text and age; `None` if there is none.
fn read(path: &Path) -> Result<Option<(String, SystemTime)>, HostLocalError> {
    let fault = |source| HostLocalError::Read { path: path.to_owned(), source };
    let file = match open(path) {
        Err(error) if is_absence(&error) => return Ok(None),
        file => file.map_err(fault)?,
    };
    let meta = file.metadata().map_err(fault)?;
    if !meta.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes).map_err(fault)?;
    Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), meta.modified().map_err(fault)?)))
}

/// Container id and interface, if the record says it.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.trim().split_once(['\r', '\n']) {
        Some((container, ifname)) => (container.trim(), Some(ifname.trim()).filter(|ifname| !ifname.is_empty())),
        None => (text.trim(), None),
    }
}

#[cfg(test)]
mod tests;
