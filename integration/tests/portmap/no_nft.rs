//! A container without ports needs nothing of all this; and a failure late in an ADD leaves what was there.

use integration::{Plugin, Sandbox, port};
use serde_json::{Value, json};

use crate::{hide_nft, leads_to, machine, net1, noted, ruleset_in_order, show_nft, store};

#[test]
fn an_add_without_ports_needs_no_nft() {
    let sandbox = machine();
    let network = net1(&sandbox);
    let (a, b) = (network.container("a"), network.container("b"));
    hide_nft(&sandbox);
    b.publish(json!([]));
    b.withdraw();
    show_nft(&sandbox);
    let ports = || json!([port(8080, 80, "tcp")]);
    a.publish(ports());
    for damage in ["true", "nft flush ruleset", "nft delete table ip6 osvc-cni-portmap"] {
        sandbox.sh(damage).ok();
        hide_nft(&sandbox);
        b.publish(json!([]));
        b.withdraw();
        show_nft(&sandbox);
        b.publish(json!([]));
        assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", a.v4)), "`{damage}`");
        assert_eq!(leads_to(&sandbox, "ip6", 8080), Some(format!("{} . 80", a.v6)), "`{damage}`");
    }
    noted("an ADD without ports needs no nft");
}

/// How many sockets to netfilter a call opens.
fn netfilter_sockets(sandbox: &Sandbox, call: &Plugin<'_>, verb: &str) -> usize {
    let call = call.clone().through(&["strace", "-qq", "-f", "-e", "trace=socket", "-o", "/run/trace"]);
    assert_eq!(call.call(verb).output.rc, 0);
    sandbox.read("/run/trace").matches("NETLINK_NETFILTER").count()
}

#[test]
fn where_no_port_was_ever_published_netfilter_is_not_asked() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    for (call, verb) in [(&a.portmap, "ADD"), (&a.ports(json!([])), "ADD")] {
        assert_eq!(netfilter_sockets(&sandbox, call, verb), 0, "{verb}");
    }
    let ipam = json!({"type": "osvc-ipam", "subnet": "10.66.0.0/24"});
    let config = json!({"cniVersion": "1.0.0", "name": "net5", "type": "osvc-ipam", "ipam": ipam});
    let ipam = sandbox.plugin("osvc-ipam").config(config).container("i").netns(&a.netns).named("i");
    for verb in ["ADD", "DEL"] {
        assert_eq!(netfilter_sockets(&sandbox, &ipam, verb), 0, "osvc-ipam {verb}");
    }
    // The case itself: with a port it is asked.
    assert!(netfilter_sockets(&sandbox, &a.ports(json!([port(8080, 80, "tcp")])), "ADD") > 0);
}

/// 127.0.0.1 is opened last, and /proc/sys is read-only in a container without privileges.
#[test]
fn a_late_failure_of_another_add_leaves_what_was_published() {
    let sandbox = machine();
    let network = net1(&sandbox);
    let (a, b) = (network.container("a"), network.container("b"));
    let ports = || json!([port(8080, 80, "tcp"), port(8080, 80, "udp")]);
    a.publish(ports());
    sandbox.sh("echo 0 > /proc/sys/net/ipv4/conf/obr_net1/route_localnet").ok();
    let all = || format!("{}\n{}", ruleset_in_order(&sandbox), store(&sandbox));
    let before = all();
    sandbox.sh("mount --bind /proc/sys/net /proc/sys/net && mount -o remount,ro,bind /proc/sys/net").ok();
    let fails = |call: &Plugin<'_>, what: Value| {
        let (code, message) = call.add_fails();
        assert!(code >= 5 && message.contains("route_localnet"), "{message}");
        assert_eq!(all(), before, "after a failed ADD of {what}");
    };
    for wanted in [ports(), json!([port(9090, 80, "tcp")]), json!([port(8080, 81, "tcp"), port(7070, 80, "udp")])] {
        fails(&a.ports(wanted.clone()), wanted);
    }
    fails(&a.ports(ports()).with("allowFrom", json!(["192.0.2.0/24"])), json!("a list"));
    fails(&b.ports(json!([port(9090, 80, "tcp")])), json!("another"));
    fails(
        &b.ports(json!([port(9090, 80, "tcp")])).with("allowFrom", json!(["192.0.2.0/24"])),
        json!("another, with a list"),
    );
    sandbox.sh("umount /proc/sys/net").ok();
    a.publish(ports());
    a.ports(ports()).check(&a.result);
    noted("an ADD that fails late leaves what the container had published before");
}

/// The word of one that failed does not open what the others' closes.
#[test]
fn a_late_failure_of_one_without_a_list_opens_nothing() {
    let sandbox = machine();
    let closed = net1(&sandbox).with("allowFrom", json!(["198.18.0.0/16"])).container("a");
    closed.publish(json!([port(8080, 80, "tcp")]));
    let b = net1(&sandbox).container("b");
    sandbox.sh("echo 0 > /proc/sys/net/ipv4/conf/obr_net1/route_localnet").ok();
    let before = ruleset_in_order(&sandbox);
    assert!(before.contains("198.18.0.0/16"), "{before}");
    sandbox.sh("mount --bind /proc/sys/net /proc/sys/net && mount -o remount,ro,bind /proc/sys/net").ok();
    b.ports(json!([port(9090, 80, "tcp")])).add_fails();
    assert_eq!(ruleset_in_order(&sandbox), before);
    noted("a failed ADD without allowFrom leaves the network's list as it was");
}
