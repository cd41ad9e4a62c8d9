//! Our own tables.

use super::super::family::Family;
use super::super::wanted::{Share, tables};
use super::*;
use crate::netlink::testing::in_new_netns;

#[test]
fn nft_reads_what_is_rendered_for_all_kinds_of_networks() {
    in_new_netns(|| {
        let place = Place::new(&[A, B, ("layer2", &[])]);
        place.set_up("public", &["192.0.2.0/24", "2001:db8::/32"], |r| {
            (r.masquerade_v4, r.masquerade_v6) = (false, false)
        });
        place.set_up(&"n".repeat(200), &["10.3.0.0/24"], |r| r.bridge = "obr_n".into());
        place.set_up("nested", &["10.1.128.0/17", "10.1.0.0/16", "224.1.0.0/16", "10.4.4.4/32"], |_| {});
        // Every character that a device may have.
        for (i, chunk) in (b'!'..=b'~')
            .filter(|b| mark::is_device(&char::from(*b).to_string()))
            .collect::<Vec<_>>()
            .chunks(7)
            .enumerate()
        {
            let device = format!("d{}", String::from_utf8_lossy(chunk));
            place.set_up(&format!("odd{i}"), &[&format!("10.9.{i}.0/24")], |r| r.bridge = device);
        }
        place.set_up("bad", &["10.5.0.0/16", "0.0.0.0/0", "::/0"], |r| r.bridge = "a_name_of_more_than_15".into());
        let records = NetworkRecord::all(&place.host).unwrap();
        let document = render::document(&tables(&records, &|_| Share::default()), &Family::ALL);
        let checked = nft::run(&["--check", "-f", "-"], &document, "check a document");
        assert!(checked.is_ok(), "{checked:?}\n{document}");
        place.apply();
        for record in &records {
            assert!(in_place(&place.host, record).unwrap(), "{}", record.name);
            check(&place.host, record).unwrap();
        }
    });
}

#[test]
fn a_swap_is_idempotent_and_then_in_place() {
    in_new_netns(|| {
        let place = Place::new(&[A, B]);
        assert!(!place.is_in_place("a"), "nothing was done yet");
        place.apply();
        let once = run("nft", &["-a", "list", "ruleset"]);
        assert!(place.is_in_place("a") && place.is_in_place("b"));
        place.apply();
        assert_eq!(run("nft", &["-a", "list", "ruleset"]), once, "a second apply does nothing");
        assert_eq!(objects("table"), ["ip osvc-cni", "ip6 osvc-cni"]);
        place.passes("a");
        place.passes("b");
        // A swap of the same networks gives the same tables.
        std::fs::remove_file(place.host.state.join("firewall.json")).unwrap();
        assert!(!place.is_in_place("a"));
        place.passes("a");
        let before = run("nft", &["list", "ruleset"]);
        place.apply();
        assert_eq!(run("nft", &["list", "ruleset"]), before);
        assert!(place.is_in_place("a"));
    });
}

#[test]
fn whatever_is_done_to_our_table_is_seen_and_repaired() {
    in_new_netns(|| {
        let place = Place::new(&[A, B]);
        place.apply();
        let before = run("nft", &["list", "ruleset"]);
        let handle = |text: &str| {
            let listing = run("nft", &["-a", "list", "table", "ip", "osvc-cni"]);
            let line = listing.lines().find(|line| line.contains(text)).unwrap().to_owned();
            line.rsplit(' ').next().unwrap().to_owned()
        };
        let masquerade =
            format!("delete rule ip osvc-cni postrouting handle {}", handle("10.1.0.0/16 ip daddr != @inside masq"));
        for (fault, change) in [
            ("nftables table ip osvc-cni is missing", "flush ruleset"),
            ("nftables table ip6 osvc-cni is missing", "delete table ip6 osvc-cni"),
            ("chain ip osvc-cni postrouting has 0 of its 1 rules", masquerade.as_str()),
            ("chain ip osvc-cni forward has 0 of its 3 rules", "flush chain ip osvc-cni forward"),
            (
                "chain ip osvc-cni forward is missing",
                "flush chain ip osvc-cni forward\ndelete chain ip osvc-cni forward",
            ),
            ("table ip osvc-cni was changed by somebody else", "insert rule ip osvc-cni forward drop"),
            ("table ip osvc-cni was changed by somebody else", "add chain ip osvc-cni forward { policy drop; }"),
            ("set ip osvc-cni inside lacks its subnets", "delete element ip osvc-cni inside { 10.1.0.0/16 }"),
            ("table ip osvc-cni was changed by somebody else", "delete element ip osvc-cni inside { 224.0.0.0/4 }"),
        ] {
            nft(change);
            assert!(!place.is_in_place("a"), "{change}");
            let name = if fault.contains("ip6") { "b" } else { "a" };
            assert!(place.fault(name).contains(fault), "{change}: {}", place.fault(name));
            assert!(!place.is_in_place("a"), "CHECK repairs nothing: {change}");
            place.apply();
            assert!(place.is_in_place("a") && place.is_in_place("b"), "{change}");
            place.passes(name);
            assert_eq!(run("nft", &["list", "ruleset"]), before, "{change}");
        }
    });
}

#[test]
fn commits_of_others_elsewhere_do_not_matter() {
    in_new_netns(|| {
        let place = Place::new(&[A]);
        place.apply();
        nft("table inet other { chain c { type filter hook forward priority 0; policy accept; counter; }; }\n\
             table ip osvc-cni-portmap { chain c { type filter hook forward priority 0; policy drop; accept; }; }");
        nft("add rule inet other c drop");
        assert!(place.is_in_place("a"));
        place.passes("a");
        nft("delete table inet other");
        assert!(place.is_in_place("a"));
    });
}

#[test]
fn a_changed_or_new_network_needs_a_swap_and_a_last_one_takes_its_table_along() {
    in_new_netns(|| {
        let place = Place::new(&[B]);
        place.apply();
        place.set_up("a", A.1, |_| {});
        assert!(!place.is_in_place("a") && place.is_in_place("b"));
        place.apply();
        assert!(place.is_in_place("a") && place.is_in_place("b"));
        place.set_up("a", A.1, |record| record.masquerade_v4 = false);
        assert!(!place.is_in_place("a"));
        place.apply();
        assert_eq!(rules_with("osvc:a"), 2, "only the accepts of a public network");
        // A record of another boot or namespace is none of ours.
        place.set_up("reboot", &["10.7.0.0/16"], |record| record.boot = "before".into());
        place.apply();
        assert_eq!(rules_with("osvc:reboot"), 0);

        place.lose("b");
        forget(&place.host, &"b".parse().unwrap()).unwrap();
        assert_eq!(objects("table"), ["ip osvc-cni"], "the last network of a family takes the table along");
        assert!(place.is_in_place("a"));
        place.lose("a");
        forget(&place.host, &"a".parse().unwrap()).unwrap();
        forget(&place.host, &"a".parse().unwrap()).unwrap();
        assert_eq!(objects("table"), [""; 0]);
    });
}

#[test]
fn a_network_without_a_record_is_kept() {
    in_new_netns(|| {
        let place = Place::new(&[A, B, ("c", &["192.0.2.0/24"])]);
        place.set_up("c", &["192.0.2.0/24", "192.0.3.7/32"], |record| record.masquerade_v4 = false);
        place.apply();
        let before = run("nft", &["list", "ruleset"]);
        place.lose("b");
        place.lose("c");
        place.set_up("d", &["10.8.0.0/16"], |_| {});
        place.apply();
        assert!(place.is_in_place("a") && place.is_in_place("d"));
        assert_eq!((rules_with("ip osvc-cni forward osvc:b"), rules_with("ip6 osvc-cni postrouting osvc:b")), (3, 1));
        let after = run("nft", &["list", "ruleset"]);
        for kept in
            ["192.0.2.0/24 comment \"osvc:c\"", "192.0.3.7 comment \"osvc:c\"", "fd00:2::/64 comment \"osvc:b\""]
        {
            assert!(before.contains(kept) && after.contains(kept), "{kept} in {after}");
        }
        // The whole store is lost: the containers that run keep their masquerading.
        std::fs::remove_dir_all(&place.host.state).unwrap();
        place.set_up("e", &["10.9.0.0/16"], |_| {});
        place.apply();
        assert_eq!(rules_with("osvc:a"), 4);
        // Forgetting by name works without a record, and takes nothing else along.
        forget(&place.host, &"b".parse().unwrap()).unwrap();
        assert_eq!((rules_with("osvc:b"), rules_with("osvc:a"), rules_with("osvc:e")), (0, 4, 4));
        assert_eq!(objects("table"), ["ip osvc-cni"]);
    });
}

#[test]
fn a_foreign_table_of_our_name_is_replaced() {
    in_new_netns(|| {
        nft("table ip osvc-cni { chain postrouting { type filter hook input priority 7; policy drop; }; }\n\
             table ip6 osvc-cni { chain x { }; }");
        let place = Place::new(&[A]);
        place.apply();
        assert!(place.is_in_place("a"));
        assert_eq!(objects("table"), ["ip osvc-cni"]);
        place.passes("a");
    });
}

#[test]
fn without_nft_nothing_is_changed_and_layer_2_works() {
    in_new_netns(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
        run("mount", &["--make-rprivate", "/"]);
        let place = Place::new(&[("l2", &[])]);
        let folders = program::FOLDERS.iter().filter(|folder| std::path::Path::new(folder).join("nft").exists());
        for nft in folders.map(|folder| format!("{folder}/nft")) {
            run("mount", &["--bind", "/dev/null", &nft]);
        }
        place.apply();
        assert!(place.is_in_place("l2"));
        place.set_up("a", A.1, |_| {});
        for error in [apply(&place.host).unwrap_err(), available().unwrap_err()] {
            assert_eq!(error.code(), crate::Code::NotAvailable);
            assert!(error.to_string().contains("install nftables 0.9.4 or later"), "{error}");
        }
        assert!(!place.is_in_place("a"));
        assert!(place.fault("a").contains("table ip osvc-cni is missing"));
        forget(&place.host, &"gone".parse().unwrap()).unwrap_err();
        place.lose("a");
        forget(&place.host, &"a".parse().unwrap()).unwrap();
    });
}

#[test]
fn sixteen_at_once_swap_once() {
    in_new_netns(|| {
        let place = Place::new(&[A, B]);
        let here = crate::netlink::Netns::current().unwrap();
        let inside = |act: &dyn Fn()| {
            here.enter(|| {
                act();
                Ok(())
            })
            .unwrap()
        };
        let mut kernel = nfnetlink::Nfnetlink::open().unwrap();
        let before = kernel.generation().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| inside(&|| place.apply()));
            }
        });
        assert_eq!(kernel.generation().unwrap(), before + 1);
        assert!(place.is_in_place("a"));
    });
}

#[test]
fn available_says_yes_here() {
    in_new_netns(|| available().unwrap());
}
