use serde_json::json;

use super::testing::{Node, config, gateways, underlay, value, with_nodes};
use super::*;

mod ahead;
mod changes;
mod disagree;
mod faults;
mod former;
mod underlay;

/// Sets a network up on all nodes, with these keys, and finds all of it in place.
fn set_up(nodes: &mut [Node], net: u8, keys: &serde_json::Value) -> Vec<RoutedConfig> {
    let count = nodes.len() as u8;
    let mut configs = Vec::new();
    for node in nodes {
        let config = config(net, &value(net, node.number, count, keys));
        assert!(!node.in_place(&config));
        node.bridge(net);
        let outcome = node.setup(&config);
        assert_eq!(outcome.faults, []);
        assert!(outcome.peers_changed && !outcome.changes.is_empty());
        assert_in_place(node, &config);
        configs.push(config);
    }
    configs
}

fn assert_in_place(node: &mut Node, config: &RoutedConfig) {
    assert_eq!(node.missing(config), [""; 0]);
    assert!(node.in_place(config), "{:?}", node.record(config));
    let again = node.setup(config);
    assert_eq!((again.changes, again.peers_changed), (Vec::new(), false), "a second setup does nothing");
}

/// All pairs reach each other, by both families, with packets as long as the MTU of the network.
fn assert_all_talk(nodes: &[Node], net: u8, mtu: u32) {
    for (from, to) in nodes.iter().flat_map(|a| nodes.iter().map(move |b| (a, b))) {
        for address in gateways(net, to.number) {
            assert!(from.reaches(&address, mtu), "{} does not reach {address} of {}", from.number, to.number);
        }
    }
}

#[test]
fn neighbours_are_direct_and_the_one_behind_a_router_is_in_a_vxlan() {
    with_nodes(3, |nodes| {
        let configs = set_up(nodes, 11, &json!({"tunnelMode": "vxlan"}));
        assert_all_talk(nodes, 11, 1430);
        let routes = nodes[0].ip("route show proto 79");
        let direct = "10.11.4.0/22 via 192.0.0.2 dev eth0 src 10.11.0.1";
        assert!(routes.lines().any(|line| line.trim() == direct), "{routes}");
        assert!(routes.contains("10.11.8.0/22 via 10.11.8.1 dev ot") && routes.contains("onlink"), "{routes}");
        assert!(routes.contains("unreachable 10.11.0.0/16"), "{routes}");
        let record = nodes[0].record(&configs[0]);
        let ways: Vec<_> =
            record.peers.iter().map(|peer| peer.ways.iter().map(|way| way.tunnel).collect::<Vec<_>>()).collect();
        assert_eq!(ways, [[false; 2], [true; 2]]);
        // What nobody has does not leave by the default route.
        assert!(!nodes[0].reaches("10.11.200.1", 100));
        let why = nodes[0]
            .netns
            .enter(|| Ok(std::process::Command::new("ip").args(["route", "get", "10.11.200.1"]).output().unwrap()));
        assert!(!why.unwrap().status.success());
        // Everything leaves again.
        for (node, config) in nodes.iter_mut().zip(&configs) {
            let Node { netns, id, socket, host, .. } = node;
            let removed = netns.enter(|| Ok(remove(host, id, socket, &config.name).unwrap())).unwrap();
            assert!(!removed.is_empty());
            assert_eq!(netns.enter(|| Ok(remove(host, id, socket, &config.name).unwrap())).unwrap(), [""; 0]);
            for left in ["route show proto 79", "-6 route show proto 79", "link show group 79"] {
                assert_eq!(node.ip(left), "", "{left}");
            }
        }
    });
}

#[test]
fn always_is_a_vxlan_to_all_over_one_underlay() {
    with_nodes(3, |nodes| {
        let list: Vec<_> = (1..=3).map(|n| json!({"name": format!("node{n}"), "addr": underlay(n)[1]})).collect();
        set_up(nodes, 12, &json!({"tunnelMode": "vxlan", "tunnel": "always", "nodes": list, "port": 7079}));
        assert_all_talk(nodes, 12, 1430);
        let routes = nodes[0].ip("-6 route show proto 79");
        assert!(!routes.contains("eth0"), "{routes}");
        assert!(nodes[0].ip("-d link show type vxlan").contains("dstport 7079"));
    });
}

#[test]
fn other_tables_have_the_network_as_the_main_one() {
    with_nodes(2, |nodes| {
        let configs = set_up(nodes, 13, &json!({"tunnelMode": "vxlan", "tables": [100]}));
        let [main, other] = ["main", "100"].map(|table| nodes[0].ip(&format!("route show table {table} proto 79")));
        assert!(other.contains("10.13.0.0/22 dev obr_net13 scope link src 10.13.0.1"), "{other}");
        for line in main.lines() {
            assert!(other.contains(line), "{line} is not in {other}");
        }
        assert_eq!(nodes[0].ip("-6 route show table 100 proto 79").lines().count(), 3);
        let keys = json!({"tunnelMode": "vxlan"});
        let without = config(13, &value(13, 1, 2, &keys));
        assert!(!nodes[0].in_place(&without));
        assert!(!nodes[0].setup(&without).changes.is_empty());
        assert_eq!(nodes[0].ip("route show table 100"), "");
        assert_eq!(nodes[0].ip("route show proto 79"), main);
        assert_in_place(&mut nodes[0], &without);
        assert!(!nodes[0].in_place(&configs[0]));
    });
}

/// Not a bound: what it takes is told.
#[test]
fn looking_whether_all_is_in_place_takes_little_time() {
    with_nodes(3, |nodes| {
        for keys in [json!({"tunnelMode": "vxlan"}), json!({"tunnelMode": "vxlan", "tunnel": "always"})] {
            let config = config(14, &value(14, 1, 11, &keys));
            if nodes[0].ip("link show").contains("obr_net14") {
                nodes[0].setup(&config);
            } else {
                nodes[0].bridge(14);
                nodes[0].setup(&config);
            }
            let plan = Plan::new(&config, None).unwrap();
            let Node { netns, id, socket, host, .. } = &mut nodes[0];
            let mut times: Vec<_> = netns
                .enter(|| {
                    let mut once = || {
                        let start = std::time::Instant::now();
                        assert!(in_place(host, id, socket, &config, &plan).unwrap());
                        start.elapsed()
                    };
                    Ok((0..200).map(|_| once()).collect())
                })
                .unwrap();
            times.sort_unstable();
            eprintln!("ten peers, {keys}: in place within {:?} (median)", times[100]);
        }
    });
}
