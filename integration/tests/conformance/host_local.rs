//! HL: the IPAM plugin as a process (host_local_test.go).

use integration::{Family, Plugin, Sandbox, addresses_of, gateway_of};
use serde_json::{Value, json};

both! {
    hl1_one_address_per_set_and_the_configured_routes
    hl2_an_address_is_held_after_add_and_free_after_del
    hl3_the_result_says_the_ip_version_where_the_specification_has_it
    hl4_del_of_one_network_leaves_the_other
    hl5_add_twice
    hl6_del_removes_a_legacy_file_that_holds_only_the_container_id
    hl7_del_of_an_unknown_container_succeeds
    hl8_a_container_id_with_white_space_is_refused
    hl9_the_first_add_prints_its_result_only
    hl10_one_requested_address
    hl11_one_requested_address_per_set
    hl12_requested_addresses_in_later_pools_and_of_both_families
    hl13_two_requested_addresses_of_one_set_are_refused
    hl14_resolv_conf_is_read_as_resolvers_read_it
}

const ROUTES: &str = r#"[{"dst":"0.0.0.0/0"},{"dst":"::/0"},{"dst":"192.168.0.0/16","gw":"1.1.1.1"},{"dst":"2001:db8:2::0/64","gw":"2001:db8:3::1"}]"#;

/// Sets of two pools and of one.
fn dual_stack() -> Value {
    json!({
        "ranges": [[{"subnet": "10.1.2.0/24"}, {"subnet": "10.2.2.0/24"}], [{"subnet": "2001:db8:1::/64"}]],
        "routes": serde_json::from_str::<Value>(ROUTES).unwrap(),
    })
}

fn ipam<'a>(sandbox: &'a Sandbox, family: Family, version: &str, keys: Value) -> Plugin<'a> {
    let netns = if sandbox.exists("/run/netns/pod") { "/run/netns/pod".to_owned() } else { sandbox.netns("pod").path };
    sandbox.plugin(family.ipam()).netns_path(&netns).config(family.ipam_config(version, "mynet", keys))
}

fn hl1_one_address_per_set_and_the_configured_routes(family: Family) {
    let sandbox = Sandbox::new();
    for version in family.versions() {
        let plugin = ipam(&sandbox, family, version, dual_stack()).container(&format!("c-{version}"));
        let result = plugin.add();
        let addresses = addresses_of(&result);
        assert_eq!(addresses.len(), 2, "{version}: one address per set: {result}");
        assert!(addresses[0].starts_with("10.1.2.") && addresses[0].ends_with("/24"), "{version}: {result}");
        assert!(addresses[1].starts_with("2001:db8:1:") && addresses[1].ends_with("/64"), "{version}: {result}");
        assert_eq!(gateway_of(&result), Some("10.1.2.1"), "{version}: {result}");
        if *version >= "0.3.0" {
            assert_eq!(result["ips"][1]["gateway"], "2001:db8:1::1", "{version}: {result}");
            let routes = result["routes"].as_array().unwrap();
            assert_eq!(routes.len(), 4, "{version}: {result}");
            assert_eq!(routes[0], json!({"dst": "0.0.0.0/0"}), "{version}: a route without gw stays without");
            assert_eq!(routes[2], json!({"dst": "192.168.0.0/16", "gw": "1.1.1.1"}), "{version}");
        } else {
            assert_eq!(result["ip4"]["routes"].as_array().map(Vec::len), Some(2), "{version}: {result}");
            assert_eq!(result["ip6"]["routes"].as_array().map(Vec::len), Some(2), "{version}: {result}");
        }
        plugin.del();
    }
}

fn hl2_an_address_is_held_after_add_and_free_after_del(family: Family) {
    let sandbox = Sandbox::new();
    for version in family.versions() {
        let plugin = ipam(&sandbox, family, version, dual_stack());
        let addresses = addresses_of(&plugin.add());
        let held: Vec<_> = sandbox.held(family, "mynet").into_iter().map(|address| address.to_string()).collect();
        let given: Vec<_> = addresses.iter().map(|address| address.split('/').next().unwrap()).collect();
        assert_eq!(held, given, "{version}: what was given is held");
        if family == Family::Reference {
            let file = sandbox.read(&format!("/var/lib/cni/networks/mynet/{}", given[0]));
            assert_eq!(file, "c1\r\neth0", "host-local's format");
        } else {
            let record = sandbox.record("/var/lib/cni/osvc/ipam/mynet", given[0]);
            assert_eq!((&record["container"], &record["ifname"]), (&json!("c1"), &json!("eth0")), "{record}");
            assert_eq!(record["key"], json!({"source": "container", "text": "c1"}), "{record}");
        }
        plugin.del();
        assert!(sandbox.held(family, "mynet").is_empty(), "{version}: nothing is held after DEL");
    }
}

fn hl3_the_result_says_the_ip_version_where_the_specification_has_it(family: Family) {
    let sandbox = Sandbox::new();
    for version in family.versions() {
        let plugin = ipam(&sandbox, family, version, dual_stack());
        let text = plugin.add().to_string();
        let expected = matches!(*version, "0.3.0" | "0.3.1" | "0.4.0");
        assert_eq!(text.contains(r#""version":"#), expected, "{version}: {text}");
        plugin.del();
    }
}

fn hl4_del_of_one_network_leaves_the_other(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let plugin = |network: &str, subnet: &str, ifname: &str| {
        let config = family.ipam_config("0.4.0", network, json!({"subnet": subnet}));
        sandbox.plugin(family.ipam()).netns(&pod).ifname(ifname).config(config)
    };
    let (first, second) = (plugin("net1", "10.1.2.0/24", "eth0"), plugin("net2", "10.2.2.0/24", "eth1"));
    first.add();
    second.add();
    first.del();
    assert!(sandbox.held(family, "net1").is_empty(), "the first network's address is free");
    assert_eq!(sandbox.held(family, "net2").len(), 1, "the second network's is not");
    second.del();
    assert!(sandbox.held(family, "net2").is_empty(), "now it is");
}

/// Ours is idempotent: "duplicate allocation" is what keeps containers from starting after a reboot.
fn hl5_add_twice(family: Family) {
    let sandbox = Sandbox::new();
    for version in family.versions() {
        let plugin = ipam(&sandbox, family, version, json!({"subnet": "10.1.2.0/24"}));
        let first = addresses_of(&plugin.add());
        let other = addresses_of(&plugin.clone().container("c2").add());
        assert_ne!(first, other, "{version}: another container gets another address");
        if family.is_ours() {
            assert_eq!(addresses_of(&plugin.add()), first, "{version}: the same container gets the same again");
        } else {
            let (_, message) = plugin.add_fails();
            assert!(message.contains("duplicate allocation is not allowed"), "{message}");
        }
        plugin.del();
        plugin.clone().container("c2").del();
        assert!(sandbox.held(family, "mynet").is_empty(), "{version}: all is free");
    }
}

fn hl6_del_removes_a_legacy_file_that_holds_only_the_container_id(family: Family) {
    let sandbox = Sandbox::new();
    sandbox.write("/var/lib/cni/networks/mynet/10.1.2.9", "c1");
    let plugin = ipam(&sandbox, family, "0.4.0", json!({"subnet": "10.1.2.0/24"}));
    plugin.del();
    assert!(!sandbox.exists("/var/lib/cni/networks/mynet/10.1.2.9"), "the old file is gone");
}

fn hl7_del_of_an_unknown_container_succeeds(family: Family) {
    let sandbox = Sandbox::new();
    for version in family.versions() {
        ipam(&sandbox, family, version, dual_stack()).container("never-added").del();
    }
}

fn hl8_a_container_id_with_white_space_is_refused(family: Family) {
    let sandbox = Sandbox::new();
    let (code, message) = ipam(&sandbox, family, "0.4.0", dual_stack()).container("   c1\n").add_fails();
    assert_eq!(code, 4, "{message}");
    assert!(message.contains("invalid characters in containerID"), "{message}");
}

fn hl9_the_first_add_prints_its_result_only(family: Family) {
    let sandbox = Sandbox::new();
    let reply = ipam(&sandbox, family, "0.4.0", dual_stack()).call("ADD");
    let stderr = reply.output.stderr.clone();
    assert!(!stderr.contains("Error retrieving last reserved ip"), "{stderr}");
    reply.result();
}

fn hl10_one_requested_address(family: Family) {
    let sandbox = Sandbox::new();
    for version in family.versions() {
        let plugin = ipam(&sandbox, family, version, json!({"subnet": "10.1.2.0/24"}))
            .with("args", json!({"cni": {"ips": ["10.1.2.88"]}}));
        assert_eq!(addresses_of(&plugin.add()), ["10.1.2.88/24"], "{version}");
        plugin.del();
    }
}

fn hl11_one_requested_address_per_set(family: Family) {
    let sandbox = Sandbox::new();
    for version in family.versions() {
        let ranges = json!({"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.1.3.0/24"}]]});
        let plugin =
            ipam(&sandbox, family, version, ranges).with("args", json!({"cni": {"ips": ["10.1.2.88", "10.1.3.77"]}}));
        if *version < "0.3.0" {
            let (_, message) = plugin.add_fails();
            let expected = format!("CNI version {version} does not support more than 1 address per family");
            assert!(message.contains(&expected), "{message}");
            assert!(sandbox.held(family, "mynet").is_empty(), "{version}: nothing was taken");
        } else {
            assert_eq!(addresses_of(&plugin.add()), ["10.1.2.88/24", "10.1.3.77/24"], "{version}: in the sets' order");
            plugin.del();
        }
    }
}

fn hl12_requested_addresses_in_later_pools_and_of_both_families(family: Family) {
    let sandbox = Sandbox::new();
    for version in family.versions().iter().filter(|version| **version >= "0.3.0") {
        let ranges = json!({"ranges": [
            [{"subnet": "172.16.1.0/24"}, {"subnet": "10.1.2.0/24"}], [{"subnet": "2001:d00::/24"}]]});
        let plugin =
            ipam(&sandbox, family, version, ranges).with("args", json!({"cni": {"ips": ["10.1.2.88", "2001:db8::c"]}}));
        assert_eq!(addresses_of(&plugin.add()), ["10.1.2.88/24", "2001:db8::c/24"], "{version}");
        plugin.del();
    }
}

fn hl13_two_requested_addresses_of_one_set_are_refused(family: Family) {
    let sandbox = Sandbox::new();
    for version in family.versions() {
        let plugin = ipam(&sandbox, family, version, json!({"subnet": "10.1.2.0/24"}))
            .with("args", json!({"cni": {"ips": ["10.1.2.88", "10.1.2.77"]}}));
        let (code, message) = plugin.add_fails();
        assert!(message.contains("failed to allocate all requested IPs: 10.1.2."), "{version}: {message}");
        assert!(!family.is_ours() || code == 7, "{version}: {code}");
        assert!(sandbox.held(family, "mynet").is_empty(), "{version}: nothing was taken");
    }
}

fn hl14_resolv_conf_is_read_as_resolvers_read_it(family: Family) {
    let sandbox = Sandbox::new();
    sandbox.write(
        "/run/resolv.conf",
        "# a comment\n  ; another\n    nameserver 192.0.2.3\n domain a.example\nsearch b.example c.example\n\
         search d.example\noptions ndots:3\n\toptions timeout:1 rotate\n",
    );
    let keys = json!({"subnet": "10.1.2.0/24", "resolvConf": "/run/resolv.conf"});
    let result = ipam(&sandbox, family, "1.0.0", keys).add();
    let expected = json!({"nameservers": ["192.0.2.3"], "domain": "a.example",
        "search": ["b.example", "c.example", "d.example"], "options": ["ndots:3", "timeout:1", "rotate"]});
    assert_eq!(result["dns"], expected);
}
