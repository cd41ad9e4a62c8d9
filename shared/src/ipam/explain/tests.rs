use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::ipam::key::KeySource;
use crate::ipam::range::number;
use crate::ipam::record::State;
use crate::ipam::store::Change;
use crate::ipam::world::{World, ip, pool};

fn config(world: &World) -> IpamConfig {
    let subnets = ["10.0.0.0/24".parse().unwrap()];
    let mut config = IpamConfig::from_subnets(&world.network, &subnets, &world.host).unwrap();
    config.sets = world.sets.clone();
    config
}

fn explained(world: &mut World, key: &str, instance: Option<u32>) -> Explanation {
    let config = config(world);
    let key = Key { source: KeySource::Podman, text: key.to_owned() };
    let (said, next) = (&mut world.said, &mut world.next);
    let location = Location { host: &world.host, network: &world.network, folder: &config.folder };
    location
        .looking(|store| {
            let request = request(store, &config.network, &key)?.unwrap();
            on(store, said, next, &request, &config, instance)
        })
        .unwrap()
}

fn reserve(world: &World, key: &str, address: IpAddr) {
    let mut record = world.request(key, "nobody");
    record.netns = None;
    world
        .store(|store| {
            let before = store.read(address)?;
            let record = Record {
                v: 1,
                key: record.key.clone(),
                instance: 0,
                object: None,
                rid: None,
                container: String::new(),
                ifname: String::new(),
                netns: None,
                host: None,
                boot: store.boot(),
                state: State::Reserved,
                uses: 0,
                requested: false,
                pinned: true,
                since: "2026-01-01T00:00:00.000000Z".to_owned(),
            };
            store.apply(&Change { address, before, after: Some(record) })
        })
        .unwrap();
}

#[test]
fn what_stands_in_the_way_is_told_step_by_step() {
    let mut world = World::new(&["10.0.0.0/29"]);
    world.sets[0].0[0] = pool("10.0.0.0/29").excluding(&[(ip("10.0.0.2"), ip("10.0.0.3"))]);
    reserve(&world, "db", ip("10.0.0.4"));
    world.next.0.insert(ip("10.0.0.5"));
    let before = world.tree();
    let explanation = explained(&mut world, "web", None);
    assert_eq!(world.tree(), before);
    let reason = &explanation.sets[0];
    assert_eq!(reason.next.as_ref().unwrap().0, ip("10.0.0.6"));
    assert_eq!(reason.walk.free, Some(ip("10.0.0.6")));
    let all = ["network address", "gateway", "excluded", "reserved", "of another allocator", "broadcast address"];
    let steps: Vec<&str> = reason.walk.steps.iter().map(|step| step.why.kind()).collect();
    let first = number(reason.walk.first) - number(ip("10.0.0.0"));
    assert!(steps.iter().all(|step| all.contains(step)), "{steps:?}");
    assert_eq!(steps.last().copied().unwrap_or_default(), if first == 6 { "" } else { all[4] }, "{steps:?}");
    assert_eq!(world.add("web", "c1"), ip("10.0.0.6"));
    let reason = &explained(&mut world, "web", None).sets[0];
    assert_eq!(reason.has.as_ref().unwrap().0, ip("10.0.0.6"));
    assert!(reason.next.is_none(), "a twin finds nothing");
    assert!(matches!(explained(&mut world, "web", None).refused, Some(Error::Full { .. })));
}

#[test]
fn a_long_way_is_told_in_short() {
    let mut world = World::new(&["10.0.0.0/24"]);
    for n in 0..200 {
        world.add(&format!("key{n}"), &format!("c{n}"));
    }
    for n in 0..50 {
        let key = format!("new{n}");
        let explanation = explained(&mut world, &key, None);
        let walk = &explanation.sets[0].walk;
        let passed = (number(walk.free.unwrap()) + 256 - number(walk.first)) % 256;
        let told: u128 = walk.steps.iter().map(|step| number(step.to) - number(step.from) + 1).sum();
        assert_eq!(told + walk.more.values().sum::<u128>(), passed, "{walk:?}");
        assert!(walk.steps.len() <= 10);
    }
}

#[test]
fn a_range_without_a_store_is_explained_and_stays_without() {
    let mut world = World::new(&["10.0.0.0/24", "fd00::/64"]);
    let sets = explained(&mut world, "web", None).sets;
    assert!(!world.path().exists());
    let found: Vec<IpAddr> = sets.iter().map(|reason| reason.next.as_ref().unwrap().0).collect();
    assert_eq!(world.try_add("web", "c1").unwrap(), found);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happened before: an ADD gives what was told.
    #[test]
    fn the_next_add_agrees(
        steps in proptest::collection::vec((0..6_u8, 0..14_u8, 0..3_u8), 1..60),
        excluded in proptest::collection::hash_set(2..14_u8, 0..4),
        foreign in proptest::collection::hash_set(2..14_u8, 0..3),
        v6: bool,
    ) {
        let mut world = World::new(if v6 { &["10.0.0.0/28", "fd00::/124"] } else { &["10.0.0.0/28"] });
        let spans: Vec<_> = excluded.iter().map(|n| (ip(&format!("10.0.0.{n}")), ip(&format!("10.0.0.{n}")))).collect();
        world.sets[0].0[0] = pool("10.0.0.0/28").excluding(&spans);
        world.next.0 = foreign.iter().map(|n| ip(&format!("10.0.0.{n}"))).collect::<HashSet<_>>();
        let mut started: i32 = 0;
        for (what, key, which) in steps {
            let name = format!("key{}", key % 9);
            match what {
                0 | 1 => {
                    let explanation = explained(&mut world, &name, None);
                    started += 1;
                    let twin = format!("{name}-{which}-{started}");
                    match world.try_add(&name, &twin) {
                        Ok(addresses) => {
                            prop_assert!(explanation.refused.is_none(), "{explanation:?}");
                            let told: Vec<_> = explanation.sets.iter().map(|set| set.next.as_ref().unwrap().0).collect();
                            prop_assert_eq!(addresses, told);
                            for set in &explanation.sets {
                                if let (None, Some((next, None))) = (&set.has, &set.next) {
                                    prop_assert_eq!(set.walk.free, Some(*next), "{:?}", set);
                                }
                            }
                        }
                        Err(error) => {
                            prop_assert_eq!(Some(error.to_string()), explanation.refused.map(|error| error.to_string()));
                        }
                    }
                }
                2 => _ = world.del(&format!("{name}-{which}-{started}")),
                3 => world.die(&format!("{name}-{which}-{}", started.saturating_sub(i32::from(key)))),
                4 => {
                    let address = ip(&format!("10.0.0.{}", 2 + key % 12));
                    if !world.record(address).is_some_and(|record| record.is_held()) {
                        reserve(&world, &name, address);
                    }
                }
                _ => {
                    // Each twin that runs has what is told for its instance.
                    let sets = explained(&mut world, &name, Some(u32::from(which))).sets;
                    for set in sets {
                        if let Some((address, record)) = set.has {
                            prop_assert_eq!(record.instance, u32::from(which));
                            prop_assert_eq!(world.record(address), Some(record));
                        }
                    }
                }
            }
        }
    }
}
