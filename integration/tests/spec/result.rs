//! What a result says, and what changed from version to version.

use integration::{Sandbox, VERSIONS, addresses_of, container_mac};
use serde_json::{Value, json};

use crate::{PLUGINS, bridge, ipam, keys, one_line};

/// A result without its version and without the version of its addresses.
fn without_versions(mut result: Value) -> Value {
    result["cniVersion"].take();
    for ip in result["ips"].as_array_mut().into_iter().flatten() {
        ip.as_object_mut().unwrap().remove("version");
    }
    result
}

#[test]
fn p3_version_mac_index_and_sandbox_are_right_in_every_version() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for version in VERSIONS {
        let mut config = one_line(version);
        config["network"] = json!(["10.9.0.0/24", "fd09::/64"]);
        let call = bridge(&sandbox, &pod, config);
        let result = call.add();
        assert_eq!(result["cniVersion"], version, "the result is of the configuration's version");
        assert_eq!(addresses_of(&result), sandbox.addresses_in(&pod, "eth0"), "{version}: the addresses are real");
        if version >= "0.3.0" {
            let interfaces = result["interfaces"].as_array().unwrap();
            assert!(interfaces.iter().all(|one| one["mac"].is_string()), "{version}: each has a MAC: {result}");
            for ip in result["ips"].as_array().unwrap() {
                let index = usize::try_from(ip["interface"].as_u64().unwrap()).unwrap();
                assert_eq!(interfaces[index]["name"], "eth0", "{version}: the index is the container's: {result}");
                assert_eq!(interfaces[index]["sandbox"], json!(pod.path), "{version}: with its sandbox: {result}");
            }
            let real = sandbox.link_in(&pod, "eth0")["address"].clone();
            assert_eq!(container_mac(&result), real.as_str(), "{version}: the MAC is the real one");
        }
        call.del();
    }
}

#[test]
fn c54_sandbox_is_the_value_of_cni_netns_and_only_the_containers_end_has_one() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    sandbox.sh("ln -s /run/netns/pod /run/by-another-name").ok();
    for version in &VERSIONS[2..] {
        for path in ["/run/netns/pod", "/run/by-another-name"] {
            let call = sandbox.plugin("osvc-bridge").netns_path(path).config(one_line(version));
            let result = call.add();
            let sandboxes: Vec<_> =
                result["interfaces"].as_array().unwrap().iter().map(|one| (&one["name"], &one["sandbox"])).collect();
            assert_eq!(sandboxes.len(), 3, "{version}: bridge, host end, container's end: {result}");
            assert!(sandboxes[0].1.is_null() && sandboxes[1].1.is_null(), "{version}: not on the host: {result}");
            assert_eq!(sandboxes[2], (&json!("eth0"), &json!(path)), "{version}: as CNI_NETNS says: {result}");
            call.del();
        }
    }
}

#[test]
fn c54_a_gateway_informs_and_only_routes_are_routes() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let routes = || -> Vec<Value> {
        let routes = sandbox.routes_in(&pod, 4);
        routes.into_iter().filter(|route| route["protocol"] != "kernel").map(|route| route["dst"].clone()).collect()
    };
    let plain = keys(json!({"subnet": "10.9.0.0/24"}));
    let mut with_route = plain.clone();
    with_route["ipam"]["routes"] = json!([{"dst": "198.51.100.0/24"}]);
    let mut with_default = plain.clone();
    with_default["isDefaultGateway"] = json!(true);
    for (config, expected) in
        [(plain, vec![]), (with_route, vec![json!("198.51.100.0/24")]), (with_default, vec![json!("default")])]
    {
        let call = bridge(&sandbox, &pod, config.clone());
        let result = call.add();
        assert_eq!(result["ips"][0]["gateway"], "10.9.0.1", "the gateway is told: {result}");
        assert_eq!(routes(), expected, "routes in the container by {config}");
        call.del();
    }
}

/// The reference never says the MTU, which 1.1.0 allows; ours does, and it is the real one.
#[test]
fn c57_the_mtu_is_said_in_1_1_0_only_and_is_the_real_one() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    // The first makes the bridge, the others find it without a port.
    for version in ["1.1.0"].iter().chain(&VERSIONS[2..]) {
        let mut config = one_line(version);
        config["mtu"] = json!(1400);
        let call = bridge(&sandbox, &pod, config);
        let result = call.add();
        for interface in result["interfaces"].as_array().unwrap() {
            if *version < "1.1.0" {
                assert!(interface["mtu"].is_null(), "{version} does not know mtu: {result}");
                continue;
            }
            let name = interface["name"].as_str().unwrap();
            let link = if name == "eth0" { sandbox.link_in(&pod, name) } else { sandbox.link(name) };
            assert_eq!(interface["mtu"], link["mtu"], "{name} has the MTU that is said: {result}");
        }
        call.del();
    }
}

#[test]
fn c140_from_0_3_0_on_there_are_interfaces_ips_and_runtime_config_and_0_3_1_differs_in_words_only() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let mut results = Vec::new();
    for version in &VERSIONS[..4] {
        let requested = json!({"ips": ["10.9.0.77"], "mac": "02:11:22:33:44:55"});
        let call = bridge(&sandbox, &pod, one_line(version)).with("runtimeConfig", requested);
        let result = call.add();
        let is_old = *version < "0.3.0";
        assert_eq!(result["interfaces"].is_null(), is_old, "{version}: interfaces since 0.3.0: {result}");
        assert_eq!(result["ip4"].is_null(), !is_old, "{version}: ip4 until 0.2.0: {result}");
        assert_eq!(addresses_of(&result), ["10.9.0.77/24"], "{version}: runtimeConfig is heeded");
        if !is_old {
            assert_eq!(result["ips"][0]["version"], "4", "{version}: an address says its version: {result}");
            results.push(without_versions(result));
        }
        for verb in ["CHECK", "STATUS", "GC"] {
            let (code, message) = call.call(verb).error();
            assert_eq!((code, message.contains(verb)), (1, true), "{version} has no {verb}: {message}");
        }
        call.del();
    }
    assert_eq!(results[0], results[1], "0.3.0 and 0.3.1 mean the same");
}

#[test]
fn c141_since_0_4_0_there_is_check_and_code_11_and_del_may_come_twice() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for plugin in PLUGINS {
        let one = json!({"subnet": "10.9.0.0/24", "rangeStart": "10.9.0.9", "rangeEnd": "10.9.0.9"});
        let config = if plugin == "osvc-ipam" { ipam(one) } else { keys(one) };
        let call = sandbox.plugin(plugin).netns(&pod).config(config).with("cniVersion", json!("0.4.0"));
        let result = call.add();
        call.check(&result);
        let (code, message) = call.clone().container("c2").ifname("eth1").add_fails();
        assert_eq!(code, 11, "{plugin}: a full range is to be tried again later: {message}");
        let (code, message) = call.clone().container("").add_fails();
        assert!(code == 4 && message.contains("CNI_CONTAINERID"), "{plugin}: the id is mandatory: {code} {message}");
        let del = call.clone().with("prevResult", result.clone());
        del.del();
        del.del();
        call.check_fails(&result);
        for verb in ["STATUS", "GC"] {
            assert_eq!(call.call(verb).error().0, 1, "{plugin}: 0.4.0 has no {verb}");
        }
    }
}

#[test]
fn c142_since_1_0_0_addresses_have_no_version_and_names_a_character_set() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for plugin in PLUGINS {
        let mut results = Vec::new();
        for version in ["0.4.0", "1.0.0"] {
            let ranges = json!({"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]]});
            let config = if plugin == "osvc-ipam" { ipam(ranges) } else { keys(ranges) };
            let call = sandbox.plugin(plugin).netns(&pod).config(config).with("cniVersion", json!(version));
            let result = call.add();
            let versions: Vec<_> = result["ips"].as_array().unwrap().iter().map(|ip| ip["version"].as_str()).collect();
            let expected = if version == "0.4.0" { [Some("4"), Some("6")] } else { [None, None] };
            assert_eq!(versions, expected, "{plugin} {version}: {result}");
            call.del();
            let mut result = without_versions(result);
            // 0.4.0 prints an empty `dns`.
            result.as_object_mut().unwrap().remove("dns");
            results.push(result);
            let (code, message) = call.clone().container("a b").add_fails();
            assert!(code == 4 && message.contains("containerID"), "{plugin} {version}: {code} {message}");
            let (code, message) = call.with("name", json!("a b")).add_fails();
            assert!(code == 7 && message.contains("network name"), "{plugin} {version}: {code} {message}");
        }
        assert_eq!(results[0], results[1], "{plugin}: nothing else differs");
    }
}
