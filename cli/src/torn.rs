//! Records that are torn, met by a command that only looks: they stay where they are, and are told once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use osvc_cni::{NetworkName, torn};

use crate::args::Command;
use crate::error::Error;

/// Why each file is no record; those that were taken are known without.
static MET: Mutex<BTreeMap<PathBuf, Option<String>>> = Mutex::new(BTreeMap::new());

/// A file that is no record.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{} is no record ({why}): it stays, and osvc-net setup sets it aside", .file.display())]
pub struct Torn {
    /// Which.
    pub file: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

impl Torn {
    /// The network that it is named after.
    pub fn network(&self) -> Option<NetworkName> {
        self.file.file_stem()?.to_str()?.parse().ok()
    }
}

impl From<Torn> for Error {
    fn from(torn: Torn) -> Self {
        Self::specific(torn)
    }
}

/// Leaves torn records where they are, unless the command puts right what is set up.
pub fn respect(command: &Command) {
    let puts_right = match command {
        Command::Setup { dry_run, .. } | Command::Gc { dry_run, .. } => !dry_run,
        Command::Teardown(what) => !what.dry_run,
        Command::Fsck(what) => what.repair && !what.dry_run,
        _ => false,
    };
    if !puts_right {
        torn::look_only(meet);
    }
}

fn meet(file: &Path, why: &str) {
    let mut met = MET.lock().unwrap_or_else(PoisonError::into_inner);
    met.entry(file.to_owned()).or_insert_with(|| Some(why.to_owned()));
}

/// Those that were met since they were last taken.
pub fn take() -> Vec<Torn> {
    let mut met = MET.lock().unwrap_or_else(PoisonError::into_inner);
    met.iter_mut().filter_map(|(file, why)| Some(Torn { file: file.clone(), why: why.take()? })).collect()
}
