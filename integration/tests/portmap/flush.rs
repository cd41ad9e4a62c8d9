//! Rules that somebody else took away are back, complete, after the next ADD of any container.

use integration::{Container, Sandbox, port, port_on};
use serde_json::json;

use crate::{HOST4, HOST6, STORE, machine_and_outside, net1, noted, osvc_net, ruleset_in_order};

const WHOLE: &str = "nft flush ruleset";
const TABLE: &str = "nft delete table ip osvc-cni-portmap";
const BOTH: &str = "nft 'delete table ip osvc-cni-portmap; delete table ip6 osvc-cni-portmap'";
const RULES: &str = "nft flush table ip osvc-cni-portmap";
const MAP: &str = "nft flush map ip osvc-cni-portmap any";
const MAP6: &str = "nft flush map ip6 osvc-cni-portmap any";
const HOST: &str = "nft flush map ip osvc-cni-portmap host";
const HAIRPIN: &str = "nft flush set ip osvc-cni-portmap hairpin";
const RESTRICTED: &str = "nft flush set ip osvc-cni-portmap restricted";
const ALLOWED: &str = "nft flush set ip6 osvc-cni-portmap allowed";

/// Two networks with published ports: first element of the result has `a`'s.
fn two_with_ports(sandbox: &Sandbox) -> [Container<'_>; 2] {
    sandbox.write("/etc/cni/net.d/net1.conflist", &net1(sandbox).conflist().to_string());
    let a = net1(sandbox).container("a");
    a.publish(json!([port(8080, 80, "tcp"), port_on(HOST4, 8081, 80, "udp"), port(8082, 80, "sctp")]));
    let other = sandbox.network("net2", &["10.10.0.0/24", "fd10::/64"]).with("allowFrom", json!(["192.0.2.0/24"]));
    let b = other.container("b");
    b.publish(json!([port(9090, 80, "tcp")]));
    [a, b]
}

/// For each damage: not there, and CHECK says so; after the repair everything is as it was.
#[track_caller]
fn comes_back(damages: &[&str], repair: &str, by: fn(&Sandbox, &Container<'_>)) {
    let (sandbox, outside) = machine_and_outside();
    let [a, _b] = two_with_ports(&sandbox);
    let c = net1(&sandbox).container("c");
    sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
    let ports = || json!([port(8080, 80, "tcp"), port_on(HOST4, 8081, 80, "udp"), port(8082, 80, "sctp")]);
    a.ports(ports()).check(&a.result);
    for damage in damages {
        let before = ruleset_in_order(&sandbox);
        sandbox.sh(damage).ok();
        let (code, message) = a.ports(ports()).check_fails(&a.result);
        assert_eq!(code, 100, "CHECK after `{damage}`: {message}");
        by(&sandbox, &c);
        assert_eq!(ruleset_in_order(&sandbox), before, "`{damage}` is repaired by {repair}");
        a.ports(ports()).check(&a.result);
        for host in [HOST4, HOST6] {
            sandbox.ask(Some(&outside), "tcp", &format!("{host}:8080"));
        }
        sandbox.ask(Some(&outside), "udp", &format!("{HOST4}:8081"));
    }
    noted(&format!("ports taken away by `nft flush` or `nft delete` come back with {repair}"));
}

#[test]
fn with_the_next_add_of_a_container_with_ports() {
    comes_back(
        &[WHOLE, TABLE, BOTH, RULES, MAP, MAP6, HOST, HAIRPIN, RESTRICTED, ALLOWED],
        "an ADD with ports",
        |sandbox, c| {
            let again = json!([port(7777, 80, "tcp")]);
            c.publish(again);
            c.withdraw();
            // What is not osvc-portmap's to repair.
            if !sandbox.ruleset().contains("table ip osvc-cni {") {
                c.bridge.del();
                c.bridge.add();
            }
        },
    );
}

#[test]
fn with_the_next_add_of_a_container_without_ports() {
    comes_back(&[TABLE, BOTH, RULES, MAP, MAP6, HOST, HAIRPIN, RESTRICTED, ALLOWED], "an ADD without ports", |_, c| {
        c.publish(json!([]))
    });
}

#[test]
fn with_the_next_add_of_the_bridge_alone() {
    comes_back(&[WHOLE, TABLE, BOTH, HAIRPIN, RESTRICTED, ALLOWED], "an ADD of osvc-bridge alone", |sandbox, _| {
        let netns = sandbox.netns("bare");
        let bare = net1(sandbox).attach(&netns, "bare", "eth0", "bare");
        bare.bridge.del();
        sandbox.delete_netns(&netns);
    });
}

#[test]
fn with_osvc_net_setup() {
    comes_back(
        &[WHOLE, TABLE, BOTH, RULES, MAP, MAP6, HOST, HAIRPIN, RESTRICTED, ALLOWED],
        "osvc-net setup",
        |sandbox, _| {
            sandbox.run(&["/opt/cni/bin/osvc-net", "setup"]).ok();
        },
    );
}

#[test]
fn a_foreign_rule_in_our_table_does_not_stay() {
    let (sandbox, _) = machine_and_outside();
    let [_, b] = two_with_ports(&sandbox);
    let before = ruleset_in_order(&sandbox);
    sandbox.sh("nft insert rule ip osvc-cni-portmap prerouting counter drop").ok();
    b.publish(json!([port(9090, 80, "tcp")]));
    assert_eq!(ruleset_in_order(&sandbox), before);
}

#[test]
fn a_foreign_element_in_our_map_does_not_stop_an_add() {
    let (sandbox, outside) = machine_and_outside();
    let [a, _b] = two_with_ports(&sandbox);
    sandbox.sh("nft add element ip osvc-cni-portmap any '{ tcp . 7777 : 10.66.0.1 . 1 }'").ok();
    sandbox.sh("nft add element ip6 osvc-cni-portmap any '{ tcp . 7777 comment \"x\" : fd66::1 . 1 }'").ok();
    let c = net1(&sandbox).container("c");
    c.publish(json!([port(7777, 80, "tcp")]));
    sandbox.serve(Some(&c.netns), "tcp", "[::]:80", "c");
    assert_eq!(sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:7777")), "c 192.0.2.1");
    assert_eq!(sandbox.ask(Some(&outside), "tcp", &format!("{HOST6}:7777")), "c 2001:db8:ffff::1");
    a.ports(json!([])).add();
}

/// What tells how the tables were made is lost as well.
#[test]
fn without_tables_json_they_come_back_too() {
    for damage in ["rm tables.json", "echo '{' > tables.json", ": > tables.json", "echo '{\"v\":99}' > tables.json"] {
        let (sandbox, outside) = machine_and_outside();
        let [a, _b] = two_with_ports(&sandbox);
        sandbox.serve(Some(&a.netns), "tcp", "[::]:80", "a");
        let before = ruleset_in_order(&sandbox);
        sandbox.sh(&format!("cd {STORE} && {damage} && nft flush ruleset")).ok();
        let netns = sandbox.netns("bare");
        net1(&sandbox).attach(&netns, "bare", "eth0", "bare").bridge.del();
        assert_eq!(ruleset_in_order(&sandbox), before, "`{damage}`");
        for host in [HOST4, HOST6] {
            sandbox.ask(Some(&outside), "tcp", &format!("{host}:8080"));
        }
    }
}

/// The kernel takes no element that overlaps it.
#[test]
fn a_foreign_element_that_overlaps_in_our_set_is_put_right() {
    for with_setup in [false, true] {
        let (sandbox, _) = machine_and_outside();
        let [a, _b] = two_with_ports(&sandbox);
        let c = net1(&sandbox).container("c");
        sandbox
            .sh("nft flush set ip osvc-cni-portmap hairpin
                nft add element ip osvc-cni-portmap hairpin '{ 10.9.0.0/16 . 10.9.0.0/16 }'")
            .ok();
        let set = || sandbox.sh("nft list set ip osvc-cni-portmap hairpin").ok();
        assert!(set().contains("10.9.0.0/16"));
        if with_setup {
            osvc_net(&sandbox, "setup");
        } else {
            c.publish(json!([port(7777, 80, "tcp")]));
            assert_eq!(crate::leads_to(&sandbox, "ip", 7777), Some(format!("{} . 80", c.v4)));
            c.ports(json!([port(7777, 80, "tcp")])).check(&c.result);
        }
        assert!(!set().contains("10.9.0.0/16"), "setup {with_setup}: {}", set());
        assert!(set().contains("10.9.0.0/24 . 10.9.0.0/24"), "setup {with_setup}: {}", set());
        let ports = json!([port(8080, 80, "tcp"), port_on(HOST4, 8081, 80, "udp"), port(8082, 80, "sctp")]);
        a.ports(ports).check(&a.result);
    }
}

/// DEL finds its rules gone: that is no failure, and nobody else's ports are lost by it.
#[test]
fn del_succeeds_whatever_somebody_took_away() {
    for damage in [WHOLE, TABLE, BOTH, RULES, MAP, MAP6, HOST, HAIRPIN, RESTRICTED, ALLOWED] {
        let (sandbox, outside) = machine_and_outside();
        let [a, b] = two_with_ports(&sandbox);
        sandbox.serve(Some(&b.netns), "tcp", "[::]:80", "b");
        sandbox.sh(damage).ok();
        a.withdraw();
        assert!(!crate::tables_mention(&sandbox, &format!(": {} .", a.v4)), "{damage}");
        sandbox.run(&["/opt/cni/bin/osvc-net", "setup"]).ok();
        assert!(!crate::tables_mention(&sandbox, ". 8080 "), "{damage}");
        sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:9090"));
        sandbox.ask(None, "tcp", &format!("{HOST6}:9090"));
    }
}

#[test]
fn foreign_tables_are_left_alone() {
    let (sandbox, _) = machine_and_outside();
    let theirs = "table ip cni_hostport { chain prerouting { type nat hook prerouting priority -100; }; }\n\
        table inet filter { chain input { type filter hook input priority 0; counter; }; }";
    sandbox.nft(theirs);
    let list = || sandbox.sh("nft list table ip cni_hostport; nft -s list table inet filter").ok();
    let before = list();
    let [a, b] = two_with_ports(&sandbox);
    a.remove();
    b.remove();
    assert_eq!(list(), before);
}

/// Without ports there is nothing to put back; what is nobody's goes, and is told.
#[test]
fn setup_tells_what_it_did_without_any_port() {
    let (sandbox, _) = machine_and_outside();
    let [a, b] = two_with_ports(&sandbox);
    let setup = || sandbox.run(&["/opt/cni/bin/osvc-net", "setup"]).ok();
    a.withdraw();
    b.withdraw();
    assert!(!setup().contains("host ports"), "all is in place");
    sandbox.sh("nft add element ip osvc-cni-portmap any '{ tcp . 7777 : 10.66.0.1 . 1 }'").ok();
    assert!(setup().contains("host ports: 1 elements were put right, 0 published"));
    assert!(!setup().contains("host ports"), "and then it is");
    sandbox.sh("nft flush ruleset").ok();
    let told = setup();
    assert!(told.contains("firewall rules made") && !told.contains("host ports"), "{told}");
}
