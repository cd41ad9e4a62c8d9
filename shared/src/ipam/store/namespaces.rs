//! `by-namespace/`: which addresses a namespace holds, and how many, without reading all records.
//!
//! `<hash of the namespace>/<address>` for each; `held` beside them leads to their number; `all` says that every
//! namespace is counted, so that one without a folder holds nothing. Symbolic links, as in `crate::index`: one system
//! call to make and one to read. Derived, and only there once a claim was checked.
//!
//! `held` is there only while it is right: it goes before a record changes, and is made again when the writer leaves. A
//! folder without it is not counted, and all are counted anew when somebody asks. So a writer that is killed costs time
//! and no wrong answer, whatever the clock of the folders can tell. So does whatever else is there that we did not make.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::attachment::hex;
use crate::ipam::record::Record;

mod faults;

/// What is known of a namespace.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) held: u64,
    /// When all of its holders were last found to be alive; 0: never.
    pub(super) looked: u64,
}

/// What lies in a namespace's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing.
    Empty,
    /// A folder with its number.
    Counted,
    /// A folder without a number.
    Taken,
}

/// The namespaces that this writer came across.
pub(in crate::ipam) struct Namespaces {
    folder: PathBuf,
    /// Whether all are counted; `None`: nobody looked yet.
    all: Cell<Option<bool>>,
    /// Nothing is written.
    frozen: bool,
    /// What is wrong could not be taken away.
    stuck: Cell<bool>,
    /// Valid while all are counted. Without a count: not this one.
    pub(super) known: HashMap<String, (Option<Count>, Place)>,
}

/// The addresses that each namespace holds.
#[derive(Default)]
pub(in crate::ipam) struct Holders(pub(super) HashMap<String, Vec<IpAddr>>);

impl Holders {
    /// Counts a record.
    pub fn note(&mut self, address: IpAddr, record: &Record) {
        if let Some(namespace) = holder(Some(record)) {
            self.0.entry(namespace.to_owned()).or_default().push(address);
        }
    }
}

/// The namespace whose claim a record counts for.
pub(super) fn holder(record: Option<&Record>) -> Option<&str> {
    record.filter(|record| record.is_held()).map(|record| record.key.namespace())
}

impl Namespaces {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, all: Cell::new(None), frozen: false, stuck: Cell::new(false), known: HashMap::new() }
    }

    /// From now on nothing is written: who only looks.
    pub(super) fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Nothing of what is there is believed.
    pub(super) fn distrust(&self) {
        self.all.set(Some(false));
    }

    pub(super) fn of(&self, namespace: &str) -> PathBuf {
        self.folder.join(&hex(&Sha256::digest(namespace))[..32])
    }

    fn mark(&self) -> PathBuf {
        self.folder.join("all")
    }

    /// True if somebody asked for a claim, ever.
    pub fn is_there(&self) -> bool {
        self.folder.symlink_metadata().is_ok()
    }

    /// True if what is not known of a namespace is on the disk. One system call where nobody has claims.
    fn is_counted(&self) -> bool {
        if self.all.get().is_none() {
            match fs::read_link(self.mark()) {
                Ok(_) => self.all.set(Some(true)),
                Err(error) if error.kind() == ErrorKind::NotFound => self.all.set(Some(false)),
                Err(_) => self.clear(),
            }
        }
        self.all.get() == Some(true)
    }

    /// All has to be counted anew. The mark goes first: without it nothing else is believed.
    pub fn clear(&self) {
        self.distrust();
        if self.frozen {
            return;
        }
        let _ = fs::remove_file(self.mark());
        match fs::remove_dir_all(&self.folder).or_else(|_| fs::remove_file(&self.folder)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::debug!("{}: {error}", self.folder.display());
                self.stuck.set(fs::read_link(self.mark()).is_ok());
            }
            _ => {}
        }
    }

    /// Makes all of it.
    pub fn write(&mut self, holders: &Holders) {
        if self.frozen {
            return;
        }
        self.clear();
        self.known.clear();
        let make = || {
            make_folder(&self.folder)?;
            for (namespace, addresses) in &holders.0 {
                let folder = self.of(namespace);
                make_folder(&folder)?;
                addresses.iter().try_for_each(|address| make(&folder.join(address.to_string())))?;
                Count { held: addresses.len() as u64, looked: 0 }.write(&folder)?;
            }
            make(&self.mark())
        };
        match make() {
            Ok(()) => self.all.set(Some(true)),
            Err(error) => {
                tracing::debug!("{}: {error}; it will be made again", self.folder.display());
                self.clear();
            }
        }
    }

    /// Reads the number of a namespace.
    pub(super) fn look(&mut self, namespace: &str) -> Option<Count> {
        if !self.is_counted() {
            return None;
        }
        if let Some((count, _)) = self.known.get(namespace) {
            return *count;
        }
        let folder = self.of(namespace);
        let known = match fs::read_link(folder.join("held")) {
            Ok(text) => (text.to_str().and_then(Count::parse), Place::Counted),
            Err(error) if error.kind() == ErrorKind::NotFound => match folder.symlink_metadata() {
                Err(error) if error.kind() == ErrorKind::NotFound => (Some(Count::default()), Place::Empty),
                _ => (None, Place::Taken),
            },
            Err(_) => {
                self.clear();
                return None;
            }
        };
        self.known.insert(namespace.to_owned(), known);
        known.0
    }

    /// Takes the number of a namespace, before one of its records changes.
    pub(super) fn take(&mut self, namespace: &str) {
        self.look(namespace);
        if self.frozen {
            return;
        }
        let folder = self.of(namespace);
        let Some((_, place)) = self.known.get_mut(namespace).filter(|_| self.all.get() == Some(true)) else { return };
        let taken = match place {
            Place::Empty => make_folder(&folder),
            Place::Counted => fs::remove_file(folder.join("held")),
            Place::Taken => return,
        };
        *place = Place::Taken;
        if let Err(error) = taken {
            tracing::debug!("{}: {error}; it will be made again", folder.display());
            self.clear();
        }
    }

    /// Before a record changes.
    pub(super) fn before(&mut self, from: Option<&str>, to: Option<&str>) {
        if from != to {
            from.into_iter().chain(to).for_each(|namespace| self.take(namespace));
        }
    }

    /// After it has changed.
    pub(super) fn after(&mut self, address: IpAddr, from: Option<&str>, to: Option<&str>) {
        if from == to || !self.is_counted() {
            return;
        }
        for (namespace, is_held) in [(from, false), (to, true)] {
            let Some(namespace) = namespace else { continue };
            let path = self.of(namespace).join(address.to_string());
            let Some((known, _)) = self.known.get_mut(namespace) else { continue };
            let Some(count) = known else { continue };
            let done = if is_held { make(&path) } else { fs::remove_file(&path) };
            count.held = if is_held { count.held.saturating_add(1) } else { count.held.saturating_sub(1) };
            if let Err(error) = done {
                tracing::debug!("{}: {error}; it will be made again", path.display());
                *known = None;
            }
        }
    }

    /// Whatever this writer changed has to be counted anew.
    pub(super) fn forget(&mut self) {
        for (count, place) in self.known.values_mut() {
            if *place == Place::Taken {
                *count = None;
            }
        }
    }

    /// The writer leaves. False if something wrong is there that the next one would believe.
    pub(super) fn close(&mut self) -> bool {
        if self.all.get() != Some(true) {
            return !self.stuck.get();
        }
        for (namespace, (count, place)) in std::mem::take(&mut self.known) {
            let Some(count) = count.filter(|_| place == Place::Taken) else { continue };
            let folder = self.of(&namespace);
            let left = match count.held {
                0 => fs::remove_dir(&folder).or_else(|_| fs::remove_dir_all(&folder)),
                _ => count.write(&folder),
            };
            if let Err(error) = left {
                tracing::debug!("{}: {error}; it will be counted again", folder.display());
            }
        }
        true
    }
}

impl Count {
    fn parse(text: &str) -> Option<Self> {
        let (held, looked) = text.split_once(' ')?;
        Some(Self { held: held.parse().ok()?, looked: looked.parse().ok()? })
    }

    fn write(self, folder: &Path) -> io::Result<()> {
        symlink(format!("{} {}", self.held, self.looked), folder.join("held"))
    }
}

fn make(path: &Path) -> io::Result<()> {
    symlink(".", path)
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}
