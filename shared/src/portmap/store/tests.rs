#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Instant;

use std::rc::Rc;

use super::known::Known;
use super::sample::{World, containers, large, names, record, v4};
use super::*;
use crate::index::changed;

#[test]
fn a_record_is_found_by_attachment_port_and_address_until_it_is_removed() {
    let world = World::new();
    let web = record("net", "web", &["8080/tcp", "192.0.2.1:8081/udp"]);
    world.put(&web);
    assert_eq!(world.names("by-port"), ["tcp-8080.0", "udp-8081.0"]);
    assert_eq!(world.names("by-address").len(), 2);
    world.with(|store| {
        assert_eq!(store.load(&web.tag())?.as_deref(), Some(&web));
        assert_eq!(store.of_port(Protocol::Udp, 8081)?.len(), 1);
        assert!(store.of_port(Protocol::Tcp, 8081)?.is_empty());
        assert_eq!(store.of_address(v4(&web))?.len(), 1);
        Ok(())
    });
    for _ in 0..2 {
        world.with(|store| store.remove(&web));
        assert!(world.names("by-port").is_empty() && world.names("by-address").is_empty());
        assert!(world.names("attachments").is_empty());
    }
    let folder = fs::metadata(world.path("attachments")).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_replaced_record_leaves_no_link_that_is_not_right() {
    let world = World::new();
    let mut web = record("net", "web", &["8080/tcp", "8081/tcp"]);
    world.put(&web);
    web.mappings.remove(0);
    web.targets.truncate(1);
    world.with(|store| {
        store.put(&web)?;
        assert!(store.of_port(Protocol::Tcp, 8080)?.is_empty());
        assert_eq!(*store.of_port(Protocol::Tcp, 8081)?[0].record, web);
        Ok(())
    });
    assert_eq!(world.names("by-port"), ["tcp-8081.0"]);
    assert_eq!(world.names("by-address").len(), 1);
}

#[test]
fn nothing_is_made_where_there_never_was_a_record() {
    let world = World::new();
    assert!(existing(&world.host, |_| Ok(())).unwrap().is_none());
    assert!(!world.host.state.exists());
    assert!(!may_point_at(&world.host, &["10.0.0.1".parse().unwrap()]));
    writable(&world.host).unwrap();
    assert!(!world.host.state.exists());
    world.with(|_| Ok(()));
    assert_eq!(existing(&world.host, |store| store.all()).unwrap().unwrap().len(), 0);
}

#[test]
fn all_are_sorted_by_age() {
    let world = World::new();
    for (container, second) in [("a", 3), ("b", 1), ("c", 2)] {
        let since = format!("2026-01-01T00:00:0{second}.000000Z");
        world.put(&record("net", container, &["80/tcp"]).tap(|record| record.since = since));
    }
    let all = world.with(|store| store.all());
    assert_eq!(all.iter().map(|record| record.container.as_str()).collect::<Vec<_>>(), ["b", "c", "a"]);
    assert_eq!(world.publish("80/tcp"), ["a", "b", "c"]);
}

trait Tap: Sized {
    fn tap(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}
impl Tap for Record {}

#[test]
fn links_are_made_again_when_others_were_at_work() {
    let world = World::new();
    let (web, db) = (record("net", "web", &["8080/tcp"]), record("net", "db", &["5432/tcp"]));
    world.put(&web);
    let tick = || std::thread::sleep(std::time::Duration::from_millis(15));
    tick();
    fs::remove_dir_all(world.path("by-port")).unwrap();
    assert!(may_point_at(&world.host, &["192.0.2.77".parse().unwrap()]));
    assert_eq!(world.publish("8080/tcp"), ["web"]);
    tick();
    fs::write(world.path("attachments").join(db.tag()), serde_json::to_vec(&db).unwrap()).unwrap();
    assert_eq!(world.publish("5432/tcp"), ["db"]);
    tick();
    fs::remove_file(world.path("attachments").join(web.tag())).unwrap();
    assert!(world.publish("8080/tcp").is_empty());
    assert_eq!(world.names("by-port"), ["tcp-5432.0"]);
    assert!(!may_point_at(&world.host, &["192.0.2.77".parse().unwrap()]));
}

#[test]
fn a_sealed_store_is_opened_without_reading_records() {
    let world = World::new();
    world.put(&record("net", "web", &["8080/tcp"]));
    let before = ["index", "by-port", "attachments"].map(|name| changed(&world.path(name)));
    world.with(|store| {
        assert!(store.linked && !store.changed.get() && store.known.borrow().is_empty());
        Ok(())
    });
    assert_eq!(before, ["index", "by-port", "attachments"].map(|name| changed(&world.path(name))));
    let host = Host { boot: "boot-2".to_owned(), ..world.host.clone() };
    let of_another_boot = |trusting: bool| {
        locked(&host, |store| {
            assert!(store.is_doubtful(), "nothing is trusted after another boot, until the kernel was compared");
            if trusting {
                store.trust();
            }
            Ok(())
        })
        .unwrap();
        Seal::new(world.path(""), "boot-2").fits()
    };
    assert!(!of_another_boot(false));
    assert!(of_another_boot(true));
}

#[test]
fn who_only_looks_changes_nothing() {
    let world = World::new();
    world.put(&record("net", "web", &["8080/tcp"]));
    std::fs::write(world.path("attachments/0123456789abc"), "").unwrap();
    let before = std::fs::read(world.path("index")).unwrap();
    let found =
        viewed(&world.host, |store| Ok((store.all()?.len(), store.of_port(Protocol::Tcp, 8080)?.len()))).unwrap();
    assert_eq!(found, Some((1, 1)));
    assert!(world.path("attachments/0123456789abc").exists() && !world.path("corrupt").exists());
    assert_eq!(std::fs::read(world.path("index")).unwrap(), before);
    world.with(|store| store.all().map(drop));
    assert!(world.path("corrupt/0123456789abc").exists());
}

#[test]
fn a_peek_tells_whose_address_is_nobodys() {
    let world = World::new();
    let web = record("net", "web", &["8080/tcp"]);
    world.put(&web);
    let other = "10.22.9.9".parse().unwrap();
    assert!(may_point_at(&world.host, &[other, v4(&web)]));
    assert!(!may_point_at(&world.host, &[other]));
    assert!(!may_point_at(&world.host, &[]));
    world.with(|store| {
        store.put(&record("net", "db", &["1/tcp"]))?;
        // As a reader sees it while a writer is at work, or after it was killed.
        store.seal.revoke();
        assert!(may_point_at(&world.host, &[other]));
        Ok(())
    });
    world.with(|store| store.remove(&web));
    assert!(!may_point_at(&world.host, &[v4(&web)]));
}

/// Every point at which a writer may be killed: what decides is the record, and the next opening tidies up.
#[test]
fn a_killed_writer_leaves_a_link_too_many_at_most() {
    let (web, db) = (record("net", "web", &["8080/tcp"]), record("net", "db", &["8080/tcp", "81/tcp"]));
    for tidy in [false, true] {
        let world = World::new();
        world.put(&web);
        world.with(|store| {
            // Links without a record.
            store.link(&Known::new(Rc::new(db.clone())))?;
            assert_eq!(names(&store.of_port(Protocol::Tcp, 8080)?), ["web"]);
            assert!(store.of_port(Protocol::Tcp, 81)?.is_empty() && store.of_address(v4(&db))?.is_empty());
            Ok(())
        });
        fs::write(world.path("attachments/.new"), "{\"v\":").unwrap();
        if tidy {
            Seal::new(world.path(""), "boot-1").revoke();
            assert_eq!(world.publish("8080/tcp"), ["web"]);
            assert_eq!(world.names("by-port"), ["tcp-8080.0"]);
            assert_eq!(world.names("attachments"), [web.tag()]);
        }
        // The same ADD again, then a DEL whose links stay.
        world.put(&db);
        assert_eq!(world.publish("8080/tcp"), ["db", "web"]);
        fs::remove_file(world.path("attachments").join(db.tag())).unwrap();
        assert_eq!(world.publish("8080/tcp"), ["web"]);
        world.with(|store| store.remove(&db));
        assert_eq!(world.names("by-port"), ["tcp-8080.0"]);
        assert_eq!(world.names("by-address").len(), 2);
    }
}

#[test]
fn wrong_links_lead_nowhere() {
    let world = World::new();
    let web = record("net", "web", &["8080/tcp"]);
    world.put(&web);
    world.with(|store| {
        for (slot, target) in [("0", web.tag()), ("1", "../../x".to_owned()), ("2", "0123456789abc".to_owned())] {
            symlink(target, world.path(&format!("by-port/tcp-9.{slot}"))).unwrap();
        }
        assert!(store.of_port(Protocol::Tcp, 9)?.is_empty());
        Ok(())
    });
}

#[test]
fn what_is_no_record_is_set_aside_and_stops_nobody() {
    let world = World::new();
    let (web, db) = (record("net", "web", &["8080/tcp"]), record("net", "db", &["8080/tcp"]));
    world.put(&web);
    world.put(&db);
    let whole = fs::read(world.path("attachments").join(db.tag())).unwrap();
    let file = world.path("attachments").join(db.tag());
    let spoil: [&dyn Fn(); 8] = [
        &|| fs::write(&file, "").unwrap(),
        &|| fs::write(&file, &whole[..whole.len() / 2]).unwrap(),
        &|| fs::write(&file, b"\xff\0[]").unwrap(),
        &|| fs::write(&file, String::from_utf8_lossy(&whole).replace("{\"v\":1", "{\"v\":0")).unwrap(),
        &|| fs::write(&file, serde_json::to_vec(&web).unwrap()).unwrap(),
        &|| symlink("/etc/passwd", &file).unwrap(),
        &|| nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        &|| fs::create_dir(&file).unwrap(),
    ];
    for (n, spoil) in spoil.iter().enumerate() {
        fs::remove_file(&file).unwrap();
        spoil();
        // Found by its link, or by an opening that reads everything.
        if n % 2 == 0 {
            Seal::new(world.path(""), "boot-1").revoke();
        }
        assert_eq!(world.publish("8080/tcp"), ["web"], "{n}");
        assert_eq!(world.names("corrupt").len(), n + 1);
        assert!(world.with(|store| store.load(&db.tag())).is_none());
        assert_eq!(world.names("by-port"), ["tcp-8080.0"], "{n}: its links are gone");
        world.put(&db);
        assert_eq!(world.publish("8080/tcp"), ["db", "web"]);
    }
    let socket = world.path("attachments").join("a socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    fs::write(world.path("attachments/.hidden"), "").unwrap();
    assert_eq!(world.with(|store| store.all()).len(), 2);
    assert!(!socket.exists());
}

#[test]
fn what_cannot_be_set_aside_stops_nobody_either() {
    let world = World::new();
    let (web, db) = (record("net", "web", &["8080/tcp"]), record("net", "db", &["8080/tcp"]));
    world.put(&web);
    world.put(&db);
    fs::write(world.path("corrupt"), "").unwrap();
    fs::write(world.path("attachments").join(db.tag()), "{").unwrap();
    assert_eq!(world.publish("8080/tcp"), ["web"]);
    world.with(|store| store.remove(&db));
    assert_eq!(world.names("attachments"), [web.tag()]);
}

#[test]
fn a_record_of_a_later_version_keeps_its_ports_and_stops_nobody_else() {
    let world = World::new();
    let (web, later) = (record("net", "web", &["8080/tcp"]), record("net", "later", &["9000/tcp"]));
    world.put(&web);
    world.put(&later);
    let mut value = serde_json::to_value(&later).unwrap();
    value["v"] = 2.into();
    value["snat"] = "by the moon".into();
    value["mappings"].as_array_mut().unwrap().push(serde_json::json!({"sockets": ["/run/x"]}));
    value["mappings"][0]["note"] = true.into();
    let file = world.path("attachments").join(later.tag());
    let refused = |error: Error| {
        assert!(matches!(error, Error::NewerFormat { v: 2, .. }), "{error}");
        assert!(error.to_string().contains("install the version that wrote it"), "{error}");
    };
    for relinked in [false, true, true] {
        fs::write(&file, value.to_string()).unwrap();
        if relinked {
            Seal::new(world.path(""), "boot-1").revoke();
            // Not even what the ports are can be read the last time: its links stay.
            value["mappings"] = "elsewhere".into();
        }
        world.with(|store| {
            refused(store.load(&later.tag()).unwrap_err());
            refused(store.of_port(Protocol::Tcp, 9000).unwrap_err());
            refused(store.of_address(v4(&later)).unwrap_err());
            refused(store.put(&later).unwrap_err());
            refused(store.remove(&later).unwrap_err());
            assert_eq!(containers(&store.all()?), ["web"]);
            assert_eq!(names(&store.of_port(Protocol::Tcp, 8080)?), ["web"]);
            Ok(())
        });
    }
    assert!(may_point_at(&world.host, &[v4(&later)]));
}

#[test]
fn without_links_all_records_are_read() {
    let world = World::new();
    let (web, db) = (record("net", "web", &["8080/tcp"]), record("net", "db", &["8080/tcp", "1/udp"]));
    world.put(&web);
    world.put(&db);
    fs::remove_dir_all(world.path("by-port")).unwrap();
    fs::write(world.path("by-port"), "").unwrap();
    world.with(|store| {
        assert!(!store.linked);
        assert_eq!(names(&store.of_port(Protocol::Tcp, 8080)?), ["db", "web"]);
        assert_eq!(names(&store.of_address(v4(&db))?), ["db"]);
        store.remove(&db)?;
        assert_eq!(names(&store.of_port(Protocol::Tcp, 8080)?), ["web"]);
        assert!(store.put(&db).is_err());
        Ok(())
    });
    assert!(may_point_at(&world.host, &[]));
    assert_eq!(world.names("attachments"), [web.tag()]);
    fs::remove_file(world.path("by-port")).unwrap();
    assert_eq!(world.publish("8080/tcp"), ["web"]);
    assert!(Seal::new(world.path(""), "boot-1").fits());
}

#[test]
fn five_thousand_ports_are_put_found_and_removed_at_once() {
    let world = World::new();
    let record = large("net", "web", 5000);
    let time = |what: &str, act: &dyn Fn()| {
        let start = Instant::now();
        act();
        println!("{what}: {:?}", start.elapsed());
        assert!(start.elapsed().as_millis() < 3000, "{what}");
    };
    time("put", &|| world.put(&record));
    time("put again", &|| world.put(&record));
    time("one more port", &|| world.put(&sample::record("net", "db", &["1/tcp"])));
    time("relink", &|| {
        Seal::new(world.path(""), "boot-1").revoke();
        world.with(|_| Ok(()));
    });
    time("claimants of each", &|| {
        world.with(|store| {
            for (slot, _) in record.slots() {
                let found = super::super::claims::claimants(store, &slot, &record.home, "boot-1")?;
                assert_eq!(found.len(), 1);
            }
            Ok(())
        });
    });
    time("make room", &|| {
        let mut other = record.clone();
        other.network = "other".parse().unwrap();
        world.with(|store| {
            let mut said = sample::Said::default();
            let room = super::super::claims::make_room(store, &other, &|_| String::new(), &mut said)?;
            assert!(room.is_empty() && said.asked == 1);
            Ok(())
        });
    });
    time("remove", &|| world.with(|store| store.remove(&record)));
    assert_eq!(world.names("by-port"), ["tcp-1.0"]);
}
