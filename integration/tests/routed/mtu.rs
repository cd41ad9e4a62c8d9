//! The longest packets are as long as the narrowest way to a peer allows; containers that were there before are told.

use integration::cluster::{Cluster, all_talk, fragments};

use crate::{LINK, noted, vxlan};

/// Between the nodes on one link and those behind the router.
const NARROW: u32 = 1400;
const OVERHEAD: u32 = 50;

/// The router's devices let less through, and the nodes know it by their routes.
#[track_caller]
fn narrow(cluster: &Cluster) {
    cluster.world.ip(&format!("link set lan1 mtu {NARROW}"));
    for (node, (subnet, gateway)) in cluster.nodes.iter().zip([
        ("192.168.2.0/24", "192.168.1.254"),
        ("192.168.2.0/24", "192.168.1.254"),
        ("192.168.1.0/24", "192.168.2.254"),
    ]) {
        node.sandbox.ip(&format!("route add {subnet} via {gateway} mtu {NARROW}"));
    }
}

#[test]
fn the_narrowest_way_decides() {
    let cluster = Cluster::three();
    narrow(&cluster);
    let pods = cluster.start_everywhere(&vxlan(&cluster));
    assert!(pods.iter().all(|pod| pod.mtu() == NARROW - OVERHEAD), "{}", pods[0].mtu());
    all_talk(&pods);
    assert_eq!(fragments(&cluster), 0);
    noted("the MTU of the narrowest way to a peer");
}

#[test]
fn containers_that_were_there_before_a_way_became_narrower_still_talk() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    let before = cluster.start_everywhere(&config);
    assert!(before.iter().all(|pod| pod.mtu() == LINK - OVERHEAD));
    narrow(&cluster);
    cluster.install(&config);
    for node in &cluster.nodes {
        node.osvc_net(&["setup"]).ok();
    }
    for pair in [[0, 2], [2, 0], [2, 1]] {
        let (from, to) = (&before[pair[0]], &before[pair[1]]);
        for address in &to.addresses {
            let full = std::net::SocketAddr::new(*address, 81).to_string();
            let done = from.node.sandbox.transfer(Some(&from.netns.path), &full, 100_000);
            let segment = done.unwrap_or_else(|| panic!("100 kB from {from} to {to}")).segment;
            assert!(segment <= NARROW - OVERHEAD - 40, "{from} has learned of the narrow way: {segment}");
        }
    }
    noted("a way that becomes narrower under containers in service");
}
