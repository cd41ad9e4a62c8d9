//! The former way to a peer stays as long as the kernel refuses the one that is wanted.

use std::net::UdpSocket;

use super::*;

/// All of them, with other keys; what could not be done for node 2 by node 1.
fn change(nodes: &mut [Node], net: u8, keys: &serde_json::Value, prune: bool) -> (RoutedConfig, String) {
    let count = nodes.len() as u8;
    let mut first = None;
    for node in nodes.iter_mut() {
        let config = config(net, &value(net, node.number, count, keys));
        let faults = node.setup_with(&config, Which::All, prune).faults;
        let of_two: Vec<_> = faults.into_iter().filter(|(name, _)| name == "node2").map(|(_, text)| text).collect();
        first.get_or_insert((config, of_two.join("; ")));
    }
    first.unwrap()
}

#[test]
fn while_the_port_is_in_use() {
    with_nodes(2, |nodes| {
        let keys = |port: u16| json!({"tunnelMode": "vxlan", "tunnel": "always", "port": port});
        set_up(nodes, 51, &keys(7001));
        // In both families.
        let taken: Vec<_> =
            nodes.iter().map(|node| node.netns.enter(|| Ok(UdpSocket::bind("[::]:7002").unwrap()))).collect();
        for prune in [false, true, false] {
            let (config, fault) = change(nodes, 51, &keys(7002), prune);
            assert!(fault.contains("UDP port 7002 is in use"), "{fault}");
            assert_all_talk(nodes, 51, 1430);
            let record = nodes[0].record(&config);
            assert!(record.peers[0].faults.len() == 1 && record.peers[0].ways.len() == 2, "{record:?}");
            assert!(nodes[0].in_place(&config), "it is not tried with each ADD");
            assert!(nodes[0].missing(&config).iter().any(|text| text.contains("node2: ") && text.contains("7002")));
        }
        drop(taken);
        let (config, fault) = change(nodes, 51, &keys(7002), false);
        assert_eq!(fault, "");
        assert_in_place(&mut nodes[0], &config);
        assert_all_talk(nodes, 51, 1430);
        assert!(!nodes[0].ip("-d link show type vxlan").contains("dstport 7001"));
    });
}

#[test]
fn a_device_that_cannot_come_up_is_not_left() {
    with_nodes(2, |nodes| {
        let config = config(53, &value(53, 1, 2, &json!({"tunnelMode": "vxlan", "tunnel": "always"})));
        nodes[0].bridge(53);
        let taken = nodes[0].netns.enter(|| Ok(UdpSocket::bind("[::]:4779").unwrap())).unwrap();
        let outcome = nodes[0].setup(&config);
        assert!(outcome.faults.iter().all(|(name, text)| name == "node2" && text.contains("4779")), "{outcome:?}");
        assert_eq!(nodes[0].ip("link show type vxlan"), "");
        drop(taken);
        assert_eq!(nodes[0].setup(&config).faults, []);
        assert_in_place(&mut nodes[0], &config);
    });
}

#[test]
fn while_the_kernel_has_no_module() {
    with_nodes(2, |nodes| {
        set_up(nodes, 52, &json!({"tunnelMode": "vxlan", "tunnel": "always"}));
        let gre = json!({"tunnelMode": "gre", "tunnel": "always"});
        for prune in [false, true] {
            let (config, fault) = change(nodes, 52, &gre, prune);
            assert_all_talk(nodes, 52, 1430);
            if fault.is_empty() {
                return;
            }
            assert!(fault.contains("module ip_gre"), "{fault}");
            assert_eq!(nodes[0].record(&config).peers[0].ways.len(), 2);
        }
        let (config, fault) = change(nodes, 52, &json!({"tunnelMode": "vxlan", "tunnel": "always"}), true);
        assert_eq!(fault, "");
        assert_in_place(&mut nodes[0], &config);
        assert_all_talk(nodes, 52, 1430);
    });
}
