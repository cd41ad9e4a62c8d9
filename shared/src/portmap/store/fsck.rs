//! The records of host ports against themselves: what is no record, and links that do not say what the records say.
//! Nothing is changed by looking.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::known::{Filed, Known};
use super::members::FOLDER;
use super::read::is_tag;
use super::{Error, Record, Store, at_rest, folder};
use crate::Host;
use crate::ipam::store::file;
use crate::lock;

/// What is wrong with a file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which.
    pub path: PathBuf,
    /// What is wrong with it, to be read after its path.
    pub what: String,
    /// A later version wrote it: that one reads it. All else is mended by [`distrust`] and [`mend`](crate::portmap::mend).
    pub later: bool,
}

/// What is there.
#[derive(Debug, Default)]
pub struct Look {
    /// The records.
    pub records: Vec<Rc<Record>>,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

/// Looks through all records while nobody writes.
///
/// # Errors
/// They cannot be locked or read.
pub fn look(host: &Host) -> Result<Look, Error> {
    Ok(at_rest(host, through)?.unwrap_or_default())
}

/// The next one to open the store makes its links again and compares it with the kernel.
///
/// # Errors
/// The store cannot be locked.
pub fn distrust(host: &Host) -> Result<(), Error> {
    let folder = folder(host);
    lock::exclusively(&folder.join("lock"), || {
        let _ = fs::remove_file(folder.join("index"));
        Ok(())
    })
}

fn through(store: &Store<'_>) -> Result<Look, Error> {
    let mut look = Look::default();
    let (mut known, mut later) = (Vec::new(), BTreeSet::new());
    let failed = |error| Error::io("read", &store.records, error);
    for entry in fs::read_dir(&store.records).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        let path = store.records.join(&*name);
        let fault = |what: String, later| Fault { path: path.clone(), what, later };
        if name.starts_with('.') {
            continue;
        }
        if !is_tag(&name) {
            look.faults.push(fault("is no record of host ports: its name is that of no attachment".to_owned(), false));
            continue;
        }
        let Some(text) = file::read(&path).map_err(|error| Error::io("read", &path, error))? else { continue };
        match Filed::parse(&name, &text) {
            Ok(Filed::Known(there)) => known.push(there),
            Ok(Filed::Later(there)) => {
                look.faults.push(fault(format!("has format {}, this version does not know it", there.v), true));
                later.insert(name.into_owned());
            }
            Err(why) => look.faults.push(fault(format!("is no record of host ports: {why}"), false)),
        }
    }
    // Of another boot: nobody believes the links, and the next one makes them again.
    let sealed = fs::read_to_string(store.folder.join("index")).unwrap_or_default();
    let of_this_boot = sealed.is_empty() || sealed.split(' ').nth(1) == Some(store.boot);
    if of_this_boot {
        if !sealed.is_empty() && !store.seal.fits() {
            let what = "does not fit: somebody else changed the folder, or a writer was killed".to_owned();
            look.faults.push(Fault { path: store.folder.join("index"), what, later: false });
        }
        look.faults.extend(links(store, &known, &later)?);
    }
    look.records = known.iter().map(|known| known.record.clone()).collect();
    Ok(look)
}

/// What is wrong with the links. Those to records of a later version may be more than we can tell.
fn links(store: &Store<'_>, known: &[Rc<Known>], later: &BTreeSet<String>) -> Result<Vec<Fault>, Error> {
    let (mut ports, mut addresses, mut networks) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for known in known {
        ports.extend(known.ports.iter().map(|port| (Store::port_name(*port), known.tag.clone())));
        addresses.extend(known.addresses.iter().map(|address| (address.to_string(), known.tag.clone())));
        networks.insert((known.record.network.to_string(), known.tag.clone()));
    }
    let members = |folder: &Path| -> BTreeSet<(String, String)> {
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
        };
        let of = |network: String| names(&folder.join(&network)).into_iter().map(move |tag| (network.clone(), tag));
        names(folder).into_iter().flat_map(of).collect()
    };
    let mut faults = Vec::new();
    for (name, wanted, found) in [
        ("by-port", ports, store.by_port.entries()?.into_iter().collect::<BTreeSet<_>>()),
        ("by-address", addresses, store.by_address.entries()?.into_iter().collect()),
        (FOLDER, networks, members(&store.folder.join(FOLDER))),
    ] {
        let path = store.folder.join(name);
        let mut say = |what: &str, (name, tag): &(String, String)| {
            faults.push(Fault { path: path.clone(), what: format!("{what} {name} of {tag}"), later: false });
        };
        wanted.difference(&found).for_each(|link| say("misses", link));
        found.difference(&wanted).filter(|(_, tag)| !later.contains(tag)).for_each(|link| say("has, wrongly,", link));
    }
    Ok(faults)
}
