//! Rulesets of others that drop.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::*;
use crate::netlink::testing::in_new_netns;
use crate::network::record::ForwardAccept;

/// A table that only its owner may change, with a chain that drops; gone with the value.
struct Owned(std::process::Child);

impl Owned {
    fn new() -> Self {
        let mut nft = Command::new("nft").arg("-i").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let chain = "{ flags owner; chain guard { type filter hook forward priority 0; policy drop; }; }";
        writeln!(nft.stdin.as_mut().unwrap(), "table inet owned {chain}").unwrap();
        let made = || objects("chain").contains(&"inet owned guard".to_owned());
        let deadline = Instant::now() + Duration::from_secs(5);
        while !made() {
            assert!(Instant::now() < deadline, "nft 1.0 and Linux 5.12 know owners of tables");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self(nft)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// With br_netfilter, frames between ports of a VLAN are forwarded packets of the bridge; to and from the host they are
/// those of its device in the VLAN.
#[test]
fn a_network_in_a_vlan_is_accepted_by_both_its_devices() {
    in_new_netns(|| {
        nft("table inet hard { chain guard { type filter hook forward priority 10; policy drop; }; }");
        let place = Place::new(&[]);
        place.set_up("a", &["10.7.0.0/16"], |record| record.vlan_device = Some("obr_a.100".to_owned()));
        place.apply();
        assert!(place.is_in_place("a"));
        let listed = run("nft", &["list", "chain", "inet", "hard", "guard"]);
        for rule in
            ["iifname \"obr_a\" oifname \"obr_a\"", "iifname \"obr_a.100\" counter", "oifname \"obr_a.100\" counter"]
        {
            assert!(listed.contains(rule), "{rule}: {listed}");
        }
        assert_eq!(rules_with("inet hard guard osvc-cni:a"), 3, "and nothing else of the bridge: {listed}");
        // The VLAN is left, and its device with it.
        place.set_up("a", &["10.7.0.0/16"], |record| record.vlan_device = None);
        assert!(!place.is_in_place("a"));
        place.apply();
        assert_eq!(rules_with("inet hard guard osvc-cni:a"), 2);
    });
}

#[test]
fn a_foreign_chain_that_drops_gets_an_accept_and_iptables_goes_on_working() {
    in_new_netns(|| {
        run("iptables", &["-P", "FORWARD", "DROP"]);
        run("iptables", &["-A", "FORWARD", "-s", "1.2.3.4", "-j", "ACCEPT"]);
        nft("table inet hard { chain guard { type filter hook forward priority 10; policy drop; }; }");
        let place = Place::new(&[A, ("b", &["fd00:2::/64"])]);
        place.set_up("never", &["10.6.0.0/16"], |record| record.forward_accept = ForwardAccept::Never);
        place.set_up("l2", &[], |_| {});
        place.apply();
        for name in ["a", "b", "never", "l2"] {
            assert!(place.is_in_place(name), "{name}");
            place.passes(name);
        }
        let listed = run("iptables", &["-S", "FORWARD"]);
        assert!(listed.contains("-A FORWARD -i obr_a -m comment --comment \"osvc-cni:a\" -j ACCEPT"), "{listed}");
        assert!(listed.contains("-A FORWARD -o obr_l2 -m comment --comment \"osvc-cni:l2\" -j ACCEPT"), "{listed}");
        assert!(listed.trim_end().ends_with("-A FORWARD -s 1.2.3.4/32 -j ACCEPT"), "ours come first: {listed}");
        let count = |place: &str| ["a", "b", "never", "l2"].map(|name| rules_with(&format!("{place} osvc-cni:{name}")));
        assert_eq!(count("ip filter FORWARD"), [2, 0, 0, 2]);
        assert_eq!(count("inet hard guard"), [2, 2, 0, 2]);

        // Saved and restored by iptables, they are still ours.
        let saved = run("iptables-save", &[]);
        let file = place.host.state.join("saved");
        std::fs::write(&file, saved).unwrap();
        run("iptables-restore", &[file.to_str().unwrap()]);
        assert!(place.is_in_place("a"));
        place.apply();
        assert_eq!(run("iptables", &["-S", "FORWARD"]).matches("osvc-cni:a").count(), 2);

        // Flushed, or one of the two taken away, they come back.
        for change in ["flush chain ip filter FORWARD", "flush ruleset"] {
            nft(change);
            run("iptables", &["-P", "FORWARD", "DROP"]);
            assert!(!place.is_in_place("a"), "{change}");
            assert!(place.fault("a").contains("ip"), "{change}");
            place.apply();
            assert!(place.is_in_place("a"), "{change}");
            assert_eq!(count("ip filter FORWARD"), [2, 0, 0, 2]);
        }
        run("iptables", &["-D", "FORWARD", "-i", "obr_a", "-m", "comment", "--comment", "osvc-cni:a", "-j", "ACCEPT"]);
        assert!(place.fault("a").contains("nftables chain ip filter FORWARD drops"), "{}", place.fault("a"));
        place.apply();
        assert_eq!(count("ip filter FORWARD"), [2, 0, 0, 2]);

        // Another bridge for the same network.
        place.set_up("a", A.1, |record| record.bridge = "br-other".into());
        place.apply();
        let listed = run("iptables", &["-S", "FORWARD"]);
        assert!(listed.contains("-i br-other") && !listed.contains("obr_a"), "{listed}");

        for name in ["a", "l2"] {
            place.lose(name);
            forget(&place.host, &name.parse().unwrap()).unwrap();
        }
        assert_eq!(rules_with("osvc-cni:"), 0);
    });
}

#[test]
fn a_chain_that_begins_to_drop_later_is_noticed_and_tidied_when_it_no_longer_does() {
    in_new_netns(|| {
        let place = Place::new(&[A]);
        place.apply();
        assert!(place.is_in_place("a"));
        run("iptables", &["-P", "FORWARD", "DROP"]);
        assert!(!place.is_in_place("a"));
        place.apply();
        assert!(place.is_in_place("a"));
        run("iptables", &["-P", "FORWARD", "ACCEPT"]);
        assert!(place.is_in_place("a"));
        place.lose("a");
        forget(&place.host, &"a".parse().unwrap()).unwrap();
        assert_eq!(rules_with("osvc-cni:a"), 0);
    });
}

#[test]
fn a_network_that_leaves_foreign_chains_alone_from_now_on_has_its_accepts_removed() {
    in_new_netns(|| {
        run("iptables", &["-P", "FORWARD", "DROP"]);
        let place = Place::new(&[A, B]);
        place.apply();
        place.set_up("a", A.1, |record| record.forward_accept = ForwardAccept::Never);
        assert!(!place.is_in_place("a"));
        place.apply();
        assert_eq!((rules_with("osvc-cni:a"), rules_with("osvc-cni:b")), (0, 2));
        assert!(place.is_in_place("a") && place.is_in_place("b"));
    });
}

#[test]
fn docker_user_gets_the_accept_where_it_is_called() {
    in_new_netns(|| {
        run("iptables", &["-P", "FORWARD", "DROP"]);
        run("iptables", &["-N", "DOCKER-USER"]);
        run("iptables", &["-A", "DOCKER-USER", "-j", "RETURN"]);
        run("iptables", &["-A", "FORWARD", "-j", "DOCKER-USER"]);
        let place = Place::new(&[A]);
        place.apply();
        assert_eq!((rules_with("DOCKER-USER osvc-cni:a"), rules_with("FORWARD osvc-cni:a")), (2, 0));
        assert!(place.is_in_place("a"));
        // A docker that is gone and left its chain behind: nothing calls it.
        run("iptables", &["-F", "FORWARD"]);
        assert!(!place.is_in_place("a"));
        place.apply();
        assert_eq!(rules_with("FORWARD osvc-cni:a"), 2);
        place.lose("a");
        forget(&place.host, &"a".parse().unwrap()).unwrap();
        assert_eq!(rules_with("osvc-cni:"), 0);
        run("iptables-save", &[]);
    });
}

#[test]
fn a_chain_that_takes_no_accept_is_no_error_and_not_tried_by_each_add() {
    in_new_netns(|| {
        // A name that nft cannot be given, whoever made it.
        let refusing = kernel::Chain {
            family: 2,
            table: "filter".into(),
            name: "FOR WARD".into(),
            handle: 1,
            hook: Some(2),
            drops: true,
            bytes: vec![],
        };
        let place = Place::new(&[A]);
        let records = NetworkRecord::all(&place.host).unwrap();
        let mut kernel = nfnetlink::Nfnetlink::open().unwrap();
        let mut snapshot = snapshot::Snapshot::read(&mut kernel).unwrap();
        snapshot.foreign = vec![foreign::ForeignChain { chain: refusing.clone(), rules: vec![] }];
        let (refused, done) = foreign::open(&snapshot, &records);
        assert_eq!((refused.len(), done), (1, false));
        // The table vanishes between the look and the change.
        snapshot.foreign[0].chain.name = "GONE".into();
        let (refused, done) = foreign::open(&snapshot, &records);
        assert_eq!((refused, done), (vec![(&snapshot.foreign[0].chain).into()], false));

        // A chain that belongs to a program takes rules of that program only (kernel 5.12).
        let owner = Owned::new();
        place.apply();
        assert_eq!(rules_with("osvc-cni:a"), 0);
        assert!(place.is_in_place("a"));
        place.passes("a");
        drop(owner);
    });
}

#[test]
fn firewalld_is_asked_once_each_time_that_it_starts() {
    in_new_netns(|| {
        let firewalld =
            "table inet firewalld { chain filter_FORWARD { type filter hook forward priority 10; policy drop; }; }";
        nft(firewalld);
        let place = Place::new(&[A]);
        place.apply();
        assert!(place.is_in_place("a"), "whether firewall-cmd is there or not: what it said is in the log");
        assert_eq!(rules_with("osvc-cni:"), 0, "its table is left alone");
        place.passes("a");
        nft(&format!("delete table inet firewalld\n{firewalld}"));
        assert!(!place.is_in_place("a"));
        place.apply();
        assert!(place.is_in_place("a"));
        nft("delete table inet firewalld");
        assert!(place.is_in_place("a"));
    });
}
