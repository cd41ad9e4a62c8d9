//! The folders that are watched: those of records, and those above them, which tell when one comes or goes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, Inotify, WatchDescriptor};
use osvc_cni::ipam::folders;
use osvc_cni::{Host, NetworkName};

use super::WatchError;
use crate::error::Error;

/// What lies in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The address records of a network.
    Addresses(NetworkName),
    /// The records of host ports.
    Ports,
    /// The peer files.
    Peers,
    /// Folders, or links to some, that may be watched, or will be when they come.
    Folders,
    /// One of the others, at whatever depth: of interest is only whether it stays where it is.
    Above,
}

/// A folder in a role.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// As it is spelt.
    pub path: PathBuf,
    /// What it is.
    pub role: Role,
}

/// All of them.
pub struct Places {
    host: Host,
    /// The networks of the beginning, with their configured folders.
    configured: BTreeMap<NetworkName, Option<PathBuf>>,
    /// Others are wanted as well.
    all: bool,
    watched: HashMap<WatchDescriptor, BTreeSet<Place>>,
}

impl Places {
    /// The places of these networks, with their configured folders, and with `all` of those that are found.
    pub fn new(host: &Host, configured: BTreeMap<NetworkName, Option<PathBuf>>, all: bool) -> Self {
        Self { host: host.clone(), configured, all, watched: HashMap::new() }
    }

    /// What a watch is for.
    pub fn of(&self, watch: WatchDescriptor) -> Vec<Place> {
        self.watched.get(&watch).into_iter().flatten().cloned().collect()
    }

    /// True if events of a network are to be told.
    pub fn is_wanted(&self, network: &NetworkName) -> bool {
        self.all || self.configured.contains_key(network)
    }

    /// Everything is to be read again.
    pub fn forget(&mut self) {
        self.watched.clear();
    }

    /// Watches what is there now. Returns what has to be read: the places that are new, another folder than before, or
    /// gone.
    ///
    /// # Errors
    /// [`WatchError::Folder`].
    pub fn arrange(&mut self, inotify: &Inotify) -> Result<Vec<Place>, Error> {
        let mut now: HashMap<WatchDescriptor, BTreeSet<Place>> = HashMap::new();
        let mut tried = BTreeSet::new();
        // What comes while we look for it is found by the next round: until nothing new is wanted.
        loop {
            let wanted: BTreeSet<Place> = self.wanted().into_iter().filter(|place| !tried.contains(place)).collect();
            if wanted.is_empty() {
                break;
            }
            for place in wanted {
                if let Some(watch) = add(inotify, &place)? {
                    now.entry(watch).or_default().insert(place.clone());
                }
                tried.insert(place);
            }
        }
        let pairs = |map: &HashMap<WatchDescriptor, BTreeSet<Place>>| -> HashSet<(WatchDescriptor, Place)> {
            map.iter().flat_map(|(watch, places)| places.iter().map(|place| (*watch, place.clone()))).collect()
        };
        let (before, after) = (pairs(&self.watched), pairs(&now));
        for gone in self.watched.keys().filter(|watch| !now.contains_key(watch)) {
            // A folder that was removed took its watch along.
            let _ = inotify.rm_watch(*gone);
        }
        self.watched = now;
        let changed: BTreeSet<Place> = before.symmetric_difference(&after).map(|(_, place)| place.clone()).collect();
        Ok(changed.into_iter().collect())
    }

    /// What should be watched: a folder that is not there counts as wanted when those above it have been.
    fn wanted(&self) -> BTreeSet<Place> {
        let (ipam, links) = (self.host.state.join("ipam"), self.host.state.join("folders"));
        let mut networks: BTreeSet<NetworkName> = self.configured.keys().cloned().collect();
        if self.all {
            networks.extend(names(&ipam).chain(names(&links)).filter_map(|name| name.parse().ok()));
        }
        let mut places = BTreeSet::new();
        let mut add = |path: PathBuf, role: Role| {
            for above in path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()) {
                // The nearest one that is there tells when the next one comes.
                let waits = !path.is_dir() && above.is_dir();
                places.insert(Place { path: above.to_owned(), role: if waits { Role::Folders } else { Role::Above } });
                if waits {
                    above.ancestors().skip(1).for_each(|above| {
                        places.insert(Place { path: above.to_owned(), role: Role::Above });
                    });
                    break;
                }
            }
            places.insert(Place { path, role });
        };
        for network in &networks {
            add(links.join(network.as_str()), Role::Folders);
            let configured = self.configured.get(network).and_then(Option::as_deref);
            for folder in folders::known(&self.host, network, configured).unwrap_or_default() {
                add(folder, Role::Addresses(network.clone()));
            }
        }
        // Whose link has gone first: its records may go later.
        let known = self.watched.values().flatten().filter(|place| matches!(place.role, Role::Addresses(_)));
        for place in known.filter(|place| place.path.is_dir()) {
            add(place.path.clone(), place.role.clone());
        }
        add(ipam, Role::Folders);
        add(links, Role::Folders);
        add(self.host.state.join("ports/attachments"), Role::Ports);
        add(self.host.run.join("peers"), Role::Peers);
        places
    }
}

/// Watches a folder; none if it is not there.
fn add(inotify: &Inotify, place: &Place) -> Result<Option<WatchDescriptor>, Error> {
    // One for all: a folder in two roles, or of two names, has one watch, and the last one to add it says for what.
    let mask = AddWatchFlags::IN_CREATE
        | AddWatchFlags::IN_MOVED_TO
        | AddWatchFlags::IN_MOVED_FROM
        | AddWatchFlags::IN_DELETE
        | AddWatchFlags::IN_CLOSE_WRITE
        | AddWatchFlags::IN_DELETE_SELF
        | AddWatchFlags::IN_MOVE_SELF
        | AddWatchFlags::IN_ONLYDIR;
    match inotify.add_watch(&place.path, mask) {
        Ok(watch) => Ok(Some(watch)),
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(None),
        // Only whether it stays is asked of it.
        Err(Errno::EACCES) if place.role == Role::Above => Ok(None),
        Err(errno) => Err(Error::specific(WatchError::Folder { path: place.path.display().to_string(), errno })),
    }
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}
