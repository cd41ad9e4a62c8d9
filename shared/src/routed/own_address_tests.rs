use serde_json::{Value, json};

use super::*;
use crate::netlink::testing::in_new_netns;
use crate::netlink::{Mac, NewBridge, RouteSocket};
use crate::routed::config::tests::config as checked;

/// `a` is this node, by its name; the others have these addresses.
fn config(peers: &[&str]) -> RoutedConfig {
    let mut nodes = vec![json!({"name": "a", "addr": "a.lan"})];
    nodes.extend(peers.iter().enumerate().map(|(n, addr)| json!({"name": format!("p{n}"), "addr": addr})));
    let nodes = Value::from(nodes);
    let networks = json!(["10.11.0.0/16", "fd11::/48"]);
    checked(&json!({"network": networks, "maskPerNode": [22, 64], "node": "a", "nodes": nodes})).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The address of a node after a setup in which each name has these answers.
fn of(config: &RoutedConfig, node: usize, paths: &mut RouteSocket, answers: &[(&str, &[&str])]) -> Vec<String> {
    let mut resolution = Resolution::new(&config.name);
    let answer = |name: &&str| {
        let known = answers.iter().find(|(known, _)| known == name);
        known.map_or(Err(LookupError::NotFound((*name).into())), |(_, all)| {
            Ok(all.iter().map(|text| ip(text)).collect())
        })
    };
    refresh(config, &mut resolution, Which::All, paths, |names| names.iter().map(answer).collect());
    let (addresses, _) = resolution.of(&config.nodes[node]);
    Family::BOTH.into_iter().filter_map(|family| addresses.get(family)).map(|address| address.to_string()).collect()
}

/// A host with a link to the others, a second one, and the bridges of a container engine and of the network itself.
fn with_host(act: impl FnOnce(&mut RouteSocket) + Send) {
    in_new_netns(|| {
        let mut socket = RouteSocket::open().unwrap();
        let devices: [(&str, &[&str]); 4] = [
            ("docker0", &["172.17.0.1/16"]),
            ("eth0", &["192.168.1.1/24", "fd01::1/64"]),
            ("eth1", &["192.168.2.1/24", "fd02::1/64"]),
            ("obr", &["10.11.0.1/22", "fd11::1/64"]),
        ];
        for (number, (name, addresses)) in devices.iter().enumerate() {
            socket.create_bridge(&NewBridge { name, mac: Mac([2, 0, 0, 0, 0, number as u8]), mtu: 1500 }).unwrap();
            let link = socket.link_by_name(name).unwrap().unwrap();
            socket.set_up(&link, true).unwrap();
            for address in *addresses {
                socket.add_address(&link, address.parse().unwrap(), false).unwrap();
            }
        }
        act(&mut socket);
    });
}

const ALL: &[&str] = &["172.17.0.1", "192.168.2.1", "192.168.1.1", "10.11.0.1", "fd11::1", "fd02::1", "fd01::1"];

#[test]
fn tunnels_start_where_packets_to_the_peers_do() {
    with_host(|socket| {
        let mut own = |peers: &[&str]| of(&config(peers), 0, socket, &[("a.lan", ALL)]);
        assert_eq!(own(&["192.168.1.2", "fd02::2"]), ["192.168.1.1", "fd02::1"]);
        assert_eq!(own(&["192.168.1.2", "192.168.2.2", "192.168.2.3"])[0], "192.168.2.1", "most of them");
        assert_eq!(own(&["192.168.2.2", "192.168.1.2"])[0], "192.168.1.1", "of equals the lowest");
        assert_eq!(
            own(&["203.0.113.2"]),
            ["172.17.0.1", "fd01::1"],
            "no way to any: the lowest outside of the network"
        );
    });
}

#[test]
fn one_address_is_the_address_whatever_the_routes_are() {
    with_host(|socket| {
        let config = config(&["192.168.1.2"]);
        assert_eq!(of(&config, 0, socket, &[("a.lan", &["192.168.2.1"])]), ["192.168.2.1"]);
        assert_eq!(of(&config, 0, socket, &[("a.lan", &["10.11.0.1"])]), ["10.11.0.1"], "wrong, and to be told");
        assert_eq!(of(&config, 0, socket, &[]), [""; 0]);
    });
}

#[test]
fn a_peers_address_in_the_network_is_not_the_one_to_send_to() {
    with_host(|socket| {
        let config = config(&["p.lan", "q.lan"]);
        let answers: [(&str, &[&str]); 3] =
            [("a.lan", ALL), ("p.lan", &["10.11.4.1", "192.168.2.2", "fd11:0:0:1::1"]), ("q.lan", &["192.168.2.3"])];
        assert_eq!(of(&config, 1, socket, &answers), ["192.168.2.2", "fd11:0:0:1::1"]);
        assert_eq!(of(&config, 0, socket, &answers)[0], "192.168.2.1", "names of peers count as well");
    });
}
