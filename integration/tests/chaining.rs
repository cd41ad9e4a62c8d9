//! The reference's chained plugins behind osvc-bridge, before osvc-portmap and after it: each does what it is for, CHECK
//! of the whole chain passes (but for Debian's bandwidth plugin, which fails its own), and DEL leaves nothing.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::{Family, Output, Sandbox, addresses_of, report};
use serde_json::{Value, json};

/// What the chained plugins get.
fn chained(kind: &str) -> Value {
    match kind {
        "firewall" => json!({"type": "firewall", "backend": "iptables"}),
        "tuning" => {
            json!({"type": "tuning", "sysctl": {"net.ipv4.conf.eth0.arp_filter": "1"}, "mtu": 1300, "mac": "02:11:22:33:44:55"})
        }
        "bandwidth" => json!({"type": "bandwidth", "ingressRate": 80_000_000, "ingressBurst": 80_000_000}),
        "sbr" => json!({"type": "sbr"}),
        "osvc-portmap" => json!({"type": "osvc-portmap", "capabilities": {"portMappings": true}}),
        other => panic!("no configuration of {other}"),
    }
}

fn cnitool(sandbox: &Sandbox, words: &str) -> Output {
    let ports = json!({"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]});
    sandbox.sh(&format!("CNI_PATH=/opt/cni/bin CAP_ARGS='{ports}' cnitool {words}"))
}

fn chain(bridge: &Value, kinds: &[&str]) {
    let sandbox = Sandbox::with_tools(&[env!("CARGO_BIN_EXE_talk")]);
    let outside = sandbox.outside();
    sandbox.sh("iptables -P FORWARD DROP").ok();
    let plugins: Vec<Value> = std::iter::once(bridge.clone()).chain(kinds.iter().map(|kind| chained(kind))).collect();
    let write = |plugins: &[&Value]| {
        let conflist = json!({"cniVersion": "0.4.0", "name": "net1", "plugins": plugins});
        sandbox.write("/etc/cni/net.d/10-net1.conflist", &conflist.to_string());
    };
    write(&plugins.iter().collect::<Vec<_>>());
    let pod = sandbox.netns("pod");
    let result: Value = serde_json::from_str(&cnitool(&sandbox, "add net1 /run/netns/pod").ok()).unwrap();
    let addresses = addresses_of(&result);
    let address = addresses[0].split('/').next().unwrap();
    assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses, "{kinds:?}");

    let has = |script: &str| sandbox.sh(script).rc == 0;
    let effects = |kind: &str| match kind {
        "firewall" => has(&format!("iptables -S CNI-FORWARD | grep -q 'd {address}/32'")),
        "tuning" => {
            let link = sandbox.ip_json("-n pod link show dev eth0").remove(0);
            link["mtu"] == 1300
                && link["address"] == "02:11:22:33:44:55"
                && has("ip netns exec pod cat /proc/sys/net/ipv4/conf/eth0/arp_filter | grep -q 1")
        }
        "bandwidth" => has("tc qdisc show | grep -q '^qdisc tbf.* dev ov'"),
        "sbr" => {
            has(&format!("ip -n pod rule | grep -q 'from {address} lookup 100'"))
                && has("ip -n pod route show table 100 | grep -q default")
        }
        _ => true,
    };
    for kind in kinds {
        assert!(effects(kind), "{kind} has its effect in {kinds:?}: {result}");
    }
    sandbox.serve(Some(&pod), "tcp", "[::]:80", "pod");
    if kinds.contains(&"osvc-portmap") {
        assert_eq!(sandbox.ask(Some(&outside), "tcp", "192.0.2.2:8080"), "pod 192.0.2.1", "{kinds:?}");
    }
    // sbr takes the default route away from packets that have no source yet.
    let out = sandbox.run_in(&pod, &["ping", "-n", "-c", "1", "-W", "2", "-I", address, "198.51.100.1"]);
    assert!(out.rc == 0, "{kinds:?}: the world outside, past a policy of drop: {out}");
    sandbox.end_server("pod");
    // Debian's bandwidth plugin fails its own CHECK right after ADD: the others, without it.
    let others: Vec<&Value> = plugins.iter().filter(|plugin| plugin["type"] != "bandwidth").collect();
    write(&others);
    cnitool(&sandbox, "check net1 /run/netns/pod").ok();
    write(&plugins.iter().collect::<Vec<_>>());
    cnitool(&sandbox, "del net1 /run/netns/pod").ok();
    // Debian's sbr plugin fails without the interface, and so would every second DEL.
    if !kinds.contains(&"sbr") {
        cnitool(&sandbox, "del net1 /run/netns/pod").ok();
    }
    assert!(!sandbox.links_in(&pod).contains("eth0") && sandbox.held(Family::Osvc, "net1").is_empty(), "{kinds:?}");
    let left = sandbox.links();
    assert!(!left.iter().any(|name| name.starts_with("ov") || name.starts_with("bwp")), "{kinds:?}: {left:?}");
    assert!(!has(&format!("iptables-save | grep -q '{address}'")), "{kinds:?}");
    assert!(!has("nft list ruleset | grep -q ' 8080 '"), "{kinds:?}");
    report::ran("cnitool 1.3.0", &format!("osvc-bridge before {}", kinds.join(", ")));
}

fn one_line() -> Value {
    json!({"type": "osvc-bridge", "network": "10.9.0.0/24"})
}

fn in_full() -> Value {
    json!({"type": "osvc-bridge", "bridge": "cni9", "isDefaultGateway": true, "ipMasq": true, "hairpinMode": true,
        "ipam": {"type": "osvc-ipam", "subnet": "10.9.0.0/24"}})
}

#[test]
fn each_alone() {
    for kind in ["firewall", "tuning", "bandwidth", "sbr"] {
        chain(&one_line(), &[kind]);
    }
}

#[test]
fn all_before_osvc_portmap() {
    chain(&one_line(), &["firewall", "tuning", "bandwidth", "sbr", "osvc-portmap"]);
    chain(&in_full(), &["tuning", "firewall", "sbr", "osvc-portmap"]);
}

#[test]
fn all_after_osvc_portmap() {
    chain(&one_line(), &["osvc-portmap", "sbr", "bandwidth", "tuning", "firewall"]);
    chain(&in_full(), &["osvc-portmap", "firewall", "tuning", "sbr"]);
}

/// A plugin behind ours that fails: what ours made goes with the DEL that the runtime then calls.
#[test]
fn a_chained_plugin_that_fails_leaves_nothing_after_del() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    let wrong = json!({"type": "tuning", "sysctl": {"net.ipv4.no.such": "1"}});
    let conflist =
        json!({"cniVersion": "1.0.0", "name": "net1", "plugins": [one_line(), chained("osvc-portmap"), wrong]});
    sandbox.write("/etc/cni/net.d/10-net1.conflist", &conflist.to_string());
    cnitool(&sandbox, "add net1 /run/netns/pod").failed();
    cnitool(&sandbox, "del net1 /run/netns/pod").ok();
    assert!(sandbox.held(Family::Osvc, "net1").is_empty());
    assert!(!sandbox.links().iter().any(|name| name.starts_with("ov")));
    assert!(!sandbox.ruleset().contains("8080"));
}
