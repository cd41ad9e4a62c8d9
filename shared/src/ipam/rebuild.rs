//! Making the derived files again from the records, and lost records again from the ports of the bridge.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::PathBuf;

use super::key::{Key, KeySource};
use super::queue::Entry;
use super::record::{FORMAT, HostEnd, Record, State};
use super::store::{Change, Class, Holders, Store};
use super::timestamp::{format, micros};
use super::{Error, folders, fsck};
use crate::Host;
use crate::index::make_folder;
use crate::netlink::{GROUP, Link, RouteSocket, netns};

impl Store {
    /// Makes all derived files again. `lost`: there were none on this host, so the records may be lost as well, and those
    /// of attachments whose host end is still there are made again first.
    pub(super) fn rebuild(&mut self, lost: Option<&Host>) -> Result<(), Error> {
        // Only if somebody has claims; killed below, they are counted when they ask.
        let mut holders = self.namespaces.is_there().then(Holders::default);
        if holders.is_some() {
            self.namespaces.clear();
        }
        self.by_key.clear()?;
        self.by_attachment.clear()?;
        for name in ["bitmap", "queue"] {
            let folder = self.folder.join(name);
            match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io("empty", &folder, error)),
                _ => make_folder(&folder)?,
            }
        }
        let _ = fs::remove_file(self.folder.join(".new"));
        let mut present = Vec::new();
        let mut released: HashMap<(Class, bool), Vec<Entry>> = HashMap::new();
        for address in self.addresses()? {
            let record = match self.read(address) {
                // Whose it is cannot be told, but that somebody has it: the others go on.
                Err(error @ Error::NewerFormat { .. }) => {
                    tracing::warn!("{error}");
                    present.push(address);
                    continue;
                }
                record => record?,
            };
            let Some(record) = record else { continue };
            self.by_key.insert(&record.key.hash(), &address)?;
            self.by_attachment.insert(&record.tag(self.network.as_str()), &address)?;
            if let Some(holders) = &mut holders {
                holders.note(address, &record);
            }
            if record.state == State::Released {
                let entry = Entry { address, since: micros(&record.since) };
                released.entry((Class::of(&record), address.is_ipv6())).or_default().push(entry);
            }
            present.push(address);
        }
        for ((class, v6), mut entries) in released {
            crate::order::sort_by_key(&mut entries, |entry| entry.since);
            self.queue(class, v6).rewrite(&entries)?;
        }
        self.bitmap.write_all(present.iter().copied().filter(IpAddr::is_ipv4))?;
        if let Some(holders) = &holders {
            self.namespaces.write(holders);
        }
        lost.map_or(Ok(()), |host| self.recover_ports(host))
    }

    /// `rm -rf /var/lib/cni` is common advice: what the host ends of living attachments say of their addresses
    /// becomes records again, or a running container's address would be given to another.
    fn recover_ports(&mut self, host: &Host) -> Result<(), Error> {
        let found = self.recoverable(host)?;
        let recovered = found.len();
        for (address, record) in found {
            self.apply(&Change { address, before: None, after: Some(record) })?;
        }
        if recovered > 0 {
            tracing::warn!(
                "the address records of network {} were lost: {recovered} made again from the ports of its bridge",
                self.network
            );
        }
        Ok(())
    }

    /// What the host ends of living attachments say, and no record. What another folder of the network (`dataDir` was
    /// changed) says of the same attachment is not lost.
    pub(super) fn recoverable(&self, host: &Host) -> Result<BTreeMap<IpAddr, Record>, Error> {
        let mut folders = folders::known(host, &self.network, None)?;
        folders.retain(|folder| *folder != self.folder);
        let is_elsewhere = |address: &IpAddr, tag: &str| {
            let record = |folder: &PathBuf| fsck::record(&folder.join(address.to_string())).ok().flatten();
            let is_same = |record: &Record| record.is_held() && record.tag(self.network.as_str()) == tag;
            folders.iter().filter_map(record).any(|record| is_same(&record))
        };
        let ports = RouteSocket::open()
            .and_then(|mut socket| socket.links())
            .map_err(|source| Error::Ports { network: self.network.clone(), source })?;
        let home = netns::host_id().map_err(|source| Error::Ports { network: self.network.clone(), source })?;
        let now = format(std::time::SystemTime::now());
        let mut found: BTreeMap<IpAddr, Record> = BTreeMap::new();
        for port in ports.into_iter().filter(|port| port.group == GROUP) {
            let Some(alias) = port.alias.as_deref().and_then(|alias| Alias::parse(alias, self.network.as_str())) else {
                continue;
            };
            for address in &alias.addresses {
                match self.read(*address) {
                    Ok(Some(_)) | Err(Error::NewerFormat { .. }) => continue,
                    record => record?,
                };
                let record = alias.record(&port, &self.boot(), &home, &now);
                if !is_elsewhere(address, &record.tag(self.network.as_str())) {
                    found.entry(*address).or_insert(record);
                }
            }
        }
        Ok(found)
    }
}

/// What the ifalias of a host end says: `osvc:<network>:<address>,… <interface> <container> <source> <key>`.
pub struct Alias<'a> {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// The interface in the container.
    pub ifname: &'a str,
    /// The container id, or the beginning of a very long one.
    pub container: &'a str,
    /// The workload.
    pub key: Key,
}

impl<'a> Alias<'a> {
    /// Reads the alias of a host end on this network.
    pub fn parse(alias: &'a str, network: &str) -> Option<Self> {
        let rest = alias.strip_prefix("osvc:")?.strip_prefix(network)?.strip_prefix(':')?;
        let mut words = rest.splitn(5, ' ');
        let addresses = words.next()?.split(',').filter_map(|text| text.parse().ok()).collect();
        let (ifname, container) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        // A cut alias has lost its key: the container id, or what is left of it, stands in.
        let key = match (words.next().and_then(KeySource::from_name), words.next()) {
            (Some(source), Some(text)) if !text.is_empty() => Key { source, text: text.to_owned() },
            _ => Key { source: KeySource::Container, text: container.to_owned() },
        };
        Some(Self { addresses, ifname, container, key })
    }

    pub(super) fn record(&self, port: &Link, boot: &str, host: &netns::NetnsId, now: &str) -> Record {
        Record {
            v: FORMAT,
            key: self.key.clone(),
            instance: 0,
            object: None,
            rid: None,
            container: self.container.to_owned(),
            ifname: self.ifname.to_owned(),
            netns: None,
            host: Some(HostEnd { ifname: port.name.clone(), netns: host.clone() }),
            boot: boot.to_owned(),
            state: State::Held,
            uses: 1,
            requested: false,
            pinned: false,
            since: now.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_gives_back_what_was_put_there() {
        let alias = "osvc:net:10.0.0.2,fd00::2 eth0 c1 podman my web";
        let parsed = Alias::parse(alias, "net").unwrap();
        assert_eq!(parsed.addresses, ["10.0.0.2".parse::<IpAddr>().unwrap(), "fd00::2".parse().unwrap()]);
        assert_eq!((parsed.ifname, parsed.container), ("eth0", "c1"));
        assert_eq!((parsed.key.source, parsed.key.text.as_str()), (KeySource::Podman, "my web"));
    }

    #[test]
    fn another_networks_alias_is_not_ours_and_a_cut_one_still_has_its_addresses() {
        assert!(Alias::parse("osvc:net2:10.0.0.2 eth0 c1", "net").is_none());
        assert!(Alias::parse("something", "net").is_none());
        let cut = Alias::parse("osvc:net:10.0.0.2 eth0 0123456789", "net").unwrap();
        assert_eq!(cut.key, Key { source: KeySource::Container, text: "0123456789".to_owned() });
        assert_eq!(cut.addresses.len(), 1);
    }
}
