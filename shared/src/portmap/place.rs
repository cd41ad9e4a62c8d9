//! Whether our tables are as they were made: `<state>/ports/tables.json` has what the kernel said of them then.
//!
//! The file is derived: without it, or when it is torn, the tables are made anew.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Error;
use super::keys::{ANY, HOST, SETS, TABLE, sentinel_key, sentinel_pair};
use crate::Host;
use crate::firewall::family::Family;
use crate::firewall::nfnetlink::Nfnetlink;
use crate::index::make_folder;
use crate::netlink::netns::NetnsId;

/// The format of the file.
const VERSION: u32 = 1;
/// More network namespaces than have tables at one time; the oldest is forgotten.
const HOMES: usize = 16;

/// The tables of a network namespace, as they were made last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    home: NetnsId,
    /// [`Nfnetlink::table_fingerprint`] of each.
    tables: BTreeMap<Family, String>,
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct File {
    v: u32,
    boot: String,
    homes: Vec<Memory>,
}

impl File {
    fn path(host: &Host) -> PathBuf {
        super::store::folder(host).join("tables.json")
    }

    /// What was made in this boot; nothing if that cannot be told.
    fn load(host: &Host) -> Self {
        let path = Self::path(host);
        let nothing = || Self { v: VERSION, boot: host.boot.clone(), homes: Vec::new() };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return nothing(),
            Err(error) => {
                tracing::warn!("cannot read {}: {error}; the tables are made anew", path.display());
                return nothing();
            }
        };
        match serde_json::from_slice::<Self>(&text) {
            Ok(file) if file.v == VERSION && file.boot == host.boot => file,
            Ok(_) => nothing(),
            Err(error) => {
                tracing::warn!("{} is torn ({error}); the tables are made anew", path.display());
                nothing()
            }
        }
    }

    fn save(&self, host: &Host) -> io::Result<()> {
        let path = Self::path(host);
        let fresh = path.with_extension("json.tmp");
        let write = || {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            fs::rename(&fresh, &path)
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&fresh);
        })
    }
}

/// The file in /run that tells that tables were made in this boot, for those who look for lost records on their way.
fn trace(host: &Host) -> PathBuf {
    host.run.join("portmap")
}

/// True if tables were made in this boot, as far as /run tells.
pub fn were_made(host: &Host) -> bool {
    trace(host).exists()
}

impl Memory {
    /// The tables of a network namespace, if any were made in this boot.
    pub fn load(host: &Host, home: &NetnsId) -> Option<Self> {
        File::load(host).homes.into_iter().find(|memory| memory.home.same(home))
    }

    /// Remembers tables that were just made, by the holder of the lock. A failure to write costs the next ADD some
    /// milliseconds, and is no reason to fail this one.
    ///
    /// # Errors
    /// The kernel cannot be asked.
    pub fn save(host: &Host, home: &NetnsId, kernel: &mut Nfnetlink, families: &[Family]) -> Result<(), Error> {
        let mut tables = BTreeMap::new();
        for family in families {
            if let Some(fingerprint) = kernel.table_fingerprint(family.number(), TABLE)? {
                tables.insert(*family, fingerprint);
            }
        }
        let mut file = File::load(host);
        file.homes.retain(|memory| !memory.home.same(home));
        file.homes.insert(0, Self { home: home.clone(), tables });
        file.homes.truncate(HOMES);
        if let Err(error) = file.save(host) {
            tracing::warn!("cannot write {}: {error}; the next ADD makes the tables anew", File::path(host).display());
        }
        let traced = make_folder(&host.run).map_err(|error| error.source).and_then(|()| fs::write(trace(host), ""));
        if let Err(error) = traced {
            tracing::debug!("cannot write {}: {error}", trace(host).display());
        }
        Ok(())
    }

    /// True if the table of this family was made.
    pub fn has(&self, family: Family) -> bool {
        self.tables.contains_key(&family)
    }

    /// True if the tables of these families, and of all that were made, are as they were made: rule by rule, handles
    /// included, and no map or set was emptied. What else is in the maps is not looked at: that would take the longer
    /// the more it is.
    ///
    /// # Errors
    /// The kernel cannot be asked.
    pub fn holds(&self, kernel: &mut Nfnetlink, needed: &[Family]) -> Result<bool, Error> {
        for family in Family::ALL {
            let made = self.tables.get(&family);
            if made.is_none() && !needed.contains(&family) {
                continue;
            }
            let number = family.number();
            if made.is_none() || kernel.table_fingerprint(number, TABLE)?.as_ref() != made {
                return Ok(false);
            }
            for map in [ANY, HOST] {
                if kernel.element(number, TABLE, map, &sentinel_key(map, family))?.is_none() {
                    return Ok(false);
                }
            }
            let sentinel = sentinel_pair(family);
            for set in SETS {
                if kernel.element(number, TABLE, set, &sentinel.key)?.as_ref() != Some(&sentinel) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
