//! What was set up for a network on this host: `<state>/networks/<network>.json`.
//!
//! Records lie beside the addresses, not in /run, so that a wiped /run loses nothing. They hold the
//! boot id and the network namespace of the host: in any other, nothing of it exists.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::Error;
use super::cluster::Cluster;
use super::config::Vlans;
use crate::netlink::netns::NetnsId;
use crate::{Host, NetworkName, torn};

/// Format of the records that this version writes.
pub const FORMAT: u32 = 1;

/// What to do when a foreign rule set drops what is forwarded (`forwardAccept`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardAccept {
    /// Put one marked accept into the chain that drops.
    #[default]
    Auto,
    /// Leave foreign rule sets alone.
    Never,
}

/// A network as it was set up on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkRecord {
    /// [`FORMAT`].
    pub v: u32,
    /// Name of the network.
    pub name: NetworkName,
    /// Name of the bridge device.
    pub bridge: String,
    /// We made the bridge: it may be changed and removed.
    pub owned: bool,
    /// The gateway addresses on the bridge, with prefix length; empty for layer 2.
    pub gateways: Vec<IpNet>,
    /// Those of them that we have put on a device of somebody else: they go with a move to another bridge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<IpNet>,
    /// The subnets of the network, without host bits; empty for layer 2.
    pub subnets: Vec<IpNet>,
    /// Masquerade IPv4 that leaves the network.
    pub masquerade_v4: bool,
    /// Masquerade IPv6 that leaves the network.
    pub masquerade_v6: bool,
    /// What to do about foreign rule sets that drop.
    pub forward_accept: ForwardAccept,
    /// The device by which the host is in the VLAN that the network's ports are in; without a VLAN that is the bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan_device: Option<String>,
    /// The VLANs that its ports are in.
    #[serde(default, skip_serializing_if = "Vlans::is_empty")]
    pub vlans: Vlans,
    /// Its ports are isolated from each other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub port_isolation: bool,
    /// The bridge takes up all frames.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub promiscuous: bool,
    /// … and that was our doing: it ends with the last network that wants it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub promiscuous_by_us: bool,
    /// Nothing passes between this network and any other one of this host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub isolate: bool,
    /// Its containers are not trusted: it is isolated, or what they send is checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guarded: bool,
    /// MTU of bridge and ports, in bytes.
    pub mtu: u32,
    /// The folder of the network's address records, when osvc-ipam allocates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipam: Option<PathBuf>,
    /// What of a routed network lies beyond this host. Not in the file: see [`cluster`](super::cluster).
    #[serde(skip)]
    pub cluster: Option<Cluster>,
    /// Kernel boot id at setup.
    pub boot: String,
    /// The host's network namespace at setup.
    pub netns: NetnsId,
}

/// What every record begins with, whatever its format.
#[derive(Deserialize)]
struct Head {
    v: u32,
}

impl NetworkRecord {
    /// The folder of all network records.
    pub fn folder(host: &Host) -> PathBuf {
        host.state.join("networks")
    }

    /// The file of one network's record.
    pub fn path(host: &Host, name: &NetworkName) -> PathBuf {
        Self::folder(host).join(format!("{name}.json"))
    }

    /// The device that has the gateway addresses, and by which the host forwards for the network.
    pub fn device(&self) -> &str {
        self.vlan_device.as_deref().unwrap_or(&self.bridge)
    }

    /// True if its ports were put into VLANs of their own: the bridge has to filter.
    pub fn has_vlans(&self) -> bool {
        self.vlans.filter() || self.vlan_device.is_some()
    }

    /// The devices by which forwarded packets of the network come and go: with br_netfilter, frames between its ports
    /// are forwarded packets of the bridge, whatever VLAN they are in.
    pub fn forwarding_devices(&self) -> impl Iterator<Item = &str> {
        [Some(self.bridge.as_str()), self.vlan_device.as_deref()].into_iter().flatten()
    }

    /// True if what it tells was set up in this boot and network namespace.
    pub fn is_of(&self, host: &Host, netns: &NetnsId) -> bool {
        self.boot == host.boot && self.netns.same(netns)
    }

    /// The record of a network; none if it was never set up. A torn one is set aside, and is none, unless this process
    /// [only looks](torn::look_only).
    ///
    /// # Errors
    /// It cannot be read, or is of a later version.
    pub fn load(host: &Host, name: &NetworkName) -> Result<Option<Self>, Error> {
        Self::read(&Self::path(host, name))
    }

    /// The records of all networks, of whatever boot and namespace. One that cannot be read, or is of a later version,
    /// is told in the log and left out: it costs its own network something, and not the others.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn all(host: &Host) -> Result<Vec<Self>, Error> {
        let folder = Self::folder(host);
        let failed = |error| Error::record("read", &folder, error);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut records = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                match Self::read(&path) {
                    Ok(record) => records.extend(record),
                    Err(error) => tracing::warn!("left out: {error}"),
                }
            }
        }
        Ok(records)
    }

    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let text = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| Error::record("read", path, error))?,
        };
        match serde_json::from_slice::<Head>(&text) {
            Ok(Head { v }) if v > FORMAT => return Err(Error::NewerFormat { path: path.to_owned(), v }),
            _ => {}
        }
        match serde_json::from_slice::<Self>(&text) {
            // The file's name decides nothing else: a copy must not speak for another network.
            Ok(record) if path.file_stem().is_some_and(|stem| stem == record.name.as_str()) => Ok(Some(record)),
            Ok(record) => set_aside(path, &format!("it is the record of network {}", record.name)),
            Err(error) => set_aside(path, &error.to_string()),
        }
    }

    /// Writes the record, whole or not at all, and to the disk: a setup is rare, and the record is
    /// all that is left of it.
    ///
    /// # Errors
    /// It cannot be written: the old one is still there.
    pub fn save(&self, host: &Host) -> Result<(), Error> {
        let folder = Self::folder(host);
        let path = Self::path(host, &self.name);
        // One for each process: what a killed one left is written over or lies there unread.
        let fresh = folder.join(format!("{}.{}.new", self.name, std::process::id()));
        let write = || -> io::Result<()> {
            DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            let mut text = serde_json::to_vec(self)?;
            text.push(b'\n');
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&fresh, &path)?;
            File::open(&folder)?.sync_all()
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&fresh);
            Error::record("write", path, error)
        })
    }

    /// Removes the record of a network. None is no error.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(host: &Host, name: &NetworkName) -> Result<(), Error> {
        let path = Self::path(host, name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::record("remove", path, error)),
            _ => Ok(()),
        }
    }
}

fn set_aside(path: &Path, why: &str) -> Result<Option<NetworkRecord>, Error> {
    torn::set_aside(path, why).map(|()| None).map_err(|error| Error::record("set aside", path, error))
}

#[cfg(test)]
#[path = "record_tests.rs"]
pub(crate) mod tests;
