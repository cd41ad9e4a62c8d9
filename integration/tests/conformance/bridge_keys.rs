//! BR14, BR15, BR22, BR24, BR26 and the table of keys (B4): what each key does, and what happens to a wrong one.

use integration::{Family, Sandbox};
use serde_json::json;

use super::bridge::{gateway_config, plugin};

both! {
    br14_a_foreign_address_on_the_bridge_is_refused_or_replaced
    br14_ipv6_gateways_of_several_networks_live_side_by_side
    br15_promiscuous_mode
    br24_vlan_ids
    b4_1_a_bridge_name_held_by_another_device
    b4_5_mtu
    b4_6_hairpin_mode
    b4_6_hairpin_and_promiscuous_mode_exclude_each_other
    b4_10_a_bad_mac_is_refused
}

/// BR26: the reference that Debian packages has no STATUS.
#[test]
fn br26_status_succeeds_when_the_ipam_plugin_s_does() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let plugin = plugin(&sandbox, &pod, gateway_config(Family::Osvc, "1.1.0", &["10.1.2.0/24"]));
    plugin.call("STATUS").done();
    plugin.add();
    plugin.call("STATUS").done();
}

/// B4.3. The reference minds any other IPv4 address; ours minds one that clashes with its gateway.
fn br14_a_foreign_address_on_the_bridge_is_refused_or_replaced(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    sandbox.sh("ip link add name cni9 type bridge && ip addr add 10.1.2.1/16 dev cni9").ok();
    let config = gateway_config(family, "1.0.0", &["10.1.2.0/24"]);
    let (_, message) = plugin(&sandbox, &pod, config.clone()).add_fails();
    assert!(message.contains("cni9") && message.contains("10.1.2.1"), "bridge and address are named: {message}");
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    sandbox.sh("ip link add name cni9 type bridge && ip addr add 10.1.2.1/16 dev cni9").ok();
    let mut config = config;
    config["forceAddress"] = json!(true);
    plugin(&sandbox, &pod, config).add();
    assert_eq!(sandbox.addresses("cni9"), ["10.1.2.1/24"], "forceAddress replaces it");
}

fn br14_ipv6_gateways_of_several_networks_live_side_by_side(family: Family) {
    let sandbox = Sandbox::new();
    for (name, subnet) in [("a", "2001:db8:1::/64"), ("b", "2001:db8:2::/64")] {
        let pod = sandbox.netns(name);
        let mut config = gateway_config(family, "1.0.0", &[subnet]);
        config["name"] = json!(format!("net-{name}"));
        plugin(&sandbox, &pod, config).container(name).add();
    }
    let mut addresses = sandbox.addresses("cni9");
    addresses.sort();
    assert_eq!(addresses, ["2001:db8:1::1/64", "2001:db8:2::1/64"]);
}

/// Ours: a later release; refused by name, never ignored.
fn br15_promiscuous_mode(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let mut config = gateway_config(family, "1.0.0", &["10.1.2.0/24"]);
    config["promiscMode"] = json!(true);
    let plugin = plugin(&sandbox, &pod, config);
    if family.is_ours() {
        let (code, message) = plugin.add_fails();
        assert_eq!(code, 2, "{message}");
        assert!(message.contains("promiscMode"), "{message}");
    } else {
        plugin.add();
        assert_eq!(sandbox.link("cni9")["promiscuity"], 1);
    }
}

/// The reference that Debian packages does not have this key.
#[test]
fn br22_a_container_end_that_stays_down() {
    let family = Family::Osvc;
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let mut config = gateway_config(family, "1.0.0", &["10.1.2.0/24"]);
    config["disableContainerInterface"] = json!(true);
    let (_, message) = plugin(&sandbox, &pod, config).add_fails();
    assert!(message.to_lowercase().contains("disablecontainerinterface"), "IPAM needs the interface: {message}");
    let mut config = family.bridge_config("1.0.0", "mynet2", json!({}));
    config["disableContainerInterface"] = json!(true);
    plugin(&sandbox, &pod, config).add();
    let link = sandbox.link_in(&pod, "eth0");
    assert!(!link["flags"].as_array().unwrap().contains(&json!("UP")), "the container's end is down: {link}");
}

/// Ours: VLANs are a later release; refused by name, never ignored.
fn br24_vlan_ids(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for vlan in [-100, 5000] {
        let mut config = family.bridge_config("1.0.0", "mynet", json!({}));
        config["vlan"] = json!(vlan);
        let (_, message) = plugin(&sandbox, &pod, config).add_fails();
        assert!(message.to_lowercase().contains("vlan"), "{message}");
    }
    let mut config = family.bridge_config("1.0.0", "mynet", json!({}));
    config["vlan"] = json!(0);
    plugin(&sandbox, &pod, config.clone()).add();
    if family.is_ours() {
        config["vlan"] = json!(100);
        let (code, message) = plugin(&sandbox, &pod, config).container("c2").ifname("eth1").add_fails();
        assert_eq!(code, 2, "{message}");
        assert!(message.contains("vlan"), "{message}");
    }
}

fn b4_1_a_bridge_name_held_by_another_device(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    sandbox.ip("link add name cni9 type veth peer name cni9p");
    let before = sandbox.leftovers();
    let (_, message) = plugin(&sandbox, &pod, gateway_config(family, "1.0.0", &["10.1.2.0/24"])).add_fails();
    assert!(message.contains("cni9") && message.contains("not a bridge"), "{message}");
    assert!(sandbox.held(family, "mynet").is_empty());
    if family.is_ours() {
        sandbox.leftovers().assert_same_as(&before, "a refused ADD");
    }
}

fn b4_5_mtu(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let mut config = gateway_config(family, "1.0.0", &["10.1.2.0/24"]);
    config["mtu"] = json!(1400);
    let result = plugin(&sandbox, &pod, config).add();
    assert_eq!(sandbox.link("cni9")["mtu"], 1400);
    assert_eq!(sandbox.link(result["interfaces"][1]["name"].as_str().unwrap())["mtu"], 1400);
    assert_eq!(sandbox.link_in(&pod, "eth0")["mtu"], 1400);
}

fn b4_6_hairpin_mode(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for hairpin in [true, false] {
        let mut config = gateway_config(family, "1.0.0", &["10.1.2.0/24"]);
        config["hairpinMode"] = json!(hairpin);
        let plugin = plugin(&sandbox, &pod, config);
        let result = plugin.add();
        let port = sandbox.link(result["interfaces"][1]["name"].as_str().unwrap());
        assert_eq!(port["linkinfo"]["info_slave_data"]["hairpin"], hairpin, "{port}");
        plugin.del();
    }
}

fn b4_6_hairpin_and_promiscuous_mode_exclude_each_other(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let mut config = gateway_config(family, "1.0.0", &["10.1.2.0/24"]);
    config["hairpinMode"] = json!(true);
    config["promiscMode"] = json!(true);
    let (_, message) = plugin(&sandbox, &pod, config).add_fails();
    assert!(message.contains("promisc"), "{message}");
}

fn b4_10_a_bad_mac_is_refused(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for mac in ["zz", "01:00:5e:00:00:01", "00:00:00:00:00:00", "02:00:00:00:00:00:00:01"] {
        let before = sandbox.leftovers();
        let plugin = plugin(&sandbox, &pod, gateway_config(family, "1.0.0", &["10.1.2.0/24"]))
            .args(&format!("IgnoreUnknown=1;MAC={mac}"));
        let (code, message) = plugin.add_fails();
        assert!(!sandbox.links_in(&pod).contains("eth0"), "{mac}");
        if family.is_ours() {
            assert!(message.contains(mac), "the address is named: {message}");
            assert!(matches!(code, 2 | 4 | 7), "{mac} is an error of what was asked: {code} {message}");
            sandbox.leftovers().assert_same_as(&before, "a refused ADD");
        }
        plugin.del();
    }
}
