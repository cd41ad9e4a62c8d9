//! CHECK: it finds what is gone, minds nothing else, repairs nothing and prints nothing.

use integration::{Netns, Sandbox};
use serde_json::{Value, json};

use crate::scripted::{Scripted, recorded};
use crate::{both, bridge, inside, ipam, keys, one_line, settled};

#[test]
fn c80_a_previous_result_is_required() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for call in both(&sandbox, &pod) {
        let result = call.add();
        for call in [call.clone(), call.clone().with("prevResult", json!(null))] {
            let (code, message) = call.call("CHECK").error();
            assert_eq!((code, message.as_str()), (7, "Required prevResult missing"), "without it nothing is known");
        }
        let (code, message) = call.check_fails(&json!({"cniVersion": "0.4.0", "ips": []}));
        assert!(code == 6 && message.contains("prevResult"), "of another family: {code} {message}");
        // `check` also asserts that nothing is printed.
        call.check(&result);
    }
}

#[test]
fn c80_what_chained_plugins_and_the_host_change_is_tolerated() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = bridge(&sandbox, &pod, one_line("1.1.0"));
    let mut result = call.add();
    let host_end = result["interfaces"][1]["name"].as_str().unwrap().to_owned();
    sandbox
        .sh(&format!(
            "set -e; ip -n pod addr add 10.99.0.1/24 dev eth0; ip -n pod route add 198.51.100.0/24 via 10.9.0.1
             ip -n pod link add tun0 type veth peer name tun1; ip link set {host_end} address 02:00:00:00:00:99
             ip addr add 10.98.0.1/24 dev obr_net1; nft add table ip foreign"
        ))
        .ok();
    call.check(&result);
    result["interfaces"].as_array_mut().unwrap().push(json!({"name": "tun0", "sandbox": pod.path}));
    result["ips"].as_array_mut().unwrap().push(json!({"address": "172.16.0.1/32", "interface": 3}));
    result["dns"] = json!({"nameservers": ["192.0.2.53"]});
    result["unknown"] = json!({"x": 1});
    call.check(&result);
}

#[test]
fn c80_the_delegate_is_asked_with_the_parameters_of_the_add_and_its_error_passed_on() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let script = Scripted::ipam(&sandbox, "script");
    let call = bridge(&sandbox, &pod, keys(json!({"type": "script"}))).named("web");
    let result = call.add();
    call.check(&result);
    let calls = recorded(&sandbox);
    assert_eq!(calls.iter().map(|call| call.what.as_str()).collect::<Vec<_>>(), ["script ADD", "script CHECK"]);
    for name in ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS"] {
        assert_eq!(calls[0].var(name), calls[1].var(name), "{name} as in ADD");
    }
    assert_eq!(calls[1].stdin["prevResult"], result, "it gets the previous result");
    script.fails("CHECK");
    let failure = call.check_fails(&result);
    assert_eq!(failure, (142, "the script refuses (CHECK)".to_owned()), "the delegate's error is ours");
}

#[test]
fn c81_check_fails_for_what_was_never_added_and_for_what_is_deleted() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for call in both(&sandbox, &pod) {
        let result = call.add();
        let (_, message) = call.clone().container("never").check_fails(&result);
        assert!(message.contains("never"), "the attachment is named: {message}");
        let (_, message) = call.clone().ifname("eth9").check_fails(&result);
        assert!(message.contains("eth9"), "the interface is named: {message}");
        call.check(&result);
        call.del();
        call.check_fails(&result);
    }
}

/// What is damaged, how, and what the message names.
const DAMAGES: [(&str, &str, &[&str]); 14] = [
    ("the rules", "nft flush ruleset", &["net1", "osvc-net setup"]),
    ("the masquerading of IPv6", "nft delete table ip6 osvc-cni", &["net1", "osvc-net setup"]),
    ("the gateway address", "ip addr del 10.9.0.1/24 dev obr_net1", &["obr_net1", "10.9.0.1/24"]),
    ("the IPv6 gateway address", "ip addr del fd09::1/64 dev obr_net1", &["obr_net1", "fd09::1/64"]),
    ("the bridge being up", "ip link set obr_net1 down", &["obr_net1", "down"]),
    ("the bridge", "ip link del obr_net1", &["obr_net1", "missing"]),
    ("forwarding", "echo 0 > /proc/sys/net/ipv4/ip_forward", &["forward", "IPv4"]),
    ("the default route", "ip -n pod route del default", &["0.0.0.0/0"]),
    ("the container's address", "ip -n pod addr del $ADDRESS dev eth0", &["eth0", "no address"]),
    ("the container's interface being up", "ip -n pod link set eth0 down", &["eth0", "down"]),
    ("the host end", "ip link del $HOSTEND", &["missing", "eth0"]),
    ("the host end being up", "ip link set $HOSTEND down", &["ov", "down"]),
    ("the host end's bridge", "ip link set $HOSTEND nomaster", &["ov", "obr_net1"]),
    ("the reservation", "rm -rf /var/lib/cni/osvc/ipam/net1", &["c1", "eth0"]),
];

/// All that a CHECK could change.
fn state(sandbox: &Sandbox, pod: &Netns) -> String {
    let files =
        "find /var/lib/cni /run/osvc-cni -type f | sort | xargs -r sha256sum; cat /proc/sys/net/ipv4/ip_forward";
    [settled(sandbox, ""), inside(sandbox, pod), sandbox.ruleset(), sandbox.sh(files).ok()].concat()
}

#[test]
fn c82_check_finds_each_thing_that_is_gone_and_changes_nothing() {
    let mut wrong = Vec::new();
    for (what, damage, words) in DAMAGES {
        let sandbox = Sandbox::new();
        let pod = sandbox.netns("pod");
        let mut config = one_line("1.1.0");
        config["network"] = json!(["10.9.0.0/24", "fd09::/64"]);
        let call = bridge(&sandbox, &pod, config);
        let result = call.add();
        call.check(&result);
        let damage = damage
            .replace("$HOSTEND", result["interfaces"][1]["name"].as_str().unwrap())
            .replace("$ADDRESS", result["ips"][0]["address"].as_str().unwrap());
        sandbox.sh(&damage).ok();
        let before = state(&sandbox, &pod);
        let (code, message) = call.check_fails(&result);
        if code != 100 {
            wrong.push(format!("code {code} instead of 100 after {what} was lost: {message}"));
        }
        let unnamed = words.iter().filter(|word| !message.contains(**word));
        wrong.extend(unnamed.map(|word| format!("`{word}` is not named after {what} was lost: {message}")));
        assert_eq!(state(&sandbox, &pod), before, "CHECK changes nothing after {what} was lost");
        assert_eq!(call.check_fails(&result), (code, message), "{what} is still lost: nothing was repaired");
        call.del();
    }
    assert!(wrong.is_empty(), "what CHECK says of what is gone:\n{}", wrong.join("\n"));
}

/// host-local is content with any record of the container.
#[test]
fn c82_osvc_ipam_compares_its_record_with_the_result() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let config = ipam(json!({"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]]}));
    let call = sandbox.plugin("osvc-ipam").netns(&pod).config(config);
    let result = call.add();
    call.check(&result);
    let mut other: Value = result.clone();
    other["ips"][0]["address"] = json!("10.9.0.99/24");
    let (code, message) = call.check_fails(&other);
    assert_eq!(code, 100, "another address than is held: {message}");
    assert!(message.contains("10.9.0.99"), "{message}");
    let second = result["ips"][1]["address"].as_str().unwrap().trim_end_matches("/64");
    sandbox.sh(&format!("rm /var/lib/cni/osvc/ipam/net1/{second}")).ok();
    let (code, message) = call.check_fails(&result);
    assert_eq!(code, 100, "one of two records is gone: {message}");
}

/// A result in which the container's interface is the first, as a chained plugin may leave it.
#[test]
fn lc15_index_0_is_an_interface_and_no_index_is_none() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = bridge(&sandbox, &pod, one_line("1.1.0"));
    let mut first = call.add();
    first["interfaces"].as_array_mut().unwrap().drain(..2);
    first["ips"][0]["interface"] = json!(0);
    let mut none = first.clone();
    none["ips"][0].as_object_mut().unwrap().remove("interface");
    let mut elsewhere = first.clone();
    elsewhere["interfaces"].as_array_mut().unwrap().insert(0, json!({"name": "tun0", "sandbox": pod.path}));
    for result in [&first, &none, &elsewhere] {
        call.check(result);
    }
    // Another address in its place, with the same routes.
    sandbox
        .sh("set -e; ip -n pod -4 addr flush dev eth0; ip -n pod addr add 10.9.0.250/24 dev eth0
            ip -n pod route add default via 10.9.0.1")
        .ok();
    for result in [&first, &none] {
        let (_, message) = call.check_fails(result);
        assert!(message.contains("eth0 has no address"), "the address belongs to eth0, and is gone: {message}");
    }
    // Index 0 is tun0 here: its addresses are the affair of who made it.
    let reply = call.clone().with("prevResult", elsewhere).call("CHECK");
    assert!(!reply.output.stdout.contains("eth0 has no address"), "index 0 is another interface: {}", reply.output);
}
