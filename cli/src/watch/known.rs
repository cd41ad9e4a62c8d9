//! What was known of records, and what has turn of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use osvc_cni::ipam::fsck;
use osvc_cni::ipam::record::Record;
use osvc_cni::ipam::store::file;
use osvc_cni::routed::peer_file::{self, PeerFile};
use osvc_cni::{NetworkName, portmap};

use super::event::Event;
use crate::output;

/// All that was seen so far.
#[derive(Debug, Default)]
pub struct Known {
    addresses: BTreeMap<(PathBuf, IpAddr), Record>,
    ports: BTreeMap<String, portmap::Record>,
    peers: BTreeMap<NetworkName, PeerFile>,
}

impl Known {
    /// What became of an address.
    pub fn address(&mut self, network: &NetworkName, folder: &Path, address: IpAddr) -> Vec<Event> {
        let now = match fsck::record(&folder.join(address.to_string())) {
            Ok(now) => now,
            Err(error) => {
                output::complain(&error);
                return Vec::new();
            }
        };
        let key = (folder.to_owned(), address);
        let before = match &now {
            Some(record) => self.addresses.insert(key, record.clone()),
            None => self.addresses.remove(&key),
        };
        match (before, now) {
            (before, Some(now)) if before.as_ref() == Some(&now) => Vec::new(),
            (Some(before), Some(now)) if before.is_held() && now.is_held() && !is_same_holder(&before, &now) => vec![
                Event::handed_on(network, folder, address, &before, &now.since),
                Event::address(network, folder, address, &now),
            ],
            (_, Some(now)) => vec![Event::address(network, folder, address, &now)],
            (Some(before), None) => vec![Event::forgotten(network, folder, address, &before)],
            (None, None) => Vec::new(),
        }
    }

    /// What became of all addresses of a folder, which may have gone.
    pub fn all_addresses(&mut self, network: &NetworkName, folder: &Path) -> Vec<Event> {
        let known = self.addresses.keys().filter(|(of, _)| of == folder).map(|(_, address)| *address);
        let mut addresses: BTreeSet<IpAddr> = known.collect();
        addresses.extend(names(folder).iter().filter_map(|name| name.parse::<IpAddr>().ok()));
        addresses.into_iter().flat_map(|address| self.address(network, folder, address)).collect()
    }

    /// What became of the host ports of an attachment.
    pub fn port(&mut self, folder: &Path, tag: &str) -> Vec<Event> {
        if tag.starts_with('.') {
            return Vec::new();
        }
        let path = folder.join(tag);
        let now = match read::<portmap::Record>(&path, |record| record.v == portmap::record::FORMAT) {
            Ok(now) => now,
            Err(why) => return complain(&path, &why),
        };
        let before = match &now {
            Some(record) => self.ports.insert(tag.to_owned(), record.clone()),
            None => self.ports.remove(tag),
        };
        if before == now {
            return Vec::new();
        }
        before.iter().map(Event::unpublished).chain(now.iter().map(Event::published)).collect()
    }

    /// What became of the host ports of all attachments.
    pub fn all_ports(&mut self, folder: &Path) -> Vec<Event> {
        let tags: BTreeSet<String> = self.ports.keys().cloned().chain(names(folder)).collect();
        tags.iter().flat_map(|tag| self.port(folder, tag)).collect()
    }

    /// What became of the nodes of a network.
    pub fn peers(&mut self, folder: &Path, name: &str) -> Vec<Event> {
        let Some(network) = name.strip_suffix(".json").and_then(|stem| stem.parse::<NetworkName>().ok()) else {
            return Vec::new();
        };
        let path = folder.join(name);
        let now = match read::<PeerFile>(&path, |file| file.v == peer_file::FORMAT) {
            Ok(now) => now,
            Err(why) => return complain(&path, &why),
        };
        let before = match &now {
            Some(file) => self.peers.insert(network.clone(), file.clone()),
            None => self.peers.remove(&network),
        };
        if before == now { Vec::new() } else { vec![Event::peers(&network, now.as_ref())] }
    }

    /// What became of the nodes of all networks.
    pub fn all_peers(&mut self, folder: &Path) -> Vec<Event> {
        let known = self.peers.keys().map(|network| format!("{network}.json"));
        let files: BTreeSet<String> = known.chain(names(folder)).collect();
        files.iter().flat_map(|name| self.peers(folder, name)).collect()
    }
}

/// The same attachment, by the same ADD.
fn is_same_holder(a: &Record, b: &Record) -> bool {
    let identity = |record: &Record| (record.container.clone(), record.ifname.clone(), record.since.clone());
    identity(a) == identity(b)
}

/// The names in a folder; none if it cannot be read, which shows when it is watched.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// What a file says; none if there is none.
fn read<T: serde::de::DeserializeOwned>(path: &Path, fits: impl Fn(&T) -> bool) -> Result<Option<T>, String> {
    let Some(text) = file::read(path).map_err(|error| error.to_string())? else { return Ok(None) };
    match serde_json::from_slice(&text) {
        Ok(record) if fits(&record) => Ok(Some(record)),
        Ok(_) => Err("its format is that of another version".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn complain(path: &Path, why: &str) -> Vec<Event> {
    output::complain(&format_args!("{}: {why}: passed over, `osvc-net fsck` tells more", path.display()));
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"v":1,"key":{"source":"podman","text":"web"},"instance":0,"container":"C","ifname":"eth0",
        "boot":"b","state":"STATE","uses":1,"since":"2026-01-01T00:00:00.000000Z"}"#;

    #[test]
    fn changes_are_told_once_and_a_holder_never_follows_another_without_a_release() {
        let folder = tempfile::tempdir().unwrap();
        let (network, address): (NetworkName, IpAddr) = ("net".parse().unwrap(), "10.0.0.5".parse().unwrap());
        let path = folder.path().join("10.0.0.5");
        let mut known = Known::default();
        let mut turn = |container: &str, state: &str| {
            let text = RECORD.replace("\"C\"", &format!("\"{container}\"")).replace("STATE", state);
            match state {
                "" => fs::remove_file(&path).unwrap(),
                _ => fs::write(&path, text).unwrap(),
            }
            let events = known.address(&network, folder.path(), address);
            events.iter().map(|event| event.what().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(turn("a", "held"), ["held"]);
        assert_eq!(turn("a", "held"), [""; 0]);
        assert_eq!(turn("b", "held"), ["released", "held"]);
        assert_eq!(turn("b", "released"), ["released"]);
        assert_eq!(turn("b", "reserved"), ["reserved"]);
        assert_eq!(turn("b", ""), ["forgotten"]);
        assert!(known.all_addresses(&network, folder.path()).is_empty());
    }
}
