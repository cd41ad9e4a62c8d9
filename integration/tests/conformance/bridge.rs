//! BR1–BR9, BR16–BR20, BR26: bridge, pair and addresses as the reference's keys ask for (bridge_test.go).

use integration::{Family, Netns, Plugin, Sandbox, addresses_of, container_mac};
use serde_json::{Value, json};

both! {
    br1_the_bridge_is_made_up_and_not_promiscuous
    br2_a_bridge_that_is_there_is_used
    br3_br5_br6_br7_gateway_addresses_routes_and_clean_up
    br3_dns_of_resolv_conf
    br3_three_addresses_need_a_version_that_can_say_so
    br4_the_result_lists_bridge_host_end_and_container_end
    br8_del_of_what_was_never_added_succeeds
    br9_layer_2_has_no_addresses
    br16_the_bridge_keeps_its_mac
    br17_a_requested_mac_is_given
    br18_a_failed_add_holds_no_address
    br19_masquerading_comes_and_goes
    br20_check_passes_right_after_add
}

pub(super) fn plugin<'a>(sandbox: &'a Sandbox, pod: &Netns, config: Value) -> Plugin<'a> {
    let name = config["type"].as_str().unwrap().to_owned();
    sandbox.plugin(&name).netns(pod).config(config)
}

/// Sets of one subnet each, in the reference's keys, with the bridge as default gateway.
pub(super) fn gateway_config(family: Family, version: &str, subnets: &[&str]) -> Value {
    let ranges: Vec<_> = subnets.iter().map(|subnet| json!([{"subnet": subnet}])).collect();
    let mut config = family.bridge_config(version, "mynet", json!({"ranges": ranges}));
    config["isDefaultGateway"] = json!(true);
    config["isGateway"] = json!(true);
    config
}

fn br1_the_bridge_is_made_up_and_not_promiscuous(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    plugin(&sandbox, &pod, gateway_config(family, "1.0.0", &["10.1.2.0/24"])).add();
    let bridge = sandbox.link("cni9");
    assert_eq!(bridge["linkinfo"]["info_kind"], "bridge");
    assert_eq!(bridge["promiscuity"], 0);
    assert_eq!(bridge["linkinfo"]["info_data"]["vlan_filtering"], 0, "BR5: no VLAN filtering without VLAN");
    assert!(bridge["flags"].as_array().unwrap().contains(&json!("UP")), "{bridge}");
}

fn br2_a_bridge_that_is_there_is_used(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    sandbox.ip("link add name cni9 type bridge");
    let before = sandbox.link("cni9");
    let plugin = plugin(&sandbox, &pod, gateway_config(family, "1.0.0", &["10.1.2.0/24"]));
    plugin.add();
    assert_eq!(sandbox.link("cni9")["ifindex"], before["ifindex"]);
    plugin.del();
    assert!(sandbox.links().contains("cni9"), "a bridge is not taken away with its last port");
}

fn br3_br5_br6_br7_gateway_addresses_routes_and_clean_up(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for version in family.versions() {
        for subnets in [&["10.1.2.0/24"][..], &["2001:db8:42::/64"], &["192.168.0.0/24", "fd00::/64"]] {
            let what = format!("{version} {subnets:?}");
            let plugin = plugin(&sandbox, &pod, gateway_config(family, version, subnets));
            let result = plugin.add();
            let addresses = addresses_of(&result);
            assert_eq!(addresses.len(), subnets.len(), "{what}: {result}");
            let gateways: Vec<_> =
                subnets.iter().map(|subnet| subnet.replacen(".0/", ".1/", 1).replacen("::/", "::1/", 1)).collect();
            let mut on_bridge = sandbox.addresses("cni9");
            on_bridge.sort();
            let mut expected = gateways.clone();
            expected.sort();
            assert_eq!(on_bridge, expected, "{what}: the gateway is on the bridge, with its prefix");
            assert_eq!(sandbox.links().len(), 3, "{what}: lo, bridge and host end: {:?}", sandbox.links());
            let mut inside = sandbox.addresses_in(&pod, "eth0");
            inside.sort();
            let mut given = addresses;
            given.sort();
            assert_eq!(inside, given, "{what}: the container has exactly its addresses");
            for (family_number, marker) in [(4, '.'), (6, ':')] {
                let gateway = gateways.iter().find(|gateway| gateway.contains(marker));
                let routes = sandbox.routes_in(&pod, family_number);
                let default = routes.iter().find(|route| route["dst"] == "default");
                assert_eq!(
                    default.and_then(|route| route["gateway"].as_str()),
                    gateway.and_then(|gateway| gateway.split('/').next()),
                    "{what}: default route of IPv{family_number}: {routes:?}"
                );
                assert!(default.is_none_or(|route| route["prefsrc"].is_null()), "{what}: {default:?}");
            }
            assert_eq!(sandbox.link_in(&pod, "eth0")["operstate"], "UP", "{what}");
            plugin.del();
            assert!(!sandbox.links_in(&pod).contains("eth0"), "{what}: DEL removes the container's end");
            assert_eq!(sandbox.links().len(), 2, "{what}: and the host's: {:?}", sandbox.links());
            assert!(sandbox.held(family, "mynet").is_empty(), "{what}: and frees the addresses");
            sandbox.ip("link del cni9");
            // Ours remembers what it set up; in this loop the network is another one each time.
            sandbox.sh("rm -rf /var/lib/cni/*").ok();
        }
    }
}

/// The reference that Debian packages drops what its IPAM plugin read.
fn br3_dns_of_resolv_conf(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    sandbox.write("/run/resolv.conf", "nameserver 192.0.2.53\nsearch a.example\n");
    let mut config = gateway_config(family, "1.0.0", &["10.1.2.0/24"]);
    config["ipam"]["resolvConf"] = json!("/run/resolv.conf");
    let result = plugin(&sandbox, &pod, config.clone()).add();
    if family.is_ours() {
        assert_eq!(result["dns"], json!({"nameservers": ["192.0.2.53"], "search": ["a.example"]}));
    }
    plugin(&sandbox, &pod, config.clone()).del();
    config["dns"] = json!({"domain": "b.example"});
    let result = plugin(&sandbox, &pod, config).add();
    assert_eq!(result["dns"], json!({"domain": "b.example"}), "the network's dns replaces the IPAM plugin's");
}

/// The reference fails its DEL as well; ours does not, so that the runtime can clean up.
fn br3_three_addresses_need_a_version_that_can_say_so(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let subnets = ["192.168.0.0/24", "fd00::/64", "2001:db8::/64"];
    for version in family.versions() {
        let plugin = plugin(&sandbox, &pod, gateway_config(family, version, &subnets));
        if *version < "0.3.0" {
            let before = sandbox.leftovers();
            let (_, message) = plugin.add_fails();
            assert!(message.contains("does not support more than 1 address per family"), "{version}: {message}");
            if family.is_ours() {
                sandbox.leftovers().assert_same_as(&before, "a refused ADD");
                plugin.del();
            } else {
                plugin.call("DEL").error();
                sandbox.sh("ip link del cni9; rm -rf /var/lib/cni/*");
            }
        } else {
            assert_eq!(addresses_of(&plugin.add()).len(), 3, "{version}");
            plugin.del();
        }
    }
}

fn br4_the_result_lists_bridge_host_end_and_container_end(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for version in family.versions() {
        let plugin = plugin(&sandbox, &pod, gateway_config(family, version, &["10.1.2.0/24"]));
        let result = plugin.add();
        if *version < "0.3.0" {
            assert!(result["ip4"]["ip"].is_string() && result["interfaces"].is_null(), "{version}: {result}");
        } else {
            let interfaces = result["interfaces"].as_array().unwrap();
            assert_eq!(interfaces.len(), 3, "{version}: {result}");
            assert_eq!(interfaces[0]["name"], "cni9", "{version}");
            assert_eq!(interfaces[0]["mac"], sandbox.link("cni9")["address"], "{version}: the bridge's real MAC");
            let host_end = sandbox.link(interfaces[1]["name"].as_str().unwrap());
            assert_eq!(host_end["master"], "cni9", "{version}");
            assert_eq!(interfaces[1]["mac"], host_end["address"], "{version}");
            assert_ne!(interfaces[0]["mac"], interfaces[1]["mac"], "BR6: the bridge's MAC is not its port's");
            assert_eq!(host_end["linkinfo"]["info_slave_data"]["isolated"], false, "BR5: {version}");
            assert_eq!(interfaces[2]["name"], "eth0", "{version}");
            assert_eq!(interfaces[2]["sandbox"], json!(pod.path), "{version}");
            assert_eq!(interfaces[2]["mac"], sandbox.link_in(&pod, "eth0")["address"], "{version}");
            assert_eq!(result["ips"][0]["interface"], 2, "{version}: {result}");
        }
        assert_eq!(result["cniVersion"], if *version == "0.1.0" && !family.is_ours() { "0.1.0" } else { version });
        plugin.del();
    }
}

fn br8_del_of_what_was_never_added_succeeds(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for version in family.versions() {
        plugin(&sandbox, &pod, gateway_config(family, version, &["10.1.2.0/24"])).del();
        plugin(&sandbox, &pod, gateway_config(family, version, &["10.1.2.0/24"])).no_netns().del();
    }
}

/// F15: the reference sets everything up before it finds that 0.2.0 cannot say so.
fn br9_layer_2_has_no_addresses(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for version in family.versions() {
        let plugin = plugin(&sandbox, &pod, family.bridge_config(version, "mynet", json!({})));
        if *version < "0.3.0" {
            let (_, message) = plugin.add_fails();
            assert!(message.contains("no valid IP addresses"), "{version}: {message}");
            if family.is_ours() {
                assert!(!sandbox.links_in(&pod).contains("eth0"), "{version}: refused before anything was done");
            }
        } else {
            let result = plugin.add();
            assert!(addresses_of(&result).is_empty(), "{version}: {result}");
            assert!(sandbox.addresses_in(&pod, "eth0").is_empty() && sandbox.addresses("cni9").is_empty(), "{version}");
            assert_eq!(sandbox.link_in(&pod, "eth0")["operstate"], "UP", "{version}");
        }
        plugin.del();
        assert!(!sandbox.links_in(&pod).contains("eth0"), "{version}");
    }
}

fn br16_the_bridge_keeps_its_mac(family: Family) {
    let sandbox = Sandbox::new();
    for subnet in ["10.1.2.0/24", "2001:db8:42::/64"] {
        let pods = ["a", "b", "c"].map(|name| sandbox.netns(name));
        let config = gateway_config(family, "1.0.0", &[subnet]);
        let add = |pod: &Netns| plugin(&sandbox, pod, config.clone()).container(&pod.name).add();
        add(&pods[0]);
        let mac = sandbox.link("cni9")["address"].clone();
        add(&pods[1]);
        add(&pods[2]);
        assert_eq!(sandbox.link("cni9")["address"], mac, "{subnet}: after more ports");
        for pod in &pods {
            plugin(&sandbox, pod, config.clone()).container(&pod.name).del();
            assert_eq!(sandbox.link("cni9")["address"], mac, "{subnet}: after ports went");
            sandbox.delete_netns(pod);
        }
        sandbox.sh("ip link del cni9; rm -rf /var/lib/cni/*").ok();
    }
}

fn br17_a_requested_mac_is_given(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let base = plugin(&sandbox, &pod, gateway_config(family, "1.0.0", &["10.1.2.0/24"]));
    let by_args = base.clone().args("IgnoreUnknown=true;MAC=c2:11:22:33:44:55");
    let by_cni_args = by_args.clone().with("args", json!({"cni": {"mac": "c2:11:22:33:44:66"}}));
    let by_runtime = by_cni_args.clone().with("runtimeConfig", json!({"mac": "c2:11:22:33:44:77"}));
    for (plugin, mac) in
        [(by_args, "c2:11:22:33:44:55"), (by_cni_args, "c2:11:22:33:44:66"), (by_runtime, "c2:11:22:33:44:77")]
    {
        let result = plugin.add();
        assert_eq!(container_mac(&result), Some(mac));
        assert_eq!(sandbox.link_in(&pod, "eth0")["address"], mac);
        plugin.del();
    }
}

/// The failure: a bridge address that is not the gateway (B4.3), found after the address was allocated.
fn br18_a_failed_add_holds_no_address(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    sandbox.sh("ip link add name cni9 type bridge && ip addr add 10.1.2.1/16 dev cni9").ok();
    let before = sandbox.leftovers();
    let plugin = plugin(&sandbox, &pod, gateway_config(family, "1.0.0", &["10.1.2.0/24"]));
    plugin.add_fails();
    assert!(sandbox.held(family, "mynet").is_empty());
    if family.is_ours() {
        // F2: the reference leaves eth0 with its address in the container.
        sandbox.leftovers().assert_same_as(&before, "a failed ADD");
        assert!(!sandbox.links_in(&pod).contains("eth0"), "a failed ADD is undone");
        sandbox.ip("addr flush dev cni9");
        plugin.add();
    }
}

fn br19_masquerading_comes_and_goes(family: Family) {
    let sandbox = Sandbox::new();
    sandbox.outside();
    let pod = sandbox.netns("pod");
    let mut config = gateway_config(family, "1.0.0", &["10.1.2.0/24"]);
    let unmasqueraded = plugin(&sandbox, &pod, config.clone());
    unmasqueraded.add();
    assert!(!sandbox.ping(&pod, "192.0.2.1"), "outside has no route back");
    unmasqueraded.del();
    config["ipMasq"] = json!(true);
    let plugin = plugin(&sandbox, &pod, config);
    let result = plugin.add();
    assert!(sandbox.ping(&pod, "192.0.2.1"), "ipMasq takes the container outside");
    let rules = sandbox.sh("nft list ruleset; iptables-save").stdout;
    let address = addresses_of(&result)[0].split('/').next().unwrap().to_owned();
    let expected = if family.is_ours() { "masquerade" } else { address.as_str() };
    assert!(rules.contains(expected), "{rules}");
    plugin.del();
    let rules = sandbox.sh("nft list ruleset; iptables-save").stdout;
    assert!(!rules.contains(&address), "nothing names the container after DEL: {rules}");
}

fn br20_check_passes_right_after_add(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for version in family.versions().iter().filter(|version| **version >= "0.4.0") {
        for subnets in [&["10.1.2.0/24"][..], &["2001:db8:42::/64"], &["192.168.0.0/24", "fd00::/64"]] {
            let plugin = plugin(&sandbox, &pod, gateway_config(family, version, subnets));
            let result = plugin.add();
            plugin.check(&result);
            sandbox.ip("-n pod addr flush dev eth0");
            plugin.check_fails(&result);
            plugin.del();
            sandbox.sh("ip link del cni9; rm -rf /var/lib/cni/*").ok();
        }
    }
}
