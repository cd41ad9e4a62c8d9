//! CI, LN: what the container finds on its interface, and how pairs are made.

use integration::{Family, Sandbox, addresses_of, container_mac};
use serde_json::{Value, json};

use super::bridge::{gateway_config, plugin};

both! {
    ci1_ci4_routes_with_table_scope_and_priority
    ci2_several_routes_to_one_destination
    ci3_ipv6_addresses_survive_a_link_that_goes_down
    ci6_another_ipam_plugin_is_called_as_the_specification_says
    ln1_both_ends_are_where_they_belong
    ln2_an_interface_that_exists_already
    ln5_a_second_interface_of_one_container
    ln7_either_end_takes_the_other_with_it
    ln10_an_interface_name_with_a_dot
}

fn with_routes(family: Family, routes: Value) -> Value {
    let mut config = gateway_config(family, "1.0.0", &["10.1.2.0/24"]);
    config["isDefaultGateway"] = json!(false);
    config["ipam"]["routes"] = routes;
    config
}

/// Ours applies mtu and advmss as well; the reference that Debian packages knows only dst and gw.
fn ci1_ci4_routes_with_table_scope_and_priority(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let routes = json!([
        {"dst": "198.51.100.0/24"},
        {"dst": "203.0.113.0/24", "gw": "10.1.2.9", "priority": 77, "table": 100, "mtu": 1300, "advmss": 1200},
        {"dst": "192.0.2.0/24", "scope": 253},
    ]);
    let result = plugin(&sandbox, &pod, with_routes(family, routes)).add();
    let installed = sandbox.routes_in(&pod, 4);
    let route = |dst: &str| installed.iter().find(|route| route["dst"] == dst).unwrap_or(&Value::Null);
    assert_eq!(route("198.51.100.0/24")["gateway"], "10.1.2.1", "CI4: the address's gateway: {installed:?}");
    assert_eq!(route("203.0.113.0/24")["gateway"], "10.1.2.9", "{installed:?}");
    if family.is_ours() {
        let special = route("203.0.113.0/24");
        assert_eq!((&special["metric"], &special["table"]), (&json!(77), &json!("100")), "{special}");
        assert_eq!(special["metrics"][0]["mtu"], 1300, "{special}");
        assert_eq!(special["metrics"][0]["advmss"], 1200, "{special}");
        assert_eq!(route("192.0.2.0/24")["scope"], "link", "{installed:?}");
        assert_eq!(result["routes"].as_array().map(Vec::len), Some(3), "{result}");
    }
}

/// Debian's reference adds routes exclusively and fails; ours keeps both.
fn ci2_several_routes_to_one_destination(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let routes = json!([{"dst": "198.51.100.0/24", "gw": "10.1.2.8"}, {"dst": "198.51.100.0/24", "gw": "10.1.2.9"}]);
    let plugin = plugin(&sandbox, &pod, with_routes(family, routes));
    if family.is_ours() {
        plugin.add();
        let text = sandbox.ip("-n pod route show 198.51.100.0/24");
        assert!(text.contains("10.1.2.8") && text.contains("10.1.2.9"), "{text}");
    } else {
        plugin.call("ADD");
        assert!(sandbox.ip("-n pod route show 198.51.100.0/24").contains("10.1.2.8"));
    }
}

/// The reference that Debian packages loses them.
fn ci3_ipv6_addresses_survive_a_link_that_goes_down(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let result = plugin(&sandbox, &pod, gateway_config(family, "1.0.0", &["fd00::/64"])).add();
    sandbox.sh("ip -n pod link set eth0 down && ip -n pod link set eth0 up").ok();
    let expected = if family.is_ours() { addresses_of(&result) } else { Vec::new() };
    assert_eq!(sandbox.addresses_in(&pod, "eth0"), expected);
}

/// An IPAM plugin of ten lines: it must be called with the same environment and stdin, and undone when its answer cannot be used.
fn ci6_another_ipam_plugin_is_called_as_the_specification_says(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let script = r#"#!/bin/bash
cat > /run/stdin.$CNI_COMMAND; env | grep ^CNI_ | sort > /run/env.$CNI_COMMAND
[ $CNI_COMMAND != VERSION ] || { echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}'; exit; }
[ $CNI_COMMAND != ADD ] || cat /run/answer
"#;
    sandbox.write("/opt/cni/bin/other-ipam", script);
    sandbox.sh("chmod +x /opt/cni/bin/other-ipam").ok();
    sandbox.write(
        "/run/answer",
        r#"{"cniVersion":"1.0.0","ips":[{"address":"10.1.2.7/24","gateway":"10.1.2.1"}],"dns":{}}"#,
    );
    let mut config = family.bridge_config("1.0.0", "mynet", json!({}));
    config["ipam"] = json!({"type": "other-ipam", "anything": {"nested": 1}});
    let plugin = plugin(&sandbox, &pod, config.clone()).args("IgnoreUnknown=1;A=B");
    let result = plugin.add();
    assert_eq!(addresses_of(&result), ["10.1.2.7/24"]);
    assert_eq!(result["ips"][0]["interface"], 2, "the address is the container interface's: {result}");
    assert_eq!(sandbox.addresses_in(&pod, "eth0"), ["10.1.2.7/24"]);
    let stdin: Value = serde_json::from_str(&sandbox.read("/run/stdin.ADD")).unwrap();
    assert_eq!(stdin, config, "the IPAM plugin gets the configuration as it came");
    let env = sandbox.read("/run/env.ADD");
    for line in ["CNI_ARGS=IgnoreUnknown=1;A=B", "CNI_CONTAINERID=c1", "CNI_IFNAME=eth0", "CNI_NETNS=/run/netns/pod"] {
        assert!(env.contains(line), "{line}: {env}");
    }
    plugin.del();
    assert!(sandbox.exists("/run/env.DEL"), "DEL is delegated too");
    sandbox.sh("rm /run/env.DEL").ok();
    sandbox.write("/run/answer", r#"{"cniVersion":"1.0.0","ips":[]}"#);
    plugin.add_fails();
    assert!(sandbox.exists("/run/env.DEL"), "what IPAM gave is given back when it cannot be used");
    plugin.del();
    assert!(!sandbox.links_in(&pod).contains("eth0"));
}

fn ln1_both_ends_are_where_they_belong(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let result = plugin(&sandbox, &pod, gateway_config(family, "1.0.0", &["10.1.2.0/24"])).add();
    let host_end = sandbox.link(result["interfaces"][1]["name"].as_str().unwrap());
    let container_end = sandbox.link_in(&pod, "eth0");
    assert_eq!(host_end["link_index"], container_end["ifindex"], "{host_end} {container_end}");
    assert_eq!(container_end["link_index"], host_end["ifindex"]);
    assert_eq!(container_end["linkinfo"]["info_kind"], "veth");
    // LN8 and LN6 are seen here as well: no address but its own, and the MAC of the result.
    assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses_of(&result));
    assert_eq!(container_mac(&result), container_end["address"].as_str());
}

fn ln2_an_interface_that_exists_already(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    sandbox.ip("-n pod link add eth0 type veth peer name other");
    let plugin = plugin(&sandbox, &pod, gateway_config(family, "1.0.0", &["10.1.2.0/24"]));
    let before = sandbox.links_in(&pod);
    let (_, message) = plugin.add_fails();
    assert!(message.contains("eth0") && message.contains("already exists"), "{message}");
    assert_eq!(sandbox.links_in(&pod), before, "what was there is not touched");
    assert!(sandbox.held(family, "mynet").is_empty(), "no address is held");
    if family.is_ours() {
        plugin.del();
        assert_eq!(sandbox.links_in(&pod), before, "nor by DEL: it is not ours");
    }
}

fn ln5_a_second_interface_of_one_container(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let mut config = gateway_config(family, "1.0.0", &["10.1.2.0/24"]);
    // The second default route would be the reference's REF-BUG "file exists".
    config["isDefaultGateway"] = json!(false);
    let plugin = plugin(&sandbox, &pod, config);
    let first = addresses_of(&plugin.add());
    let second = addresses_of(&plugin.clone().ifname("eth1").add());
    assert_ne!(first, second);
    plugin.del();
    assert_eq!(sandbox.addresses_in(&pod, "eth1"), second, "the other interface stays");
    plugin.clone().ifname("eth1").del();
    assert!(sandbox.held(family, "mynet").is_empty());
}

fn ln7_either_end_takes_the_other_with_it(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let plugin = plugin(&sandbox, &pod, gateway_config(family, "1.0.0", &["10.1.2.0/24"]));
    plugin.add();
    sandbox.ip("-n pod link del eth0");
    plugin.del();
    assert_eq!(sandbox.links().len(), 2, "LN3: a pair that is gone already is no error: {:?}", sandbox.links());
    plugin.add();
    plugin.del();
    assert!(!sandbox.links_in(&pod).contains("eth0"));
}

fn ln10_an_interface_name_with_a_dot(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let config = gateway_config(family, "1.0.0", &["10.1.2.0/24", "fd00::/64"]);
    let plugin = plugin(&sandbox, &pod, config).ifname("eth0.100");
    let result = plugin.add();
    assert_eq!(sandbox.addresses_in(&pod, "eth0.100"), addresses_of(&result));
    plugin.del();
    assert!(!sandbox.links_in(&pod).contains("eth0.100"));
}
