#![allow(clippy::unwrap_used)]

use super::super::store::sample::{Said, World, containers, home, record, v4};
use super::*;

/// What `make_room` says to a container that wants `wants` where another of this boot holds `holds`.
fn conflict(holds: &str, wants: &str) -> Option<String> {
    let world = World::new();
    world.put(&record("net", "web", &[holds]));
    refusal(&world, &record("net", "db", &[wants]))
}

fn refusal(world: &World, record: &Record) -> Option<String> {
    let room = |store: &mut Store<'_>| Ok(make_room(store, record, &entry_of, &mut Said::default()));
    match world.with(room) {
        Ok(leaving) => {
            assert!(leaving.is_empty());
            None
        }
        Err(error @ Error::Taken { .. }) => Some(error.to_string()),
        Err(other) => panic!("{other}"),
    }
}

fn entry_of(slot: &Slot) -> String {
    format!("portMappings[0] ({})", slot.port)
}

fn leaving(world: &World, record: &Record, said: &mut Said) -> Vec<String> {
    let found = world.with(|store| make_room(store, record, &entry_of, said));
    containers(&found).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_port_of_the_living_is_refused_and_its_holder_named() {
    assert_eq!(
        conflict("8080/tcp", "8080/tcp").unwrap(),
        "portMappings[0] (8080): host port 8080/tcp is held by \"key of web\" (container web, network net) since \
         2026-01-01T00:00:00.000000Z: end that container, or publish another port"
    );
}

#[test]
fn slots_overlap_by_wildcard_within_family_and_protocol() {
    for (holds, wants, taken) in [
        ("80/tcp", "192.0.2.1:80/tcp", true),
        ("192.0.2.1:80/tcp", "80/tcp", true),
        ("0.0.0.0:80/tcp", "192.0.2.1:80/tcp", true),
        ("80/tcp", "[2001:db8::1]:80/tcp", true),
        ("192.0.2.1:80/tcp", "192.0.2.1:80/tcp", true),
        ("192.0.2.1:80/tcp", "192.0.2.2:80/tcp", false),
        ("0.0.0.0:80/tcp", "[::]:80/tcp", false),
        ("80/tcp", "80/udp", false),
        ("80/tcp", "81/tcp", false),
    ] {
        assert_eq!(conflict(holds, wants).is_some(), taken, "{holds} and {wants}");
    }
}

#[test]
fn a_container_may_have_its_port_twice_and_an_attachment_is_no_conflict_with_itself() {
    let world = World::new();
    let web = record("net", "web", &["80/tcp"]);
    world.put(&web);
    assert_eq!(refusal(&world, &web), None);
    assert_eq!(refusal(&world, &record("other", "web", &["80/tcp"])), None);
    let other = record("other", "web", &["80/tcp"]);
    assert_eq!(leaving(&world, &other, &mut Said::dead(&["web"])), ["web"], "but not beside its own dead self");
}

#[test]
fn the_dead_lose_their_ports_and_are_judged_once() {
    let world = World::new();
    world.put(&record("net", "web", &["80/tcp", "81/tcp", "90/tcp"]));
    world.put(&record("net", "far", &["90/udp"]));
    let mut said = Said::dead(&["web"]);
    assert_eq!(leaving(&world, &record("net", "db", &["80/tcp", "81/tcp", "82/tcp"]), &mut said), ["web"]);
    assert_eq!(said.asked, 1, "one verdict for two ports, none for who has others");
    said.of.insert("web".to_owned(), Liveness::Unknown);
    let db = record("net", "db", &["81/tcp"]);
    assert!(world.with(|store| Ok(make_room(store, &db, &entry_of, &mut said))).is_err(), "unknown is alive");
}

#[test]
fn of_another_boot_is_dead_and_of_another_namespace_is_elsewhere() {
    let world = World::new();
    let mut old = record("net", "old", &["80/tcp"]);
    old.boot = "boot-0".to_owned();
    old.home = home(2);
    let mut elsewhere = record("net", "elsewhere", &["80/tcp"]);
    elsewhere.home = home(2);
    world.put(&old);
    world.put(&elsewhere);
    let mut said = Said::default();
    assert_eq!(leaving(&world, &record("net", "db", &["80/tcp"]), &mut said), ["old"]);
    assert_eq!(said.asked, 0);
}

#[test]
fn an_address_has_one_owner() {
    let world = World::new();
    let web = record("net", "web", &["80/tcp"]);
    let of = |network: &str, container: &str| Record {
        targets: web.targets.clone(),
        ..record(network, container, &["81/tcp"])
    };
    let elsewhere = Record { home: home(2), ..of("net", "elsewhere") };
    let old = Record { boot: "boot-0".to_owned(), ..of("third", "old") };
    for record in [&web, &of("net", "gone"), &of("other", "living"), &of("other", "dead"), &elsewhere, &old] {
        world.put(record);
    }
    let mut said = Said::dead(&["dead"]);
    let addresses = [v4(&web), web.targets[1].addr()];
    let found =
        world.with(|store| squatters(store, &web.tag(), &"net".parse().unwrap(), &home(1), &addresses, &mut said));
    assert_eq!(containers(&found), ["dead", "gone", "old"]);
    assert_eq!(said.asked, 2);
}

#[test]
fn claimants_want_exactly_the_slot_and_the_oldest_is_first() {
    let world = World::new();
    let young = Record { since: "2026-02-01T00:00:00.000000Z".to_owned(), ..record("a", "web", &["80/tcp"]) };
    let web = record("b", "web", &["0.0.0.0:80/tcp", "192.0.2.1:80/tcp"]);
    let old = Record { boot: "boot-0".to_owned(), ..record("c", "web", &["80/tcp"]) };
    let elsewhere = Record { home: home(2), ..record("d", "web", &["80/tcp"]) };
    for record in [&young, &web, &old, &elsewhere] {
        world.put(record);
    }
    let networks = |address: &str| {
        let slot = Slot { address: address.parse().unwrap(), protocol: super::super::Protocol::Tcp, port: 80 };
        let found = world.with(|store| claimants(store, &slot, &home(1), "boot-1"));
        found.iter().map(|claim| claim.record.network.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(networks("0.0.0.0"), ["b", "a"]);
    assert_eq!(networks("192.0.2.1"), ["b"]);
    assert_eq!(networks("::"), ["a"]);
    assert!(networks("192.0.2.2").is_empty());
}

#[test]
fn garbage_is_what_is_not_listed_or_without_a_list_what_is_dead() {
    let world = World::new();
    let listed = record("net", "listed", &["1/tcp"]);
    let foreign = record("other", "foreign", &["5/tcp"]);
    let old = Record { boot: "boot-0".to_owned(), ..record("other", "old", &["6/tcp"]) };
    for record in [&listed, &record("net", "alive", &["2/tcp"]), &record("net", "unknown", &["3/tcp"]), &foreign, &old]
    {
        world.put(record);
    }
    world.put(&record("net", "dead", &["4/tcp"]));
    let mut said = Said::dead(&["dead", "listed"]);
    said.of.insert("unknown".to_owned(), Liveness::Unknown);
    let valid = HashSet::from([listed.tag()]);
    let mut found = |network, valid| {
        let found = world.with(|store| stale(store, network, valid, &home(1), &mut said));
        containers(&found).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let net = "net".parse().unwrap();
    assert_eq!(found(Some(&net), Some(&valid)), ["dead", "unknown"]);
    assert_eq!(found(Some(&net), None), ["dead", "listed"]);
    assert_eq!(found(None, None), ["dead", "listed", "old"]);
}
