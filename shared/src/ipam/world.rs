//! A store in a temporary folder with witnesses that a test can tell what to say.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::PathBuf;

use super::allocator::Allocator;
use super::claims::Claims;
use super::key::{Key, KeySource};
use super::liveness::{Liveness, Witness};
use super::range::{Range, RangeSet};
use super::record::Record;
use super::search::Neighbours;
use super::store::{Change, Location, Store};
use super::{Error, Request, held_by, sweep};
use crate::netlink::netns::NetnsId;
use crate::{Attachment, Host, NetworkName};

/// What the test says of containers: `Running` unless said otherwise, dead if of another boot.
#[derive(Default)]
pub struct Said {
    pub boot: String,
    pub of: HashMap<String, Liveness>,
}

impl Witness for Said {
    fn judge(&mut self, record: &Record) -> Liveness {
        if record.boot != self.boot {
            return Liveness::Dead;
        }
        self.of.get(&record.container).copied().unwrap_or(Liveness::Running)
    }
}

/// Addresses of a neighbouring allocator.
#[derive(Default)]
pub struct Next(pub HashSet<IpAddr>);

impl Neighbours for Next {
    fn holder(&mut self, address: IpAddr) -> Result<Option<String>, Error> {
        Ok(self.0.contains(&address).then(|| "held by host-local".to_owned()))
    }
}

pub struct World {
    pub folder: tempfile::TempDir,
    pub host: Host,
    pub network: NetworkName,
    pub said: Said,
    pub next: Next,
    pub sets: Vec<RangeSet>,
    pub claims: Claims,
}

pub fn pool(subnet: &str) -> Range {
    Range::new(subnet.parse().unwrap(), None, None, None).unwrap()
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl World {
    pub fn new(pools: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host = Host { state: folder.path().to_owned(), run: folder.path().to_owned(), boot: "boot-1".to_owned() };
        let said = Said { boot: host.boot.clone(), ..Said::default() };
        let sets = pools.iter().map(|subnet| RangeSet(vec![pool(subnet)])).collect();
        Self {
            folder,
            host,
            network: "net".parse().unwrap(),
            said,
            next: Next::default(),
            sets,
            claims: Claims::default(),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("ipam/net")
    }

    pub fn reboot(&mut self, boot: &str) {
        boot.clone_into(&mut self.host.boot);
        boot.clone_into(&mut self.said.boot);
        self.said.of.clear();
    }

    pub fn die(&mut self, container: &str) {
        self.said.of.insert(container.to_owned(), Liveness::Dead);
    }

    pub fn attachment(&self, container: &str, ifname: &str) -> Attachment {
        Attachment {
            network: self.network.clone(),
            container: container.parse().unwrap(),
            ifname: ifname.parse().unwrap(),
        }
    }

    /// A request in a namespace of its own, told apart by `container`.
    pub fn request(&self, key: &str, container: &str) -> Request {
        let ino = container.bytes().fold(0u64, |sum, byte| sum * 31 + u64::from(byte));
        let id = NetnsId { cookie: Some(ino), dev: 4, ino, ctime: None };
        Request {
            attachment: self.attachment(container, "eth0"),
            key: Key { source: KeySource::Podman, text: key.to_owned() },
            object: None,
            rid: None,
            netns: Some((PathBuf::from(format!("/run/netns/{container}")), Some(id))),
            host_end: None,
            requested: Vec::new(),
        }
    }

    pub fn store<T>(&self, act: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<T, Error> {
        Location { host: &self.host, network: &self.network, folder: &self.path() }.created(act)
    }

    pub fn allocate(&mut self, request: &Request) -> Result<(Vec<IpAddr>, Vec<Change>), Error> {
        let requested = super::requested::assign(&self.sets, &request.requested)?;
        let path = self.path();
        let location = Location { host: &self.host, network: &self.network, folder: &path };
        let (said, next, sets, claims) = (&mut self.said, &mut self.next, &self.sets, &self.claims);
        location.created(|store| Allocator::new(store, said, next, request).allocate(sets, &requested, claims))
    }

    pub fn try_add(&mut self, key: &str, container: &str) -> Result<Vec<IpAddr>, Error> {
        let request = self.request(key, container);
        self.allocate(&request).map(|(addresses, _)| addresses)
    }

    pub fn add(&mut self, key: &str, container: &str) -> IpAddr {
        self.try_add(key, container).unwrap()[0]
    }

    pub fn del(&self, container: &str) -> Vec<IpAddr> {
        sweep::release(&self.host, &self.network, None, &self.attachment(container, "eth0")).unwrap()
    }

    pub fn held(&self, container: &str) -> Vec<IpAddr> {
        let attachment = self.attachment(container, "eth0");
        self.store(|store| held_by(store, &attachment)).unwrap().into_iter().map(|(address, _)| address).collect()
    }

    pub fn record(&self, address: IpAddr) -> Option<Record> {
        self.store(|store| store.read(address)).unwrap()
    }

    /// Every file below the store except what only tells the time, for comparison.
    pub fn tree(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.path()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.path()).unwrap().display().to_string();
                if path.is_symlink() {
                    found.push((name, std::fs::read_link(&path).unwrap().display().to_string().into_bytes()));
                } else if path.is_dir() {
                    folders.push(path);
                } else if !["index", "lock", "exhausted", "history"].contains(&name.as_str())
                    && !name.starts_with("queue")
                {
                    found.push((name, std::fs::read(&path).unwrap()));
                }
            }
        }
        crate::order::sort(&mut found);
        found
    }
}
