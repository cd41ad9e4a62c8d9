//! LC and A12: libcni, by cnitool, around osvc-bridge and a scripted plugin chained behind it.

mod cache;
mod order;

use integration::{Family, Output, Sandbox, addresses_of, report};
use serde_json::{Value, json};

use crate::scripted::{Recorded, Scripted, order, recorded};

const CACHE: &str = "/var/lib/cni/results";
const CONFLIST: &str = "/etc/cni/net.d/10-net1.conflist";

/// A machine with cnitool and a network of osvc-bridge and these chained plugins.
fn machine(version: &str, chained: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    assert!(sandbox.exists("/opt/tools/cnitool"), "cnitool is missing: run `make cnitool`");
    let mut plugins = vec![json!({"type": "osvc-bridge", "network": "10.9.0.0/24"})];
    plugins.extend(chained.iter().map(|name| json!({"type": name})));
    conflist(&sandbox, &json!({"cniVersion": version, "name": "net1", "plugins": plugins}));
    report::ran("cnitool 1.3.0", "cache, order, failures, runtimeConfig and environment of libcni (A12, LC)");
    sandbox
}

fn conflist(sandbox: &Sandbox, conflist: &Value) {
    sandbox.write(CONFLIST, &conflist.to_string());
}

fn cnitool(sandbox: &Sandbox, words: &str) -> Output {
    sandbox.sh(&format!("CNI_PATH=/opt/cni/bin cnitool {words}"))
}

fn add(sandbox: &Sandbox) -> Value {
    let result = serde_json::from_str(&cnitool(sandbox, "add net1 /run/netns/pod").ok()).unwrap();
    assert!(!addresses_of(&result).is_empty() && held(sandbox) == 1, "ours has attached the container: {result}");
    result
}

fn del(sandbox: &Sandbox) {
    cnitool(sandbox, "del net1 /run/netns/pod").ok();
}

fn held(sandbox: &Sandbox) -> usize {
    sandbox.held(Family::Osvc, "net1").len()
}

fn verb<'a>(calls: &'a [Recorded], what: &str) -> &'a Recorded {
    calls.iter().find(|call| call.what == what).unwrap_or_else(|| panic!("no {what} among {calls:?}"))
}

#[test]
fn c136_the_runtimes_environment_comes_through_ours_to_the_delegate() {
    let sandbox = machine("1.1.0", &[]);
    sandbox.netns("pod");
    Scripted::ipam(&sandbox, "script");
    let plugin = json!({"type": "osvc-bridge", "bridge": "br9", "isGateway": true, "ipam": {"type": "script"}});
    conflist(&sandbox, &json!({"cniVersion": "1.1.0", "name": "net1", "plugins": [plugin]}));
    let runtime = "FOO='b a=r' TRACEPARENT=00-0af7-b7ad-01 CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAME=web'";
    sandbox.sh(&format!("{runtime} CNI_PATH=/opt/cni/bin:/opt/more cnitool add net1 /run/netns/pod")).ok();
    let calls = recorded(&sandbox);
    let call = verb(&calls, "script ADD");
    for (name, value) in [
        ("FOO", "b a=r"),
        ("TRACEPARENT", "00-0af7-b7ad-01"),
        ("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAME=web"),
        ("CNI_NETNS", "/run/netns/pod"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_PATH", "/opt/cni/bin:/opt/more"),
    ] {
        assert_eq!(call.var(name), Some(value), "{name} is the runtime's");
    }
    assert!(call.var("CNI_CONTAINERID").is_some_and(|id| id.starts_with("cnitool-")), "and the container is");
}

#[test]
fn c137_lc9_check_is_not_called_when_disabled_and_unknown_before_0_4_0() {
    for disabled in [json!(true), json!("true"), json!(false), json!("false")] {
        let sandbox = machine("1.0.0", &["last"]);
        sandbox.netns("pod");
        Scripted::new(&sandbox, "last");
        let mut list: Value = serde_json::from_str(&sandbox.read(CONFLIST)).unwrap();
        list["disableCheck"] = disabled.clone();
        conflist(&sandbox, &list);
        add(&sandbox);
        order(&sandbox);
        sandbox.sh("ip -n pod addr flush dev eth0").ok();
        let check = cnitool(&sandbox, "check net1 /run/netns/pod");
        let is_called = disabled == json!(false) || disabled == json!("false");
        assert_eq!(check.rc != 0, is_called, "disableCheck {disabled}, and the address is gone: {check}");
        assert!(order(&sandbox).is_empty(), "with or without, the plugin behind ours is not reached");
    }
    let sandbox = machine("0.3.1", &[]);
    sandbox.netns("pod");
    add(&sandbox);
    let message = cnitool(&sandbox, "check net1 /run/netns/pod").failed();
    assert!(message.contains("does not support the CHECK command"), "{message}");
}

#[test]
fn c137_lc14_a_fragment_in_the_networks_folder_is_appended_to_ours() {
    let sandbox = machine("1.1.0", &[]);
    let pod = sandbox.netns("pod");
    Scripted::new(&sandbox, "fragment");
    sandbox.write("/etc/cni/net.d/net1/10-fragment.conf", r#"{"type": "fragment"}"#);
    let mut list: Value = serde_json::from_str(&sandbox.read(CONFLIST)).unwrap();
    for (alone, expected) in [(json!(false), &["fragment ADD", "fragment DEL"][..]), (json!("true"), &[])] {
        list["loadOnlyInlinedPlugins"] = alone.clone();
        conflist(&sandbox, &list);
        let result = add(&sandbox);
        assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses_of(&result), "ours works, {alone}");
        del(&sandbox);
        assert_eq!(order(&sandbox), expected, "loadOnlyInlinedPlugins {alone}");
    }
}

/// C142: a file with one plugin and no list, as before 1.0.0.
#[test]
fn lc14_a_file_with_ours_alone_works() {
    let sandbox = machine("1.1.0", &[]);
    let pod = sandbox.netns("pod");
    sandbox.sh(&format!("rm {CONFLIST}")).ok();
    let conf = json!({"cniVersion": "0.4.0", "name": "net1", "type": "osvc-bridge", "network": "10.9.0.0/24"});
    sandbox.write("/etc/cni/net.d/10-net1.conf", &conf.to_string());
    let result = add(&sandbox);
    assert_eq!(result["cniVersion"], "0.4.0", "in its version: {result}");
    assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses_of(&result), "the container is attached");
    cnitool(&sandbox, "check net1 /run/netns/pod").ok();
    del(&sandbox);
    assert_eq!(held(&sandbox), 0, "and detached");
}

#[test]
fn lc1_only_capabilities_that_are_declared_and_given_reach_a_plugin() {
    let sandbox = machine("1.1.0", &[]);
    let pod = sandbox.netns("pod");
    Scripted::new(&sandbox, "last");
    let add = |capabilities: Value, given: &str| {
        let ours = json!({"type": "osvc-bridge", "network": "10.9.0.0/24", "capabilities": capabilities});
        let last = json!({"type": "last", "capabilities": {"portMappings": true, "bandwidth": true}});
        conflist(&sandbox, &json!({"cniVersion": "1.1.0", "name": "net1", "plugins": [ours, last]}));
        let command = format!("CAP_ARGS='{given}' CNI_PATH=/opt/cni/bin cnitool add net1 /run/netns/pod");
        sandbox.sh(&command).ok();
        let found = (sandbox.addresses_in(&pod, "eth0"), sandbox.link_in(&pod, "eth0")["address"].clone());
        let calls = recorded(&sandbox);
        let config = verb(&calls, "last ADD").stdin["runtimeConfig"].clone();
        del(&sandbox);
        order(&sandbox);
        (found, config)
    };
    let ((addresses, mac), _) = add(json!({"ips": true, "mac": true}), r#"{"mac":"02:11:22:33:44:66"}"#);
    assert_ne!(addresses, ["10.9.0.77/24"], "declared, and not given: the workload's own address");
    assert_eq!(mac, "02:11:22:33:44:66", "declared and given");
    let given = r#"{"ips":["10.9.0.77"],"mac":"02:11:22:33:44:55","portMappings":[{"hostPort":80}]}"#;
    let ((addresses, mac), config) = add(json!({"ips": true, "mac": true}), given);
    assert_eq!((addresses, mac), (vec!["10.9.0.77/24".to_owned()], json!("02:11:22:33:44:55")), "both are declared");
    assert_eq!(config, json!({"portMappings": [{"hostPort": 80}]}), "the other plugin gets what it declared");
    let ((addresses, mac), _) = add(json!({"ips": true, "mac": false}), given);
    assert_eq!(addresses, ["10.9.0.77/24"], "declared");
    assert_ne!(mac, "02:11:22:33:44:55", "declared as false");
}

#[test]
fn lc3_our_errors_reach_the_user_and_a_missing_plugin_of_the_chain_undoes_nothing_of_ours() {
    let sandbox = machine("1.1.0", &["not-installed"]);
    let pod = sandbox.netns("pod");
    sandbox.ip("-n pod link add eth0 type veth peer name other");
    let message = cnitool(&sandbox, "add net1 /run/netns/pod").failed();
    assert!(message.contains("eth0") && message.contains("exists"), "our text, whole: {message}");
    sandbox.ip("-n pod link del eth0");
    let message = cnitool(&sandbox, "add net1 /run/netns/pod").failed();
    assert!(message.contains("failed to find plugin \"not-installed\""), "{message}");
    assert_eq!(held(&sandbox), 1, "ours was attached before");
    conflist(
        &sandbox,
        &json!({"cniVersion": "1.1.0", "name": "net1", "plugins": [{"type": "osvc-bridge", "network": "10.9.0.0/24"}]}),
    );
    del(&sandbox);
    assert_eq!(held(&sandbox), 0, "DEL by the mended conflist detaches it");
    assert_eq!(sandbox.links_in(&pod), ["lo".to_owned()].into(), "also in the container");
}
