//! VLAN filtering, which the running kernel may lack: BR10–BR13, as state of the bridge and as traffic.

use std::collections::BTreeSet;
use std::time::Duration;

use integration::{Netns, Plugin, Sandbox, Vm, addresses_of, report};
use serde_json::{Value, json};

/// The reference plugin.
const REFERENCE: &str = "/usr/lib/cni/bridge";
/// What gives its containers their addresses.
const HOST_LOCAL: &str = "/usr/lib/cni/host-local";

/// iproute2's: the VM's path has the plugin of that name first.
const BRIDGE: &str = "/usr/sbin/bridge";

fn plugin<'a>(sandbox: &'a Sandbox, name: &str, pod: &Netns, keys: &Value) -> Plugin<'a> {
    let mut config = json!({"cniVersion": "1.0.0", "name": name, "type": "osvc-bridge", "bridge": "br0"});
    config.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    let kind = config["type"].as_str().unwrap().to_owned();
    sandbox.plugin(&kind).config(config).container(&pod.name).netns(pod)
}

/// `1pu 100 200 201`: the VLANs of a port; `p` for PVID, `u` for untagged.
#[track_caller]
fn vlans(sandbox: &Sandbox, port: &str) -> String {
    let text = sandbox.sh(&format!("{BRIDGE} -j vlan show dev {port}")).ok();
    // It prints nothing of a port that is in none.
    let found: Value = serde_json::from_str(text.trim()).unwrap_or_default();
    let one = |vlan: &Value| {
        let flags = vlan["flags"].to_string();
        let has = |flag: &str, letter: &'static str| if flags.contains(flag) { letter } else { "" };
        format!("{}{}{}", vlan["vlan"], has("PVID", "p"), has("Egress Untagged", "u"))
    };
    let vlans = found[0]["vlans"].as_array().cloned().unwrap_or_default();
    vlans.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn host_end(result: &Value) -> &str {
    result["interfaces"][1]["name"].as_str().unwrap()
}

/// Which of these get an answer, all asked at once.
fn reached<'a>(sandbox: &Sandbox, pairs: &[(&'a Netns, &'a str)]) -> BTreeSet<String> {
    let ask = |(from, to): &(&Netns, &str)| {
        format!("(ip netns exec {0} ping -n -c 3 -i 0.3 -W 1 {to} >/dev/null && echo '{0} {to}') &", from.name)
    };
    let script = pairs.iter().map(ask).collect::<Vec<_>>().join("\n") + "\nwait";
    sandbox.sh(&script).stdout.lines().map(str::to_owned).collect()
}

#[track_caller]
fn reach<'a>(sandbox: &Sandbox, all: &[(&'a Netns, &'a str)], none: &[(&'a Netns, &'a str)]) {
    let found = reached(sandbox, &[all, none].concat());
    let expected = all.iter().map(|(from, to)| format!("{} {to}", from.name)).collect();
    assert_eq!(found, expected);
}

fn osvc_net(sandbox: &Sandbox, words: &str) -> String {
    sandbox.sh(&format!("/opt/cni/bin/osvc-net {words}")).ok()
}

#[test]
fn containers_of_a_layer_2_network_are_in_their_vlans() {
    Vm::new().program(REFERENCE).test(|| {
        let sandbox = Sandbox::new();
        let trunk = json!([{"id": 101}, {"minID": 200, "maxID": 202}]);
        let cases = [
            ("none", json!({}), "1pu"),
            ("n100", json!({"vlan": 100}), "100pu"),
            ("o100", json!({"vlan": 100}), "100pu"),
            ("n200", json!({"vlan": 200}), "200pu"),
            ("keep", json!({"vlan": 100, "preserveDefaultVlan": true}), "1u 100pu"),
            ("trunk", json!({"vlanTrunk": trunk}), "1pu 101 200 201 202"),
            ("kept-trunk", json!({"vlanTrunk": trunk, "preserveDefaultVlan": true}), "1pu 101 200 201 202"),
            ("both", json!({"vlan": 100, "vlanTrunk": trunk}), "100pu 101 200 201 202"),
        ];
        let mut pods = Vec::new();
        for (number, (name, keys, expected)) in (1..).zip(&cases) {
            let pod = sandbox.netns(name);
            let plugin = plugin(&sandbox, name, &pod, keys);
            let result = plugin.add();
            assert_eq!(vlans(&sandbox, host_end(&result)), *expected, "{name} {keys}");
            assert_eq!(result["interfaces"].as_array().unwrap().len(), 3, "{result}");
            plugin.check(&result);
            let filtering = &sandbox.link("br0")["linkinfo"]["info_data"]["vlan_filtering"];
            assert_eq!(*filtering, json!(i32::from(number > 1)), "BR10: on with the first VLAN, not before: {name}");
            sandbox.ip(&format!("-n {name} addr add 10.5.0.{number}/24 dev eth0"));
            pods.push((pod, result, plugin));
        }
        // Of the trunk, VLAN 200 as a device in the container.
        sandbox.sh(
            "ip -n trunk link add eth0.200 link eth0 up type vlan id 200 && ip -n trunk addr add 10.6.0.1/24 dev eth0.200
             ip -n n200 addr add 10.6.0.2/24 dev eth0",
        )
        .ok();
        let [none, n100, o100, n200, _, trunk, _, both] = [0, 1, 2, 3, 4, 5, 6, 7].map(|at: usize| &pods[at].0);
        reach(
            &sandbox,
            &[(n100, "10.5.0.3"), (o100, "10.5.0.8"), (both, "10.5.0.2"), (none, "10.5.0.6"), (trunk, "10.6.0.2")],
            &[(n100, "10.5.0.4"), (n100, "10.5.0.1"), (none, "10.5.0.2"), (n200, "10.5.0.1"), (n200, "10.5.0.3")],
        );
        // CHECK and repair.
        let (_, result, plugin_of) = &pods[1];
        sandbox.sh(&format!("{BRIDGE} vlan del dev {0} vid 100 && {BRIDGE} vlan add dev {0} vid 7", host_end(result))).ok();
        let (_, message) = plugin_of.check_fails(result);
        assert!(message.contains(host_end(result)) && message.contains("without 100, and also in 7"), "{message}");
        sandbox.write("/etc/cni/net.d/n100.conf", &json!({"cniVersion": "1.0.0", "name": "n100", "type": "osvc-bridge", "bridge": "br0", "vlan": 100}).to_string());
        let told = osvc_net(&sandbox, "setup n100 --dry-run");
        assert!(told.contains("1 containers"), "{told}");
        assert_eq!(vlans(&sandbox, host_end(result)), "7");
        osvc_net(&sandbox, "setup n100");
        assert_eq!(vlans(&sandbox, host_end(result)), "100pu");
        plugin_of.check(result);
        // A bridge that is gone comes back with the next ADD, and the ports in their VLANs.
        sandbox.ip("link del br0");
        let pod = sandbox.netns("late");
        let late = plugin(&sandbox, "n100", &pod, &json!({"vlan": 100})).add();
        sandbox.ip("-n late addr add 10.5.0.99/24 dev eth0");
        assert_eq!([host_end(result), host_end(&late)].map(|port| vlans(&sandbox, port)), ["100pu", "100pu"]);
        reach(&sandbox, &[(n100, "10.5.0.99")], &[(o100, "10.5.0.99")]);
        // An edited VLAN: CHECK tells, and the next ADD takes those with it that are there.
        let edited = plugin(&sandbox, "n100", &sandbox.netns("edited"), &json!({"vlan": 300})).add();
        let ends = [result, &late, &edited];
        assert_eq!(ends.map(|result| vlans(&sandbox, host_end(result))), ["300pu"; 3]);
        // … or `setup`.
        sandbox.write("/etc/cni/net.d/n100.conf", &json!({"cniVersion": "1.0.0", "name": "n100", "type": "osvc-bridge", "bridge": "br0", "vlan": 301}).to_string());
        osvc_net(&sandbox, "setup n100");
        assert_eq!(ends.map(|result| vlans(&sandbox, host_end(result))), ["301pu"; 3]);
        plugin_of.del();
        assert!(sandbox.links().contains("br0"));

        // A foreign bridge: with filtering it is used, without it is not changed.
        sandbox.ip("link add br7 type bridge");
        let (r1, o1) = (sandbox.netns("r1"), sandbox.netns("o1"));
        let foreign = json!({"bridge": "br7", "vlan": 100});
        let ours = plugin(&sandbox, "f", &o1, &foreign);
        let before = sandbox.leftovers();
        let (code, message) = ours.add_fails();
        assert!(code == 7 && message.contains("ip link set br7 type bridge vlan_filtering 1"), "{code} {message}");
        sandbox.leftovers().assert_same_as(&before, "a refused ADD");
        let mut reference = foreign.clone();
        reference["type"] = json!("bridge");
        let made = plugin(&sandbox, "f", &r1, &reference).add();
        assert!(vlans(&sandbox, host_end(&made)).contains("100pu"), "the reference sets the VLAN, filtered or not");
        sandbox.ip("link set br7 type bridge vlan_filtering 1");
        let in_100 = ours.add();
        assert_eq!(vlans(&sandbox, host_end(&in_100)), "100pu");
        sandbox.sh("ip -n r1 addr add 10.7.0.1/24 dev eth0; ip -n o1 addr add 10.7.0.2/24 dev eth0").ok();
        reach(&sandbox, &[(&r1, "10.7.0.2")], &[]);
        // No VLAN any more: our own ports go with their network, the bridge's others stay.
        let none = |pod: &Netns| plugin(&sandbox, "f", pod, &json!({"bridge": "br7"}));
        let (_, message) = none(&o1).check_fails(&in_100);
        assert!(message.contains(host_end(&in_100)) && message.contains("also in 100"), "{message}");
        let in_none = none(&sandbox.netns("o2")).add();
        assert_eq!([&in_100, &in_none].map(|result| vlans(&sandbox, host_end(result))), ["1pu"; 2]);
        assert!(vlans(&sandbox, host_end(&made)).contains("100pu"));
        none(&o1).check(&in_100);
        report::ran(&report::kernel(), "BR10-BR12: VLANs of layer 2 networks, state and traffic");
    });
}

#[test]
fn the_host_has_the_gateway_addresses_in_the_vlan() {
    Vm::new().program(REFERENCE).program(HOST_LOCAL).limit(Duration::from_secs(240)).test(|| {
        let sandbox = Sandbox::new();
        let (c1, a1, a2, b1) = (sandbox.netns("c1"), sandbox.netns("a1"), sandbox.netns("a2"), sandbox.netns("b1"));
        let a = json!({"network": ["10.100.0.0/24", "fd64::/64"], "vlan": 100});
        let b = json!({"network": "10.200.0.0/24", "vlan": 200, "preserveDefaultVlan": true});
        let start = sandbox.leftovers();
        // What fails after the network was set up leaves nothing.
        let odd = json!([{"dst": "192.0.2.0/25", "gw": "203.0.113.9"}]);
        let ipam = json!({"type": "osvc-ipam", "subnet": "10.100.0.0/24", "routes": odd});
        let failing = plugin(&sandbox, "odd", &a1, &json!({"vlan": 100, "isGateway": true, "ipam": ipam}));
        let (_, message) = failing.add_fails();
        assert!(message.contains("203.0.113.9"), "{message}");
        assert_eq!(sandbox.links(), start.links);

        // BR13.
        let first = plugin(&sandbox, "a", &a1, &a);
        let result = first.add();
        let interfaces = result["interfaces"].as_array().unwrap();
        assert_eq!((interfaces.len(), &interfaces[3]["name"]), (4, &json!("br0.100")), "{result}");
        assert_eq!(interfaces[3]["mac"], "0a:58:0a:64:00:01", "the gateway's by the formula");
        assert_eq!(interfaces[3].get("sandbox"), None);
        assert_eq!(sandbox.links().len(), 5, "lo, bridge, host end, device and its port: {:?}", sandbox.links());
        let links = sandbox.links();
        let port = links.iter().find(|name| name.starts_with("op")).unwrap();
        assert_eq!([port.as_str(), host_end(&result)].map(|port| vlans(&sandbox, port)), ["100pu", "100pu"]);
        let mut gateways = sandbox.addresses("br0.100");
        gateways.sort();
        assert_eq!((gateways, sandbox.addresses("br0")), (vec!["10.100.0.1/24".into(), "fd64::1/64".into()], vec![]));
        first.check(&result);
        // One more VLAN on the bridge, and one network in none.
        let second = plugin(&sandbox, "a", &a2, &a).add();
        let other = plugin(&sandbox, "b", &b1, &b).add();
        assert_eq!(vlans(&sandbox, host_end(&other)), "1u 200pu");
        let plain = plugin(&sandbox, "c", &c1, &json!({"network": "10.1.0.0/24"})).add();
        assert_eq!(plain["interfaces"].as_array().unwrap().len(), 3);
        let outside = sandbox.outside();
        let address = |result: &Value, at: usize| addresses_of(result)[at].split('/').next().unwrap().to_owned();
        let (a2v4, a2v6, b1v4) = (address(&second, 0), address(&second, 1), address(&other, 0));
        let works = |sandbox: &Sandbox| {
            let all = [
                (&a1, a2v4.as_str()),
                (&a1, a2v6.as_str()),
                (&a1, "10.100.0.1"),
                (&a1, "fd64::1"),
                (&a1, "198.51.100.1"),
                (&a1, "2001:db8:ffff::1"),
                (&b1, "10.200.0.1"),
                (&b1, "192.0.2.1"),
                (&c1, "10.1.0.1"),
                (&c1, "192.0.2.1"),
                // By the host, which forwards between networks.
                (&a1, b1v4.as_str()),
            ];
            reach(sandbox, &all, &[]);
        };
        works(&sandbox);
        // On the wire they are apart: with addresses of one subnet nobody answers.
        sandbox.sh("for pod in a1 b1 c1; do ip -n $pod addr add 10.5.0.${#pod}$((++n))/24 dev eth0; done").ok();
        reach(&sandbox, &[], &[(&a1, "10.5.0.22"), (&a1, "10.5.0.23"), (&b1, "10.5.0.21"), (&c1, "10.5.0.21")]);
        let _ = outside;

        // CHECK finds what is gone; ADD and setup bring it back.
        for (network, keys) in [("a", &a), ("b", &b), ("c", &json!({"network": "10.1.0.0/24"}))] {
            let mut config = json!({"cniVersion": "1.0.0", "name": network, "type": "osvc-bridge", "bridge": "br0"});
            config.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
            sandbox.write(&format!("/etc/cni/net.d/{network}.conf"), &config.to_string());
        }
        for (harm, named) in [
            ("ip link del br0.100".to_owned(), "br0.100"),
            (format!("{BRIDGE} vlan del dev {port} vid 100"), port.as_str()),
            ("ip link set br0 type bridge vlan_filtering 0".to_owned(), "br0 does not filter"),
            ("ip link del br0".to_owned(), "br0"),
        ] {
            sandbox.sh(&harm).ok();
            let (_, message) = first.check_fails(&result);
            assert!(message.contains(named), "{harm}: {message}");
            osvc_net(&sandbox, "setup");
            first.check(&result);
        }
        let told = osvc_net(&sandbox, "setup");
        assert!(told.lines().all(|line| line.contains("in place")), "{told}");
        works(&sandbox);
        sandbox.ip("link del br0.100");
        let late = sandbox.netns("late");
        let later = plugin(&sandbox, "a", &late, &a).container("late");
        later.add();
        reach(&sandbox, &[(&late, "10.100.0.1"), (&a1, "10.100.0.1"), (&a1, "198.51.100.1")], &[]);
        later.del();

        // It ends with its network, and the bridge with the last one.
        for (pod, name, keys) in [(&a1, "a", &a), (&a2, "a", &a), (&b1, "b", &b)] {
            plugin(&sandbox, name, pod, keys).del();
        }
        assert!(sandbox.links().contains("br0.100"), "DEL leaves it, as the reference plugin does");
        osvc_net(&sandbox, "gc");
        let planned = osvc_net(&sandbox, "teardown a --dry-run");
        assert!(planned.contains("would remove device br0.100"), "{planned}");
        let told = osvc_net(&sandbox, "teardown a");
        assert!(told.contains("removed device br0.100") && told.contains("bridge br0 stays"), "{told}");
        assert!(!sandbox.links().contains("br0.100") && sandbox.links().contains("br0.200"));
        reach(&sandbox, &[(&c1, "10.1.0.1")], &[]);
        plugin(&sandbox, "c", &c1, &json!({"network": "10.1.0.0/24"})).del();
        osvc_net(&sandbox, "teardown c");
        osvc_net(&sandbox, "teardown b");
        assert!(sandbox.links().iter().all(|name| name == "lo" || name == "up0"), "{:?}", sandbox.links());

        // A running network of the reference plugin goes on with ours.
        let reference = |kind: &str, ipam: &str, pod: &Netns| {
            let ipam = json!({"type": ipam, "subnet": "10.8.0.0/24"});
            let mut keys = json!({"type": kind, "bridge": "br8", "vlan": 8, "isDefaultGateway": true, "ipam": ipam});
            keys["preserveDefaultVlan"] = json!(kind == "bridge");
            plugin(&sandbox, "ref", pod, &keys)
        };
        let names = ["old", "new"].map(|name| sandbox.netns(name));
        reference("bridge", "host-local", &names[0]).add();
        let ours = reference("osvc-bridge", "osvc-ipam", &names[1]);
        let result = ours.add();
        assert_eq!(result["interfaces"][3]["name"], "br8.8");
        // Its port of the host may be in the default VLAN besides: that is no fault.
        let device = sandbox.link("br8.8");
        let port = device["link"].as_str().unwrap();
        assert_eq!(vlans(&sandbox, port), "1u 8pu");
        ours.check(&result);
        sandbox.sh(&format!("{BRIDGE} vlan add dev {port} vid 1 pvid untagged")).ok();
        let (_, message) = ours.check_fails(&result);
        assert!(message.contains(port) && message.contains("without 8"), "{message}");
        sandbox.sh(&format!("{BRIDGE} vlan add dev {port} vid 8 pvid untagged")).ok();
        reach(&sandbox, &[(&names[1], "10.8.0.1"), (&names[1], "10.8.0.2")], &[]);

        let example: Value = serde_json::from_str(include_str!("../../../conf-examples/vlan.conflist")).unwrap();
        let pod = sandbox.netns("example");
        let call = plugin(&sandbox, example["name"].as_str().unwrap(), &pod, &example["plugins"][0]);
        let result = call.add();
        assert_eq!(result["interfaces"][3]["name"], "floors.102");
        reach(&sandbox, &[(&pod, "10.25.2.1"), (&pod, "198.51.100.1")], &[]);
        call.check(&result);
        report::ran(&report::kernel(), "BR13: gateway addresses in a VLAN, state and traffic");
    });
}
