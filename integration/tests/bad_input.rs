//! Configuration and hosts that cannot work: one JSON error with the right code, naming the thing and the way out; nothing
//! changed; and a later correct call works.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::{Plugin, Sandbox, addresses_of};
use serde_json::{Value, json};

fn bridge() -> Value {
    json!({"cniVersion": "1.1.0", "name": "net1", "type": "osvc-bridge", "network": "10.9.0.0/24"})
}

fn ranges(ranges: Value) -> Value {
    json!({"cniVersion": "1.1.0", "name": "net1", "type": "osvc-bridge", "isGateway": true,
        "ipam": {"type": "osvc-ipam", "ranges": ranges}})
}

fn call<'a>(sandbox: &'a Sandbox, config: Value) -> Plugin<'a> {
    sandbox.plugin("osvc-bridge").config(config).netns_path("/run/netns/pod").named("web")
}

/// The call fails with one of the codes, names each word, and changes nothing; the correct call works afterwards.
#[track_caller]
fn refused(sandbox: &Sandbox, call: &Plugin<'_>, codes: &[u64], words: &[&str]) -> String {
    let before = sandbox.leftovers();
    let (code, message) = call.add_fails();
    assert!(codes.contains(&code), "code {code}, expected one of {codes:?}: {message}");
    for word in words {
        assert!(message.contains(word), "`{word}` is not named: {message}");
    }
    sandbox.leftovers().assert_same_as(&before, &format!("the refusal `{message}`"));
    message
}

#[track_caller]
fn works(sandbox: &Sandbox, config: Value) {
    let call = call(sandbox, config);
    assert!(!addresses_of(&call.add()).is_empty(), "a correct call works afterwards");
    call.del();
}

#[test]
fn ranges_that_cannot_be() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    for (bad, words) in [
        (json!([[{"subnet": "10.9.0.0/24"}], [{"subnet": "10.9.0.128/25"}]]), &["overlap"][..]),
        (json!([[{"subnet": "10.9.0.0/24"}, {"subnet": "10.9.0.128/25"}]]), &["overlap", "10.9.0.1"]),
        (json!([[{"subnet": "10.9.0.0/24", "rangeStart": "10.9.0.50", "rangeEnd": "10.9.0.40"}]]), &["10.9.0.50"]),
        (json!([[{"subnet": "10.9.0.7/24"}]]), &["host bits", "10.9.0.0"]),
        (json!([[{"subnet": "10.9.0.0/24"}, {"subnet": "fd09::/64"}]]), &["mixed address families"]),
        (json!([[{"subnet": "10.9.0.0/24", "rangeStart": "10.8.0.1"}]]), &["10.8.0.1", "10.9.0.0/24"]),
        (json!([[{"subnet": "10.9.0.0/24", "gateway": "fd09::1"}]]), &["fd09::1"]),
        (json!([[]]), &["empty range set"]),
        (json!([]), &["no IP ranges specified"]),
    ] {
        refused(&sandbox, &call(&sandbox, ranges(bad)), &[7], words);
    }
    works(&sandbox, ranges(json!([[{"subnet": "10.9.0.0/24"}]])));
}

#[test]
fn networks_of_the_one_line_form_that_cannot_be() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    for (network, codes, words) in [
        (json!("10.9.0.7/24"), &[2u64, 7][..], &["10.9.0.7/24", "10.9.0.0"][..]),
        (json!("10.9.0.0/33"), &[2, 6, 7], &["10.9.0.0/33"]),
        (json!("10.9.0.0"), &[2, 6, 7], &["10.9.0.0"]),
        (json!("banana"), &[2, 6, 7], &["banana"]),
        (json!(42), &[6, 7], &["network"]),
        (json!({"subnet": "10.9.0.0/24"}), &[6, 7], &["network"]),
        (json!(["10.9.0.0/24", "10.9.0.0/25"]), &[2, 7], &["10.9.0.0/25"]),
    ] {
        let mut config = bridge();
        config["network"] = network;
        refused(&sandbox, &call(&sandbox, config), codes, words);
    }
    works(&sandbox, bridge());
}

#[test]
fn keys_of_the_wrong_type_name_their_place() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    for (key, value) in [
        ("mtu", json!("big")),
        ("isGateway", json!("yes")),
        ("bridge", json!(7)),
        ("ipMasq", json!([1])),
        ("hairpinMode", json!({})),
        ("ipam", json!("osvc-ipam")),
        ("dns", json!([])),
        ("vlan", json!("100")),
        ("vlanTrunk", json!({"id": 5})),
        ("preserveDefaultVlan", json!(1)),
        ("promiscMode", json!("true")),
        ("portIsolation", json!("true")),
        ("macspoofchk", json!(1)),
        ("spoofcheck", json!("true")),
        ("isolate", json!("strict")),
        ("ipMasqBackend", json!(1)),
        ("enabledad", json!("true")),
        ("forceAddress", json!(0)),
        ("disableContainerInterface", json!("true")),
    ] {
        let mut config = bridge();
        config[key] = value;
        refused(&sandbox, &call(&sandbox, config), &[6, 7], &[key]);
    }
    works(&sandbox, bridge());
}

#[test]
fn keys_that_cannot_be_honoured_are_refused_by_name() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    for (key, value) in
        [("vlan", json!(4095)), ("vlanTrunk", json!([{"id": 4095}])), ("vlanTrunk", json!([{"minID": 5}]))]
    {
        let mut config = bridge();
        config[key] = value;
        refused(&sandbox, &call(&sandbox, config), &[2], &[key]);
    }
    for (key, value) in [
        ("vlan", json!(0)),
        ("vlanTrunk", json!([])),
        ("macspoofchk", json!(false)),
        ("portIsolation", json!(false)),
        ("promiscMode", json!(null)),
        ("unknownKey", json!({"x": 1})),
    ] {
        let mut config = bridge();
        config[key] = value;
        works(&sandbox, config);
    }
}

#[test]
fn a_bridge_name_held_by_another_kind_of_device() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    sandbox.ip("link add name obr_net1 type veth peer name other");
    refused(&sandbox, &call(&sandbox, bridge()), &[5, 7], &["obr_net1", "not a bridge"]);
    sandbox.ip("link del obr_net1");
    let mut config = bridge();
    config["bridge"] = json!("name-of-more-than-15-bytes");
    refused(&sandbox, &call(&sandbox, config), &[2, 7], &["name-of-more-than-15-bytes"]);
    sandbox.ip("link add office type bridge");
    sandbox.ip("link property add dev office altname floor3");
    let mut config = bridge();
    config["bridge"] = json!("floor3");
    refused(&sandbox, &call(&sandbox, config), &[7], &["floor3", "office"]);
    works(&sandbox, bridge());
}

#[test]
fn an_interface_that_exists_already() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    works(&sandbox, bridge());
    sandbox.ip("-n pod link add eth0 type veth peer name other");
    let before = sandbox.links_in(&pod);
    refused(&sandbox, &call(&sandbox, bridge()), &[4, 5, 7], &["eth0", "exists"]);
    call(&sandbox, bridge()).del();
    assert_eq!(sandbox.links_in(&pod), before, "it is not ours to touch");
    sandbox.ip("-n pod link del eth0");
    works(&sandbox, bridge());
}

#[test]
fn namespaces_that_are_none() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    works(&sandbox, bridge());
    sandbox.write("/run/plain", "");
    for (path, word) in [
        ("/run/plain", "/run/plain"),
        ("/run/netns/gone", "/run/netns/gone"),
        ("/proc/self/ns/net", "/proc/self/ns/net"),
        ("/proc/1/ns/net", "/proc/1/ns/net"),
        ("/proc/self/ns/mnt", "/proc/self/ns/mnt"),
        ("/run", "/run"),
    ] {
        refused(&sandbox, &call(&sandbox, bridge()).netns_path(path), &[8], &[word]);
    }
    refused(&sandbox, &call(&sandbox, bridge()).no_netns(), &[4], &["CNI_NETNS"]);
    works(&sandbox, bridge());
}

#[test]
fn a_network_that_overlaps_another_or_a_route_of_the_host() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    sandbox.outside();
    works(&sandbox, bridge());
    let mut other = bridge();
    other["name"] = json!("net2");
    other["network"] = json!("10.9.0.0/16");
    refused(&sandbox, &call(&sandbox, other.clone()), &[7], &["10.9.0.0/16", "net1"]);
    other["network"] = json!("192.0.2.0/25");
    refused(&sandbox, &call(&sandbox, other.clone()), &[7], &["192.0.2.0/25", "192.0.2.0/24"]);
    sandbox.ip("route add 10.50.0.0/16 via 192.0.2.1");
    other["network"] = json!("10.50.3.0/24");
    let message = refused(&sandbox, &call(&sandbox, other.clone()), &[7], &["10.50.3.0/24", "10.50.0.0/16"]);
    assert!(message.contains("up0"), "the route's device is named: {message}");
    other["network"] = json!("10.51.0.0/24");
    works(&sandbox, other);
    works(&sandbox, bridge());
}

#[test]
fn p13_a_state_folder_that_is_read_only_or_full() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    works(&sandbox, bridge());
    for (what, on, off) in [
        (
            "read-only",
            "mount --bind /var/lib/cni /var/lib/cni && mount -o remount,bind,ro /var/lib/cni",
            "umount /var/lib/cni",
        ),
        (
            "full",
            "cp -a /var/lib/cni /run/copy && mount -t tmpfs -o size=1m tmpfs /var/lib/cni && cp -a /run/copy/. /var/lib/cni/ && \
             (dd if=/dev/zero of=/var/lib/cni/fill bs=4k 2>/dev/null; true)",
            "umount /var/lib/cni",
        ),
    ] {
        sandbox.sh(on).ok();
        refused(
            &sandbox,
            &call(&sandbox, bridge()).named(&format!("new-{what}")).container(&format!("new-{what}")),
            &[5, 11],
            &["/var/lib/cni"],
        );
        if what == "read-only" {
            let (code, message) = call(&sandbox, bridge()).call("STATUS").error();
            assert!(code == 50 && message.contains("/var/lib/cni"), "{code} {message}");
        }
        sandbox.sh(off).ok();
        works(&sandbox, bridge());
        call(&sandbox, bridge()).call("STATUS").done();
    }
}

#[test]
fn p17_del_with_a_read_only_state_is_an_error_that_can_be_retried() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = call(&sandbox, bridge());
    call.add();
    sandbox.sh("mount --bind /var/lib/cni /var/lib/cni && mount -o remount,bind,ro /var/lib/cni").ok();
    let (code, message) = call.call("DEL").error();
    assert_eq!(code, 5, "{message}");
    assert!(message.contains("/var/lib/cni"), "{message}");
    assert!(!message.contains("not found"), "go-cni would swallow it: {message}");
    sandbox.sh("umount /var/lib/cni").ok();
    call.del();
    assert!(!sandbox.links_in(&pod).contains("eth0"));
    assert!(sandbox.held(integration::Family::Osvc, "net1").is_empty());
}

#[test]
fn p13_a_missing_nft() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    sandbox
        .sh("set -e; mkdir -p /run/o/up /run/o/work; mkdir -p /run/nft; cp $(command -v nft) /run/nft/
            mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=/run/o/up,workdir=/run/o/work /usr/sbin; rm /usr/sbin/nft")
        .ok();
    let (code, message) = call(&sandbox, bridge()).add_fails();
    assert!(matches!(code, 5 | 50), "{code} {message}");
    assert!(message.contains("nft"), "{message}");
    assert!(sandbox.links_in(&integration::Netns { name: "pod".into(), path: String::new() }).len() == 1, "undone");
    assert!(sandbox.held(integration::Family::Osvc, "net1").is_empty());
    let (code, message) = call(&sandbox, bridge()).call("STATUS").error();
    assert_eq!(code, 50, "{message}");
    assert!(message.contains("nft"), "{message}");
    let (code, message) = call(&sandbox, bridge()).with("ipMasq", json!(false)).call("STATUS").error();
    assert_eq!(code, 50, "forwarding needs rules as well: {message}");
    sandbox.sh("umount /usr/sbin").ok();
    works(&sandbox, bridge());
}

/// A chained plugin: the container is on the network already.
fn portmap(sandbox: &Sandbox) -> Plugin<'_> {
    let ports = json!({"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]});
    let config = json!({"cniVersion": "1.1.0", "name": "net1", "type": "osvc-portmap", "runtimeConfig": ports});
    let attached = call(sandbox, bridge()).add();
    let call = sandbox.plugin("osvc-portmap").config(config).netns_path("/run/netns/pod").named("web");
    call.with("prevResult", attached)
}

#[test]
fn p13_ports_on_a_state_folder_that_is_read_only_or_full() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    let call = portmap(&sandbox);
    call.add();
    call.del();
    for (on, off) in [
        ("mount --bind /var/lib/cni /var/lib/cni && mount -o remount,bind,ro /var/lib/cni", "umount /var/lib/cni"),
        (
            "cp -a /var/lib/cni /run/copy && mount -t tmpfs -o size=1m tmpfs /var/lib/cni && cp -a /run/copy/. /var/lib/cni/ && \
             (dd if=/dev/zero of=/var/lib/cni/fill bs=4k 2>/dev/null; true)",
            "umount /var/lib/cni",
        ),
    ] {
        sandbox.sh(on).ok();
        refused(&sandbox, &call, &[5, 11], &["/var/lib/cni"]);
        if on.contains("ro ") {
            let (code, message) = call.call("STATUS").error();
            assert!(code == 50 && message.contains("/var/lib/cni"), "{code} {message}");
        }
        sandbox.sh(off).ok();
        call.add();
        call.del();
    }
    call.add();
    sandbox.sh("mount --bind /var/lib/cni /var/lib/cni && mount -o remount,bind,ro /var/lib/cni").ok();
    let (code, message) = call.call("DEL").error();
    assert!(code == 5 && message.contains("/var/lib/cni"), "p17: to be tried again: {code} {message}");
    assert!(!message.contains("not found"), "go-cni would swallow it: {message}");
    sandbox.sh("umount /var/lib/cni").ok();
    call.del();
    assert!(sandbox.port_records().is_empty() && !sandbox.ruleset().contains("tcp . 8080"));
}

#[test]
fn p13_ports_without_nft() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    let call = portmap(&sandbox);
    sandbox
        .sh("set -e; mkdir -p /run/o/up /run/o/work; mkdir -p /run/nft; cp $(command -v nft) /run/nft/
            mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=/run/o/up,workdir=/run/o/work /usr/sbin; rm /usr/sbin/nft")
        .ok();
    let (code, message) = call.add_fails();
    assert!(matches!(code, 5 | 50) && message.contains("nft"), "{code} {message}");
    assert!(sandbox.port_records().is_empty(), "undone: {:?}", sandbox.port_records());
    let (code, message) = call.call("STATUS").error();
    assert!(code == 50 && message.contains("nft"), "{code} {message}");
    sandbox.sh("umount /usr/sbin").ok();
    call.call("STATUS").done();
    call.add();
    call.del();
}

#[test]
fn a_record_of_a_later_version_stops_its_own_network_only() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    let other = "/var/lib/cni/osvc/networks/net9.json";
    sandbox.write(other, r#"{"v": 2, "name": "net9", "new": true}"#);
    let mut config = bridge();
    config["name"] = json!("net9");
    refused(&sandbox, &call(&sandbox, config), &[5], &["net9.json has format 2"]);
    works(&sandbox, bridge());
    assert!(sandbox.read(other).contains("new"), "it is left as it was");
}

#[test]
fn names_that_would_leave_the_state_folder() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    for name in ["../../../tmp/x", "a/b", "..", ".", "a b", "ne%t1", ""] {
        let mut config = bridge();
        config["name"] = json!(name);
        refused(&sandbox, &call(&sandbox, config), &[7], &["name"]);
    }
    let mut config = bridge();
    config["name"] = json!("x".repeat(300));
    refused(&sandbox, &call(&sandbox, config), &[7], &["300"]);
    for id in ["../x", "a/b", "..", "a b"] {
        refused(&sandbox, &call(&sandbox, bridge()).container(id), &[4], &["containerID"]);
    }
    refused(&sandbox, &call(&sandbox, bridge()).container(""), &[4], &["CNI_CONTAINERID"]);
    for ifname in ["../x", "a/b", "..", "a b", "a:b", "name-of-16-bytes"] {
        refused(&sandbox, &call(&sandbox, bridge()).ifname(ifname), &[4], &["nterface name"]);
    }
    refused(&sandbox, &call(&sandbox, bridge()).ifname(""), &[4], &["CNI_IFNAME"]);
    let long = "x".repeat(300);
    works(&sandbox, bridge());
    call(&sandbox, bridge()).container(&long).add();
    call(&sandbox, bridge()).container(&long).del();
    assert!(sandbox.held(integration::Family::Osvc, "net1").is_empty(), "a container id of 300 bytes works");
}
