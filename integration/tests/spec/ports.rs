//! osvc-portmap where the specification speaks of chained plugins, and of each verb.

use integration::{Netns, Plugin, Sandbox, VERSIONS};
use serde_json::{Value, json};

use crate::{bridge, one_line};

const VALID: &str = "cni.dev/valid-attachments";

/// A container on `net1`, and the call that publishes port 8080 of it.
fn published<'a>(sandbox: &'a Sandbox, netns: &Netns, version: &str, id: &str, port: u16) -> (Value, Plugin<'a>) {
    let previous = bridge(sandbox, netns, one_line(version)).container(id).add();
    let ports = json!({"portMappings": [{"hostPort": port, "containerPort": 80, "protocol": "tcp"}]});
    let config = json!({"cniVersion": version, "name": "net1", "type": "osvc-portmap", "runtimeConfig": ports});
    let call = sandbox.plugin("osvc-portmap").netns(netns).container(id).config(config);
    (previous.clone(), call.with("prevResult", previous))
}

#[test]
fn c44_c110_each_version_that_is_listed_works_and_the_result_goes_through() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let answer = sandbox.plugin("osvc-portmap").call("VERSION").result();
    assert_eq!(answer["supportedVersions"], json!(VERSIONS));
    for version in VERSIONS {
        let (previous, call) = published(&sandbox, &pod, version, "c1", 8080);
        let result = call.add();
        assert_eq!(result, previous, "{version}: nothing is added and nothing is lost");
        assert!(sandbox.ruleset().contains("tcp . 8080"), "{version}");
        call.del();
        assert!(sandbox.port_records().is_empty(), "{version}: {:?}", sandbox.port_records());
        bridge(&sandbox, &pod, one_line(version)).del();
    }
}

/// C70, C71, C76: whatever the configuration has become.
#[test]
fn c75_del_with_a_configuration_that_an_add_would_refuse() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let (_, call) = published(&sandbox, &pod, "1.1.0", "c1", 8080);
    call.add();
    call.del();
    let before = sandbox.leftovers();
    for (key, bad) in [
        ("runtimeConfig", json!(null)),
        ("runtimeConfig", json!({"portMappings": "x"})),
        ("runtimeConfig", json!({"portMappings": [{"hostPort": "x"}]})),
        ("args", json!({"cni": {"osvc.expose": 5}})),
        ("snat", json!("yes")),
        ("backend", json!("iptables")),
        ("allowFrom", json!(["banana"])),
        ("conditionsV4", json!(["-s", "192.0.2.0/24"])),
        ("prevResult", json!(null)),
        ("prevResult", json!("x")),
        ("prevResult", json!({"cniVersion": "0.1.0", "ips": 5})),
    ] {
        call.add();
        assert!(!sandbox.port_records().is_empty(), "the ADD is a real one");
        call.clone().with(key, bad.clone()).del();
        sandbox.leftovers().assert_same_as(&before, &format!("a DEL with {key} {bad}"));
    }
    for odd in [call.clone().no_netns(), call.clone().netns_path("/run/gone"), call.clone().netns_path("/etc/passwd")] {
        call.add();
        odd.del();
        sandbox.leftovers().assert_same_as(&before, "a DEL without the namespace");
    }
}

#[test]
fn c91_status_and_gc_know_no_attachment() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let (_, call) = published(&sandbox, &pod, "1.1.0", "c1", 8080);
    call.add();
    let before = sandbox.leftovers();
    for verb in ["STATUS", "GC"] {
        call.call(verb).done();
        let odd = call.clone().env("CNI_CONTAINERID", "_").env("CNI_IFNAME", "a/b").env("CNI_NETNS", "/nowhere");
        odd.call(verb).done();
        for version in ["0.4.0", "1.0.0"] {
            let (code, message) = call.clone().with("cniVersion", json!(version)).call(verb).error();
            assert_eq!(code, 1, "{version} has no {verb}: {message}");
        }
        sandbox.leftovers().assert_same_as(&before, verb);
    }
}

#[test]
fn c102_gc_withdraws_what_is_not_listed_and_not_alive_in_its_network_only() {
    for (valid, dead_stay) in [
        (json!([{"containerID": "dead", "ifname": "eth0"}]), true),
        (json!([{"containerID": "dead", "ifname": "eth1"}]), false),
        (json!([]), false),
        (json!(null), false),
    ] {
        let sandbox = Sandbox::new();
        let (alive, dead) = (sandbox.netns("alive"), sandbox.netns("dead"));
        let (_, call) = published(&sandbox, &alive, "1.1.0", "alive", 8081);
        call.add();
        published(&sandbox, &dead, "1.1.0", "dead", 8082).1.add();
        sandbox.delete_netns(&dead);
        sandbox.wait_for("the pair of the dead is gone", "[ $(ip -o link | grep -c ': ov') = 1 ]");
        let before = sandbox.leftovers();
        call.clone().with("name", json!("net2")).with(VALID, json!([])).call("GC").done();
        sandbox.leftovers().assert_same_as(&before, "GC of another network");
        for turn in 0..2 {
            call.clone().with(VALID, valid.clone()).call("GC").done();
            let ruleset = sandbox.ruleset();
            assert!(ruleset.contains("tcp . 8081"), "the living one keeps its port, turn {turn}, {valid}");
            assert_eq!(ruleset.contains("tcp . 8082"), dead_stay, "turn {turn}, {valid}");
        }
        if dead_stay {
            sandbox.leftovers().assert_same_as(&before, "GC with nothing to do");
        }
    }
}

#[test]
fn c80_check_names_what_is_gone_and_repairs_nothing() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let (previous, call) = published(&sandbox, &pod, "1.1.0", "c1", 8080);
    call.check_fails(&previous);
    for (what, damage) in [
        ("the mapping", "nft 'delete element ip osvc-cni-portmap any { tcp . 8080 }'"),
        ("masquerading", "nft flush set ip osvc-cni-portmap hairpin"),
        ("a rule", "nft flush chain ip osvc-cni-portmap output"),
        ("the table", "nft delete table ip osvc-cni-portmap"),
        ("localhost", "echo 0 > /proc/sys/net/ipv4/conf/obr_net1/route_localnet"),
        ("the record", "rm -rf /var/lib/cni/osvc/ports"),
    ] {
        call.add();
        call.check(&previous);
        sandbox.sh(damage).ok();
        for _ in 0..2 {
            let (code, message) = call.check_fails(&previous);
            assert!(code != 999 && message.contains("c1"), "{what}: {code} {message}");
        }
        call.add();
        call.check(&previous);
        call.del();
        call.check_fails(&previous);
    }
}
