//! Several routed networks with the same peers.

use integration::cluster::{Cluster, Pod, Underlay, all_talk};
use serde_json::{Value, json};

use crate::{noted, vm};

/// Two networks, in these modes.
fn two(cluster: &Cluster, modes: [&str; 2]) -> [Value; 2] {
    let networks = [("red", "10.11.0.0/16", "fd11::/48"), ("blue", "10.12.0.0/16", "fd12::/48")];
    [0, 1].map(|index| {
        let (name, v4, v6) = networks[index];
        let mut config = cluster.network(name, Underlay::V4, &[(v4, 22), (v6, 64)]);
        config["tunnelMode"] = json!(modes[index]);
        if modes[index] == "wireguard" {
            cluster.exchange_keys(&mut config);
        }
        config
    })
}

/// From one network to the other, everywhere: on one node by the real address, to another one by that of the node's
/// gateway in the network that it goes to; `gateways` are those of the first node. Nothing else may come in there.
#[track_caller]
fn from_network_to_network(from: &[Pod<'_>], to: &[Pod<'_>], gateways: [&str; 2]) {
    for (here, pod) in from.iter().enumerate() {
        for (there, target) in to.iter().enumerate() {
            if here == there {
                assert!(pod.reaches(target), "{pod} reaches {target}");
                continue;
            }
            for address in &target.addresses {
                let answer = pod.ask(*address).unwrap_or_else(|| panic!("{target} does not answer {pod}"));
                let gateway = match (address.is_ipv4(), here) {
                    (true, _) => gateways[0].replace(".0.1", &format!(".{}.1", 4 * here)),
                    (false, 0) => gateways[1].to_owned(),
                    (false, _) => gateways[1].replace("::1", &format!(":0:0:{here:x}::1")),
                };
                let seen = (answer.server.as_str(), answer.client.to_string());
                assert_eq!(seen, (target.netns.name.as_str(), gateway), "{target} sees {pod}");
            }
        }
    }
}

#[track_caller]
fn live_side_by_side(modes: [&str; 2]) {
    let cluster = Cluster::three();
    let [red, blue] = two(&cluster, modes);
    let on_red = cluster.start_everywhere(&red);
    let names = ["x", "y", "z"];
    let on_blue: Vec<_> = cluster.nodes.iter().zip(names).map(|(node, name)| node.start(&blue, name)).collect();
    all_talk(&on_red);
    all_talk(&on_blue);
    from_network_to_network(&on_red, &on_blue, ["10.12.0.1", "fd12::1"]);
    from_network_to_network(&on_blue, &on_red, ["10.11.0.1", "fd11::1"]);
    cluster.install(&red);
    cluster.install(&blue);
    let before: Vec<String> = cluster.nodes.iter().map(|node| node.everything()).collect();
    for node in &cluster.nodes {
        node.osvc_net(&["setup", "--prune"]).ok();
    }
    for (node, before) in cluster.nodes.iter().zip(before) {
        assert_eq!(node.everything(), before, "neither takes away what is the other's, {modes:?}");
    }
    // One is changed to plain routes or another mode: the other one's is kept.
    let mut other = red.clone();
    other["tunnelMode"] = json!(if modes[0] == "vxlan" { "vxlan" } else { "gre" });
    cluster.install(&other);
    for node in &cluster.nodes {
        node.osvc_net(&["setup", "--prune", "red"]).ok();
    }
    all_talk(&on_blue);
    on_blue.iter().for_each(|pod| pod.check());
    assert!(on_red[0].reaches(&on_red[2]), "the changed one works, {modes:?}");
    noted(&format!("two routed networks to the same peers: {} and {}", modes[0], modes[1]));
}

#[test]
fn both_by_vxlan() {
    live_side_by_side(["vxlan", "vxlan"]);
}

#[test]
fn both_by_ipip() {
    vm().test(|| live_side_by_side(["ipip", "ipip"]));
}

#[test]
fn both_by_gre() {
    vm().test(|| live_side_by_side(["gre", "gre"]));
}

#[test]
fn each_by_another_mode() {
    vm().test(|| live_side_by_side(["ipip", "wireguard"]));
}

/// Names made of digits without the dots would be one.
#[track_caller]
fn addresses_that_look_alike_do_not_collide(mode: &str) {
    let cluster = Cluster::three();
    let mut config = cluster.network("net", Underlay::V4, &[("10.99.0.0/16", 24)]);
    config["tunnelMode"] = json!(mode);
    for (index, alike) in [(1, "10.1.11.1"), (2, "10.11.1.1")] {
        let node = &cluster.nodes[index];
        node.sandbox.ip(&format!("addr add {alike}/32 dev eth0"));
        cluster.world.ip(&format!("route add {alike}/32 via {}", node.v4));
        config["nodes"][index]["addr"] = json!(alike);
    }
    let pods = cluster.start_everywhere(&config);
    all_talk(&pods);
    noted(&format!("peers 10.1.11.1 and 10.11.1.1: {mode}"));
}

#[test]
fn peers_that_look_alike_by_vxlan() {
    addresses_that_look_alike_do_not_collide("vxlan");
}

#[test]
fn peers_that_look_alike_by_other_tunnels() {
    vm().test(|| {
        for mode in ["ipip", "gre"] {
            addresses_that_look_alike_do_not_collide(mode);
        }
    });
}
