use std::os::unix::fs::MetadataExt;

use super::*;
use crate::ipam::world::World;

fn lines(world: &World) -> Vec<Line> {
    read(&world.host, &world.network, None).unwrap().lines
}

fn story(world: &World) -> Vec<(What, String, bool)> {
    lines(world).into_iter().map(|line| (line.what, line.key.text, line.undone)).collect()
}

fn told(what: What, key: &str) -> (What, String, bool) {
    (what, key.to_owned(), false)
}

#[test]
fn each_change_is_a_line_with_totals() {
    let mut world = World::new(&["10.0.0.0/30", "fd00::/64"]);
    assert_eq!(totals(&world.path()).unwrap(), Totals::default());
    let address = world.add("web", "c1");
    world.try_add("db", "c2").unwrap_err();
    world.del("c1");
    let all = lines(&world);
    assert_eq!(all[0].address, Some(address));
    assert_eq!((all[0].container.as_str(), all[0].ifname.as_str(), all[0].instance), ("c1", "eth0", 0));
    assert_eq!(all[2].address, None, "the range is full");
    assert_eq!(
        story(&world),
        [
            told(What::Held, "web"),
            told(What::Held, "web"),
            told(What::Refused, "db"),
            told(What::Released, "web"),
            told(What::Released, "web")
        ]
    );
    assert_eq!(totals(&world.path()).unwrap(), Totals { allocations: 1, conflicts: 1 });
    let mut request = world.request("web", "c3");
    world.allocate(&request).unwrap();
    request = world.request("db", "c4");
    request.requested = vec![address];
    world.allocate(&request).unwrap_err();
    assert_eq!(lines(&world).last().unwrap().address, Some(address), "what was asked for");
    assert_eq!(totals(&world.path()).unwrap(), Totals { allocations: 2, conflicts: 2 });
}

#[test]
fn an_add_that_failed_is_told_as_undone() {
    let mut world = World::new(&["10.0.0.0/24"]);
    let request = world.request("web", "c1");
    let (_, changes) = world.allocate(&request).unwrap();
    world.store(|store| store.revert(&changes)).unwrap();
    assert_eq!(story(&world), [told(What::Held, "web"), (What::Forgotten, "web".to_owned(), true)]);
    assert_eq!(totals(&world.path()).unwrap().allocations, 1);
}

#[test]
fn a_torn_line_is_passed_over() {
    let mut world = World::new(&["10.0.0.0/24"]);
    world.add("a", "a");
    world.add("b", "b");
    let path = world.path().join("history");
    let whole = fs::read(&path).unwrap();
    for cut in [1, 2, 30, TAIL, TAIL + 1, 150] {
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        assert_eq!(totals(&world.path()).unwrap().allocations, 1, "{cut} bytes are missing");
        world.add("c", "c");
        let keys: Vec<String> = lines(&world).into_iter().map(|line| line.key.text).collect();
        // Without its line feed only, a line is whole for whoever reads all.
        assert_eq!(keys, if cut == 1 { vec!["a", "b", "c"] } else { vec!["a", "c"] }, "{cut} bytes are missing");
        assert_eq!(totals(&world.path()).unwrap().allocations, 2);
        world.del("c");
    }
    fs::write(&path, "banana").unwrap();
    world.add("d", "d");
    assert_eq!(story(&world), [told(What::Held, "d")]);
}

#[test]
fn two_files_are_kept_and_the_totals_go_on() {
    let mut world = World::new(&["10.0.0.0/24"]);
    world.add("a", "a");
    let path = world.path().join("history");
    let old = world.path().join("history.1");
    let line = fs::read(&path).unwrap();
    let full = |byte: &[u8]| {
        let mut text = byte.repeat(1 << 20);
        text.push(b'\n');
        text.extend_from_slice(&line);
        fs::write(&path, text).unwrap();
    };
    for round in 1..=3_u64 {
        full(b"x");
        world.add("b", "b");
        assert_eq!(totals(&world.path()).unwrap().allocations, 2);
        assert_eq!(fs::read(&path).unwrap().iter().filter(|byte| **byte == b'\n').count(), 1, "round {round}");
        assert!(old.metadata().unwrap().len() > LIMIT);
        assert_eq!(story(&world), [told(What::Held, "a"), told(What::Held, "b")]);
    }
    // A writer was killed between the two steps of that.
    fs::remove_file(&path).unwrap();
    assert_eq!(totals(&world.path()).unwrap().allocations, 1);
    world.add("c", "c");
    assert_eq!(totals(&world.path()).unwrap().allocations, 2);
    assert!(!world.path().join("corrupt").exists());
}

#[test]
fn no_index_is_made_again_for_it() {
    let mut world = World::new(&["10.0.0.0/24"]);
    world.add("a", "a");
    let inode = || fs::metadata(world.path().join("by-key")).unwrap().ino();
    let before = inode();
    fs::OpenOptions::new().append(true).open(world.path().join("history")).unwrap().set_len(LIMIT + 5).unwrap();
    for n in 0..3 {
        let request = world.request("b", &format!("b{n}"));
        let (said, next) = (&mut world.said, &mut world.next);
        let path = world.folder.path().join("ipam/net");
        let location = crate::ipam::store::Location { host: &world.host, network: &world.network, folder: &path };
        let sets = &world.sets;
        location
            .created(|store| {
                crate::ipam::allocator::Allocator::new(store, said, next, &request).allocate(
                    sets,
                    &[None],
                    &world.claims,
                )
            })
            .unwrap();
        assert_eq!(fs::metadata(path.join("by-key")).unwrap().ino(), before, "the {n}th ADD since");
    }
    assert!(world.path().join("history.1").exists());
}

#[test]
fn what_is_in_its_way_keeps_nobody_from_an_address() {
    let things: [&dyn Fn(&Path); 4] = [
        &|path| fs::create_dir(path).unwrap(),
        &|path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        &|path| std::os::unix::fs::symlink("/dev/full", path).unwrap(),
        &|path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
    ];
    for (number, make) in things.iter().enumerate() {
        let mut world = World::new(&["10.0.0.0/24"]);
        fs::create_dir_all(world.path()).unwrap();
        make(&world.path().join("history"));
        let address = world.add("web", "c1");
        assert_eq!(world.del("c1"), [address], "thing {number}");
    }
}

#[test]
fn many_changes_by_one_writer_are_all_told() {
    let mut world = World::new(&["10.0.0.0/16"]);
    let request = world.request(&"k".repeat(300), "c1");
    let (_, changes) = world.allocate(&request).unwrap();
    world
        .store(|store| {
            for _ in 0..500 {
                store.revert(&changes)?;
                store.apply(&changes[0])?;
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(lines(&world).len(), 1001);
    assert_eq!(totals(&world.path()).unwrap().allocations, 1);
}

/// `times` ADDs of each of `keys` that are refused.
fn refuse(world: &mut World, times: usize, keys: &[&str]) {
    for n in 0..times {
        for key in keys {
            world.try_add(key, &format!("x{n}")).unwrap_err();
        }
    }
}

#[test]
fn what_is_refused_again_and_again_is_counted_and_told_once() {
    let mut world = World::new(&["10.0.0.0/30"]);
    world.add("web", "c1");
    let size = |world: &World| fs::metadata(world.path().join("history")).unwrap().len();
    refuse(&mut world, 1, &["a", "b", "c"]);
    let (before, story_before) = (size(&world), story(&world));
    refuse(&mut world, 50, &["a", "b", "c"]);
    assert_eq!((size(&world), story(&world)), (before, story_before));
    assert_eq!(totals(&world.path()).unwrap(), Totals { allocations: 1, conflicts: 153 });
    // Another reason, and once more after something else has happened.
    let mut request = world.request("a", "a");
    request.requested = vec!["10.0.0.2".parse().unwrap()];
    world.allocate(&request).unwrap_err();
    world.allocate(&request).unwrap_err();
    world.del("c1");
    world.add("web", "c2");
    refuse(&mut world, 2, &["a"]);
    let told: Vec<What> = lines(&world).into_iter().map(|line| line.what).skip(4).collect();
    assert_eq!(told, [What::Refused, What::Released, What::Held, What::Refused]);
    assert_eq!(totals(&world.path()).unwrap(), Totals { allocations: 2, conflicts: 157 });
    // The line feed is lost, and with it what that line counted: the next line is whole again.
    let path = world.path().join("history");
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(size(&world) - 1).unwrap();
    refuse(&mut world, 2, &["a"]);
    assert_eq!(lines(&world).len(), 9);
    assert_eq!(totals(&world.path()).unwrap().conflicts, 157);
}

#[test]
fn a_refusal_is_looked_for_in_a_bounded_part_of_the_file() {
    let mut world = World::new(&["10.0.0.0/30"]);
    world.add("web", "c1");
    let long = |n: usize| format!("{n:05}{}", "k".repeat(1000));
    for n in 0..100 {
        refuse(&mut world, 1, &[&long(n)]);
    }
    let size = fs::metadata(world.path().join("history")).unwrap().len();
    assert!(size > refusals::BACK, "{size}");
    refuse(&mut world, 1, &[&long(99)]);
    assert_eq!(fs::metadata(world.path().join("history")).unwrap().len(), size);
    refuse(&mut world, 1, &[&long(0)]);
    assert!(fs::metadata(world.path().join("history")).unwrap().len() > size, "long ago");
    assert_eq!(totals(&world.path()).unwrap().conflicts, 102);
}
