//! Three nodes, two on one link and one behind a router: all containers reach all others and the outside, in packets as
//! long as there is room for.

use integration::cluster::{Cluster, Underlay, all_ping, all_talk, fragments, talk};

use crate::{LINK, V4, V6, noted, set_strict, vm};

/// A network of three nodes, and what it takes.
struct Case {
    mode: &'static str,
    underlay: Underlay,
    networks: &'static [(&'static str, u8)],
    /// The least that the encapsulation leaves of a link's MTU.
    overhead: u32,
    /// The kinds of devices to a peer behind a router.
    kinds: &'static [&'static str],
}

/// Protocols of packets that have others in them: IPv4, IPv6, GRE, UDP.
const CARRIERS: [u8; 4] = [4, 41, 47, 17];

impl Case {
    fn new(mode: &'static str, underlay: Underlay, overhead: u32, kinds: &'static [&'static str]) -> Self {
        Self { mode, underlay, networks: &[V4, V6], overhead, kinds }
    }

    fn only(self, networks: &'static [(&'static str, u8)]) -> Self {
        Self { networks, ..self }
    }

    #[track_caller]
    fn works(&self) {
        let cluster = Cluster::three();
        set_strict(&cluster);
        let mut config = cluster.network("net", self.underlay, self.networks);
        config["tunnelMode"] = self.mode.into();
        let encrypted = self.mode == "wireguard";
        if encrypted {
            cluster.exchange_keys(&mut config);
        }
        let pods = cluster.start_everywhere(&config);
        for pod in &pods {
            assert_eq!(pod.mtu(), LINK - self.overhead, "{pod}, {}", self.mode);
            pod.check();
        }
        all_ping(&pods);
        all_talk(&pods);
        assert_eq!(fragments(&cluster), 0, "with the MTU that they have, no packet is cut, {}", self.mode);

        let [one, two, three] = &cluster.nodes[..] else { panic!("three nodes") };
        for node in [one, two, three] {
            let kinds: Vec<String> = node.kinds().into_iter().collect();
            assert_eq!(kinds, self.kinds, "{}, {}", node.name, self.mode);
        }
        let is_tunnel = |device: &str| one.tunnels().iter().any(|tunnel| tunnel.name == device);
        for (near, far) in pods[1].addresses.iter().zip(&pods[2].addresses) {
            assert!(is_tunnel(&one.way_to(*far)), "{far} is behind a router, {}", self.mode);
            // IPv6 cannot be routed to a neighbour known by IPv4.
            let direct = !encrypted && (near.is_ipv4() || self.underlay != Underlay::V4);
            let way = one.way_to(*near);
            assert_eq!(way == "eth0", direct, "{near} is on the link, {way}, {}", self.mode);
        }
        if !encrypted && self.underlay != Underlay::V4 {
            let capture = cluster.world.capture(None);
            talk(&pods[0], &pods[1]);
            let seen = capture.end();
            assert!(seen.with_address(pods[0].addresses[0]) > 0, "the capture sees them");
            for (ends, protocol) in
                [[one.v4, two.v4], [one.v6, two.v6]].iter().flat_map(|ends| CARRIERS.map(|p| (*ends, p)))
            {
                assert_eq!(
                    seen.between(ends, protocol),
                    0,
                    "{protocol} between {ends:?}: the direct pair needs no tunnel"
                );
            }
        }
        for pod in &pods {
            let seen = cluster.outside_sees(pod);
            let own = [pod.node.v4, pod.node.v6];
            assert!(seen.len() == self.networks.len() && seen.iter().all(|seen| own.contains(seen)), "{pod}: {seen:?}");
        }
        noted(&format!(
            "three nodes, one behind a router: {} over {:?} for {}",
            self.mode,
            self.underlay,
            self.networks.iter().map(|(network, _)| *network).collect::<Vec<_>>().join(" and ")
        ));
    }
}

#[test]
fn vxlan_over_ipv4() {
    Case::new("vxlan", Underlay::V4, 50, &["vxlan"]).works();
}

#[test]
fn vxlan_over_ipv6() {
    Case::new("vxlan", Underlay::V6, 70, &["vxlan"]).works();
}

#[test]
fn vxlan_over_both_families() {
    Case::new("vxlan", Underlay::Both, 70, &["vxlan"]).works();
}

#[test]
fn vxlan_of_one_family() {
    Case::new("vxlan", Underlay::V4, 50, &["vxlan"]).only(&[V4]).works();
}

#[test]
fn ipip_of_both_families() {
    vm().test(|| Case::new("ipip", Underlay::V4, 20, &["ipip", "sit"]).works());
}

#[test]
fn ipip_over_both_families() {
    vm().test(|| Case::new("ipip", Underlay::Both, 40, &["ip6tnl", "ipip"]).works());
}

#[test]
fn ip6ip6() {
    vm().test(|| Case::new("ip6ip6", Underlay::V6, 40, &["ip6tnl"]).works());
}

#[test]
fn gre_over_ipv4() {
    vm().test(|| Case::new("gre", Underlay::V4, 28, &["gre"]).works());
}

#[test]
fn gre_over_ipv6() {
    vm().test(|| Case::new("gre", Underlay::V6, 48, &["ip6gre"]).works());
}

#[test]
fn wireguard_over_ipv4() {
    vm().test(|| Case::new("wireguard", Underlay::V4, 80, &["wireguard"]).works());
}

#[test]
fn wireguard_over_ipv6() {
    vm().test(|| Case::new("wireguard", Underlay::V6, 80, &["wireguard"]).works());
}

/// Two hosts of one link and nothing else: no tunnel is needed, and none is there.
#[test]
fn plain_routes_under_never() {
    let cluster = Cluster::new(&[0, 0, 0], &[]);
    set_strict(&cluster);
    let mut config = cluster.network("net", Underlay::Both, &[V4, V6]);
    config["tunnel"] = "never".into();
    let pods = cluster.start_everywhere(&config);
    assert!(pods.iter().all(|pod| pod.mtu() == LINK), "the whole MTU is there");
    all_ping(&pods);
    all_talk(&pods);
    assert!(cluster.nodes.iter().all(|node| node.way_to(pods[2].addresses[0]) != "lo"));
    noted("three nodes on one link by plain routes");
}
