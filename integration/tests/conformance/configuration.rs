//! CF, RG, IP: what the IPAM plugin accepts as configuration and what it refuses, with which words.

use integration::{Family, Plugin, Sandbox, addresses_of};
use serde_json::{Value, json};

both! {
    cf1_cf2_flat_and_nested_configuration_have_the_same_defaults
    cf3_sets_are_ordered_runtime_flat_ranges
    cf4_cf5_cf6_requested_addresses_with_and_without_prefix
    cf7_cf8_cf9_cf10_sets_that_contradict_each_other_are_refused
    cf11_one_address_per_family_fits_every_version
    rg1_defaults_of_a_range
    rg2_rg4_impossible_ranges_are_refused_by_name
    rg3_a_subnet_too_small_for_a_gateway
    rg5_start_and_end_are_inclusive
    rg6_disjoint_parts_of_one_subnet_are_two_pools
    b1_6_data_dir_moves_the_store
}

fn ipam<'a>(sandbox: &'a Sandbox, family: Family, version: &str, keys: Value) -> Plugin<'a> {
    let netns = if sandbox.exists("/run/netns/pod") { "/run/netns/pod".to_owned() } else { sandbox.netns("pod").path };
    sandbox.plugin(family.ipam()).netns_path(&netns).config(family.ipam_config(version, "mynet", keys))
}

fn cf1_cf2_flat_and_nested_configuration_have_the_same_defaults(family: Family) {
    let sandbox = Sandbox::new();
    for keys in [json!({"subnet": "10.1.2.0/24"}), json!({"ranges": [[{"subnet": "10.1.2.0/24"}]]})] {
        let plugin = ipam(&sandbox, family, "0.4.0", keys);
        let result = plugin.add();
        assert!(addresses_of(&result)[0].starts_with("10.1.2."), "{result}");
        assert_eq!(result["ips"][0]["gateway"], "10.1.2.1", "{result}");
        plugin.del();
    }
}

fn cf3_sets_are_ordered_runtime_flat_ranges(family: Family) {
    let sandbox = Sandbox::new();
    let keys = json!({"subnet": "10.1.2.0/24", "ranges": [[{"subnet": "10.1.4.0/24"}]]});
    let plugin = ipam(&sandbox, family, "0.4.0", keys).with(
        "runtimeConfig",
        json!({"ipRanges": [[{"subnet": "12.1.3.0/24"}], [{"subnet": "13.1.3.0/24"}]], "unknown": {"x": 1}}),
    );
    let addresses = addresses_of(&plugin.add());
    let prefixes: Vec<_> = addresses.iter().map(|address| address.rsplit_once('.').unwrap().0).collect();
    assert_eq!(prefixes, ["12.1.3", "13.1.3", "10.1.2", "10.1.4"]);
}

fn cf4_cf5_cf6_requested_addresses_with_and_without_prefix(family: Family) {
    let sandbox = Sandbox::new();
    let keys = json!({"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "2001:db8:1::/64"}]]});
    let plugin = ipam(&sandbox, family, "0.4.0", keys);
    for address in ["10.1.2.11", "10.1.2.11/24"] {
        let plugin = plugin.clone().args(&format!("IgnoreUnknown=1;IP={address}"));
        assert_eq!(addresses_of(&plugin.add())[0], "10.1.2.11/24", "CNI_ARGS IP={address}");
        plugin.del();
    }
    for (four, six) in [("10.1.2.12", "2001:db8:1::c"), ("10.1.2.12/24", "2001:db8:1::c/64")] {
        for plugin in [
            plugin.clone().with("args", json!({"cni": {"ips": [four, six]}})),
            plugin.clone().with("runtimeConfig", json!({"ips": [four, six]})),
        ] {
            assert_eq!(addresses_of(&plugin.add()), ["10.1.2.12/24", "2001:db8:1::c/64"]);
            plugin.del();
        }
    }
}

fn cf7_cf8_cf9_cf10_sets_that_contradict_each_other_are_refused(family: Family) {
    let sandbox = Sandbox::new();
    for (version, ranges, expected) in [
        ("0.4.0", json!([[{"subnet": "10.1.0.0/22"}], [{"subnet": "10.1.2.0/24"}]]), "range set 0 overlaps with 1"),
        (
            "0.4.0",
            json!([[{"subnet": "10.1.0.0/22"}, {"subnet": "10.1.2.0/24"}]]),
            "invalid range set 0: subnets 10.1.0.1-10.1.3.254 and 10.1.2.1-10.1.2.254 overlap",
        ),
        ("0.4.0", json!([[{"subnet": "10.1.0.0/22"}, {"subnet": "2001:db8:5::/64"}]]), "mixed address families"),
        (
            "0.2.0",
            json!([[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.1.3.0/24"}]]),
            "CNI version 0.2.0 does not support more than 1 address per family",
        ),
        ("0.4.0", json!([]), "no IP ranges specified"),
        ("0.4.0", json!([[]]), "empty range set"),
    ] {
        let (_, message) = ipam(&sandbox, family, version, json!({"ranges": ranges})).add_fails();
        assert!(message.contains(expected), "{ranges}: expected `{expected}`, got `{message}`");
    }
    assert!(sandbox.held(family, "mynet").is_empty());
}

fn cf11_one_address_per_family_fits_every_version(family: Family) {
    let sandbox = Sandbox::new();
    for version in family.versions() {
        let keys = json!({"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "2001:db8:1::/64"}]]});
        let plugin = ipam(&sandbox, family, version, keys);
        assert_eq!(addresses_of(&plugin.add()).len(), 2, "{version}");
        plugin.del();
    }
}

fn rg1_defaults_of_a_range(family: Family) {
    let sandbox = Sandbox::new();
    for (subnet, first, last, gateway) in [
        ("192.0.2.0/24", "192.0.2.2", "192.0.2.254", "192.0.2.1"),
        ("192.0.2.0/25", "192.0.2.2", "192.0.2.126", "192.0.2.1"),
        ("192.0.2.128/25", "192.0.2.130", "192.0.2.254", "192.0.2.129"),
        ("2001:db8:1::/64", "2001:db8:1::2", "2001:db8:1:0:ffff:ffff:ffff:ffff", "2001:db8:1::1"),
    ] {
        let plugin = ipam(&sandbox, family, "0.4.0", json!({"subnet": subnet}));
        for address in [first, last] {
            let plugin = plugin.clone().with("args", json!({"cni": {"ips": [address]}}));
            let result = plugin.add();
            assert!(addresses_of(&result)[0].starts_with(address), "{subnet} has {address}: {result}");
            assert_eq!(result["ips"][0]["gateway"], gateway, "{result}");
            plugin.del();
        }
        let (_, message) = plugin.with("args", json!({"cni": {"ips": [gateway]}})).add_fails();
        assert!(message.contains(gateway), "the gateway is not for a container: {message}");
    }
}

fn rg2_rg4_impossible_ranges_are_refused_by_name(family: Family) {
    let sandbox = Sandbox::new();
    for (range, expected) in [
        (
            json!({"subnet": "192.0.2.12/24"}),
            "Network has host bits set. For a subnet mask of length 24 the network address is 192.0.2.0",
        ),
        (
            json!({"subnet": "192.0.2.12/23"}),
            "Network has host bits set. For a subnet mask of length 23 the network address is 192.0.2.0",
        ),
        (
            json!({"subnet": "2001:db8:1::12/64"}),
            "Network has host bits set. For a subnet mask of length 64 the network address is 2001:db8:1::",
        ),
        (
            json!({"subnet": "192.0.2.0/24", "rangeStart": "192.0.3.0"}),
            "RangeStart 192.0.3.0 not in network 192.0.2.0/24",
        ),
        (json!({"subnet": "192.0.2.0/24", "rangeEnd": "192.0.3.0"}), "RangeEnd 192.0.3.0 not in network 192.0.2.0/24"),
        (
            json!({"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.50", "rangeEnd": "192.0.2.40"}),
            "RangeStart 192.0.2.50 not in network",
        ),
    ] {
        let (_, message) = ipam(&sandbox, family, "0.4.0", json!({"ranges": [[range]]})).add_fails();
        assert!(message.contains(expected), "{range}: expected `{expected}`, got `{message}`");
    }
}

/// host-local refuses them; ours hands out what such a subnet has, or says why it cannot.
fn rg3_a_subnet_too_small_for_a_gateway(family: Family) {
    let sandbox = Sandbox::new();
    for subnet in ["192.0.2.0/31", "192.0.2.0/32", "2001:db8:1::/127", "2001:db8:1::/128"] {
        let plugin = ipam(&sandbox, family, "0.4.0", json!({"subnet": subnet}));
        match plugin.call("ADD").success_or_error() {
            Ok(Some(result)) if family.is_ours() => {
                assert!(addresses_of(&result)[0].starts_with("192.0.2.") || subnet.contains(':'), "{subnet}: {result}");
                plugin.del();
            }
            Err((_, message)) if family.is_ours() => {
                assert!(message.contains(subnet) || message.contains("available"), "{subnet}: {message}");
            }
            Err((_, message)) => assert!(message.contains(&format!("Network {subnet} too small")), "{message}"),
            other => panic!("{subnet}: {other:?}"),
        }
    }
}

fn rg5_start_and_end_are_inclusive(family: Family) {
    let sandbox = Sandbox::new();
    let keys = json!({"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.40", "rangeEnd": "192.0.2.41"});
    let plugin = ipam(&sandbox, family, "0.4.0", keys);
    let mut given: Vec<_> =
        ["c1", "c2"].iter().flat_map(|id| addresses_of(&plugin.clone().container(id).add())).collect();
    given.sort();
    assert_eq!(given, ["192.0.2.40/24", "192.0.2.41/24"]);
    plugin.container("c3").add_fails();
}

fn rg6_disjoint_parts_of_one_subnet_are_two_pools(family: Family) {
    let sandbox = Sandbox::new();
    let part = |start: &str, end: &str| json!({"subnet": "192.0.2.0/24", "rangeStart": start, "rangeEnd": end});
    let sets = json!({"ranges": [[part("192.0.2.10", "192.0.2.10"), part("192.0.2.20", "192.0.2.20")]]});
    let plugin = ipam(&sandbox, family, "0.4.0", sets);
    for id in ["c1", "c2"] {
        plugin.clone().container(id).add();
    }
    assert_eq!(sandbox.held(family, "mynet").len(), 2);
    let touching = json!({"ranges": [[part("192.0.2.10", "192.0.2.20"), part("192.0.2.20", "192.0.2.30")]]});
    let (_, message) = ipam(&sandbox, family, "0.4.0", touching).add_fails();
    assert!(message.contains("overlap"), "touching at one address is an overlap: {message}");
}

fn b1_6_data_dir_moves_the_store(family: Family) {
    let sandbox = Sandbox::new();
    let keys = json!({"subnet": "10.1.2.0/24", "dataDir": "/var/lib/elsewhere"});
    ipam(&sandbox, family, "0.4.0", keys).add();
    let folder = if family.is_ours() { "/var/lib/elsewhere/osvc/mynet" } else { "/var/lib/elsewhere/mynet" };
    assert_eq!(sandbox.held_in(family, folder).len(), 1, "{folder} holds the address");
}
