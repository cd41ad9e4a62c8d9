//! What happens to the addresses and links of the nodes.

use super::*;
use crate::network::sysctl::Sysctl;
use crate::routed::identity;

#[test]
fn the_underlay_goes_down_and_comes_up() {
    with_nodes(3, |nodes| {
        let configs = set_up(nodes, 22, &json!({"tunnelMode": "vxlan"}));
        let plan = Plan::new(&configs[0], None).unwrap();
        for adds_while_down in [false, true] {
            nodes[0].ip("link set eth0 down");
            if adds_while_down {
                nodes[0].setup_with(&configs[0], Which::New, false);
            }
            nodes[0].underlay_up();
            let Node { netns, id, socket, host, .. } = &mut nodes[0];
            let in_place = netns.enter(|| Ok(in_place(host, id, socket, &configs[0], &plan).unwrap())).unwrap();
            assert!(!in_place, "the next ADD sees it");
            let outcome = nodes[0].setup_with(&configs[0], Which::New, false);
            assert_eq!(outcome.faults, []);
            assert_in_place(&mut nodes[0], &configs[0]);
            assert_all_talk(nodes, 22, 1430);
        }
    });
}

#[test]
fn a_peer_that_is_on_the_link_no_more_is_reached_by_a_tunnel() {
    with_nodes(2, |nodes| {
        let configs = set_up(nodes, 27, &json!({"tunnelMode": "vxlan"}));
        // As after a change of the netmask.
        nodes[0].ip("route add 192.0.0.2/32 via 192.0.0.254");
        assert!(!nodes[0].in_place(&configs[0]), "the plain route is still there, and leads nowhere");
        nodes[0].setup_with(&configs[0], Which::New, false);
        assert!(nodes[0].ip("route show 10.27.4.0/22").contains("dev ot"));
        assert_in_place(&mut nodes[0], &configs[0]);
    });
}

#[test]
fn an_address_of_this_node_counts_before_it_can_be_used() {
    with_nodes(2, |nodes| {
        nodes[0].sysctl(Sysctl::V6("eth0", "accept_dad"), "1");
        nodes[0].ip("address add 2001:db8::77/64 dev eth0");
        let list = json!([{"name": "node1", "addr": "2001:db8::77"}, {"name": "node2", "addr": underlay(2)[1]}]);
        let config = config(28, &value(28, 1, 2, &json!({"tunnelMode": "vxlan", "tunnel": "always", "nodes": list})));
        nodes[0].bridge(28);
        assert!(nodes[0].ip("address show dev eth0 tentative").contains("2001:db8::77"));
        assert_eq!(nodes[0].setup(&config).faults, []);
    });
}

#[test]
fn who_has_another_nodes_address_and_none_of_its_own_is_not_that_node() {
    with_nodes(3, |nodes| {
        let config = config(29, &value(29, 1, 2, &json!({})));
        let mut verified = |node: usize| {
            let Node { netns, socket, .. } = &mut nodes[node];
            netns.enter(|| Ok(identity::refuse(&config, &Resolution::new(&config.name), socket))).unwrap()
        };
        verified(0).unwrap();
        let error = verified(1).unwrap_err();
        assert_eq!(error.code(), crate::Code::InvalidConfig);
        let text = error.to_string();
        assert!(text.contains("node1") && text.contains("192.0.0.2") && text.contains("node2"), "{text}");
        // It may be behind a translation of addresses.
        verified(2).unwrap();
    });
}
