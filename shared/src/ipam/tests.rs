//! The rules of allocation, each seen from outside.

use std::fs;

use super::Error;
use super::liveness::Liveness;
use super::range::RangeSet;
use super::record::State;
use super::store::Class;
use super::world::{World, ip, pool};

#[test]
fn the_first_candidate_is_a_function_of_the_key() {
    let mut world = World::new(&["10.22.0.0/16"]);
    let request = world.request("web", "c1");
    let expected = world.sets[0].0[0].first_candidate(&request.key.digest(0));
    assert_eq!(world.add("web", "c1"), expected);
    let mut elsewhere = World::new(&["10.22.0.0/16"]);
    assert_eq!(elsewhere.add("web", "other-id"), expected, "on any host, whatever the container id");
}

#[test]
fn a_key_gets_its_address_back_after_release_death_and_reboot() {
    let mut world = World::new(&["10.0.0.0/24"]);
    let first = world.add("web", "c1");
    assert_eq!(world.del("c1"), [first]);
    assert_eq!(world.add("web", "c2"), first, "released");
    world.die("c2");
    assert_eq!(world.add("web", "c3"), first, "its holder is dead");
    world.reboot("boot-2");
    assert_eq!(world.add("web", "c3"), first, "the same container id after a reboot");
    world.reboot("boot-3");
    assert_eq!(world.add("web", "c4"), first, "a new container id after a reboot");
    assert_eq!(world.record(first).unwrap().uses, 5);
}

#[test]
fn e6_add_is_idempotent() {
    let mut world = World::new(&["10.0.0.0/24"]);
    let first = world.add("web", "c1");
    assert_eq!(world.add("web", "c1"), first);
    assert_eq!(world.held("c1"), [first], "and no second address is taken");
}

#[test]
fn a_running_attachment_in_another_namespace_is_named() {
    let mut world = World::new(&["10.0.0.0/24"]);
    world.add("web", "c1");
    let mut request = world.request("web", "c1");
    request.netns = world.request("web", "c9").netns;
    let error = world.allocate(&request).unwrap_err();
    assert!(matches!(error, Error::Elsewhere(_)), "{error}");
    assert!(error.to_string().contains("/run/netns/c1"), "{error}");
    world.die("c1");
    world.allocate(&request).unwrap();
}

#[test]
fn a_late_del_leaves_the_successor_alone() {
    let mut world = World::new(&["10.0.0.0/24"]);
    let address = world.add("web", "old");
    world.die("old");
    assert_eq!(world.add("web", "new"), address);
    assert_eq!(world.del("old"), [] as [std::net::IpAddr; 0]);
    assert_eq!(world.held("new"), [address]);
}

#[test]
fn live_twins_never_share_and_each_keeps_its_own() {
    let mut world = World::new(&["10.0.0.0/24"]);
    let (a, b) = (world.add("web", "a"), world.add("web", "b"));
    assert_ne!(a, b);
    assert_eq!((world.record(a).unwrap().instance, world.record(b).unwrap().instance), (0, 1));
    world.said.of.insert("a".to_owned(), Liveness::Unknown);
    assert_ne!(world.add("web", "c"), a, "whoever cannot be judged is taken for alive");
    world.del("c");
    for _ in 0..3 {
        world.del("b");
        world.del("a");
        assert_eq!((world.add("web", "b"), world.add("web", "a")), (b, a));
    }
}

#[test]
fn a_displaced_key_keeps_its_displaced_address() {
    let mut world = World::new(&["10.0.0.0/29"]);
    let candidate =
        |world: &World, key: &str| world.sets[0].0[0].first_candidate(&world.request(key, "c").key.digest(0));
    let wanted = candidate(&world, "first");
    let displaced = (0..).map(|n| format!("k{n}")).find(|key| candidate(&world, key) == wanted).unwrap();
    let first = world.add("first", "c1");
    let second = world.add(&displaced, "c2");
    assert_ne!(first, second);
    world.del("c1");
    world.del("c2");
    for n in 0..5 {
        assert_eq!(world.add(&displaced, &format!("d{n}")), second, "though its candidate is free");
        world.del(&format!("d{n}"));
    }
}

#[test]
fn five_addresses_survive_fifty_reboots() {
    let mut world = World::new(&["10.0.0.0/29"]);
    world.sets[0].0[0].end = ip("10.0.0.6");
    let addresses: Vec<_> = (0..4).map(|n| world.add(&format!("k{n}"), &format!("c{n}"))).collect();
    for boot in 0..50 {
        world.reboot(&format!("again-{boot}"));
        for (n, address) in addresses.iter().enumerate() {
            assert_eq!(world.add(&format!("k{n}"), &format!("c{n}-{boot}")), *address);
        }
    }
    let mut world = World::new(&["10.0.0.0/29"]);
    for boot in 0..50 {
        world.reboot(&format!("again-{boot}"));
        for n in 0..4 {
            world.add(&format!("name-{boot}-{n}"), &format!("c{boot}-{n}"));
        }
    }
}

#[test]
fn one_time_names_do_not_cost_a_service_its_address() {
    let mut world = World::new(&["10.0.0.0/24"]);
    let service = world.add("service", "s1");
    world.del("s1");
    assert_eq!(world.add("service", "s2"), service);
    world.del("s2");
    for n in 0..5000 {
        let container = format!("once-{n}");
        assert_ne!(world.add(&container, &container), service, "name number {n}");
        world.del(&container);
    }
    assert_eq!(world.add("service", "s3"), service);
}

#[test]
fn released_addresses_go_in_the_order_of_their_use() {
    let mut world = World::new(&["10.0.0.0/29"]);
    let requested = {
        let mut request = world.request("requested", "r");
        request.requested = vec![ip("10.0.0.6")];
        world.allocate(&request).unwrap().0[0]
    };
    world.del("r");
    let again = world.add("again", "a");
    world.del("a");
    world.add("again", "a");
    world.del("a");
    let once: Vec<_> = (0..3).map(|n| world.add(&format!("once{n}"), &format!("o{n}"))).collect();
    for n in [1, 0, 2] {
        world.del(&format!("o{n}"));
    }
    let strangers: Vec<_> = (0..5).map(|n| world.add(&format!("stranger{n}"), &format!("x{n}"))).collect();
    assert_eq!(strangers, [once[1], once[0], once[2], again, requested]);
}

#[test]
fn al6_a_full_range_says_how_full_and_since_when() {
    let mut world = World::new(&["192.168.1.0/29"]);
    for n in 0..5 {
        world.add(&format!("k{n}"), &format!("c{n}"));
    }
    let before = world.tree();
    let error = world.try_add("sixth", "c6").unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(
            "no IP addresses available in range set: 192.168.1.1-192.168.1.6 (5 held, the oldest since 20"
        ),
        "{text}"
    );
    assert_eq!(error.code(), crate::Code::TryAgainLater);
    assert_eq!(world.tree(), before, "nothing changed");
    world.die("c3");
    let freed = world.held("c3")[0];
    assert_eq!(world.add("sixth", "c6"), freed, "last of all, what the dead hold");
}

#[test]
fn a_failure_in_the_second_set_puts_the_first_back() {
    let mut world = World::new(&["10.0.0.0/24", "10.1.0.0/30"]);
    world.try_add("holder", "c1").unwrap();
    // Known to the first set, so that its record is changed before the second set fails.
    let both = std::mem::take(&mut world.sets);
    world.sets = vec![both[0].clone()];
    world.try_add("late", "c2").unwrap();
    world.del("c2");
    world.sets = both;
    let before = world.tree();
    for key in ["late", "new"] {
        assert!(matches!(world.try_add(key, "c3"), Err(Error::Full { .. })));
        assert_eq!(world.tree(), before, "{key}");
    }
    assert_eq!(world.held("c3"), [] as [std::net::IpAddr; 0]);
}

#[test]
fn al5_requested_addresses() {
    let mut world = World::new(&["192.168.1.0/29"]);
    let ask = |world: &mut World, key: &str, container: &str, address: &str| {
        let mut request = world.request(key, container);
        request.requested = vec![ip(address)];
        world.allocate(&request).map(|(addresses, _)| addresses[0])
    };
    assert_eq!(ask(&mut world, "web", "c1", "192.168.1.5").unwrap(), ip("192.168.1.5"));
    let error = ask(&mut world, "db", "c2", "192.168.1.5").unwrap_err().to_string();
    assert!(error.contains("\"web\" (container c1, interface eth0) since 20"), "{error}");
    assert!(ask(&mut world, "web", "c2", "192.168.1.5").is_err(), "not even a twin");
    assert_eq!(ask(&mut world, "web", "c1", "192.168.1.6").unwrap(), ip("192.168.1.6"));
    assert_eq!(world.held("c1"), [ip("192.168.1.6")], "the request replaced what it had");
    world.die("c1");
    assert_eq!(ask(&mut world, "db", "c2", "192.168.1.6").unwrap(), ip("192.168.1.6"), "a dead holder loses it");
    for outside in ["192.168.1.7", "192.168.1.0", "192.168.1.1", "192.168.2.2"] {
        assert!(ask(&mut world, "db", "c2", outside).is_err(), "{outside}");
    }
}

#[test]
fn what_an_operator_reserved_goes_to_nobody_else() {
    let mut world = World::new(&["192.168.1.0/29"]);
    let reserved = world.add("web", "c1");
    world.del("c1");
    let mut record = world.record(reserved).unwrap();
    (record.state, record.pinned) = (State::Reserved, true);
    world
        .store(|store| {
            let before = store.read(reserved)?;
            store.apply(&super::store::Change { address: reserved, before, after: Some(record.clone()) })
        })
        .unwrap();
    for n in 0..4 {
        assert_ne!(world.add(&format!("k{n}"), &format!("c{n}")), reserved);
    }
    assert!(matches!(world.try_add("k5", "c5"), Err(Error::Full { .. })));
    assert_eq!(world.add("web", "w"), reserved);
    world.die("w");
    assert!(matches!(world.try_add("k5", "c5"), Err(Error::Full { .. })), "not even while its holder is dead");
    world.del("w");
    assert_eq!(world.record(reserved).unwrap().state, State::Reserved, "a release leaves it reserved");
}

#[test]
fn a_reused_process_id_is_another_workload() {
    let mut world = World::new(&["10.0.0.0/24"]);
    let web = world.add("web", "4711");
    world.die("4711");
    let db = world.add("db", "4711");
    assert_ne!(web, db);
    assert_eq!(world.held("4711"), [db]);
    assert_eq!(world.record(web).unwrap().state, State::Released);
}

#[test]
fn another_range_does_not_keep_the_old_address() {
    let mut world = World::new(&["10.0.0.0/24"]);
    let old = world.add("web", "c1");
    world.sets = vec![RangeSet(vec![pool("10.9.0.0/24")])];
    let new = world.add("web", "c1");
    assert!(world.sets[0].contains(new));
    assert_eq!(world.held("c1"), [new]);
    assert_eq!(world.record(old).unwrap().state, State::Released);
}

#[test]
fn a_neighbours_address_is_never_given() {
    let mut world = World::new(&["10.0.0.0/29"]);
    world.next.0.extend([ip("10.0.0.2"), ip("10.0.0.3"), ip("10.0.0.4"), ip("10.0.0.5")]);
    assert_eq!(world.add("web", "c1"), ip("10.0.0.6"));
    assert!(matches!(world.try_add("db", "c2"), Err(Error::Full { .. })));
    let mut request = world.request("db", "c2");
    request.requested = vec![ip("10.0.0.2")];
    assert!(world.allocate(&request).unwrap_err().to_string().contains("host-local"));
}

#[test]
fn derived_files_may_vanish_or_lie() {
    let mut world = World::new(&["10.0.0.0/28"]);
    let mut request = world.request("web", "c1");
    request.requested = vec![ip("10.0.0.9")];
    world.allocate(&request).unwrap();
    world.del("c1");
    let other = world.add("other", "c2");
    let path = world.path();
    let damages: [&dyn Fn(); 6] = [
        &|| fs::remove_dir_all(path.join("by-key")).unwrap(),
        &|| fs::remove_dir_all(path.join("by-attachment")).unwrap(),
        &|| fs::remove_file(path.join("index")).unwrap(),
        &|| fs::remove_dir_all(path.join("bitmap")).unwrap(),
        &|| {
            for entry in fs::read_dir(path.join("by-key")).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        },
        &|| {
            for entry in fs::read_dir(path.join("by-attachment")).unwrap() {
                let link = entry.unwrap().path();
                fs::remove_file(&link).unwrap();
                std::os::unix::fs::symlink("10.0.0.14", &link).unwrap();
            }
        },
    ];
    for (n, damage) in damages.into_iter().enumerate() {
        damage();
        assert_eq!(world.add("web", &format!("d{n}")), ip("10.0.0.9"), "damage {n}");
        assert_eq!(world.del(&format!("d{n}")), [ip("10.0.0.9")], "damage {n}");
        assert_eq!(world.held("c2"), [other], "damage {n}");
    }
    let _ = fs::remove_dir_all(path.join("queue"));
    for n in 0..11 {
        world.add(&format!("k{n}"), &format!("k{n}"));
    }
    assert_eq!(world.add("one-more", "m"), ip("10.0.0.9"), "a released address is found without its queue");
}

#[test]
fn torn_and_foreign_files_are_set_aside_and_leak_nothing() {
    let mut world = World::new(&["10.0.0.0/29"]);
    world.add("web", "c1");
    let path = world.path();
    for (name, content) in [("10.0.0.2", ""), ("10.0.0.3", "{\"v\":1,"), ("10.0.0.4", "c9\r\neth0"), ("README", "x")] {
        fs::write(path.join(name), content).unwrap();
    }
    fs::remove_file(path.join("index")).unwrap();
    for n in 0..4 {
        world.add(&format!("k{n}"), &format!("k{n}"));
    }
    assert!(path.join("corrupt/README").exists() && path.join("corrupt/10.0.0.4").exists());
    assert!(!path.join("README").exists());
}

#[test]
fn a_newer_format_is_not_guessed_at() {
    let mut world = World::new(&["10.0.0.0/29"]);
    let address = world.add("web", "c1");
    let file = world.path().join(address.to_string());
    let text = fs::read_to_string(&file).unwrap().replace("\"v\":1", "\"v\":2");
    fs::write(&file, text).unwrap();
    let error = world.try_add("web", "c1").unwrap_err();
    assert!(error.to_string().contains("format 2"), "{error}");
    assert!(file.exists());
}

#[test]
fn a_newer_record_stops_nobody_else_and_is_given_to_nobody() {
    let mut world = World::new(&["10.0.0.0/29"]);
    let address = world.add("web", "c1");
    let other = world.add("other", "c2");
    let file = world.path().join(address.to_string());
    let text = fs::read_to_string(&file).unwrap().replace("\"v\":1", "\"v\":2");
    fs::remove_file(&file).unwrap();
    fs::write(&file, &text).unwrap();
    assert_eq!(world.del("c2"), [other], "a DEL of another");
    assert_eq!(world.add("other", "c2"), other);
    for n in 0..3 {
        assert_ne!(world.add(&format!("k{n}"), &format!("k{n}")), address);
    }
    let error = world.try_add("one-more", "m").unwrap_err();
    assert!(matches!(error, Error::Full { held: 5, .. }), "{error}");
    let listed = super::list(&world.host, &world.network, None).unwrap();
    assert_eq!(listed.len(), 4, "the others are listed");
    super::gc(&world.host, &world.network, None, Some(&[])).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), text, "and it is left as it was");
}

#[test]
fn wide_ipv6_ranges_remember_no_more_than_they_must() {
    let mut world = World::new(&["fd00:1::/64"]);
    for n in 0..4200 {
        let name = format!("once-{n}");
        world.add(&name, &name);
        world.del(&name);
    }
    let kept = world.store(|store| store.addresses()).unwrap().len();
    assert_eq!(kept, 4096);
    let entries: u64 =
        Class::ALL.iter().map(|class| world.store(|store| store.queue(*class, true).len()).unwrap()).sum();
    assert_eq!(entries, 4096);
}

/// Index entries without their slots, and no bitmap of IPv6, whose file stays when its bits are cleared.
fn unordered(tree: Vec<(String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let mut tree: Vec<_> = tree
        .into_iter()
        .filter(|(name, _)| !name.starts_with("bitmap/0000"))
        .map(|(name, content)| match name.strip_prefix("by-").and_then(|name| name.rsplit_once('.')) {
            Some((entry, _)) => (entry.to_owned(), content),
            None => (name, content),
        })
        .collect();
    tree.sort();
    tree
}

#[test]
fn undo_brings_back_what_was_there_byte_for_byte() {
    let mut world = World::new(&["10.0.0.0/24", "fd00::/120"]);
    world.try_add("web", "c1").unwrap();
    world.del("c1");
    let before = world.tree();
    for key in ["web", "new"] {
        let request = world.request(key, "c2");
        let (_, changes) = world.allocate(&request).unwrap();
        assert_ne!(world.tree(), before);
        world.store(|store| store.revert(&changes)).unwrap();
        assert_eq!(unordered(world.tree()), unordered(before.clone()));
    }
    assert_eq!(world.add("web", "c3"), world.held("c3")[0]);
}

/// Counts how often it is asked.
struct Counting(u32);

impl super::liveness::Witness for Counting {
    fn judge(&mut self, _: &super::record::Record) -> Liveness {
        self.0 += 1;
        Liveness::Running
    }
}

#[test]
fn whoever_asks_again_is_not_judged_unless_something_is_reserved_for_its_key() {
    let mut world = World::new(&["10.0.0.0/24"]);
    let address = world.add("web", "c1");
    let request = world.request("web", "c1");
    let mut witness = Counting(0);
    let again = |world: &mut World, witness: &mut Counting| {
        let (path, next, sets) = (world.path(), &mut world.next, &world.sets);
        let location = super::store::Location { host: &world.host, network: &world.network, folder: &path };
        let claims = super::claims::Claims::default();
        let allocate = |store: &mut super::store::Store| {
            super::allocator::Allocator::new(store, witness, next, &request).allocate(sets, &[None], &claims)
        };
        location.created(allocate).unwrap().0
    };
    assert_eq!((again(&mut world, &mut witness), witness.0), (vec![address], 0), "a judgement may take half a second");
    let mut reserved = world.record(address).unwrap();
    reserved.state = State::Reserved;
    let change = super::store::Change { address: ip("10.0.0.77"), before: None, after: Some(reserved) };
    world.store(|store| store.apply(&change)).unwrap();
    assert_eq!((again(&mut world, &mut witness), witness.0), (vec![address], 1));
}
