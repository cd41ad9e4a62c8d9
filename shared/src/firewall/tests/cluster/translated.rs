//! Other networks of a node towards the other nodes of a routed one.

use super::*;

#[test]
fn the_whole_network_is_inside_and_local_networks_are_translated_towards_it() {
    in_new_netns(|| {
        let place = Place::new(&[A, B]);
        node(&place, "r", Vec::new());
        place.apply();
        let rules = ruleset();
        for text in [
            "10.11.0.0/16 comment \"osvc:r\"",
            "elements = { 10.1.0.0/16 comment \"osvc:a\", 10.2.0.0/16 comment \"osvc:b\",",
            "10.11.0.0/22 comment \"osvc:r\" }",
            "ip saddr @local ip saddr != 10.11.0.0/16 ip daddr 10.11.0.0/16 ip daddr != 10.11.0.0/22 \
             snat to 10.11.0.1 comment \"osvc:r\"",
            "ip saddr 10.11.0.0/22 ip daddr != @inside masquerade comment \"osvc:r\"",
        ] {
            assert!(rules.contains(text), "{text} in {rules}");
        }
        assert!(!rules.contains("prerouting"), "no tunnels, no checks: {rules}");
        assert_eq!(rules.matches("set local").count(), 1, "only where a routed network is: {rules}");
        for name in ["a", "b", "r"] {
            assert!(place.is_in_place(name), "{name}");
            place.passes(name);
        }
        // A network that comes or goes is in the set, and whatever is done to that is seen.
        place.set_up("c", &["10.3.0.0/24"], |_| {});
        place.apply();
        let local = run("nft", &["list", "set", "ip", "osvc-cni", "local"]);
        assert!(local.contains("10.3.0.0/24 comment \"osvc:c\""), "{local}");
        nft("delete element ip osvc-cni local { 10.3.0.0/24 }");
        assert!(!place.is_in_place("c"));
        place.apply();
        place.passes("c");
        place.lose("c");
        forget(&place.host, &"c".parse().unwrap()).unwrap();
        assert_eq!(ruleset(), rules);
        place.lose("r");
        forget(&place.host, &"r".parse().unwrap()).unwrap();
        assert!(!ruleset().contains("local"), "{}", ruleset());
    });
}

/// The rule by which other networks go to the other nodes of one.
fn towards(network: &str, own: &str, gateway: &str, name: &str) -> String {
    let family = if network.contains(':') { "ip6" } else { "ip" };
    format!(
        "{family} saddr @local {family} saddr != {network} {family} daddr {network} {family} daddr != {own} \
         snat to {gateway} comment \"osvc:{name}\""
    )
}

#[test]
fn routed_networks_are_translated_towards_each_other_and_public_ones_are_not() {
    in_new_netns(|| {
        let place = Place::new(&[]);
        let dual = |name, subnets: [&str; 2], whole: [&str; 2], gateways: [&str; 2], masquerade| {
            place.set_up(name, &subnets, |record| {
                record.gateways = gateways.iter().map(|gateway| gateway.parse().unwrap()).collect();
                (record.masquerade_v4, record.masquerade_v6) = masquerade;
            });
            join(&place, name, &whole, Vec::new());
        };
        let red = (["10.11.4.0/22", "fd11:0:0:1::/64"], ["10.11.0.0/16", "fd11::/48"]);
        dual("red", red.0, red.1, ["10.11.4.1/22", "fd11:0:0:1::1/64"], (true, true));
        let blue = (["10.12.4.0/22", "fd12:0:0:1::/64"], ["10.12.0.0/16", "fd12::/48"]);
        dual("blue", blue.0, blue.1, ["10.12.4.1/22", "fd12:0:0:1::1/64"], (true, false));
        place.set_up("public", &["203.0.113.0/28"], |record| record.masquerade_v4 = false);
        place.apply();
        let rules = ruleset();
        for text in [
            towards("10.11.0.0/16", "10.11.4.0/22", "10.11.4.1", "red"),
            towards("10.12.0.0/16", "10.12.4.0/22", "10.12.4.1", "blue"),
            towards("fd11::/48", "fd11:0:0:1::/64", "fd11:0:0:1::1", "red"),
            towards("fd12::/48", "fd12:0:0:1::/64", "fd12:0:0:1::1", "blue"),
        ] {
            assert!(rules.contains(&text), "{text} in {rules}");
        }
        let set = |family: &str| run("nft", &["list", "set", family, "osvc-cni", "local"]);
        let (v4, v6) = (set("ip"), set("ip6"));
        assert!(v4.contains("10.11.4.0/22") && v4.contains("10.12.4.0/22") && !v4.contains("203.0.113"), "{v4}");
        assert!(v6.contains("fd11:0:0:1::/64") && !v6.contains("fd12"), "each family for itself: {v6}");
        for name in ["red", "blue", "public"] {
            assert!(place.is_in_place(name), "{name}");
            place.passes(name);
        }
    });
}
