//! What was set up of a routed network on this host: `<state>/routed/<network>.json`.
//!
//! It is written before the kernel is changed, with everything that may come to be, and after: whatever happens between,
//! what is ours is known. Networks share devices: one is there as long as a record of this boot names it.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::config::Mode;
use super::devices::{Kind, TunnelPeer};
use super::mode::Addresses;
use super::{Error, file};
use crate::netlink::{HostRoute, NetnsId};
use crate::{Host, NetworkName};

/// Format of the records that this version writes.
pub const FORMAT: u32 = 1;

/// How long the devices of another mode go on receiving after a change.
pub const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How often an ADD tries again what the kernel refused.
pub const RETRIED: Duration = Duration::from_secs(60);

/// A routed network as it was set up on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutedRecord {
    /// [`FORMAT`].
    pub v: u32,
    /// Name of the network.
    pub name: NetworkName,
    /// What it was made from: configuration and plan, as a hash.
    pub basis: String,
    /// The setup came to its end, and the kernel refused nothing.
    pub complete: bool,
    /// The second of the epoch at which a setup came to its end although the kernel had refused something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// The configured mode.
    pub mode: Mode,
    /// The subnets of the whole cluster.
    pub networks: Vec<IpNet>,
    /// The segments of this node, one of each.
    pub here: Vec<IpNet>,
    /// The peers, in the order of the configuration, those with faults too.
    pub peers: Vec<PeerRecord>,
    /// The devices by which it sends and receives.
    pub tunnels: Vec<TunnelRecord>,
    /// Its routes.
    pub routes: Vec<HostRoute>,
    /// What would make a peer's way another one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaited: Vec<Awaited>,
    /// What the last setup of an operator told him, although it works.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warned: Vec<String>,
    /// Kernel boot id at setup.
    pub boot: String,
    /// The host's network namespace at setup.
    pub netns: NetnsId,
}

/// What may come to an address in the underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Awaited {
    /// A route to it; there was none.
    Route(IpAddr),
    /// A place on a link of this node; it was elsewhere.
    Link(IpAddr),
    /// A device of this node that has it; none had.
    Own(IpAddr),
    /// A place elsewhere than on the link of the device of this number.
    Leave(IpAddr, u32),
}

/// A peer, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRecord {
    /// Its name.
    pub name: String,
    /// Its addresses in the underlay.
    pub addresses: Addresses,
    /// Its segments.
    pub segments: Vec<IpNet>,
    /// How each of them is reached.
    pub ways: Vec<WayRecord>,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// How a segment is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayRecord {
    /// The segment.
    pub segment: IpNet,
    /// The peer's address in the underlay.
    pub remote: IpAddr,
    /// The device by which packets leave.
    pub device: String,
    /// The device is a tunnel.
    pub tunnel: bool,
    /// What gets through, in bytes.
    pub mtu: u32,
}

/// A tunnel device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelRecord {
    /// Its name.
    pub name: String,
    /// Its number; 0 as long as it is not made.
    pub index: u32,
    /// What it is.
    pub kind: Kind,
    /// Its MTU, in bytes: the largest that any of its networks wants.
    pub mtu: u32,
    /// What this network wants, in bytes.
    #[serde(default)]
    pub wanted_mtu: u32,
    /// This node's address in the network, where the device has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Addr>,
    /// It is ours: it may be changed and removed.
    pub owned: bool,
    /// The network sends by it; else it only receives.
    pub sends: bool,
    /// It is there, but the kernel refused it its peers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// It is of an older mode, since this second of the epoch, and goes after [`KEPT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Whom it leads to, and what comes from whom.
    pub peers: Vec<TunnelPeer>,
}

impl TunnelRecord {
    /// True for a device of an older mode whose time is over.
    pub fn is_over(&self, now: u64) -> bool {
        // A clock that was set back must not keep it for years.
        self.kept.is_some_and(|since| now.abs_diff(since) >= KEPT.as_secs())
    }
}

/// Seconds since the epoch.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl RoutedRecord {
    /// The folder of all these records.
    pub fn folder(host: &Host) -> PathBuf {
        host.state.join("routed")
    }

    /// The file of one network's record.
    pub fn path(host: &Host, name: &NetworkName) -> PathBuf {
        Self::folder(host).join(format!("{name}.json"))
    }

    /// True if nothing is left to be done, or was tried a moment ago.
    pub fn is_done(&self, now: u64) -> bool {
        self.complete || self.refused.is_some_and(|at| now.abs_diff(at) < RETRIED.as_secs())
    }

    /// True if what it tells was set up in this boot and network namespace.
    pub fn is_of(&self, host: &Host, netns: &NetnsId) -> bool {
        self.boot == host.boot && self.netns.same(netns)
    }

    /// The record of a network; none if it was never set up. A torn one is set aside, and is none, unless this process
    /// [only looks](crate::torn::look_only).
    ///
    /// # Errors
    /// It cannot be read, or is of a later version.
    pub fn load(host: &Host, name: &NetworkName) -> Result<Option<Self>, Error> {
        file::read(&Self::path(host, name), FORMAT, |record: &Self| {
            (record.name != *name).then(|| format!("it is the record of network {}", record.name))
        })
    }

    /// The records of all routed networks, of whatever boot and namespace. One that cannot be read is told in the log
    /// and left out.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn all(host: &Host) -> Result<Vec<Self>, Error> {
        let folder = Self::folder(host);
        let failed = |error| Error::file("read", &folder, error);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut records = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match stem.parse().map(|name| Self::load(host, &name)) {
                Ok(Ok(record)) => records.extend(record),
                Ok(Err(error)) => tracing::warn!("left out: {error}"),
                Err(_) => tracing::warn!("left out: {} is named after no network", path.display()),
            }
        }
        Ok(records)
    }

    /// Writes the record, whole or not at all, and to the disk.
    ///
    /// # Errors
    /// It cannot be written: the old one is still there.
    pub fn save(&self, host: &Host) -> Result<(), Error> {
        file::write(&Self::path(host, &self.name), self)
    }

    /// Removes the record of a network. None is no error.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(host: &Host, name: &NetworkName) -> Result<(), Error> {
        file::remove(&Self::path(host, name))
    }
}
