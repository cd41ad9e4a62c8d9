//! What is known of a network at one moment.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::PathBuf;

use osvc_cni::ipam::config::Folders;
use osvc_cni::ipam::host_local::HostLocal;
use osvc_cni::ipam::liveness::{Census, Liveness, Witness};
use osvc_cni::ipam::record::Record;
use osvc_cni::ipam::{folders, fsck};
use osvc_cni::netlink::netns::{NetnsId, host_id};
use osvc_cni::network::NetworkRecord;
use osvc_cni::{Attachment, Host, NetworkName};

use super::Finding;
use crate::conf::Plugin;
use crate::error::Error;
use crate::networks::Network;
use crate::shape::Shape;

/// An address, and who has it.
#[derive(Debug)]
pub struct Entry {
    /// The folder of its record.
    pub folder: PathBuf,
    /// The address.
    pub address: IpAddr,
    /// The record.
    pub record: Record,
    /// Whether its holder lives; of the held ones only.
    pub liveness: Option<Liveness>,
}

impl Entry {
    /// The record's file.
    pub fn path(&self) -> String {
        self.folder.join(self.address.to_string()).display().to_string()
    }

    /// True if somebody has it, or may.
    pub fn may_live(&self) -> bool {
        self.liveness.is_some_and(|liveness| liveness != Liveness::Dead)
    }
}

/// A network at one moment.
pub struct Site<'a> {
    /// This host.
    pub host: &'a Host,
    /// Its name.
    pub name: &'a NetworkName,
    /// What it is; none if nobody knows.
    pub shape: Option<Shape>,
    /// As it was set up, if that was in this boot and network namespace.
    pub set_up: Option<NetworkRecord>,
    /// Where its addresses are recorded; none if that is another plugin's business.
    pub folder: Option<PathBuf>,
    /// Where host-local has its records, if it has any.
    host_local: HostLocal,
    /// All records.
    pub entries: Vec<Entry>,
    /// Where among them those of an address are.
    places: HashMap<IpAddr, Vec<usize>>,
    /// Addresses of later versions.
    pub later: HashSet<IpAddr>,
    /// The network namespace of this host.
    pub home: NetnsId,
    /// What is wrong with the files themselves.
    pub faults: Vec<Finding>,
}

impl<'a> Site<'a> {
    /// Reads all of it, and what keeps some of it from being read. `progress` is told how many more records were.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn new(
        host: &'a Host,
        network: &'a Network,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(Self, Vec<Error>), Error> {
        let name = &network.name;
        let failed = |source: osvc_cni::Error| Error::Network { network: name.clone(), source: Box::new(source) };
        let mut errors = Vec::new();
        let shape = network.shape(host).unwrap_or_else(|error| {
            errors.push(error);
            None
        });
        let home = host_id().map_err(|error| failed(error.into()))?;
        let record = NetworkRecord::load(host, name).map_err(|error| failed(error.into()))?;
        let configured = network.address_folders(host).map(|folders| folders.ours);
        // What a configuration of others says is newer than the record: then it is their business.
        let is_ours = network.definition.is_none() || configured.is_some();
        let recorded = record.as_ref().filter(|_| is_ours).and_then(|record| record.ipam.clone());
        let folder = shape.as_ref().and_then(|shape| Some(shape.addresses.as_ref()?.folder.clone())).or(recorded);
        let mut site = Self {
            host,
            name,
            shape,
            set_up: record.filter(|record| record.is_of(host, &home)),
            folder,
            host_local: HostLocal::new(&host_locals(host, network), name),
            entries: Vec::new(),
            places: HashMap::new(),
            later: HashSet::new(),
            home,
            faults: Vec::new(),
        };
        let mut judge = Census::new(host);
        let known = folders::known(host, name, configured.as_deref()).map_err(|error| failed(error.into()))?;
        for folder in known {
            let look = match fsck::look(host, name, &folder, progress) {
                Ok(look) => look,
                Err(error) => {
                    errors.push(failed(error.into()));
                    continue;
                }
            };
            site.later.extend(look.later);
            site.faults.extend(look.faults.into_iter().map(|fault| Finding::of_fault(name, &folder, fault)));
            site.entries.extend(look.records.into_iter().map(|(address, record)| {
                let liveness = record.is_held().then(|| judge.judge(&record));
                Entry { folder: folder.clone(), address, record, liveness }
            }));
        }
        for (at, entry) in site.entries.iter().enumerate() {
            site.places.entry(entry.address).or_default().push(at);
        }
        let dangling = fsck::dangling(host, name, configured.as_deref()).map_err(|error| failed(error.into()))?;
        site.faults.extend(dangling.into_iter().map(|fault| Finding::of_fault(name, &host.state, fault)));
        Ok((site, errors))
    }

    /// The records of an address, one for each folder that has one.
    fn of(&self, address: IpAddr) -> impl Iterator<Item = &Entry> {
        self.places.get(&address).into_iter().flatten().filter_map(|at| self.entries.get(*at))
    }

    /// The attachment of this tag holds this address, by our records or, since `osvc-net adopt --undo`, by host-local's.
    pub fn holds(&self, tag: &str, address: IpAddr) -> bool {
        let fits = |entry: &Entry| entry.record.is_held() && entry.record.tag(self.name.as_str()) == tag;
        self.of(address).any(fits) || self.is_host_locals(tag, address)
    }

    fn is_host_locals(&self, tag: &str, address: IpAddr) -> bool {
        let entry = self.host_local.entry(address).ok().flatten();
        let attachment = entry.and_then(|entry| {
            let network = self.name.clone();
            Some(Attachment { network, container: entry.container.parse().ok()?, ifname: entry.ifname?.parse().ok()? })
        });
        attachment.is_some_and(|attachment| attachment.tag() == tag)
    }

    /// Who else may have an address, for people.
    pub fn holder(&self, address: IpAddr) -> Option<String> {
        self.of(address).find(|entry| entry.may_live()).map(|entry| entry.record.holder())
    }
}

/// host-local's folder: by the configuration, whoever allocates by it, else the usual one.
fn host_locals(host: &Host, network: &Network) -> PathBuf {
    let usual = || Folders::usual(&network.name, host);
    let allocates = |plugin: &&Plugin| plugin.gives_addresses() || plugin.ipam() == Some("host-local");
    let call = network.definition.as_ref().and_then(|definition| {
        let plugin = definition.plugins.iter().find(allocates)?;
        definition.call(plugin, host).ok()
    });
    call.map_or_else(usual, |call| Folders::of_call(&call)).host_local
}
