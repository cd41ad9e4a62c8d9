//! A store that somebody else, or a crash, has been at.

use integration::{port, port_on};
use serde_json::{Value, json};

use crate::{HOST4, STORE, leads_to, machine, net1, noted};

fn ports() -> Value {
    json!([port(8080, 80, "tcp"), port_on(HOST4, 8081, 80, "udp")])
}

/// Each row: what happened to everything but the records.
#[test]
fn what_is_derived_from_the_records_is_made_again() {
    let damages = [
        "rm -r by-port by-address",
        "rm by-port/* by-address/*",
        "rm -f by-port/tcp-8080*",
        "rm -f index",
        "echo x > index",
        "rm tables.json",
        "echo '{\"v\":1,' > tables.json",
        ": > tables.json",
        "rm lock",
        "ln -s nobody by-port/tcp-9090.0; ln -s nobody by-address/10.9.0.99.0",
        "touch attachments/0000000000000 attachments/.tmp-x attachments/README",
        "echo '{' > attachments/0123456789abc",
        "echo '{\"v\":1}' > attachments/0123456789abc",
        "ln -s /etc/passwd attachments/0123456789abd",
    ];
    for damage in damages {
        let sandbox = machine();
        let network = net1(&sandbox);
        let (a, b) = (network.container("a"), network.container("b"));
        a.publish(ports());
        sandbox.sh(&format!("set -e; cd {STORE}; {damage}")).ok();
        let (code, message) = b.ports(json!([port(8080, 80, "tcp")])).add_fails();
        assert_eq!(code, 101, "`{damage}`: {message}");
        b.publish(json!([port(9090, 80, "tcp")]));
        a.ports(ports()).check(&a.result);
        a.withdraw();
        assert_eq!(leads_to(&sandbox, "ip", 8080), None, "`{damage}`");
        b.publish(json!([port(8080, 80, "tcp")]));
        assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", b.v4)), "`{damage}`");
        b.withdraw();
    }
    noted("a damaged store of ports repairs itself");
}

/// A record that was cut off: whose it was is known by its name alone.
#[test]
fn a_torn_record_hinders_nobody() {
    for damage in [": > \"$f\"", "truncate -s 40 \"$f\"", "echo garbage > \"$f\"", "echo '[]' > \"$f\""] {
        let sandbox = machine();
        let network = net1(&sandbox);
        let (a, b) = (network.container("a"), network.container("b"));
        a.publish(ports());
        let torn = format!("cd {STORE}/attachments; for f in *; do {damage}; done");
        sandbox.sh(&torn).ok();
        b.publish(json!([port(9090, 80, "tcp")]));
        a.publish(ports());
        a.ports(ports()).check(&a.result);
        sandbox.sh(&torn).ok();
        a.withdraw();
        b.withdraw();
        b.publish(json!([port(9091, 80, "tcp")]));
        a.publish(ports());
        a.ports(ports()).check(&a.result);
    }
}

/// Its elements are known by their comments alone.
#[test]
fn del_with_a_torn_record_takes_its_ports_away() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    a.publish(ports());
    sandbox.sh(&format!("cd {STORE}/attachments; for f in *; do : > $f; done")).ok();
    a.withdraw();
    net1(&sandbox).container("b").publish(json!([port(9090, 80, "tcp")]));
    assert_eq!(leads_to(&sandbox, "ip", 8080), None);
    assert_eq!(leads_to(&sandbox, "ip6", 8080), None);
}

/// A later version's record is not guessed at, and stops nobody else.
#[test]
fn a_record_of_a_later_version_stops_nobody_else() {
    let sandbox = machine();
    let network = net1(&sandbox);
    let (a, b) = (network.container("a"), network.container("b"));
    a.publish(ports());
    sandbox.sh(&format!("sed -i 's/\"v\":1/\"v\":99/' {STORE}/attachments/*")).ok();
    b.publish(json!([port(9090, 80, "tcp")]));
    b.withdraw();
    let (_, message) = a.ports(ports()).add_fails();
    assert!(message.contains("99"), "{message}");
}

#[test]
fn another_state_folder_is_another_store() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    let call = a.ports(ports()).env("OSVC_STATE_DIR", "/run/state");
    call.add();
    assert!(sandbox.exists("/run/state/ports/attachments") && !sandbox.exists(STORE));
    call.call("DEL").done();
    assert_eq!(leads_to(&sandbox, "ip", 8080), None);
}
