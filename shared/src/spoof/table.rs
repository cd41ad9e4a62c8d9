//! The table `bridge osvc-cni`: whether it is as it was made, and what is in its sets.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Error;
use super::document::{SETS, TABLE, TARGETS, cannot_read_targets, document, removal};
use super::record::Entry;
use crate::Host;
use crate::firewall::batch::Batch;
use crate::firewall::nfnetlink::Nfnetlink;
use crate::firewall::{self, nft};
use crate::netlink::netns::NetnsId;

/// NFPROTO_BRIDGE (linux/netfilter.h).
pub const BRIDGE: u8 = 7;

/// The table as it was made last: `<state>/spoof/table.json`. Without it, or when it is torn, the table is made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    boot: String,
    home: NetnsId,
    /// [`Nfnetlink::table_fingerprint`].
    fingerprint: String,
    /// [`TARGETS`] is there.
    targets: bool,
    /// Some of what is in the sets has no record any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    carried: bool,
}

impl Memory {
    fn path(host: &Host) -> PathBuf {
        super::store::folder(host).join("table.json")
    }

    /// What was made last in this boot and network namespace, whatever became of it.
    pub fn read(host: &Host, home: &NetnsId) -> Option<Self> {
        let read = fs::read(Self::path(host)).ok().and_then(|text| serde_json::from_slice::<Self>(&text).ok());
        read.filter(|memory| memory.boot == host.boot && memory.home.same(home))
    }

    /// True if some of what was put in the sets has no record any more: see [`super::mend::strays`].
    pub fn has_carried(&self) -> bool {
        self.carried
    }

    /// The table that was made last, if it is there as it was made, but for what is in the sets. Some questions to the
    /// kernel, however many ports are checked.
    ///
    /// # Errors
    /// The kernel cannot be asked.
    pub fn of_table(host: &Host, home: &NetnsId, kernel: &mut Nfnetlink) -> Result<Option<Self>, Error> {
        let Some(memory) = Self::read(host, home) else { return Ok(None) };
        let found = kernel.table_fingerprint(BRIDGE, TABLE)?;
        Ok((found.as_ref() == Some(&memory.fingerprint)).then_some(memory))
    }

    /// Makes the table anew with these elements, and remembers it after that. `carried`: some of them have no record.
    ///
    /// # Errors
    /// nft is not there, or it or the kernel refused: then the table is as it was.
    pub fn make(
        host: &Host,
        home: &NetnsId,
        kernel: &mut Nfnetlink,
        entries: &[Entry],
        carried: bool,
    ) -> Result<(), Error> {
        let what = format!("make the table bridge {TABLE}");
        let (whole, mut targets) = (document(true, entries), true);
        match nft::commit(&whole, &what) {
            Err(error) if cannot_read_targets(&whole, &error) => {
                targets = false;
                nft::commit(&document(false, entries), &what)?;
                tracing::warn!("neighbour advertisements of IPv6 are not checked: {error}");
            }
            outcome => outcome?,
        }
        let fingerprint = kernel.table_fingerprint(BRIDGE, TABLE)?.unwrap_or_default();
        let memory = Self { boot: host.boot.clone(), home: home.clone(), fingerprint, targets, carried };
        let path = Self::path(host);
        if let Err(error) = super::store::write_whole(&path, &memory) {
            let _ = fs::remove_file(path.with_extension("new"));
            tracing::warn!("cannot write {}: {error}; the next ADD makes the table anew", path.display());
        }
        Ok(())
    }

    /// A table that may be any version's.
    pub fn any() -> Self {
        let home = NetnsId { cookie: None, dev: 0, ino: 0, ctime: None };
        Self { boot: String::new(), home, fingerprint: String::new(), targets: true, carried: false }
    }

    /// True if the table has this set.
    fn has(&self, entry: &Entry) -> bool {
        self.targets || entry.set != TARGETS
    }

    /// Takes `old` out of the sets and puts `new` in, together. What is not there, or there already, is no error.
    ///
    /// # Errors
    /// The kernel's: nothing was done.
    pub fn change(&self, kernel: &mut Nfnetlink, old: &[Entry], new: &[Entry]) -> Result<(), firewall::Error> {
        let mut batch = Batch::default();
        // What is not there cannot be deleted: so it is added before.
        for entry in old.iter().filter(|entry| self.has(entry) && !new.contains(entry)) {
            batch.add(BRIDGE, TABLE, entry.set, vec![entry.element()]);
            batch.delete(BRIDGE, TABLE, entry.set, vec![entry.element()]);
        }
        for entry in new.iter().filter(|entry| self.has(entry)) {
            batch.add(BRIDGE, TABLE, entry.set, vec![entry.element()]);
        }
        kernel.commit(&batch, "change the source checks")
    }

    /// Those of these entries that are not in the sets.
    ///
    /// # Errors
    /// The kernel cannot be asked.
    pub fn lacking(&self, kernel: &mut Nfnetlink, wanted: Vec<Entry>) -> Result<Vec<Entry>, Error> {
        let mut lacking = Vec::new();
        for entry in wanted.into_iter().filter(|entry| self.has(entry)) {
            if kernel.element(BRIDGE, TABLE, entry.set, &entry.key)?.is_none() {
                lacking.push(entry);
            }
        }
        Ok(lacking)
    }

    /// How many entries are in the sets or among the wanted ones, and not in both.
    ///
    /// # Errors
    /// The kernel cannot be asked.
    pub fn differences(&self, kernel: &mut Nfnetlink, wanted: &[Entry]) -> Result<usize, Error> {
        let mut wanted: Vec<_> =
            wanted.iter().filter(|entry| self.has(entry)).map(|entry| (entry.set, entry.key.clone())).collect();
        let mut found = Vec::new();
        for (set, _) in SETS {
            found.extend(kernel.set_elements(BRIDGE, TABLE, set)?.into_iter().map(|element| (set, element.key)));
        }
        crate::order::sort(&mut wanted);
        wanted.dedup();
        let common = found.iter().filter(|entry| wanted.binary_search(entry).is_ok()).count();
        Ok(found.len() + wanted.len() - 2 * common)
    }
}

/// Removes the table. None is no error.
///
/// # Errors
/// nft is not there, or refused.
pub fn remove() -> Result<(), Error> {
    Ok(nft::commit(&removal(), &format!("remove the table bridge {TABLE}"))?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::document::MACS;
    use super::super::record::{Checks, FORMAT, Record};
    use super::*;
    use crate::ipam::record::{HostEnd, NetnsRef};
    use crate::netlink::netns::host_id;
    use crate::netlink::testing::in_new_netns;

    fn record(boot: &str) -> Record {
        let home = NetnsId { cookie: Some(1), dev: 0, ino: 0, ctime: None };
        Record {
            v: FORMAT,
            network: "net1".parse().unwrap(),
            container: "c".to_owned(),
            ifname: "eth0".to_owned(),
            host: HostEnd { ifname: "ov0123456789abc".to_owned(), netns: home },
            netns: NetnsRef::new("/proc/1/ns/net".into(), None),
            boot: boot.to_owned(),
            since: String::new(),
            checks: Checks { mac: true, addresses: true },
            mac: "0a:58:0a:09:00:02".parse().unwrap(),
            addresses: vec!["10.9.0.2".parse().unwrap(), "fd09::2".parse().unwrap()],
        }
    }

    /// Where nothing is changed but the table.
    fn host(folder: &Path) -> Host {
        fs::create_dir(folder.join("spoof")).unwrap();
        Host { state: folder.to_owned(), run: folder.to_owned(), boot: "boot".to_owned() }
    }

    #[test]
    fn nft_takes_the_table_with_and_without_targets() {
        in_new_netns(|| {
            let entries = record("boot").entries();
            for (targets, entries) in [(false, &[][..]), (true, &[]), (false, &entries), (true, &entries)] {
                nft::commit(&document(targets, entries), "make the table").unwrap();
            }
            remove().unwrap();
            remove().unwrap();
        });
    }

    #[test]
    fn the_table_comes_with_all_its_elements_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let host = host(folder.path());
        in_new_netns(move || {
            let (home, mut kernel) = (host_id().unwrap(), Nfnetlink::open().unwrap());
            let entries = record("boot").entries();
            let mut bad = entries.clone();
            bad.push(Entry { set: MACS, key: b"no address".to_vec(), address: None });
            Memory::make(&host, &home, &mut kernel, &bad, false).unwrap_err();
            assert!(!Memory::path(&host).exists(), "nothing is remembered that was not made");
            assert_eq!(kernel.table_fingerprint(BRIDGE, TABLE).unwrap(), None);
            Memory::make(&host, &home, &mut kernel, &entries, false).unwrap();
            let memory = Memory::of_table(&host, &home, &mut kernel).unwrap().unwrap();
            // As netlink has them, byte by byte.
            assert_eq!(memory.differences(&mut kernel, &entries).unwrap(), 0);
            assert_eq!(entries.len(), 8);
        });
    }
}
