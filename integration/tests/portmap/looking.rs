//! Looking needs no right to write and waits for nobody; and what CHECK says helps.

use std::time::Duration;

use integration::{port, port_on};
use serde_json::{Value, json};

use crate::{HOST4, STORE, machine, net1, noted, osvc_net};

const LOOKS: [&str; 4] = ["ip ls", "port ls", "gc --dry-run", "setup --dry-run"];

fn ports() -> Value {
    json!([port(8080, 80, "tcp"), port_on(HOST4, 8081, 80, "udp")])
}

/// Each row: what happened to the state folder before it became read-only.
fn on_a_read_only_folder(words: &str) {
    for damage in ["true", "rm ports/index", "echo x > ports/attachments/0123456789abc", "rm -r ports"] {
        let sandbox = machine();
        let network = net1(&sandbox);
        sandbox.write("/etc/cni/net.d/net1.conflist", &network.conflist().to_string());
        let a = network.container("a");
        a.publish(ports());
        sandbox.sh(&format!("cd /var/lib/cni/osvc && {damage}")).ok();
        sandbox.sh("mount -o remount,ro,bind /var/lib && ! touch /var/lib/cni/x 2>/dev/null").ok();
        let looked = sandbox.sh(&format!("/opt/cni/bin/osvc-net {words}"));
        assert_eq!(looked.rc, 0, "`{damage}`: {looked}");
        let printed = &looked.stdout;
        assert!(words != "ip ls" || printed.contains(&a.v4), "{damage}: {printed}");
        assert!(words != "port ls" || damage == "rm -r ports" || printed.contains("8080"), "{damage}: {printed}");
        let checked = a.ports(ports()).with("prevResult", a.result.clone()).call("CHECK");
        assert_eq!(checked.output.rc == 0, damage != "rm -r ports", "{damage}: {}", checked.output);
        sandbox.sh("mount -o remount,rw,bind /var/lib").ok();
    }
    noted(&format!("osvc-net {words} works on a read-only state folder"));
}

#[test]
fn port_ls_works_on_a_read_only_state_folder() {
    on_a_read_only_folder("port ls");
}

#[test]
fn a_dry_setup_works_on_a_read_only_state_folder() {
    on_a_read_only_folder("setup --dry-run");
}

#[test]
fn looking_waits_for_nobody_who_holds_the_lock() {
    let sandbox = machine();
    let network = net1(&sandbox);
    sandbox.write("/etc/cni/net.d/net1.conflist", &network.conflist().to_string());
    let a = network.container("a");
    a.publish(ports());
    sandbox.background(&format!("exec flock {STORE}/lock sleep 100"), "/run/flock.log");
    sandbox.wait_for("the lock is held", &format!("! flock -n {STORE}/lock true"));
    for words in LOOKS {
        let looked = sandbox.sh(&format!("/opt/cni/bin/osvc-net {words}"));
        assert_eq!(looked.rc, 0, "{looked}");
        assert!(looked.elapsed < Duration::from_secs(15), "osvc-net {words} took {:?}", looked.elapsed);
    }
    let checked = a.ports(ports()).with("prevResult", a.result.clone()).call("CHECK");
    assert!(checked.elapsed() < Duration::from_secs(15), "CHECK took {:?}", checked.elapsed());
    checked.done();
}

#[test]
fn port_ls_tells_who_has_what() {
    let sandbox = machine();
    let network = net1(&sandbox);
    assert!(!osvc_net(&sandbox, "port ls").contains("8080"));
    let a = network.named("id-1", "web");
    a.publish(ports());
    let two = sandbox.network("net2", &["10.10.0.0/24"]).attach(&a.netns, "id-1", "eth1", "web");
    two.publish(json!([port(8080, 80, "tcp")]));
    let dead = network.named("id-2", "db");
    dead.publish(json!([port(9090, 80, "tcp")]));
    crate::kill(&sandbox, &dead.netns);
    let listed = osvc_net(&sandbox, "port ls");
    let has = |words: &[&str]| listed.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(
        has(&["net1", "0.0.0.0", "8080", "tcp", &format!("{}:80", a.v4), "published", "web", "id-1", "eth0"]),
        "{listed}"
    );
    assert!(has(&["net1", "::", "8080", &format!("[{}]:80", a.v6), "published"]), "{listed}");
    assert!(has(&["net1", HOST4, "8081", "udp", "published"]), "{listed}");
    assert!(has(&["net2", "8080", &format!("{}:80", two.v4), "standby", "eth1"]), "{listed}");
    assert!(has(&["net1", "9090", "dead", "db"]), "{listed}");
    assert!(!osvc_net(&sandbox, "port ls -n net2").contains("8081"));
}

/// A runtime's umask may be anything.
#[test]
fn the_files_are_root_s_alone_whatever_the_umask() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    let open = ["bash", "-c", "umask 0; exec \"$0\""];
    a.ports(ports()).through(&open).add();
    let b = net1(&sandbox).container("b");
    b.ports(json!([port(9090, 80, "tcp")])).through(&open).add();
    assert!(sandbox.exists(&format!("{STORE}/tables.json")));
    let exposed = sandbox.sh(&format!("find {STORE} -perm /0077 ! -type l -printf '%m %p\\n'")).ok();
    assert_eq!(exposed, "", "open to others");
    let modes = sandbox.sh(&format!("find {STORE} -type f -printf '%m\\n' | sort -u")).ok();
    assert_eq!(modes.trim(), "600");
    b.bare().through(&open).del();
    let exposed = sandbox.sh(&format!("find {STORE} -perm /0077 ! -type l -printf '%m %p\\n'")).ok();
    assert_eq!(exposed, "", "open to others after DEL");
}

/// Setup cannot make a record, and an ADD puts elements back.
#[test]
fn check_says_what_helps() {
    for (damage, helps) in [
        ("rm /var/lib/cni/osvc/ports/attachments/*", ["no record", "DEL and ADD"]),
        ("rm -r /var/lib/cni/osvc/ports", ["no record", "DEL and ADD"]),
        ("nft flush ruleset", ["osvc-cni-portmap", "osvc-net setup"]),
        ("nft delete element ip osvc-cni-portmap any '{ tcp . 8080 }'", ["8080/tcp", "osvc-net setup"]),
        (
            "nft delete element ip osvc-cni-portmap hairpin '{ 10.9.0.0/24 . 10.9.0.0/24 }'",
            ["hairpin", "osvc-net setup"],
        ),
        ("echo 0 > /proc/sys/net/ipv4/conf/obr_net1/route_localnet", ["obr_net1", "osvc-net setup"]),
    ] {
        let sandbox = machine();
        let a = net1(&sandbox).container("a");
        a.publish(ports());
        sandbox.sh(damage).ok();
        let (code, message) = a.ports(ports()).check_fails(&a.result);
        assert_eq!(code, 100, "`{damage}`: {message}");
        for word in helps {
            assert!(message.contains(word), "`{damage}`: {word} is not in: {message}");
        }
        if helps[1] == "osvc-net setup" {
            osvc_net(&sandbox, "setup");
        } else {
            a.ports(ports()).del();
            a.publish(ports());
        }
        a.ports(ports()).check(&a.result);
    }
}
