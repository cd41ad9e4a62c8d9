//! Rulesets of others on all nodes that drop what is forwarded: traffic of a routed network comes in by tunnels and by
//! plain routes, and not by its bridge alone.

use integration::cluster::{Cluster, all_talk};

use crate::{noted, vxlan};

/// A hardened host.
const HARD: &str = "nft 'table inet hard { chain forward { type filter hook forward priority 10; policy drop; }; }'";
/// What docker makes, as far as it matters here.
const DOCKER: &str = "set -e
    for iptables in iptables ip6tables; do
        $iptables -P FORWARD DROP
        $iptables -N DOCKER-USER
        $iptables -A DOCKER-USER -j RETURN
        $iptables -A FORWARD -j DOCKER-USER
    done";

#[track_caller]
fn all_pairs_talk(ruleset: &str, first: bool) {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    let close = || cluster.nodes.iter().for_each(|node| drop(node.sandbox.sh(ruleset).ok()));
    if first {
        close();
    }
    let pods = cluster.start_everywhere(&config);
    if !first {
        close();
        assert!(!pods[0].reaches(&pods[1]) && !pods[0].reaches(&pods[2]), "it does drop");
        cluster.install(&config);
        cluster.nodes.iter().for_each(|node| drop(node.osvc_net(&["setup"]).ok()));
    }
    // The first two are on one link.
    assert_eq!(cluster.nodes[0].way_to(pods[1].addresses[0]), "eth0");
    assert_ne!(cluster.nodes[0].way_to(pods[2].addresses[0]), "eth0");
    all_talk(&pods);
    for pod in &pods {
        assert_eq!(cluster.outside_sees(pod)[0], pod.node.v4, "{pod} reaches what is outside");
        pod.check();
    }
}

#[test]
fn a_foreign_chain_that_drops_lets_all_pairs_talk() {
    for first in [true, false] {
        all_pairs_talk(HARD, first);
    }
    noted("a foreign chain that drops what is forwarded on all nodes");
}

#[test]
fn docker_on_all_nodes_lets_all_pairs_talk() {
    all_pairs_talk(DOCKER, true);
    noted("docker's chains on all nodes");
}
