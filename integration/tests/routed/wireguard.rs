//! What containers send each other is nowhere in clear between the nodes: on a common link neither, and not for a peer
//! whose key is missing.

use integration::Packets;
use integration::cluster::{Cluster, Pod, Underlay, all_talk, talk};

use crate::{network, noted, vm};

/// Packets in the world that show an address of one of these.
fn in_clear(seen: &Packets, pods: &[Pod<'_>]) -> usize {
    pods.iter().flat_map(|pod| &pod.addresses).map(|address| seen.with_address(*address)).sum()
}

#[test]
fn nothing_of_the_containers_traffic_is_seen_between_the_nodes() {
    vm().test(|| {
        let cluster = Cluster::three();
        let config = network(&cluster, "net", "wireguard", Underlay::V4);
        let capture = cluster.world.capture(None);
        let pods = cluster.start_everywhere(&config);
        all_talk(&pods);
        let seen = capture.end();
        assert!(seen.between([cluster.nodes[0].v4, cluster.nodes[1].v4], 17) > 100, "encrypted, on a common link too");
        assert!(seen.between([cluster.nodes[0].v4, cluster.nodes[2].v4], 17) > 100, "and to a peer behind a router");
        assert_eq!(in_clear(&seen, &pods), 0, "of {} packets", seen.count());
        for node in &cluster.nodes {
            let shakes = node.sandbox.sh("wg show all latest-handshakes").ok();
            let done = shakes.lines().filter(|line| !line.ends_with("\t0")).count();
            assert_eq!(done, 2, "a handshake with each peer of {}: {shakes}", node.name);
        }
        noted(&format!("wireguard: none of {} packets between the nodes in clear, a handshake per peer", seen.count()));

        // The first node does not know the key of the second one any more.
        let mut edited = config.clone();
        edited["nodes"][1].as_object_mut().unwrap().shift_remove("publicKey");
        cluster.nodes[0].install(&edited);
        let capture = cluster.world.capture(None);
        let told = cluster.nodes[0].osvc_net(&["setup", "net"]);
        assert!(told.rc != 0 && format!("{}{}", told.stdout, told.stderr).contains("node2"), "{told}");
        for pair in [[0, 1], [1, 0]] {
            for address in &pods[pair[1]].addresses {
                assert!(!pods[pair[0]].pings(*address, 100), "there is no way without a key");
            }
        }
        talk(&pods[0], &pods[2]);
        talk(&pods[1], &pods[2]);
        assert_eq!(in_clear(&capture.end(), &pods), 0, "not on a common link without a key either");
        noted("wireguard: nothing in clear with one peer's key removed");
    });
}

/// That the capture sees what is there to be seen.
#[test]
fn without_encryption_it_is_seen() {
    vm().test(|| {
        for mode in ["ipip", "gre", "vxlan"] {
            let cluster = Cluster::three();
            let config = network(&cluster, "net", mode, Underlay::V4);
            let capture = cluster.world.capture(None);
            let pods = cluster.start_everywhere(&config);
            assert!(pods[0].reaches(&pods[2]));
            assert!(in_clear(&capture.end(), &pods) > 10, "{mode}");
        }
    });
}
