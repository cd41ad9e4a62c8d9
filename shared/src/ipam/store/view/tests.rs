use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::*;
use crate::ipam::allocator::Allocator;
use crate::ipam::claims;
use crate::ipam::world::World;

/// All there is, and when each folder and file was changed.
fn everything(folder: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
    let mut found = Vec::new();
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let content = if meta.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if meta.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else {
            fs::read(&path).unwrap()
        };
        found.push((path, content, meta.modified().unwrap()));
    }
    found.sort();
    found
}

/// What an ADD of a key would get, or why it would be refused.
fn planned(world: &mut World, key: &str, container: &str) -> Result<Vec<IpAddr>, String> {
    let (request, path) = (world.request(key, container), world.path());
    let location = Location { host: &world.host, network: &world.network, folder: &path };
    let (said, next, sets, claims) = (&mut world.said, &mut world.next, &world.sets, &world.claims);
    let none = vec![None; sets.len()];
    location
        .looking(|store| Allocator::new(store, said, next, &request).plan(sets, &none, claims))
        .map_err(|error| error.to_string())
}

/// A range of 13 in which all was used, half is released, and the dead have some.
fn world() -> World {
    let mut world = World::new(&["10.0.0.0/28", "fd00::/64"]);
    for n in 0..13 {
        world.add(&format!("key{n}"), &format!("c{n}"));
    }
    for n in [7, 3, 11, 5] {
        world.del(&format!("c{n}"));
    }
    for n in [0, 1] {
        world.die(&format!("c{n}"));
    }
    world
}

#[test]
fn a_plan_is_what_the_next_writer_does_and_nothing_is_changed_by_it() {
    type Damage = fn(&mut World);
    let damages: [(&str, Damage); 8] = [
        ("none", |_| {}),
        ("a torn record", |world| {
            let address = world.held("c2")[0];
            fs::write(world.path().join(address.to_string()), "{").unwrap();
        }),
        ("a lost record", |world| {
            let address = world.held("c2")[0];
            fs::remove_file(world.path().join(address.to_string())).unwrap();
        }),
        ("no index", |world| fs::remove_file(world.path().join("index")).unwrap()),
        ("no by-key", |world| fs::remove_dir_all(world.path().join("by-key")).unwrap()),
        ("a torn queue", |world| {
            fs::write(world.path().join("queue/once4"), "x").unwrap();
            fs::remove_file(world.path().join("index")).unwrap();
        }),
        ("a reboot", |world| world.reboot("boot-2")),
        ("a claim", |world| world.claims = claims::of(&[("default", 3)])),
    ];
    for (what, damage) in damages {
        for key in ["key3", "key2", "new"] {
            let mut world = world();
            damage(&mut world);
            let before = everything(&world.path());
            let planned = planned(&mut world, key, "x");
            assert!(everything(&world.path()) == before, "{what}, {key}: changed by looking");
            let done = world.try_add(key, "x").map_err(|error| error.to_string());
            assert_eq!(planned, done, "{what}, {key}");
        }
    }
}

#[test]
fn what_is_full_is_told_and_not_noted() {
    let mut world = World::new(&["10.0.0.0/21"]);
    for n in 0..2045 {
        world.add(&format!("key{n}"), &format!("c{n}"));
    }
    let before = everything(&world.path());
    assert!(planned(&mut world, "new", "x").unwrap_err().contains("no IP addresses available"));
    assert!(everything(&world.path()) == before);
}

#[test]
fn all_changes_or_none() {
    let mut world = World::new(&["10.0.0.0/24", "fd00::/64"]);
    let addresses = world.try_add("web", "c1").unwrap();
    let record = world.record(addresses[0]).unwrap();
    let other: IpAddr = "10.0.0.77".parse().unwrap();
    let new = |address, uses| crate::ipam::store::Change {
        address,
        before: None,
        after: Some(Record { uses, ..record.clone() }),
    };
    let changes = [new(other, 1), new(addresses[0], 9)];
    // The second one is there: nothing is replaced by what should be new.
    world.store(|store| store.apply_all(&changes)).unwrap_err();
    assert_eq!(world.record(other), None);
    assert_eq!(world.record(addresses[0]), Some(record));
}
