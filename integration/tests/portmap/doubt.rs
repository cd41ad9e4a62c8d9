//! Records that cannot be trusted: what the kernel has is looked through before anybody believes them again, and who only
//! looks in between changes nothing.

use integration::{Container, Sandbox, port, port_on};
use serde_json::{Value, json};

use crate::{HOST4, STORE, killed_at, leads_to, machine, net1, noted};

fn ports() -> Value {
    json!([port(8080, 80, "tcp"), port_on(HOST4, 8081, 80, "udp")])
}

fn other_ports() -> Value {
    json!([port(9090, 80, "tcp")])
}

/// All of the state folder: names, modes, times and content.
fn state(sandbox: &Sandbox) -> String {
    sandbox
        .sh("cd /var/lib/cni/osvc && find . -printf '%p %y %m %s %T@ %C@ %l\n' | sort
            find . -type f | sort | xargs grep -H ''")
        .stdout
}

/// Each row: who looks, while the records are what they are.
fn lookers(sandbox: &Sandbox, a: &Container<'_>) {
    for words in ["port ls", "port ls -o json", "ip ls", "gc --dry-run", "setup --dry-run"] {
        let before = state(sandbox);
        let looked = sandbox.sh(&format!("/opt/cni/bin/osvc-net {words}"));
        assert_eq!(looked.rc, 0, "{looked}");
        assert_eq!(state(sandbox), before, "osvc-net {words}");
    }
    let before = state(sandbox);
    a.ports(ports()).with("prevResult", a.result.clone()).call("CHECK").success_or_error().ok();
    assert_eq!(state(sandbox), before, "CHECK");
}

/// Nothing of a container is in the maps.
#[track_caller]
fn nothing_leads_to(sandbox: &Sandbox, a: &Container<'_>, what: &str) {
    for address in [&a.v4, &a.v6] {
        assert!(!crate::tables_mention(sandbox, &format!(": {address} .")), "{what}: {}", sandbox.ruleset());
    }
}

#[test]
fn a_torn_record_s_ports_go_with_del_even_if_somebody_looked() {
    for damage in ["echo xx > $f", ": > $f", "rm $f", "sed -i 's/8080/8088/g' $f"] {
        for looked in [false, true] {
            let sandbox = machine();
            let network = net1(&sandbox);
            let (a, b) = (network.container("a"), network.container("b"));
            a.publish(ports());
            b.publish(other_ports());
            let tag = sandbox.sh(r"printf 'net1\0a\0eth0' | sha256sum | cut -c1-13").ok();
            sandbox.sh(&format!("cd {STORE}/attachments && f={} && test -s $f && {damage}", tag.trim())).ok();
            if looked {
                lookers(&sandbox, &a);
            }
            a.withdraw();
            nothing_leads_to(&sandbox, &a, &format!("`{damage}`, looked: {looked}"));
            assert_eq!(leads_to(&sandbox, "ip", 9090), Some(format!("{} . 80", b.v4)), "`{damage}`");
            b.ports(other_ports()).check(&b.result);
        }
    }
    noted("DEL takes a torn record's ports away, and looking at the store changes nothing");
}

/// Between the store and the kernel, at any of the calls that change the store.
#[test]
fn a_container_that_was_killed_while_it_changed_its_ports_leaves_none() {
    let calls =
        [("unlink", 1), ("unlink", 2), ("symlink", 1), ("symlink", 2), ("rename", 1), ("rename", 2), ("sendto", 4)];
    for (call, occurrence) in calls {
        for looked in [false, true] {
            let sandbox = machine();
            let network = net1(&sandbox);
            let (a, b) = (network.container("a"), network.container("b"));
            a.publish(ports());
            b.publish(json!([port(7070, 80, "tcp")]));
            let words = killed_at(call, occurrence);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let killed = a.ports(other_ports()).through(&words).call("ADD");
            assert!(occurrence > 1 || killed.output.rc == 137, "{}", killed.output);
            if looked {
                lookers(&sandbox, &a);
            }
            a.withdraw();
            nothing_leads_to(&sandbox, &a, &format!("{call} {occurrence}, looked: {looked}"));
            assert_eq!(leads_to(&sandbox, "ip", 7070), Some(format!("{} . 80", b.v4)), "{call} {occurrence}");
            b.publish(json!([port(8080, 80, "tcp"), port(9090, 80, "tcp")]));
        }
    }
}
