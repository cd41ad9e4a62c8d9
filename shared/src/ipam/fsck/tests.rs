use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;
use crate::ipam::world::World;

/// What is wrong, by the last part of its path.
fn faults(world: &World) -> Vec<String> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let look = look(&world.host, &world.network, &world.path(), &|_| {}).unwrap();
    look.faults.iter().map(|fault| format!("{} {}", name(&fault.path), fault.what)).collect()
}

#[track_caller]
fn damaged(damage: impl Fn(&Path), said: &[&str]) {
    let mut world = World::new(&["10.0.0.0/24", "fd00::/64"]);
    let address = world.add("web", "c1");
    world.add("db", "c2");
    assert_eq!(faults(&world), [""; 0], "before");
    damage(&world.path());
    let (before, told) = (world.tree(), faults(&world));
    assert_eq!(world.tree(), before, "nothing is changed by looking");
    for word in said {
        assert!(told.iter().any(|told| told.contains(word)), "{word:?} is in {told:?}");
    }
    mend(&world.host, &world.network, &world.path(), &[]).unwrap();
    assert_eq!(faults(&world), [""; 0], "mended");
    let tree = world.tree();
    mend(&world.host, &world.network, &world.path(), &[]).unwrap();
    assert_eq!(world.tree().len(), tree.len(), "twice is once");
    assert!(record(&world.path().join(address.to_string())).unwrap().is_some_and(|record| record.is_held()));
}

#[test]
fn what_is_no_record_and_what_is_not_derived_from_records_is_told_and_mended() {
    damaged(|path| fs::write(path.join("10.0.0.77"), "{").unwrap(), &["10.0.0.77 is no address record"]);
    damaged(|path| fs::write(path.join("010.0.0.77"), "{}").unwrap(), &["010.0.0.77 is no address record: its name"]);
    damaged(|path| fs::remove_dir_all(path.join("by-key")).unwrap(), &["index does not fit", "by-key is missing"]);
    damaged(
        |path| symlink("10.0.0.99", path.join("by-attachment/0123456789abc.0")).unwrap(),
        &["by-attachment leads to what has no record: 10.0.0.99"],
    );
    damaged(|path| fs::remove_file(path.join("index")).unwrap(), &["index is missing"]);
    damaged(|path| fs::write(path.join("bitmap/10.0"), vec![0; 8192]).unwrap(), &["bitmap misses 10.0.0."]);
    damaged(|path| fs::write(path.join("bitmap/10.0"), vec![255; 8192]).unwrap(), &["bitmap marks, without a record,"]);
}
