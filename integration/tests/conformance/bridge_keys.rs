//! BR14, BR15, BR22–BR26 and the table of keys (B4): what each key does, and what happens to a wrong one.

use integration::{Family, Sandbox, addresses_of};
use serde_json::{Value, json};

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

fn br15_promiscuous_mode(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let mut config = gateway_config(family, "1.0.0", &["10.1.2.0/24"]);
    config["promiscMode"] = json!(true);
    let plugin = plugin(&sandbox, &pod, config);
    let result = plugin.add();
    assert_eq!(sandbox.link("cni9")["promiscuity"], 1);
    plugin.check(&result);
    sandbox.ip("link set cni9 promisc off");
    let (_, message) = plugin.check_fails(&result);
    assert!(message.contains("cni9") && message.to_lowercase().contains("promisc"), "{message}");
    if family.is_ours() {
        let other = sandbox.netns("other");
        plugin.clone().container("c2").netns(&other).add();
        plugin.check(&result);
    }
}

/// The reference that Debian packages does not have this key.
#[test]
fn br23_isolated_containers_reach_the_gateway_and_not_each_other() {
    let sandbox = Sandbox::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| sandbox.netns(name));
    let mut config = gateway_config(Family::Osvc, "1.0.0", &["10.1.2.0/24"]);
    let open = plugin(&sandbox, &c, config.clone()).container("c").add();
    config["portIsolation"] = json!(true);
    let first = plugin(&sandbox, &a, config.clone()).container("a");
    let result = first.add();
    let other = plugin(&sandbox, &b, config).container("b").add();
    let open_port = open["interfaces"][1]["name"].as_str().unwrap();
    let settled = &sandbox.link(open_port)["linkinfo"]["info_slave_data"]["isolated"];
    assert_eq!(*settled, json!(true), "the edit reaches who was there");
    sandbox.ip(&format!("link set {open_port} type bridge_slave isolated off"));
    let isolated = |result: &Value| {
        sandbox.link(result["interfaces"][1]["name"].as_str().unwrap())["linkinfo"]["info_slave_data"]["isolated"]
            .clone()
    };
    assert_eq!([&result, &other, &open].map(isolated), [json!(true), json!(true), json!(false)]);
    let address = |result: &Value| addresses_of(result)[0].split('/').next().unwrap().to_owned();
    // The neighbour is looked for in vain: nothing has to be waited for longer.
    assert!(!sandbox.ping(&a, &address(&other)), "two isolated containers do not reach each other");
    for (from, to) in [(&a, "10.1.2.1"), (&b, "10.1.2.1"), (&a, &address(&open)), (&c, &address(&other))] {
        assert!(sandbox.ping(from, to), "{} reaches {to}", from.name);
    }
    first.check(&result);
    let port = result["interfaces"][1]["name"].as_str().unwrap();
    sandbox.ip(&format!("link set {port} type bridge_slave isolated off"));
    let (_, message) = first.check_fails(&result);
    assert!(message.contains(port) && message.contains("not isolated"), "{message}");
}

/// `ipMasqBackend` is anybody's choice and makes no difference; that is said with the network's first container, and not
/// with the next one.
#[test]
fn b4_4_any_backend_is_taken_and_ours_is_used() {
    let sandbox = Sandbox::new();
    for (number, backend) in ["iptables", "nftables", "foo"].into_iter().enumerate() {
        let mut config = gateway_config(Family::Osvc, "1.0.0", &[&format!("10.1.{number}.0/24")]);
        (config["name"], config["ipMasq"]) = (json!(format!("net{number}")), json!(true));
        config["ipMasqBackend"] = json!(backend);
        let said: Vec<bool> = ["a", "b"]
            .map(|name| {
                let pod = sandbox.netns(&format!("{name}{number}"));
                let call = plugin(&sandbox, &pod, config.clone()).container(name).env("OSVC_LOG", "info");
                let reply = call.call("ADD");
                let said = reply.output.stderr.contains("ipMasqBackend");
                reply.result();
                said
            })
            .into();
        assert_eq!(said, [true, false], "{backend:?}");
        assert!(sandbox.ruleset().contains(&format!("10.1.{number}.0/24")));
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
    let before = sandbox.leftovers();
    let (code, message) = plugin(&sandbox, &pod, config).add_fails();
    assert!(code == 7 && message.contains("disableContainerInterface: true"), "IPAM needs the interface: {message}");
    sandbox.leftovers().assert_same_as(&before, "a refused ADD");
    let mut config = family.bridge_config("1.0.0", "mynet2", json!({}));
    config["disableContainerInterface"] = json!(true);
    plugin(&sandbox, &pod, config).add();
    let link = sandbox.link_in(&pod, "eth0");
    assert!(!link["flags"].as_array().unwrap().contains(&json!("UP")), "the container's end is down: {link}");
}

/// What the reference that Debian packages has of these keys is `vlan`.
fn br24_vlan_ids(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for vlan in [-100, 5000, 4095] {
        let mut config = family.bridge_config("1.0.0", "mynet", json!({}));
        config["vlan"] = json!(vlan);
        let before = sandbox.leftovers();
        let (_, message) = plugin(&sandbox, &pod, config).add_fails();
        let expected = format!("invalid VLAN ID {vlan} (must be between 0 and ");
        assert!(message.contains(&expected), "{message}");
        sandbox.leftovers().assert_same_as(&before, &message);
    }
    let mut config = family.bridge_config("1.0.0", "mynet", json!({}));
    config["vlan"] = json!(0);
    plugin(&sandbox, &pod, config.clone()).add();
}

/// The nine of the reference's suite, and what else is wrong.
#[test]
fn br25_vlan_trunk_entries() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let before = sandbox.leftovers();
    let missing = "minID and maxID should be configured simultaneously";
    for (entry, expected) in [
        (json!({"minID": 10}), format!("{missing}, maxID is missing")),
        (json!({"maxID": 10}), format!("{missing}, minID is missing")),
        (json!({"minID": 10, "maxID": 5}), "minID is greater than maxID in trunk parameter".to_owned()),
        (json!({"minID": 0, "maxID": 5}), "incorrect trunk minID parameter".to_owned()),
        (json!({"minID": 4095, "maxID": 4096}), "incorrect trunk minID parameter".to_owned()),
        (json!({"minID": -1, "maxID": 5}), "incorrect trunk minID parameter".to_owned()),
        (json!({"minID": 5, "maxID": 4095}), "incorrect trunk maxID parameter".to_owned()),
        (json!({"id": 0}), "incorrect trunk id parameter".to_owned()),
        (json!({"id": 4095}), "incorrect trunk id parameter".to_owned()),
        (json!({"id": "x"}), "vlanTrunk[1].id".to_owned()),
    ] {
        let mut config = Family::Osvc.bridge_config("1.0.0", "mynet", json!({}));
        config["vlanTrunk"] = json!([{"id": 101}, entry]);
        let (code, message) = plugin(&sandbox, &pod, config).add_fails();
        assert!([2, 6].contains(&code) && message.contains("vlanTrunk") && message.contains(&expected), "{message}");
        sandbox.leftovers().assert_same_as(&before, &message);
    }
}

/// A kernel without VLAN filtering, as this one may be: refused, and nothing is left. With it: VLANs are tested in the VM.
#[test]
fn br10_vlans_on_a_kernel_without_filtering() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    if sandbox.sh("ip link add probe type bridge vlan_filtering 1").rc == 0 {
        return;
    }
    let before = sandbox.leftovers();
    let l3 = gateway_config(Family::Osvc, "1.0.0", &["10.1.2.0/24"]);
    for (key, value) in [("vlan", json!(100)), ("vlanTrunk", json!([{"id": 101}]))] {
        for mut config in [l3.clone(), Family::Osvc.bridge_config("1.0.0", "mynet", json!({}))] {
            config[key] = value.clone();
            let (code, message) = plugin(&sandbox, &pod, config).add_fails();
            assert_eq!(code, 50, "{message}");
            assert!(message.contains("cni9") && message.contains("CONFIG_BRIDGE_VLAN_FILTERING"), "{message}");
            sandbox.leftovers().assert_same_as(&before, &message);
        }
    }
    let mut config = l3;
    config["preserveDefaultVlan"] = json!(true);
    plugin(&sandbox, &pod, config).add();
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
    let before = sandbox.leftovers();
    let (code, message) = plugin(&sandbox, &pod, config).add_fails();
    assert!(message.contains("cannot set hairpin mode and promiscuous mode at the same time"), "{message}");
    if family.is_ours() {
        assert!(
            code == 7 && message.contains("hairpinMode: true") && message.contains("promiscMode: true"),
            "{message}"
        );
        sandbox.leftovers().assert_same_as(&before, "a refused ADD");
    }
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
