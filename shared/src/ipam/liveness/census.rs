//! A witness for many records at one moment: each thing is looked at once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{Eyes, HostEnd, Liveness, Record, Traces, Witness, conclude, namespaces};
use crate::Host;
use crate::netlink::netns::{self, NetnsId, Probe};
use crate::netlink::{Error, Link, RouteSocket};

/// Judges as [`Kernel`](super::Kernel) does, waiting for nothing; what it saw once is taken for true from then on.
pub struct Census {
    boot: String,
    namespaces: (u64, u64),
    probes: HashMap<PathBuf, Probe>,
    devices: Option<Devices>,
}

/// The devices of this network namespace.
struct Devices {
    host: NetnsId,
    socket: RouteSocket,
    links: HashMap<String, Link>,
}

impl Devices {
    fn list() -> Result<Self, Error> {
        let mut socket = RouteSocket::open()?;
        let links = socket.links()?.into_iter().map(|link| (link.name.clone(), link)).collect();
        Ok(Self { host: netns::host_id()?, socket, links })
    }
}

impl Census {
    /// A witness that judges from this process's namespaces.
    pub fn new(host: &Host) -> Self {
        Self { boot: host.boot.clone(), namespaces: namespaces(), probes: HashMap::new(), devices: None }
    }
}

impl Eyes for Census {
    fn boot(&self) -> &str {
        &self.boot
    }

    fn namespaces(&self) -> (u64, u64) {
        self.namespaces
    }

    fn probe(&mut self, path: &Path) -> Result<Probe, Error> {
        if let Some(known) = self.probes.get(path) {
            return Ok(known.clone());
        }
        let probe = netns::probe(path)?;
        self.probes.insert(path.to_owned(), probe.clone());
        Ok(probe)
    }

    fn look(&mut self, end: &HostEnd, _: bool) -> Result<Option<bool>, Error> {
        let devices = match &mut self.devices {
            Some(devices) => devices,
            None => self.devices.insert(Devices::list()?),
        };
        if !devices.host.same(&end.netns) {
            return Ok(None);
        }
        Ok(Some(match devices.links.get(&end.ifname) {
            Some(link) => devices.socket.peer_is_alive(link)?,
            None => false,
        }))
    }
}

impl Witness for Census {
    fn judge(&mut self, record: &Record) -> Liveness {
        let Record { boot, netns, host, since, .. } = record;
        conclude(self, &Traces { boot, netns: netns.as_ref(), host: host.as_ref(), since })
    }
}
