//! The plugins under cnitool, the CNI project's own runtime (libcni 1.3): specification 1.1.0 with all its verbs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::{Family, Output, Sandbox, addresses_of, report};
use serde_json::{Value, json};

fn machine(conflist: &Value) -> Sandbox {
    let sandbox = Sandbox::new();
    assert!(sandbox.exists("/opt/tools/cnitool"), "cnitool is missing: run `make cnitool`");
    sandbox.write("/etc/cni/net.d/10-net1.conflist", &conflist.to_string());
    sandbox
}

fn conflist(version: &str, plugin: Value) -> Value {
    json!({"cniVersion": version, "name": "net1", "plugins": [plugin]})
}

fn one_line() -> Value {
    json!({"type": "osvc-bridge", "network": ["10.22.0.0/24", "fd22::/64"]})
}

fn cnitool(sandbox: &Sandbox, words: &str) -> Output {
    sandbox.sh(&format!("CNI_PATH=/opt/cni/bin cnitool {words}"))
}

fn noted(what: &str) {
    report::ran("cnitool 1.3.0", what);
}

#[test]
fn add_check_and_del_in_every_version_of_libcni() {
    for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let sandbox = machine(&conflist(version, one_line()));
        let pod = sandbox.netns("pod");
        let result: Value = serde_json::from_str(&cnitool(&sandbox, "add net1 /run/netns/pod").ok()).unwrap();
        assert_eq!(result["cniVersion"], version, "p3: {result}");
        assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses_of(&result), "{version}");
        assert_eq!(result["interfaces"][2]["sandbox"], "/run/netns/pod", "p3: {result}");
        assert!(result["interfaces"].as_array().unwrap().iter().all(|i| i["mac"].is_string()), "p3: {result}");
        assert!(result["ips"].as_array().unwrap().iter().all(|ip| ip["interface"] == 2), "p3: {result}");
        if version >= "0.4.0" {
            cnitool(&sandbox, "check net1 /run/netns/pod").ok();
        }
        cnitool(&sandbox, "del net1 /run/netns/pod").ok();
        cnitool(&sandbox, "del net1 /run/netns/pod").ok();
        assert!(sandbox.held(Family::Osvc, "net1").is_empty(), "{version}");
        assert!(!sandbox.links_in(&pod).contains("eth0"), "{version}");
    }
    noted("ADD, CHECK, DEL in 0.3.0, 0.3.1, 0.4.0, 1.0.0 and 1.1.0, dual stack");
}

#[test]
fn a_named_netns_is_a_workload_and_keeps_its_address() {
    let sandbox = machine(&conflist("1.1.0", one_line()));
    let add = || -> Vec<String> {
        sandbox.netns("pod");
        let result = cnitool(&sandbox, "add net1 /run/netns/pod").ok();
        addresses_of(&serde_json::from_str(&result).unwrap())
    };
    let first = add();
    cnitool(&sandbox, "del net1 /run/netns/pod").ok();
    sandbox.ip("netns del pod");
    assert_eq!(add(), first, "after DEL");
    sandbox.ip("netns del pod");
    sandbox.sh("rm -rf /var/lib/cni/results").ok();
    assert_eq!(add(), first, "p11: after a DEL that never came");
    noted("same netns path, same address");
}

#[test]
fn p12_check_finds_what_is_gone_and_repairs_nothing() {
    for (what, damage) in [
        ("the container's address", "ip -n pod addr flush dev eth0 scope global"),
        ("the container's default route", "ip -n pod route del default"),
        ("the gateway address", "ip addr flush dev obr_net1 scope global"),
        ("the bridge being up", "ip link set obr_net1 down"),
        ("the rules", "nft flush ruleset"),
        ("the reservation", "rm -rf /var/lib/cni/osvc/ipam/net1"),
        (
            "the host end's bridge",
            "for l in $(ls -d /proc/sys/net/ipv4/conf/ov*); do ip link set $(basename $l) nomaster; done",
        ),
    ] {
        let sandbox = machine(&conflist("1.1.0", one_line()));
        sandbox.netns("pod");
        cnitool(&sandbox, "add net1 /run/netns/pod").ok();
        cnitool(&sandbox, "check net1 /run/netns/pod").ok();
        sandbox.sh(damage).ok();
        cnitool(&sandbox, "check net1 /run/netns/pod").failed();
        let again = cnitool(&sandbox, "check net1 /run/netns/pod");
        assert!(again.rc != 0, "CHECK repaired {what}");
        cnitool(&sandbox, "del net1 /run/netns/pod").ok();
        assert!(sandbox.held(Family::Osvc, "net1").is_empty(), "DEL after {what} was lost frees the address");
    }
    noted("CHECK finds each thing that is gone");
}

#[test]
fn p13_status_fails_only_when_an_add_would() {
    let plugin = |ipam: Value| json!({"type": "osvc-bridge", "isGateway": true, "ipam": ipam});
    let range =
        json!({"type": "osvc-ipam", "subnet": "10.22.0.0/24", "rangeStart": "10.22.0.9", "rangeEnd": "10.22.0.9"});
    let sandbox = machine(&conflist("1.1.0", plugin(range.clone())));
    sandbox.netns("pod");
    cnitool(&sandbox, "status net1 x").ok();
    cnitool(&sandbox, "add net1 /run/netns/pod").ok();
    let message = cnitool(&sandbox, "status net1 x").failed();
    assert!(message.contains("no IP addresses available"), "{message}");
    let mut quiet = range;
    quiet["statusWhenFull"] = json!(false);
    sandbox.write("/etc/cni/net.d/10-net1.conflist", &conflist("1.1.0", plugin(quiet)).to_string());
    cnitool(&sandbox, "status net1 x").ok();
    noted("STATUS with a full range");
}

/// p14: `cnitool gc` passes an empty list only when its cache says so; libcni's GC also calls DEL for what is not listed.
#[test]
fn p14_gc_frees_what_is_provably_dead_and_keeps_what_lives() {
    let sandbox = machine(&conflist("1.1.0", one_line()));
    for name in ["alive", "dead"] {
        sandbox.netns(name);
        cnitool(&sandbox, &format!("add net1 /run/netns/{name}")).ok();
    }
    sandbox.ip("netns del dead");
    sandbox.sh("rm -rf /var/lib/cni/results").ok();
    cnitool(&sandbox, "gc net1 x").ok();
    let held = sandbox.held(Family::Osvc, "net1");
    assert_eq!(held.len(), 2, "one container's two addresses: {held:?}");
    cnitool(&sandbox, "check net1 /run/netns/alive");
    noted("GC");
}

#[test]
fn the_reference_bridge_takes_our_ipam_plugin_and_ours_takes_host_local() {
    let subnet = json!({"subnet": "10.1.2.0/24"});
    for (bridge, ipam) in [("bridge", "osvc-ipam"), ("osvc-bridge", "host-local"), ("osvc-bridge", "osvc-ipam")] {
        let mut keys = subnet.clone();
        keys["type"] = json!(ipam);
        let plugin = json!({"type": bridge, "bridge": "cni9", "isGateway": true, "ipam": keys});
        let sandbox = machine(&conflist("1.0.0", plugin));
        let pod = sandbox.netns("pod");
        let result: Value = serde_json::from_str(&cnitool(&sandbox, "add net1 /run/netns/pod").ok()).unwrap();
        assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses_of(&result), "{bridge} with {ipam}");
        cnitool(&sandbox, "check net1 /run/netns/pod").ok();
        cnitool(&sandbox, "del net1 /run/netns/pod").ok();
        let family = if ipam == "host-local" { Family::Reference } else { Family::Osvc };
        assert!(sandbox.held(family, "net1").is_empty(), "{bridge} with {ipam}");
    }
    noted("reference bridge with osvc-ipam, osvc-bridge with host-local");
}

#[test]
fn conventions_arguments_and_capabilities_reach_the_plugins() {
    let mut plugin = one_line();
    plugin["capabilities"] = json!({"ips": true, "mac": true});
    let sandbox = machine(&conflist("1.0.0", plugin));
    let pod = sandbox.netns("pod");
    let caps = r#"CAP_ARGS='{"ips":["10.22.0.77/24","10.22.0.77","fd22::77"],"mac":"02:11:22:33:44:55"}'"#;
    let add = format!(
        "{caps} CNI_ARGS='IgnoreUnknown=1;OSVC_KEY=prod/web' CNI_PATH=/opt/cni/bin cnitool add net1 /run/netns/pod"
    );
    sandbox.sh(&add).ok();
    assert_eq!(sandbox.addresses_in(&pod, "eth0"), ["10.22.0.77/24", "fd22::77/64"]);
    assert_eq!(sandbox.link_in(&pod, "eth0")["address"], "02:11:22:33:44:55");
    let record = sandbox.record("/var/lib/cni/osvc/ipam/net1", "10.22.0.77");
    assert_eq!(record["key"], json!({"source": "osvc", "text": "prod/web"}), "{record}");
    noted("capability ips and mac, CNI_ARGS");
}

/// What containerd and nerdctl pass on: go-cni's spelling.
const PORTS: &str = r#"{"portMappings":[{"HostPort":8080,"ContainerPort":80,"Protocol":"tcp","HostIP":""},
    {"HostPort":5353,"ContainerPort":53,"Protocol":"udp","HostIP":"127.0.0.1"}]}"#;

fn with_ports(version: &str, keys: Value) -> Value {
    let mut portmap = json!({"type": "osvc-portmap", "capabilities": {"portMappings": true}});
    for (key, value) in keys.as_object().unwrap() {
        portmap[key] = value.clone();
    }
    json!({"cniVersion": version, "name": "net1", "plugins": [one_line(), portmap]})
}

fn with_caps(sandbox: &Sandbox, caps: &str, words: &str) -> Output {
    sandbox.sh(&format!("CAP_ARGS='{caps}' CNI_PATH=/opt/cni/bin cnitool {words}"))
}

#[test]
fn ports_as_containerd_and_nerdctl_pass_them() {
    for version in ["0.4.0", "1.0.0", "1.1.0"] {
        let sandbox = machine(&with_ports(version, json!({})));
        let outside = sandbox.outside();
        let pod = sandbox.netns("pod");
        let server = sandbox.answer(&pod.path, 80, "pod");
        let udp = sandbox.answer_udp(&pod.path, 53, "pod");
        let blank = with_caps(&sandbox, PORTS, "check net1 /run/netns/pod");
        assert!(blank.rc != 0, "{version}: nothing is there to be checked: {blank}");
        let result = with_caps(&sandbox, PORTS, "add net1 /run/netns/pod").ok();
        let result: Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["cniVersion"], version);
        assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses_of(&result), "{version}: the bridge's result");
        for to in ["192.0.2.2:8080", "[2001:db8:ffff::2]:8080"] {
            let answer =
                sandbox.connect_to(Some(&outside.path), to).unwrap_or_else(|| panic!("{version}: {to} is silent"));
            assert_eq!(answer.server, "pod", "{version}: {to}");
        }
        assert!(sandbox.datagrams(None, "127.0.0.1:5353").ask().is_some(), "{version}: HostIP is heeded");
        assert!(
            sandbox.datagrams(Some(&outside.path), "192.0.2.2:5353").ask().is_none(),
            "{version}: HostIP is heeded"
        );
        with_caps(&sandbox, PORTS, "check net1 /run/netns/pod").ok();
        if version == "1.1.0" {
            cnitool(&sandbox, "status net1 x").ok();
        }
        sandbox.sh("nft 'delete element ip6 osvc-cni-portmap any { tcp . 8080 }'").ok();
        let message = with_caps(&sandbox, PORTS, "check net1 /run/netns/pod").failed();
        assert!(message.contains("8080"), "{version}: the missing mapping is named: {message}");
        // The cache of libcni has the ports, or it is lost with everything else: DEL needs nothing.
        if version != "0.4.0" {
            sandbox.sh("rm -rf /var/lib/cni/results").ok();
        }
        cnitool(&sandbox, "del net1 /run/netns/pod").ok();
        cnitool(&sandbox, "del net1 /run/netns/pod").ok();
        assert_eq!(sandbox.port_records(), [].into(), "{version}: records after DEL");
        let (tcp, udp_answer) =
            (sandbox.connect_to(None, "127.0.0.1:8080"), sandbox.datagrams(None, "127.0.0.1:5353").ask());
        assert_eq!((tcp, udp_answer), (None, None), "{version}: nothing answers after DEL");
        drop((server, udp));
    }
    noted("HostPort, ContainerPort, Protocol, HostIP: ADD, CHECK, DEL in 0.4.0, 1.0.0, 1.1.0, STATUS in 1.1.0");
}

#[test]
fn gc_takes_the_ports_of_the_dead_and_leaves_the_living_s() {
    let sandbox = machine(&with_ports("1.1.0", json!({})));
    let caps = |port: u16| format!(r#"{{"portMappings":[{{"HostPort":{port},"ContainerPort":80,"Protocol":"tcp"}}]}}"#);
    let living = sandbox.netns("alive");
    let server = sandbox.answer(&living.path, 80, "alive");
    sandbox.netns("dead");
    for (name, port) in [("alive", 8081), ("dead", 8082)] {
        with_caps(&sandbox, &caps(port), &format!("add net1 /run/netns/{name}")).ok();
    }
    sandbox.ip("netns del dead");
    sandbox.wait_for("the pair of the dead is gone", "[ $(ip -o link | grep -c ': ov') = 1 ]");
    sandbox.sh("rm -rf /var/lib/cni/results").ok();
    cnitool(&sandbox, "gc net1 x").ok();
    let left: Vec<String> = sandbox.port_records().into_iter().collect();
    assert!(left.iter().any(|name| name.contains("tcp-8081")), "{left:?}");
    assert!(!left.iter().any(|name| name.contains("tcp-8082")), "{left:?}");
    let ruleset = sandbox.ruleset();
    assert!(ruleset.contains("tcp . 8081") && !ruleset.contains("tcp . 8082"), "{ruleset}");
    assert_eq!(sandbox.connect_to(None, "127.0.0.1:8081").expect("the living one answers").server, "alive");
    drop(server);
    noted("GC of host ports");
}

#[test]
fn status_fails_when_ports_could_not_be_published() {
    let sandbox = machine(&with_ports("1.1.0", json!({})));
    cnitool(&sandbox, "status net1 x").ok();
    for keys in [json!({"backend": "iptables"}), json!({"allowFrom": ["banana"]}), json!({"markMasqBit": 32})] {
        sandbox.write("/etc/cni/net.d/10-net1.conflist", &with_ports("1.1.0", keys.clone()).to_string());
        let name = keys.as_object().unwrap().keys().next().unwrap().clone();
        let message = cnitool(&sandbox, "status net1 x").failed();
        assert!(message.contains(&name) || message.contains("MasqMarkBit"), "{name}: {message}");
    }
    sandbox.write("/etc/cni/net.d/10-net1.conflist", &with_ports("1.1.0", json!({})).to_string());
    sandbox.sh("mount --bind /var/lib/cni /var/lib/cni && mount -o remount,bind,ro /var/lib/cni").ok();
    let message = cnitool(&sandbox, "status net1 x").failed();
    assert!(message.contains("/var/lib/cni"), "{message}");
    noted("STATUS of osvc-portmap");
}

/// Every conflist that the repository ships is loaded and run as it is.
#[test]
fn every_example_works() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../conf-examples");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "conflist") {
            continue;
        }
        if path.ends_with("vlan.conflist") {
            // Run in the VM (vm/vlan.rs): this kernel may lack VLAN filtering.
            continue;
        }
        let conflist: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let name = conflist["name"].as_str().unwrap();
        let sandbox = machine(&conflist);
        sandbox.outside();
        let pod = sandbox.netns("pod");
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let output = cnitool(&sandbox, &format!("add {name} /run/netns/pod"));
        assert!(output.rc == 0, "{file}: {output}");
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses_of(&result), "{file}");
        cnitool(&sandbox, &format!("check {name} /run/netns/pod")).ok();
        cnitool(&sandbox, &format!("del {name} /run/netns/pod")).ok();
        assert!(!sandbox.links_in(&pod).contains("eth0"), "{file}");
        names.push(file);
    }
    assert!(!names.is_empty(), "examples in {folder}");
    names.sort();
    noted(&format!("examples {}", names.join(", ")));
}
