//! The place in the chain: what comes in goes out, no ports are no work, any main plugin will do.

use integration::{Family, Sandbox, port};
use serde_json::{Value, json};

use crate::{DUAL, HOST4, STORE, everything, machine, machine_and_outside, net1, noted};

#[test]
fn without_ports_the_result_passes_and_nothing_is_touched() {
    let sandbox = machine();
    sandbox.nft("table ip filter { chain FORWARD { type filter hook forward priority 0; policy accept; }; }");
    let a = net1(&sandbox).container("a");
    let before = sandbox.leftovers();
    // Keys that we do not know, in an order that is not ours.
    let mut result = a.result.clone();
    result["zeta"] = json!({"b": [1, 2.5, null], "a": "ü"});
    result["dns"] = json!({"nameservers": ["10.9.0.1"], "domain": "x"});
    let text = result.to_string();
    for call in [
        a.portmap.clone(),
        a.ports(json!([])),
        a.ports(Value::Null),
        a.portmap.clone().with("runtimeConfig", json!({})),
        a.portmap.clone().with("runtimeConfig", Value::Null),
        a.portmap.clone().without("capabilities"),
        a.portmap.clone().with("args", json!({"cni": {"osvc.expose": []}})),
        a.portmap.clone().with("args", json!({"cni": {"osvc.expose": "443/tcp"}})),
        a.portmap.clone().with("snat", json!(false)).with("allowFrom", json!(["10.0.0.0/8"])),
    ] {
        let reply = call.clone().with("prevResult", result.clone()).call("ADD");
        let printed = reply.output.stdout.clone();
        assert_eq!(reply.result(), result);
        let compact = serde_json::from_str::<Value>(&printed).unwrap().to_string();
        assert_eq!(compact, text, "key by key, in the order in which they came");
        sandbox.leftovers().assert_same_as(&before, "an ADD without ports");
        call.call("DEL").done();
        sandbox.leftovers().assert_same_as(&before, "a DEL without ports");
    }
    assert!(!sandbox.exists(STORE), "no folder is made for nothing");
    assert!(!sandbox.ruleset().contains("osvc-cni-portmap"));
    assert_eq!(crate::route_localnet(&sandbox), "0");
    noted("no ports: ruleset and store untouched, byte for byte");
}

#[test]
fn no_ports_leave_the_ports_of_others_untouched() {
    let sandbox = machine();
    let network = net1(&sandbox);
    network.container("a").publish(json!([port(8080, 80, "tcp")]));
    let b = network.container("b");
    let before = everything(&sandbox);
    b.publish(json!([]));
    assert_eq!(everything(&sandbox), before);
    b.withdraw();
    assert_eq!(everything(&sandbox), before);
}

/// As the reference says it.
#[test]
fn without_a_plugin_before_it_is_refused() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    let before = everything(&sandbox);
    for call in [a.ports(json!([port(8080, 80, "tcp")])), a.portmap.clone()] {
        let (code, message) = call.without("prevResult").add_fails();
        assert_eq!(code, 7, "{message}");
        assert!(message.contains("must be called as chained plugin"), "{message}");
    }
    assert_eq!(everything(&sandbox), before);
}

#[test]
fn the_result_keeps_the_version_of_the_configuration() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let mut result = a.result.clone();
        result["cniVersion"] = json!(version);
        if version.starts_with('0') {
            for ip in result["ips"].as_array_mut().unwrap() {
                ip["version"] = json!(if ip["address"].as_str().unwrap().contains(':') { "6" } else { "4" });
            }
        }
        let call = a.ports(json!([port(8080, 80, "tcp")])).with("cniVersion", json!(version));
        let answer = call.with("prevResult", result.clone()).add();
        assert_eq!(answer, result, "{version}");
    }
}

/// The reference's bridge in front, and none of its results' addresses but the container's is taken.
#[test]
fn behind_another_main_plugin_it_works_as_well() {
    let (sandbox, outside) = machine_and_outside();
    let reference = sandbox.network_of(Family::Reference, "net1", &DUAL).container("a");
    let portmap = |name: &str| {
        let mut call = net1(&sandbox).portmap().container("a").netns(&reference.netns).named("a");
        call = call.with("runtimeConfig", json!({"portMappings": [port(8080, 80, name)]}));
        call.with("prevResult", reference.result.clone())
    };
    assert_eq!(portmap("tcp").add(), reference.result);
    sandbox.serve(Some(&reference.netns), "tcp", "[::]:80", "a");
    assert_eq!(sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:8080")), "a 192.0.2.1");
    assert_eq!(sandbox.ask(None, "tcp", "127.0.0.1:8080"), "a 10.9.0.1");
    assert_eq!(sandbox.ask(Some(&reference.netns), "tcp", &format!("{HOST4}:8080")), "a 10.9.0.1");
    noted("osvc-portmap behind the reference bridge");
}

/// Which addresses of a result are the container's.
#[test]
fn the_container_s_addresses_are_those_of_its_interface() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    let path = &a.netns.path;
    let interfaces = json!([
        {"name": "obr_net1"}, {"name": "eth0"}, {"name": "eth9", "sandbox": path}, {"name": "eth0", "sandbox": path}
    ]);
    let result = |ips: Value| json!({"cniVersion": "1.0.0", "interfaces": interfaces, "ips": ips});
    let add = |ips: Value| a.ports(json!([port(8080, 80, "tcp")])).with("prevResult", result(ips)).call("ADD");
    let leads = |sandbox: &Sandbox| crate::leads_to(sandbox, "ip", 8080);
    add(json!([
        {"address": "10.9.0.99/24", "interface": 0}, {"address": "10.9.0.98/24", "interface": 1},
        {"address": "10.9.0.97/24", "interface": 2}, {"address": "10.9.0.7/24", "interface": 3},
        {"address": "10.9.0.8/24", "interface": 3}
    ]))
    .result();
    assert_eq!(leads(&sandbox).as_deref(), Some("10.9.0.7 . 80"));
    a.withdraw();
    add(json!([{"address": "10.9.0.7/24"}])).result();
    assert_eq!(leads(&sandbox).as_deref(), Some("10.9.0.7 . 80"), "without an index it qualifies");
    a.withdraw();
    let before = everything(&sandbox);
    for ips in [json!([]), Value::Null, json!([{"address": "10.9.0.99/24", "interface": 0}])] {
        let (code, message) = add(ips.clone()).error();
        assert_eq!(code, 7, "{ips}: {message}");
        assert!(message.contains("address"), "{ips}: {message}");
        assert_eq!(everything(&sandbox), before, "{ips}");
    }
    for (index, words) in [(4, [" 4", " 4"]), (400, ["400", " 4"]), (-1, ["-1", "interface"])] {
        let (_, message) = add(json!([{"address": "10.9.0.7/24", "interface": index}])).error();
        for word in words {
            assert!(message.contains(word), "the index and how many there are: {message}");
        }
        assert_eq!(everything(&sandbox), before, "{index}");
    }
}
