//! Nodes that are not of one mind whether there is a tunnel between them, as while a change is rolled out.

use super::*;
use crate::network::sysctl::Sysctl;

#[test]
fn one_end_in_a_tunnel_and_the_other_not_is_heard_at_both() {
    with_nodes(2, |nodes| {
        let keys = |tunnel: &str| json!({"tunnelMode": "vxlan", "tunnel": tunnel});
        let mut configs = Vec::new();
        for (node, tunnel) in nodes.iter_mut().zip(["always", "auto"]) {
            node.sysctl(Sysctl::V4("eth0", "rp_filter"), "2");
            let config = config(41, &value(41, node.number, 2, &keys(tunnel)));
            node.bridge(41);
            assert_eq!(node.setup(&config).faults, []);
            assert_in_place(node, &config);
            configs.push(config);
        }
        assert_all_talk(nodes, 41, 1430);
        for (node, config) in nodes.iter_mut().zip(&configs) {
            let [own, _] = gateways(41, node.number);
            let shown = node.ip("-4 address show scope link");
            assert_eq!(shown.matches(&format!("inet {own}/32 scope link ot")).count(), 1, "{shown}");
            let Node { netns, id, socket, host, .. } = node;
            netns.enter(|| Ok(remove(host, id, socket, &config.name).unwrap())).unwrap();
        }
    });
}

#[test]
fn an_underlay_on_which_they_would_not_be_heard_is_told() {
    with_nodes(3, |nodes| {
        let configs = set_up(nodes, 42, &json!({"tunnelMode": "vxlan"}));
        let told = |node: &mut Node| node.setup(&configs[usize::from(node.number - 1)]).warnings;
        let warnings = told(&mut nodes[0]);
        assert!(matches!(&warnings[..], [one] if one.contains("net.ipv4.conf.eth0.rp_filter is 1")), "{warnings:?}");
        assert_eq!(told(&mut nodes[2]), [""; 0], "no peer is on its link");
        nodes[0].sysctl(Sysctl::V4("eth0", "rp_filter"), "2");
        assert_eq!(told(&mut nodes[0]), [""; 0]);
    });
}
