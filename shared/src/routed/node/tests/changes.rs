//! What an operator, other software or the configuration changes.

use super::*;
use crate::network::sysctl::Sysctl;
use crate::routed::record::TunnelRecord;

#[test]
fn whatever_is_lost_is_found_and_made_again() {
    with_nodes(3, |nodes| {
        let keys = json!({"tunnelMode": "vxlan", "tables": [100]});
        let configs = set_up(nodes, 21, &keys);
        // One for each underlay, the first over IPv4.
        let record = nodes[0].record(&configs[0]);
        let over = |v6: bool| {
            let of = |tunnel: &&TunnelRecord| tunnel.peers[0].remote.is_ipv6() == v6;
            record.tunnels.iter().find(of).unwrap().name.clone()
        };
        let (device, dev6) = (over(false), format!("dev {}", over(true)));
        let dev = format!("dev {device}");
        let hop = crate::routed::parameters::hop(&"fd21:0:0:2::/64".parse().unwrap());
        let mac = nodes[0].ip(&format!("neigh show 10.21.8.1 {dev}")).split(' ').nth(2).unwrap().to_owned();
        let link = |what: &str| format!("link set {device} {what}");
        // What is done, and a word of CHECK's.
        let losses = [
            ("route del 10.21.4.0/22".to_owned(), "route 10.21.4.0/22 via 192.0.0.2 on eth0 to node2 is missing"),
            ("route del 10.21.8.0/22 table 100".to_owned(), "in table 100 to node3 is missing"),
            ("-6 route del fd21:0:0:1::/64".to_owned(), "route fd21:0:0:1::/64"),
            ("route del unreachable 10.21.0.0/16 metric 4278190080".to_owned(), "unreachable 10.21.0.0/16"),
            (format!("neigh del 10.21.8.1 {dev}"), "neighbour 10.21.8.1 of node3"),
            (format!("neigh replace {hop} lladdr 02:00:00:00:00:07 {dev6}"), "of node3 on"),
            (format!("neigh add 10.21.8.9 lladdr 02:00:00:00:00:07 nud permanent {dev}"), "neighbour 10.21.8.9"),
            (format!("address del 10.21.0.1/32 {dev}"), "address 10.21.0.1 of ot"),
            (link("down"), "state of"),
            (link("mtu 1300"), "MTU of"),
            (link("address 02:00:00:00:00:09"), "is not as it should be"),
            (format!("link del {device}"), "vxlan) is missing"),
        ];
        for (act, word) in &losses {
            nodes[0].ip(act);
            assert!(!nodes[0].in_place(&configs[0]), "an ADD sees it: {act}");
            let missing = nodes[0].missing(&configs[0]);
            assert!(missing.iter().any(|text| text.contains(word)), "{act}: {missing:?}");
            assert!(!nodes[0].setup(&configs[0]).changes.is_empty(), "{act}");
            assert_in_place(&mut nodes[0], &configs[0]);
        }
        nodes[0].sysctl(Sysctl::V4(&device, "rp_filter"), "1");
        assert!(!nodes[0].in_place(&configs[0]), "an ADD sees it");
        assert!(nodes[0].missing(&configs[0]).iter().any(|text| text.contains(&format!("{device}/rp_filter"))));
        nodes[0].setup(&configs[0]);
        assert_in_place(&mut nodes[0], &configs[0]);
        let bridge = format!("bridge fdb del {mac} {dev} dst 192.0.1.3 self");
        let words: Vec<&str> = bridge.split(' ').collect();
        let gone =
            nodes[0].netns.enter(|| Ok(std::process::Command::new(words[0]).args(&words[1..]).status().unwrap()));
        assert!(gone.unwrap().success());
        assert!(!nodes[0].in_place(&configs[0]), "an ADD sees it");
        let missing = nodes[0].missing(&configs[0]);
        assert!(missing.iter().any(|text| text.contains("forwarding of node3 to 192.0.1.3")), "{missing:?}");
        nodes[0].setup(&configs[0]);
        assert_in_place(&mut nodes[0], &configs[0]);
        assert_all_talk(nodes, 21, 1430);
    });
}

#[test]
fn peers_go_and_come_and_nothing_stale_is_left() {
    with_nodes(3, |nodes| {
        let keys = json!({"tunnelMode": "vxlan"});
        let configs = set_up(nodes, 23, &keys);
        nodes[0].ip("route add 10.23.252.0/22 via 192.0.0.2");
        nodes[0].ip("route add 10.23.8.0/22 via 192.0.0.2 metric 7");
        nodes[0].ip("link add ot0123456789abc type bridge");
        let before = nodes[0].ip("route show");
        let less = config(23, &value(23, 1, 2, &keys));
        let outcome = nodes[0].setup(&less);
        assert!(outcome.peers_changed);
        let routes = nodes[0].ip("route show proto 79");
        assert!(!routes.contains("10.23.8.0/22"), "{routes}");
        assert!(nodes[0].ip("route show").contains("10.23.8.0/22 via 192.0.0.2 dev eth0 metric 7"));
        assert!(nodes[0].ip("route show").contains("10.23.252.0/22"));
        assert!(nodes[0].ip("link show").contains("ot0123456789abc"));
        let device = &nodes[0].record(&less).tunnels[0].name;
        assert!(!nodes[0].ip(&format!("neigh show dev {device}")).contains("10.23.8.1"));
        assert_in_place(&mut nodes[0], &less);
        assert!(nodes[0].setup(&configs[0]).peers_changed);
        assert_eq!(nodes[0].ip("route show"), before);
        assert_all_talk(nodes, 23, 1430);
    });
}

#[test]
fn another_address_of_a_peer_takes_effect_in_place() {
    with_nodes(3, |nodes| {
        let configs = set_up(nodes, 24, &json!({"tunnelMode": "vxlan"}));
        let index = nodes[0].record(&configs[0]).tunnels[0].index;
        nodes[2].ip("address add 192.0.1.33/24 dev eth0");
        let list: Vec<_> = (1..=3)
            .map(|n| json!({"name": format!("node{n}"), "addr": if n == 3 { "192.0.1.33".into() } else { underlay(n)[0].clone() }}))
            .collect();
        for node in nodes.iter_mut() {
            let config = config(24, &value(24, node.number, 3, &json!({"tunnelMode": "vxlan", "nodes": &list})));
            let outcome = node.setup(&config);
            assert_eq!(outcome.faults, []);
            assert_in_place(node, &config);
        }
        assert_all_talk(nodes, 24, 1430);
        let record = nodes[0].record(&configs[0]);
        assert!(record.tunnels.iter().any(|tunnel| tunnel.index == index), "{record:?}");
    });
}
