//! A network of one node beside a routed one; and containers that are on two.

use std::net::IpAddr;

use integration::cluster::{Cluster, Underlay};
use serde_json::{Value, json};

use crate::{OTHERS, V4, V6, network, noted, set_strict, vm, vxlan};

fn node_local() -> Value {
    json!({"cniVersion": "1.1.0", "name": "local", "type": "osvc-bridge", "network": ["10.22.0.0/16", "fd22::/64"]})
}

/// Both hosts have containers at the same local addresses: an answer to one of these would go astray.
#[track_caller]
fn local_to_routed(cluster: &Cluster, config: &Value) {
    set_strict(cluster);
    let routed = cluster.start_everywhere(config);
    let local = [&cluster.nodes[0], &cluster.nodes[2]].map(|node| node.start(&node_local(), "local"));
    assert_eq!(local[0].addresses, local[1].addresses, "node-local addresses are the same everywhere");
    let gateways = |index: usize| -> [IpAddr; 2] {
        [format!("10.11.{}.1", 4 * index).parse().unwrap(), format!("fd11:0:0:{index:x}::1").parse().unwrap()]
    };
    for (pod, own) in local.iter().zip([0, 2]) {
        for (index, target) in routed.iter().enumerate() {
            for address in &target.addresses {
                let answer = pod.ask(*address).unwrap_or_else(|| panic!("{target} does not answer {pod}"));
                assert_eq!(answer.server, target.netns.name);
                if index != own {
                    assert!(gateways(own).contains(&answer.client), "{target} sees {pod} as {}", answer.client);
                }
            }
        }
    }
    // And the other way on one node: to its own local containers.
    for to in &local[0].addresses {
        let answer = routed[0].ask(*to).unwrap_or_else(|| panic!("{} does not answer {}", local[0], routed[0]));
        assert_eq!(answer.server, "local");
    }
    noted(&format!("node-local to remote routed and back, rp_filter=1: {}", config["tunnelMode"]));
}

#[test]
fn a_node_local_container_reaches_routed_ones_on_all_nodes() {
    let cluster = Cluster::three();
    local_to_routed(&cluster, &vxlan(&cluster));
}

#[test]
fn a_node_local_container_reaches_routed_ones_by_other_tunnels() {
    vm().test(|| {
        for (mode, underlay) in OTHERS {
            let cluster = Cluster::three();
            local_to_routed(&cluster, &network(&cluster, "net", mode, underlay));
        }
    });
}

#[test]
fn a_container_on_two_networks_reaches_both() {
    on_two_networks("vxlan", "vxlan");
}

#[test]
fn a_container_on_two_networks_by_other_tunnels() {
    vm().test(|| on_two_networks("ipip", "wireguard"));
}

#[track_caller]
fn on_two_networks(first: &str, second: &str) {
    let cluster = Cluster::three();
    let red = network(&cluster, "net", first, Underlay::V4);
    let mut blue = cluster.network("blue", Underlay::V4, &[("10.12.0.0/16", 24), ("fd12::/48", 64)]);
    blue["tunnelMode"] = second.into();
    if second == "wireguard" {
        cluster.exchange_keys(&mut blue);
    }
    let on_red = cluster.nodes[2].start(&red, "red");
    let on_blue = cluster.nodes[2].start(&blue, "blue");
    let one = cluster.nodes[0].start(&red, "both");
    let two = cluster.nodes[0].attach(&blue, &one.netns, "eth1");
    for (pod, other) in [(&one, &on_red), (&two, &on_blue)] {
        assert!(pod.reaches(other), "{pod} reaches {other}");
        for to in &pod.addresses {
            let answer = other.ask(*to).unwrap_or_else(|| panic!("{pod} does not answer {other}"));
            assert_eq!(answer.server, "both");
        }
    }
    // Its default route is one network's, the way to each network is that network's own.
    for (network, device) in [(V4.0, "eth0"), (V6.0, "eth0"), ("10.12.0.0/16", "eth1"), ("fd12::/48", "eth1")] {
        let family = if network.contains(':') { "-6" } else { "-4" };
        let routes = cluster.nodes[0].sandbox.ip_json(&format!("-n both {family} route show {network}"));
        assert!(routes.len() == 1 && routes[0]["dev"] == device, "{network}: {routes:?}");
    }
    two.call.del();
    assert!(one.reaches(&on_red), "the other interface has gone, this one stays");
    noted(&format!("a container on two routed networks: {first} and {second}"));
}
