//! The derived files of a folder against its records.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;

use super::{Cure, Fault};
use crate::ipam::Error;
use crate::ipam::queue::Entry;
use crate::ipam::record::{Record, State};
use crate::ipam::store::{Class, Holders, Store};
use crate::ipam::timestamp::micros;

/// So many addresses are named.
const NAMED: usize = 3;

/// What they do not say, or say and should not. `known`: the addresses that have a file.
pub fn faults(store: &Store, records: &[(IpAddr, Record)], known: &HashSet<IpAddr>) -> Result<Vec<Fault>, Error> {
    let mut faults = Vec::new();
    let network = store.network.as_str();
    let keys = records.iter().map(|(address, record)| (record.key.hash(), *address)).collect();
    let tags = records.iter().map(|(address, record)| (record.tag(network), *address)).collect();
    for (name, wanted) in [("by-key", keys), ("by-attachment", tags)] {
        let path = store.folder.join(name);
        faults.extend(index(&path, &wanted, known)?.into_iter().map(|what| Fault {
            path: path.clone(),
            what,
            cure: Cure::MakeAgain,
        }));
    }
    let mut say = |name: &str, what: Option<String>| {
        faults.extend(what.map(|what| Fault { path: store.folder.join(name), what, cure: Cure::MakeAgain }));
    };
    let marked: HashSet<IpAddr> = store.bitmap.marked()?.into_iter().collect();
    say("bitmap", some("marks, without a record,", marked.iter().filter(|address| !known.contains(address))));
    let unmarked = known.iter().filter(|address| address.is_ipv4() && !marked.contains(address));
    say("bitmap", some("misses", unmarked));
    let mut classes: HashMap<(IpAddr, u64), Vec<Class>> = HashMap::new();
    for class in Class::ALL {
        for v6 in [false, true] {
            for Entry { address, since } in store.queue(class, v6).entries()? {
                classes.entry((address, since)).or_default().push(class);
            }
        }
    }
    // A stale entry is as it should be: whoever takes it sees that.
    let released = records.iter().filter(|(_, record)| record.state == State::Released);
    let missing = released.filter(|(address, record)| {
        let place = classes.get(&(*address, micros(&record.since)));
        !place.is_some_and(|classes| classes.contains(&Class::of(record)))
    });
    say("queue", some("misses, of the released addresses,", missing.map(|(address, _)| address)));
    let mut holders = Holders::default();
    records.iter().for_each(|(address, record)| holders.note(*address, record));
    faults.extend(store.namespaces.faults(&holders).into_iter().map(|(path, what)| Fault {
        path,
        what,
        cure: Cure::MakeAgain,
    }));
    Ok(faults)
}

/// What is wrong with an index. The slots of a name are dense from 0: what comes after a gap is not found.
fn index(folder: &Path, wanted: &HashSet<(String, IpAddr)>, known: &HashSet<IpAddr>) -> Result<Vec<String>, Error> {
    let failed = |error| Error::io("read", folder, error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec!["is missing".to_owned()]),
        entries => entries.map_err(failed)?,
    };
    let mut slots: HashMap<String, Vec<(usize, Option<IpAddr>)>> = HashMap::new();
    let mut strange = 0_usize;
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let place = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('.'));
        let Some((name, slot)) = place.and_then(|(name, slot)| Some((name, slot.parse().ok()?))) else {
            strange += 1;
            continue;
        };
        let target = fs::read_link(&path).ok().and_then(|target| target.to_str()?.parse().ok());
        slots.entry(name.to_owned()).or_default().push((slot, target));
    }
    let mut found = HashSet::new();
    for (name, mut slots) in slots {
        slots.sort_unstable_by_key(|(slot, _)| *slot);
        for (at, (slot, target)) in slots.into_iter().enumerate() {
            match target {
                Some(address) if slot == at => _ = found.insert((name.clone(), address)),
                _ => strange += 1,
            }
        }
    }
    // Whose a record of a later format is cannot be told.
    let others: HashSet<IpAddr> = wanted.iter().map(|(_, address)| *address).collect();
    let surplus: Vec<IpAddr> = found.difference(wanted).map(|(_, address)| *address).collect();
    let (dangling, wrong): (Vec<IpAddr>, Vec<IpAddr>) = surplus.iter().partition(|address| !known.contains(address));
    let wrong = wrong.iter().filter(|address| others.contains(address));
    let mut said = Vec::new();
    said.extend(some("misses", wanted.difference(&found).map(|(_, address)| address)));
    said.extend(some("leads to what has no record:", dangling.iter()));
    said.extend(some("has under another name", wrong));
    if strange > 0 {
        said.push(format!("has {strange} entries that nothing leads to"));
    }
    Ok(said)
}

/// "misses 10.0.0.1, 10.0.0.2, 10.0.0.3 and 7 more"
fn some<'a>(what: &str, addresses: impl Iterator<Item = &'a IpAddr>) -> Option<String> {
    let mut addresses: Vec<&IpAddr> = addresses.collect();
    crate::order::sort(&mut addresses);
    let named: Vec<String> = addresses.iter().take(NAMED).map(ToString::to_string).collect();
    match addresses.len() {
        0 => None,
        count if count > NAMED => Some(format!("{what} {} and {} more", named.join(", "), count - NAMED)),
        _ => Some(format!("{what} {}", named.join(", "))),
    }
}
