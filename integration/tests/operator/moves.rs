//! `osvc-net setup` of a network whose `bridge` is another one than before.

use integration::cluster::{Cluster, Underlay};
use integration::{Leftovers, Sandbox, Vm, report};
use serde_json::{Value, json};

use super::osvc_net;

fn place(sandbox: &Sandbox, bridge: &str, more: &[(&str, Value)]) -> Value {
    let mut network = sandbox.network("net1", &["10.5.0.0/24"]).with_bridge("bridge", json!(bridge));
    for (key, value) in more {
        network = network.with_bridge(key, value.clone());
    }
    let conflist = network.conflist();
    sandbox.write("/etc/cni/net.d/net1.conflist", &conflist.to_string());
    conflist
}

fn state(sandbox: &Sandbox) -> (Leftovers, String, String) {
    // A bridge without ports has its carrier for a moment.
    (sandbox.leftovers(), sandbox.ip("-4 -o addr"), sandbox.ip("route").replace(" linkdown", ""))
}

/// Both say why, and change nothing.
#[track_caller]
fn refused(sandbox: &Sandbox, words: &[&str]) {
    let before = state(sandbox);
    for argv in [&["setup", "--dry-run"][..], &["setup"]] {
        let told = osvc_net(sandbox, argv);
        assert!(told.rc == 1 && words.iter().all(|word| told.stderr.contains(word)), "{told}");
        assert!(!told.stdout.contains("would") && !told.stdout.contains("removed"), "{told}");
        let after = state(sandbox);
        before.0.assert_same_as(&after.0, "a move that was refused");
        assert_eq!((&after.1, &after.2), (&before.1, &before.2));
    }
}

/// A dry run changes nothing and tells what is done. What is done.
#[track_caller]
fn moved(sandbox: &Sandbox) -> String {
    let before = state(sandbox);
    let planned = osvc_net(sandbox, &["setup", "--dry-run"]).ok();
    let after = state(sandbox);
    before.0.assert_same_as(&after.0, "a dry run");
    assert_eq!((&after.1, &after.2), (&before.1, &before.2));
    let told = osvc_net(sandbox, &["setup"]).ok();
    for line in planned.lines().filter(|line| line.contains("would remove")) {
        assert!(told.contains(&line.replace("would remove", "removed")), "{planned}{told}");
    }
    let again = osvc_net(sandbox, &["setup"]).ok();
    assert!(again.contains("net1: in place"), "{again}");
    told
}

#[test]
fn from_a_bridge_of_somebody_else_our_address_goes_too() {
    let sandbox = Sandbox::new();
    sandbox.sh("ip link add br0 type bridge; ip link set br0 up; ip addr add 192.168.77.1/24 dev br0").ok();
    place(&sandbox, "br0", &[]);
    osvc_net(&sandbox, &["setup"]).ok();
    place(&sandbox, "br1", &[]);
    let told = moved(&sandbox);
    for line in ["net1: removed address 10.5.0.1/24 from bridge br0\n", "net1: set up, bridge br1 with 10.5.0.1/24"] {
        assert!(told.contains(line), "{told}");
    }
    let left = sandbox.ip("-4 -o addr show br0");
    assert!(left.contains("192.168.77.1/24") && !left.contains("10.5.0.1"), "{left}");
    let network = sandbox.network("net1", &["10.5.0.0/24"]).with_bridge("bridge", json!("br1"));
    let web = network.container("web");
    assert!(sandbox.ping(&web.netns, "10.5.0.1"));
    web.remove();
    // Back again, and into the bridge that was there: it is used, and its own address stays.
    place(&sandbox, "br0", &[]);
    let told = moved(&sandbox);
    assert!(told.contains("net1: removed bridge br1\n") && told.contains("net1: set up, bridge br0 with"), "{told}");
    // A plain teardown leaves it to the bridge's owner.
    osvc_net(&sandbox, &["teardown", "net1"]).ok();
    assert!(sandbox.ip("-4 -o addr show br0").contains("10.5.0.1/24"));
    report::ran(&report::kernel(), "osvc-net setup moves a network away from a foreign bridge");
}

#[test]
fn what_would_fail_on_the_new_bridge_is_told_before_the_old_one_is_left() {
    let sandbox = Sandbox::new();
    let script = "ip link add br0 type bridge; ip link set br0 up; ip addr add 10.5.0.1/24 dev br0
        ip link add wire type veth peer name eriw; ip link add lan type bridge; ip link set lan up";
    sandbox.sh(script).ok();
    let old = place(&sandbox, "br0", &[]);
    osvc_net(&sandbox, &["setup"]).ok();
    // The address was there before: it stays, and the way out is told.
    place(&sandbox, "br1", &[]);
    refused(&sandbox, &["cannot leave br0", "10.5.0.0/24", "ip address del"]);
    // The name is that of another kind of device.
    place(&sandbox, "wire", &[]);
    refused(&sandbox, &["net1", "wire"]);
    // Somebody else's route.
    sandbox.sh("ip addr del 10.5.0.1/24 dev br0").ok();
    sandbox.write("/etc/cni/net.d/net1.conflist", &old.to_string());
    osvc_net(&sandbox, &["setup"]).ok();
    place(&sandbox, "br1", &[]);
    sandbox.ip("route add 10.5.0.128/25 dev lan");
    refused(&sandbox, &["overlaps", "10.5.0.128/25", "lan"]);
    sandbox.ip("route del 10.5.0.128/25 dev lan");
    assert!(moved(&sandbox).contains("net1: set up, bridge br1 with 10.5.0.1/24"));
    report::ran(&report::kernel(), "osvc-net setup refuses a move before it begins");
}

#[test]
fn a_network_in_a_vlan_takes_its_device_along() {
    // The running kernel may lack bridges that filter.
    Vm::new().test(|| {
        let sandbox = Sandbox::new();
        sandbox.sh("ip link add br0 type bridge vlan_filtering 1; ip link set br0 up").ok();
        let vlan = [("vlan", json!(7))];
        place(&sandbox, "br0", &vlan);
        osvc_net(&sandbox, &["setup"]).ok();
        sandbox.ip("link show br0.7");
        place(&sandbox, "br1", &vlan);
        let told = moved(&sandbox);
        assert!(told.contains("net1: removed device br0.7") && told.contains("set up, bridge br1"), "{told}");
        assert!(sandbox.sh("ip link show br0.7").rc != 0 && sandbox.ip("-o addr show br1.7").contains("10.5.0.1/24"));
        place(&sandbox, "br2", &vlan);
        let told = moved(&sandbox);
        assert!(told.contains("net1: removed bridge br1\n") && told.contains("set up, bridge br2"), "{told}");
        report::ran(&report::kernel(), "osvc-net setup moves a network in a VLAN");
    });
}

#[test]
fn the_other_network_of_the_old_bridge_stays_there() {
    let sandbox = Sandbox::new();
    let other = sandbox.network("other", &["10.6.0.0/24"]).with_bridge("bridge", json!("br-a"));
    sandbox.write("/etc/cni/net.d/other.conflist", &other.conflist().to_string());
    place(&sandbox, "br-a", &[]);
    osvc_net(&sandbox, &["setup"]).ok();
    let web = other.container("web");
    place(&sandbox, "br-b", &[]);
    let told = moved(&sandbox);
    for line in ["net1: removed address 10.5.0.1/24 from bridge br-a\n", "stays: it is also that of network other"] {
        assert!(told.contains(line), "{told}");
    }
    let left = sandbox.ip("-4 -o addr show br-a");
    assert!(left.contains("10.6.0.1/24") && !left.contains("10.5.0.1"), "{left}");
    assert!(sandbox.ping(&web.netns, "10.6.0.1"));
    report::ran(&report::kernel(), "osvc-net setup moves one of two networks of a bridge");
}

#[test]
fn a_routed_network_is_moved_with_its_tunnels() {
    let cluster = Cluster::new(&[0, 1], &[]);
    let node = &cluster.nodes[0];
    let on = |bridge: &str| {
        let mut config = cluster.network("net1", Underlay::V4, &[("10.11.0.0/16", 22)]);
        (config["tunnelMode"], config["bridge"]) = (json!("vxlan"), json!(bridge));
        config
    };
    node.sandbox.sh("ip link add br0 type bridge; ip link set br0 up; ip link add wire type veth peer name eriw").ok();
    node.install(&on("br0"));
    let peer = cluster.nodes[1].start(&on("br-x"), "b");
    node.osvc_net(&["setup"]).ok();
    node.install(&on("wire"));
    refused(&node.sandbox, &["net1", "wire"]);
    for (to, gone) in [("br1", "removed address 10.11.0.1/22 from bridge br0"), ("br2", "removed bridge br1")] {
        node.install(&on(to));
        let told = moved(&node.sandbox);
        assert!(told.contains(gone) && told.contains(&format!("set up, bridge {to} with 10.11.0.1/22")), "{told}");
    }
    let pod = node.start(&on("br2"), "a");
    assert!(pod.reaches(&peer));
    report::ran(&report::kernel(), "osvc-net setup moves a routed network");
}

/// The new bridge cannot be had after all: forwarding was switched off, and cannot be switched on.
#[test]
fn what_was_done_is_told_although_the_rest_fails() {
    let sandbox = Sandbox::new();
    place(&sandbox, "br-a", &[]);
    osvc_net(&sandbox, &["setup"]).ok();
    place(&sandbox, "br-b", &[]);
    let told = sandbox.sh("echo 0 > /proc/sys/net/ipv4/ip_forward
        exec unshare -m sh -c 'mount --rbind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec /opt/cni/bin/osvc-net setup'");
    assert!(told.rc == 1 && told.stderr.contains("net1") && told.stderr.contains("ip_forward"), "{told}");
    assert!(told.stdout.contains("net1: removed bridge br-a\n"), "{told}");
    // There is no network to make rules for.
    assert!(!told.stdout.contains("net1: set up") && !told.stdout.contains("rules made"), "{told}");
    assert!(osvc_net(&sandbox, &["setup"]).ok().contains("net1: set up, bridge br-b"), "the next one goes on");
    report::ran(&report::kernel(), "osvc-net setup tells what it did before it failed");
}

/// Somebody's route through a container, say: with the bridge it goes, and is no reason to stay.
#[test]
fn routes_by_a_bridge_that_goes_are_no_objection() {
    let sandbox = Sandbox::new();
    place(&sandbox, "own1", &[]);
    osvc_net(&sandbox, &["setup"]).ok();
    sandbox.sh("ip route add 10.5.0.128/25 via 10.5.0.7 dev own1").ok();
    place(&sandbox, "own2", &[]);
    let told = moved(&sandbox);
    assert!(told.contains("net1: removed bridge own1"), "{told}");
    // By a bridge that stays, it would be left behind.
    sandbox.sh("ip link add br0 type bridge; ip link set br0 up").ok();
    place(&sandbox, "br0", &[]);
    osvc_net(&sandbox, &["setup"]).ok();
    sandbox.sh("ip route add 10.5.0.128/25 dev br0").ok();
    place(&sandbox, "br1", &[]);
    refused(&sandbox, &["10.5.0.128/25", "ip route del"]);
    report::ran(&report::kernel(), "osvc-net setup: moves of networks with routes of others");
}
