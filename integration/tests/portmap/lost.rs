//! A store that is gone (`rm -rf /var/lib/cni` is common advice): what runs keeps its ports, and its DEL withdraws them.

use integration::{Container, Netns, Sandbox, port, port_on};
use serde_json::{Value, json};

use crate::{HOST4, HOST6, STORE, hide_nft, killed_at, leads_to, machine_and_outside, net1, noted, osvc_net, show_nft};

fn ports() -> Value {
    json!([port(8080, 80, "tcp"), port_on(HOST4, 8081, 80, "udp")])
}

/// A machine with `a`, which serves behind its ports, and the container `b` without any; then the store is lost.
fn with_lost<T>(act: impl FnOnce(&Sandbox, &Netns, &Container<'_>, &Container<'_>) -> T) -> T {
    let (sandbox, outside) = machine_and_outside();
    let network = net1(&sandbox);
    let (a, b) = (network.container("a"), network.container("b"));
    a.publish(ports());
    sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
    sandbox.sh(&format!("rm -rf {STORE}")).ok();
    act(&sandbox, &outside, &a, &b)
}

/// `a` has its ports, is known to have them, and can give them back.
#[track_caller]
fn is_whole(sandbox: &Sandbox, outside: &Netns, a: &Container<'_>, what: &str) {
    assert_eq!(sandbox.ask(Some(outside), "tcp", &format!("{HOST4}:8080")), "a 192.0.2.1", "{what}");
    assert_eq!(sandbox.ask(Some(outside), "tcp", &format!("{HOST6}:8080")), "a 2001:db8:ffff::1", "{what}");
    assert_eq!(sandbox.ask(Some(outside), "udp", &format!("{HOST4}:8081")), "a 192.0.2.1", "{what}");
    let listed = osvc_net(sandbox, "port ls");
    for word in ["8080", "8081", &a.v4, &a.v6, "published"] {
        assert!(listed.contains(word), "{what}: {listed}");
    }
    a.ports(ports()).check(&a.result);
    let taken = net1(sandbox).container("late");
    assert_eq!(taken.ports(json!([port(8080, 80, "tcp")])).add_fails().0, 101, "{what}");
    a.withdraw();
    for family in ["ip", "ip6"] {
        assert_eq!(leads_to(sandbox, family, 8080), None, "{what}");
    }
    assert!(!crate::tables_mention(sandbox, ". 8081 "), "{what}");
    taken.publish(json!([port(8080, 80, "tcp")]));
}

#[test]
fn an_add_that_is_killed_while_it_recovers_loses_nothing() {
    let calls = [("flock", 1), ("flock", 2), ("rename", 1), ("rename", 2), ("symlink", 1), ("sendto", 6)];
    for (call, occurrence) in calls {
        with_lost(|sandbox, outside, a, b| {
            let again = json!([port(9090, 80, "tcp")]);
            let words = killed_at(call, occurrence);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let killed = b.ports(again.clone()).through(&words).call("ADD");
            assert!(occurrence > 1 || killed.output.rc == 137, "{}", killed.output);
            b.publish(again);
            assert_eq!(leads_to(sandbox, "ip", 9090), Some(format!("{} . 80", b.v4)));
            is_whole(sandbox, outside, a, &format!("death at {call} {occurrence}"));
        });
    }
    noted("a lost store of ports is made again from the kernel, whoever is killed meanwhile");
}

#[test]
fn setup_makes_the_records_again() {
    with_lost(|sandbox, outside, a, _| {
        osvc_net(sandbox, "setup");
        is_whole(sandbox, outside, a, "osvc-net setup");
    });
}

/// Addresses are given out all the same.
#[test]
fn without_nft_others_start_and_all_is_whole_later() {
    for plugin in ["osvc-bridge", "osvc-ipam"] {
        with_lost(|sandbox, outside, a, b| {
            hide_nft(sandbox);
            for turn in 0..2 {
                let id = format!("c{turn}");
                if plugin == "osvc-bridge" {
                    net1(sandbox).container(&id);
                } else {
                    let ipam = json!({"type": "osvc-ipam", "subnet": "10.66.0.0/24"});
                    let config = json!({"cniVersion": "1.0.0", "name": "net5", "type": "osvc-ipam", "ipam": ipam});
                    let netns = sandbox.netns(&id);
                    sandbox.plugin("osvc-ipam").config(config).container(&id).netns(&netns).named(&id).add();
                }
            }
            show_nft(sandbox);
            b.publish(json!([port(9090, 80, "tcp")]));
            is_whole(sandbox, outside, a, &format!("{plugin} without nft"));
        });
    }
}

#[test]
fn what_was_in_run_is_not_needed() {
    type Step = fn(&Sandbox, &Container<'_>);
    let steps: [(&str, Step); 4] = [
        ("an ADD with ports", |_, b| b.publish(json!([port(9090, 80, "tcp")]))),
        ("a DEL", |_, b| b.withdraw()),
        ("a DEL and an ADD without ports", |_, b| {
            b.withdraw();
            b.publish(json!([]));
        }),
        ("osvc-net setup", |sandbox, _| drop(osvc_net(sandbox, "setup"))),
    ];
    for (what, step) in steps {
        with_lost(|sandbox, outside, a, b| {
            sandbox.sh("rm -rf /run/osvc-cni").ok();
            step(sandbox, b);
            is_whole(sandbox, outside, a, what);
        });
    }
}

#[test]
fn its_own_del_withdraws_the_ports() {
    for run in ["true", "rm -rf /run/osvc-cni"] {
        with_lost(|sandbox, _, a, _| {
            sandbox.sh(run).ok();
            a.withdraw();
            for text in [". 8080 ", ". 8081 "] {
                assert!(!crate::tables_mention(sandbox, text), "{run}: {}", sandbox.ruleset());
            }
        });
    }
}

/// A recovery that was cut off before the first record: whoever comes first, here osvc-bridge without a look at ports of its
/// own, goes on with it.
#[test]
fn a_store_without_records_that_is_not_known_to_be_whole_is_recovered() {
    for more in ["true", "rm -rf /run/osvc-cni"] {
        with_lost(|sandbox, outside, a, b| {
            sandbox.sh(&format!("mkdir -p -m 700 {STORE}/attachments; {more}")).ok();
            b.bridge.del();
            b.bridge.add();
            is_whole(sandbox, outside, a, more);
        });
    }
    noted("a recovery that was cut off is gone on with");
}
