//! Claims, on a store in a temporary folder.

use super::super::world::{World, pool};
use std::path::PathBuf;

use super::{ClaimError, Error, of};
use crate::Code;
use crate::ipam::range::RangeSet;

fn world(claims: &[(&str, u64)]) -> World {
    let mut world = World::new(&["10.0.0.0/24"]);
    world.claims = of(claims);
    world
}

#[track_caller]
fn refused(world: &mut World, key: &str, container: &str) -> ClaimError {
    match world.try_add(key, container) {
        Err(Error::Claim(error)) => *error,
        other => panic!("{key} {container}: {other:?}"),
    }
}

fn count(world: &World, namespace: &str) -> u64 {
    let namespace = namespace.to_owned();
    world.store(|store| store.held_in(&namespace)).unwrap()
}

#[test]
fn one_more_than_the_claim_is_refused_with_limit_and_held() {
    let mut world = world(&[("prod", 2), ("none", 0)]);
    world.add("prod/a", "c1");
    let before = world.add("prod/b", "c2");
    let error = refused(&mut world, "prod/c", "c3");
    assert_eq!((error.limit, error.held, error.asked, error.code()), (2, 2, 1, Code::TryAgainLater));
    let text = error.to_string();
    for word in
        ["namespace \"prod\" may hold 2", "network net", "holds 2 and asks for 1 more", "osvc-net ip ls --network net"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(world.held("c3").is_empty());
    // Nobody else minds, and who is there comes again.
    world.add("test/a", "c4");
    world.add("web", "c5");
    assert_eq!(world.add("prod/b", "c2"), before);
    world.del("c2");
    assert_eq!(world.add("prod/b", "c6"), before, "restarted");
    refused(&mut world, "prod/c", "c3");
    world.del("c6");
    world.add("prod/c", "c3");
    assert_eq!(refused(&mut world, "none/a", "c7").code(), Code::InvalidConfig, "no use to try again");
}

#[test]
fn the_dead_do_not_count() {
    let mut world = world(&[("*", 3)]);
    for index in 0..3 {
        world.add(&format!("p/old{index}"), &format!("old{index}"));
        world.die(&format!("old{index}"));
    }
    for index in 0..3 {
        world.add(&format!("p/new{index}"), &format!("new{index}"));
    }
    assert_eq!(refused(&mut world, "p/more", "more").held, 3);
    world.reboot("boot-2");
    for index in 0..3 {
        world.add(&format!("p/x{index}"), &format!("x{index}"));
    }
    refused(&mut world, "p/more", "more");
    assert_eq!(count(&world, "p"), 3);
}

#[test]
fn a_twin_grows_and_a_move_does_not() {
    let mut world = world(&[("default", 2)]);
    let first = world.add("web", "c1");
    world.add("web", "c2");
    refused(&mut world, "web", "c3");
    // Another address in place of the one that it has.
    let mut request = world.request("web", "c1");
    request.requested = vec!["10.0.0.77".parse().unwrap()];
    world.allocate(&request).unwrap();
    assert_eq!((world.held("c1"), count(&world, "default")), (request.requested.clone(), 2));
    assert_ne!(first, request.requested[0]);
    // Asked for by name counts as drawn.
    let mut request = world.request("other", "c9");
    request.requested = vec!["10.0.0.99".parse().unwrap()];
    assert!(matches!(world.allocate(&request), Err(Error::Claim(_))));
    assert!(world.record(request.requested[0]).is_none(), "put back");
    // A process id that is used again in another namespace frees what it had in the first.
    world.add("other/x", "c1");
    assert_eq!((count(&world, "default"), count(&world, "other")), (1, 1));
}

#[test]
fn each_set_counts_and_half_an_attachment_grows_by_the_other_half() {
    let mut world = world(&[("default", 3)]);
    world.add("a", "c1");
    world.sets.push(RangeSet(vec![pool("fd00::/64")]));
    world.try_add("b", "c2").unwrap();
    assert_eq!(count(&world, "default"), 3);
    let error = refused(&mut world, "a", "c1");
    assert_eq!((error.held, error.asked), (3, 1), "the second set was added later");
    assert_eq!(world.held("c1").len(), 1, "what it had stays");
    world.claims = of(&[("default", 1)]);
    assert_eq!(refused(&mut world, "c", "c3").code(), Code::InvalidConfig, "two addresses never fit one");
    // A lower claim disturbs nobody.
    assert_eq!(world.try_add("b", "c2").unwrap().len(), 2);
}

/// The folder of the only namespace that is counted.
fn of_only_namespace(world: &World) -> PathBuf {
    let folders = std::fs::read_dir(world.path().join("by-namespace")).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<PathBuf> = folders.filter(|path| !path.is_symlink()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders[0].clone()
}

#[test]
fn a_refused_add_writes_nothing_at_all() {
    let mut world = world(&[("p", 2), ("q", 1)]);
    world.sets = vec![RangeSet(vec![pool("10.0.0.0/29")])];
    // Released in this order: .2, .5, .3 or the like, whose queue a refusal must not turn.
    let released: Vec<_> = (0..5).map(|index| world.add(&format!("x/{index}"), &format!("x{index}"))).collect();
    for index in [3, 0, 4, 1, 2] {
        world.del(&format!("x{index}"));
    }
    world.add("p/1", "c1");
    world.add("p/2", "c2");
    world.claims = of(&[("p", 2), ("q", 0)]);
    // The number beside a namespace tells as well when its dead were looked for.
    let tree_of = |world: &World| -> Vec<(String, Vec<u8>)> {
        let is_time = |name: &str| name.ends_with("/held");
        world.tree().into_iter().filter(|(name, _)| !is_time(name)).collect()
    };
    let (before, tree) = (crate::index::changed(&world.path()), tree_of(&world));
    let queue = std::fs::read(world.path().join("queue/once4")).unwrap();
    for key in ["p/3", "q/1"] {
        refused(&mut world, key, "more");
    }
    assert_eq!(crate::index::changed(&world.path()), before, "not for a moment was there a record");
    assert_eq!(tree_of(&world), tree);
    assert_eq!(count(&world, "p"), 2);
    let front = |queue: &[u8]| queue[24..].to_vec();
    assert_eq!(front(&std::fs::read(world.path().join("queue/once4")).unwrap()), front(&queue));
    // Of the five, the first two are p's; the third is the next stranger's.
    world.claims = of(&[]);
    assert_eq!(world.add("y/1", "y1"), released[4]);
    assert_eq!(world.add("y/2", "y2"), released[1]);
}

#[test]
fn whatever_fails_leaves_the_released_in_their_order() {
    let mut world = World::new(&["10.0.0.0/29"]);
    let given: Vec<_> = (0..5).map(|index| world.add(&format!("x/{index}"), &format!("x{index}"))).collect();
    let order = [3, 0, 4, 1, 2];
    for index in order {
        world.del(&format!("x{index}"));
    }
    // A second set that is full.
    let full: Vec<std::net::IpAddr> = vec!["fd00::2".parse().unwrap(), "fd00::3".parse().unwrap()];
    world.next.0.extend(full);
    world.sets.push(RangeSet(vec![pool("fd00::/126")]));
    assert!(matches!(world.try_add("y/1", "y1"), Err(Error::Full { .. })));
    world.sets.pop();
    // Undone later, when others have been there.
    let (addresses, changes) = world.allocate(&world.request("y/1", "y1")).unwrap();
    assert_eq!(addresses, [given[3]]);
    assert_eq!(world.add("y/2", "y2"), given[0]);
    world.store(|store| store.revert(&changes)).unwrap();
    let (_, changes) = world.allocate(&world.request("y/3", "y3")).unwrap();
    world.store(|store| store.revert(&changes)).unwrap();
    for index in [3, 4, 1, 2] {
        assert_eq!(world.add(&format!("z/{index}"), &format!("z{index}")), given[index]);
    }
}

#[test]
fn a_namespace_that_holds_nothing_has_no_folder() {
    let mut world = world(&[("*", 2)]);
    world.add("p/1", "c1");
    world.add("q/1", "c2");
    world.del("c2");
    of_only_namespace(&world);
    refused_for_nothing(&mut world);
    // Made again with the rest, in one pass.
    std::fs::remove_file(world.path().join("index")).unwrap();
    world.store(|_| Ok(())).unwrap();
    assert!(of_only_namespace(&world).join("held").is_symlink());
    assert_eq!((count(&world, "p"), count(&world, "q")), (1, 0));
    world.del("c1");
    let left: Vec<_> = std::fs::read_dir(world.path().join("by-namespace")).unwrap().collect();
    assert_eq!(left.len(), 1, "all are counted, and none holds anything");
}

/// A namespace that may hold nothing and is refused leaves no folder either.
fn refused_for_nothing(world: &mut World) {
    world.claims = of(&[("none", 0), ("*", 2)]);
    refused(world, "none/1", "more");
    of_only_namespace(world);
}

#[test]
fn the_dead_are_judged_once_whatever_is_in_doubt() {
    let mut world = world(&[("p", 6)]);
    for index in 0..6 {
        world.add(&format!("p/{index}"), &format!("c{index}"));
    }
    for index in 1..6 {
        world.die(&format!("c{index}"));
    }
    world.claims = of(&[("p", 2)]);
    // A link too few: the dead are found all the same.
    let link = world.held("c4")[0].to_string();
    std::fs::remove_file(of_only_namespace(&world).join(link)).unwrap();
    world.add("p/new", "new");
    assert_eq!(count(&world, "p"), 2);
    assert_eq!(world.held("c0").len(), 1);
}

#[test]
fn what_is_in_the_way_of_a_derived_file_costs_time_only() {
    let mut world = world(&[("p", 2)]);
    let folder = world.path().join("by-namespace");
    let none = of(&[]);
    let file = |path: &std::path::Path| std::fs::write(path, "x").unwrap();
    let (one, two) = (world.add("p/1", "c1"), world.add("p/2", "c2"));
    for claimed in [true, false] {
        let claims = if claimed { of(&[("p", 2)]) } else { none.clone() };
        for damage in 0..6 {
            world.claims = of(&[("p", 2)]);
            refused(&mut world, "p/3", "c3");
            let held = of_only_namespace(&world).join("held");
            match damage {
                0 => {
                    std::fs::remove_dir_all(&folder).unwrap();
                    file(&folder);
                }
                1 => {
                    std::fs::remove_file(&held).unwrap();
                    std::fs::create_dir(&held).unwrap();
                    file(&held.join("x"));
                }
                2 => {
                    let inner = held.parent().unwrap();
                    std::fs::remove_dir_all(inner).unwrap();
                    file(inner);
                }
                3 => {
                    std::fs::remove_file(folder.join("all")).unwrap();
                    std::fs::create_dir(folder.join("all")).unwrap();
                }
                4 => {
                    std::fs::remove_dir_all(&folder).unwrap();
                    std::os::unix::fs::symlink("/nonexistent/x", &folder).unwrap();
                }
                _ => {
                    std::fs::remove_file(held.parent().unwrap().join(two.to_string())).unwrap();
                    std::fs::create_dir(held.parent().unwrap().join(two.to_string())).unwrap();
                }
            }
            world.claims = claims.clone();
            assert_eq!(world.del("c2"), [two], "damage {damage}");
            assert_eq!(world.add("p/2", "c2"), two, "damage {damage}");
            assert_eq!(world.add("p/1", "c1"), one, "damage {damage}");
            assert_eq!(count(&world, "p"), 2, "damage {damage}");
        }
    }
}

#[test]
fn the_count_is_right_whatever_becomes_of_the_derived_files() {
    let mut world = world(&[("p", 4)]);
    for index in 0..4 {
        world.add(&format!("p/{index}"), &format!("c{index}"));
    }
    let folder = world.path().join("by-namespace");
    let held = of_only_namespace(&world).join("held");
    for damage in ["3", "banana", "2 x", "-1 0"] {
        std::fs::remove_file(&held).unwrap();
        std::os::unix::fs::symlink(damage, &held).unwrap();
        refused(&mut world, "p/more", "more");
    }
    std::fs::remove_file(&held).unwrap();
    std::fs::write(&held, "4 0").unwrap();
    refused(&mut world, "p/more", "more");
    std::fs::remove_file(&held).unwrap();
    refused(&mut world, "p/more", "more");
    std::fs::remove_dir_all(&folder).unwrap();
    refused(&mut world, "p/more", "more");
    // Killed between the record and the number.
    std::fs::remove_file(&held).unwrap();
    std::fs::remove_file(world.path().join(world.held("c1")[0].to_string())).unwrap();
    assert_eq!(count(&world, "p"), 3);
    // Torn in place, which no time of a folder tells.
    std::fs::write(world.path().join(world.held("c2")[0].to_string()), "{").unwrap();
    world.add("p/2", "c2");
    assert_eq!(count(&world, "p"), 3);
    // Without claims meanwhile: the number goes on being right.
    world.claims = of(&[]);
    world.add("p/5", "c5");
    world.add("p/6", "c6");
    world.del("c3");
    assert!(held.is_symlink());
    assert_eq!(count(&world, "p"), 4);
}

#[test]
fn without_claims_nothing_is_kept() {
    let mut world = world(&[]);
    world.add("p/1", "c1");
    world.del("c1");
    assert!(!world.path().join("by-namespace").exists());
    world.claims = of(&[("other", 2)]);
    world.add("p/1", "c1");
    assert!(!world.path().join("by-namespace").exists());
}
