//! A store in a temporary folder, and records to put there.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;

use super::super::mapping::{Mapping, Protocol};
use super::super::record::{FORMAT, Record};
use super::super::{Error, Judge};
use super::known::Known;
use super::{Store, locked};
use crate::Host;
use crate::ipam::key::{Key, KeySource};
use crate::ipam::liveness::Liveness;
use crate::netlink::netns::NetnsId;

pub fn home(cookie: u64) -> NetnsId {
    NetnsId { cookie: Some(cookie), dev: 4, ino: 1, ctime: None }
}

/// `8080/tcp`, `192.0.2.1:8080/tcp`, `[::]:8080/udp`, to the same port of the container.
pub fn mapping(text: &str) -> Mapping {
    let (place, protocol) = text.split_once('/').unwrap();
    let (host_ip, port) = match place.parse::<SocketAddr>() {
        Ok(place) => (Some(place.ip()), place.port()),
        Err(_) => (None, place.parse().unwrap()),
    };
    let protocol = Protocol::from_name(protocol).unwrap();
    Mapping { host_ip, host_port: port, container_port: port, protocol }
}

/// A record of this boot, with an address of each family that depends on the container's name.
pub fn record(network: &str, container: &str, ports: &[&str]) -> Record {
    let last = container.bytes().fold(0u8, u8::wrapping_add);
    Record {
        v: FORMAT,
        network: network.parse().unwrap(),
        container: container.to_owned(),
        ifname: "eth0".to_owned(),
        key: Key { source: KeySource::Podman, text: format!("key of {container}") },
        netns: None,
        host: None,
        boot: "boot-1".to_owned(),
        home: home(1),
        since: "2026-01-01T00:00:00.000000Z".to_owned(),
        targets: [format!("10.22.0.{last}/16"), format!("fd00::{last:x}/64")].map(|text| text.parse().unwrap()).into(),
        snat: true,
        masq_all: false,
        allow_from: Vec::new(),
        mappings: ports.iter().map(|text| mapping(text)).collect(),
    }
}

/// A record that publishes that many ports.
pub fn large(network: &str, container: &str, ports: u16) -> Record {
    let mut record = record(network, container, &[]);
    record.mappings =
        (0..ports).map(|n| Mapping { host_port: 10_000 + n, container_port: 80, ..mapping("1/tcp") }).collect();
    record
}

pub fn v4(record: &Record) -> IpAddr {
    record.targets[0].addr()
}

pub fn containers(records: &[Rc<Record>]) -> Vec<&str> {
    let mut names: Vec<_> = records.iter().map(|record| record.container.as_str()).collect();
    names.sort_unstable();
    names
}

/// The containers of what was found by a link.
pub fn names(found: &[Rc<Known>]) -> Vec<String> {
    let mut names: Vec<_> = found.iter().map(|known| known.record.container.clone()).collect();
    names.sort_unstable();
    names
}

/// A host of its own.
pub struct World {
    pub host: Host,
    _folder: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        Self { host: Host { run: state.clone(), state, boot: "boot-1".to_owned() }, _folder: folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.host.state.join("ports").join(name)
    }

    /// Somebody works on the store, and has compared the kernel with it.
    pub fn with<T>(&self, act: impl FnOnce(&mut Store<'_>) -> Result<T, Error>) -> T {
        let trusting = |store: &mut Store<'_>| act(store).inspect(|_| store.trust());
        locked(&self.host, trusting).unwrap()
    }

    pub fn put(&self, record: &Record) {
        self.with(|store| store.put(record));
    }

    /// The containers that publish a port.
    pub fn publish(&self, text: &str) -> Vec<String> {
        let mapping = mapping(text);
        let found = self.with(|store| store.of_port(mapping.protocol, mapping.host_port));
        names(&found)
    }

    /// The names of a folder of the store, sorted.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(folder)) else { return Vec::new() };
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        crate::order::sort(&mut names);
        names
    }
}

/// Says of containers what a test says; running, unless it says otherwise. Counts how often it is asked.
#[derive(Default)]
pub struct Said {
    pub of: HashMap<String, Liveness>,
    pub asked: usize,
}

impl Said {
    pub fn dead(containers: &[&str]) -> Self {
        Self { of: containers.iter().map(|name| ((*name).to_owned(), Liveness::Dead)).collect(), asked: 0 }
    }
}

impl Judge for Said {
    fn judge(&mut self, record: &Record) -> Liveness {
        self.asked += 1;
        self.of.get(&record.container).copied().unwrap_or(Liveness::Running)
    }
}
