//! One peer's trouble is not the others'.

use super::*;

fn named(faults: &[(String, String)], name: &str) -> String {
    faults.iter().filter(|(node, _)| node == name).map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("; ")
}

#[test]
fn an_unknown_name_and_an_off_link_address_under_never() {
    with_nodes(3, |nodes| {
        let mut list: Vec<_> = (1..=3).map(|n| json!({"name": format!("node{n}"), "addr": underlay(n)})).collect();
        list.push(json!({"name": "node4", "addr": "no-such-host.invalid"}));
        let keys = json!({"tunnel": "never", "tunnelMode": "vxlan", "nodes": list});
        let config = config(31, &value(31, 1, 4, &keys));
        nodes[0].bridge(31);
        let outcome = nodes[0].setup(&config);
        assert!(named(&outcome.faults, "node3").contains("not on a link"), "{outcome:?}");
        assert!(named(&outcome.faults, "node4").contains("no-such-host.invalid did not resolve"), "{outcome:?}");
        assert_eq!(named(&outcome.faults, "node2"), "");
        assert!(outcome.warnings.iter().any(|text| text.contains("no-such-host.invalid")), "{outcome:?}");
        let routes = nodes[0].ip("route show proto 79");
        assert!(routes.contains("10.31.4.0/22 via 192.0.0.2") && !routes.contains("10.31.8.0/22"), "{routes}");
        assert!(nodes[0].in_place(&config), "an ADD has nothing to do about it");
        let looked = nodes[0].look(&config);
        assert_eq!((looked.missing, looked.faults), (Vec::new(), outcome.faults.clone()), "CHECK tells");
        let record = nodes[0].record(&config);
        assert_eq!(record.peers.iter().map(|peer| peer.faults.len()).collect::<Vec<_>>(), [0, 2, 1]);
        // The peer comes to the link.
        nodes[0].ip("route add 192.0.1.3/32 dev eth0");
        assert!(!nodes[0].in_place(&config));
    });
}

#[test]
fn a_tunnel_starts_at_an_address_that_is_still_being_checked() {
    with_nodes(3, |nodes| {
        let config = config(36, &value(36, 1, 3, &json!({"tunnel": "always", "tunnelMode": "vxlan"})));
        nodes[0].bridge(36);
        // Duplicate address detection takes a second or two after boot, and nobody would try again.
        nodes[0].ip(&format!("address del {}/64 dev eth0", underlay(1)[1]));
        nodes[0].netns.enter(|| crate::network::sysctl::Sysctl::V6("eth0", "accept_dad").set("1")).unwrap();
        nodes[0].ip(&format!("address add {}/64 dev eth0", underlay(1)[1]));
        assert!(nodes[0].ip("address show dev eth0").contains("tentative"), "the test begins in time");
        assert_eq!(nodes[0].setup(&config).faults, []);
        assert!(nodes[0].in_place(&config));
        // An address that nobody has is none to start at.
        nodes[0].ip(&format!("address del {}/64 dev eth0", underlay(1)[1]));
        let outcome = nodes[0].setup(&config);
        assert!(named(&outcome.faults, "node2").contains("no device of it has that"), "{outcome:?}");
    });
}

#[test]
fn foreign_devices_and_routes_in_the_way_are_named_and_left() {
    with_nodes(3, |nodes| {
        let config = config(32, &value(32, 1, 3, &json!({"tunnelMode": "vxlan"})));
        nodes[0].bridge(32);
        nodes[0].ip("route add 10.32.4.0/22 via 192.0.0.254");
        let outcome = nodes[0].setup(&config);
        assert!(named(&outcome.faults, "node2").contains("File exists"), "{outcome:?}");
        assert_eq!(named(&outcome.faults, "node3"), "");
        assert!(nodes[0].ip("route show").contains("10.32.4.0/22 via 192.0.0.254"));
        assert!(nodes[0].in_place(&config), "it was tried a moment ago");
        let record = nodes[0].record(&config);
        let refused = record.refused.map(|at| at - 60);
        assert!(refused.is_some() && !record.complete);
        RoutedRecord { refused, ..record }.save(&nodes[0].host).unwrap();
        assert!(!nodes[0].in_place(&config), "an ADD tries again after a minute");
        nodes[0].ip("route del 10.32.4.0/22");
        assert_eq!(nodes[0].setup(&config).faults, []);
        assert_in_place(&mut nodes[0], &config);

        let device = nodes[0].record(&config).tunnels.iter().find(|it| it.sends).unwrap().name.clone();
        nodes[0].ip(&format!("link del {device}"));
        nodes[0].ip(&format!("link add {device} type bridge"));
        let outcome = nodes[0].setup(&config);
        assert!(named(&outcome.faults, "node3").contains("not one of ours"), "{outcome:?}");
        assert_eq!(named(&outcome.faults, "node2"), "");
        assert!(!nodes[0].missing(&config).is_empty());
        let removed = nodes[0].ip("link show type bridge");
        assert!(removed.contains(&device), "{removed}");
    });
}

#[test]
fn a_kernel_without_the_kind_is_told_with_its_module() {
    with_nodes(3, |nodes| {
        let config = config(33, &value(33, 1, 3, &json!({"tunnelMode": "wireguard"})));
        nodes[0].bridge(33);
        let outcome = nodes[0].setup(&config);
        assert!(named(&outcome.faults, "node2").contains("no publicKey"), "{outcome:?}");
        assert!(private_key::path(&nodes[0].host, &config.name).exists());
        let config = super::config(34, &value(34, 1, 3, &json!({"tunnelMode": "gre"})));
        nodes[0].bridge(34);
        let plan = Plan::new(&config, None).unwrap();
        let Node { netns, socket, host, .. } = &mut nodes[0];
        let lacks = netns.enter(|| Ok(missing_kind(host, socket, &config, &plan).unwrap())).unwrap();
        let outcome = nodes[0].setup(&config);
        assert_eq!(named(&outcome.faults, "node2"), "", "it is direct");
        let text = named(&outcome.faults, "node3");
        match lacks {
            Some(error) => {
                assert!(error.to_string().contains("module ip_gre"), "{error}");
                assert!(text.contains("module ip_gre"), "{outcome:?}");
            }
            None => assert_eq!(text, ""),
        }
        // A tunnel that would only receive is done without, and that is no fault of anybody.
        let config = super::config(35, &value(35, 1, 2, &json!({"tunnelMode": "ipip"})));
        nodes[0].bridge(35);
        let outcome = nodes[0].setup(&config);
        assert_eq!(outcome.faults, []);
        let has = nodes[0].record(&config).tunnels.len();
        assert_eq!(has == 0, outcome.warnings.iter().any(|text| text.contains("module ip")), "{outcome:?}");
        assert_in_place(&mut nodes[0], &config);
    });
}
