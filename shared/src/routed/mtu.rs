//! The MTU of a network between nodes: no packet of a container is too large for the way to any peer.

use ipnet::IpNet;

use super::mode::{Family, Mode};
use super::peers::{Peers, Rules, Way};
use crate::network::mtu::{LEAST_V6, for_families};

/// What a path is taken to let through while the kernel has no route to the peer: what Ethernet has, in bytes.
const ASSUMED: u32 = 1500;

/// What gets through a tunnel over a path of this MTU, in bytes. IPv6 always has its 1280: the kernel sends larger
/// packets of the tunnel in fragments for it (RFC 2473, 7.1).
pub fn through(mode: Mode, inside: Family, underlay: Family, path: Option<u32>) -> u32 {
    let rest = path.unwrap_or(ASSUMED).saturating_sub(mode.overhead(underlay));
    match inside {
        Family::V4 => rest,
        Family::V6 => rest.max(LEAST_V6),
    }
}

/// The MTU of the network's bridge and containers, in bytes: the least over the peers of what their paths let through,
/// less the overhead if the network may tunnel at all, so that a peer may move behind a router. Without peers, or while
/// none of them can be reached, that of the host (`network::mtu::of_host`), with the largest overhead. A configured one
/// comes before all that.
pub fn of_network(rules: &Rules<'_>, peers: &Peers, host: u32) -> u32 {
    let may_tunnel = rules.policy.may_tunnel(rules.mode);
    let ways = peers.peers.iter().flat_map(|peer| peer.ways.iter());
    let each = ways.filter_map(|(inside, way)| match way.as_ref().ok()? {
        Way::Direct { via, mtu, .. } if may_tunnel => Some(through(rules.mode, inside, Family::of(*via), Some(*mtu))),
        Way::Direct { mtu, .. } | Way::Tunnel { mtu, .. } => Some(*mtu),
    });
    let without = || host.saturating_sub(if may_tunnel { rules.mode.overhead(Family::V6) } else { 0 });
    for_families(each.min().unwrap_or_else(without), rules.networks)
}

/// The MTU that routes to a family's segments carry, in bytes; none if the device's says the same.
pub fn of_route(way: &Way, device: u32, segment: &IpNet) -> Option<u32> {
    let (Way::Direct { mtu, .. } | Way::Tunnel { mtu, .. }) = way;
    let least = if segment.addr().is_ipv6() { LEAST_V6 } else { 0 };
    Some((*mtu).max(least)).filter(|mtu| *mtu < device)
}

#[cfg(test)]
mod tests {
    use super::super::mode::{PerFamily, Policy};
    use super::super::peers::PeerWays;
    use super::*;

    fn direct(via: &str, mtu: u32) -> Way {
        Way::Direct { via: via.parse().unwrap(), device: 2, name: "eth0".into(), mtu }
    }

    fn tunnel(remote: &str, mtu: u32) -> Way {
        Way::Tunnel { device: "ot".into(), onlink: false, remote: remote.parse().unwrap(), mtu, routed: true }
    }

    fn mtu(policy: Policy, mode: Mode, networks: &[&str], ways: Vec<Way>) -> u32 {
        let networks: Vec<IpNet> = networks.iter().map(|text| text.parse().unwrap()).collect();
        let name = "prod".parse().unwrap();
        let rules = Rules { network: &name, networks: &networks, policy, mode, port: None };
        let peer = |way: Way| PeerWays { name: "n".into(), ways: PerFamily { v4: Some(Ok(way)), v6: None } };
        of_network(&rules, &Peers { peers: ways.into_iter().map(peer).collect(), tunnels: Vec::new() }, 1500)
    }

    #[test]
    fn the_least_over_the_peers() {
        let ways = || vec![direct("192.0.2.1", 9000), tunnel("192.0.2.2", 1480), direct("fd00::1", 1500)];
        assert_eq!(mtu(Policy::Auto, Mode::Ipip, &["10.0.0.0/16"], ways()), 1460, "the one over IPv6 may be tunnelled");
        assert_eq!(mtu(Policy::Auto, Mode::Ipip, &["10.0.0.0/16"], vec![direct("192.0.2.1", 9000)]), 8980);
        assert_eq!(mtu(Policy::Never, Mode::Ipip, &["10.0.0.0/16"], vec![direct("192.0.2.1", 9000)]), 9000);
        assert_eq!(mtu(Policy::Never, Mode::Vxlan, &["10.0.0.0/16"], vec![direct("192.0.2.1", 1500)]), 1500);
    }

    #[test]
    fn without_peers_that_of_the_host_with_room_for_a_tunnel() {
        assert_eq!(mtu(Policy::Auto, Mode::Vxlan, &["10.0.0.0/16"], Vec::new()), 1430);
        assert_eq!(mtu(Policy::Never, Mode::Vxlan, &["10.0.0.0/16"], Vec::new()), 1500);
        assert_eq!(mtu(Policy::Auto, Mode::Wireguard, &["10.0.0.0/16"], Vec::new()), 1420);
    }

    #[test]
    fn ipv6_always_has_its_1280() {
        assert_eq!(through(Mode::Gre, Family::V4, Family::V6, Some(1280)), 1232);
        assert_eq!(through(Mode::Gre, Family::V6, Family::V6, Some(1280)), 1280);
        assert_eq!(through(Mode::Vxlan, Family::V4, Family::V4, None), 1450);
        assert_eq!(mtu(Policy::Always, Mode::Gre, &["fd00::/48"], vec![tunnel("fd01::1", 1000)]), 1280);
    }

    #[test]
    fn a_route_says_what_its_device_does_not() {
        let (v4, v6) = ("10.0.0.0/24".parse().unwrap(), "fd00::/64".parse().unwrap());
        assert_eq!(of_route(&tunnel("192.0.2.2", 1400), 1450, &v4), Some(1400));
        assert_eq!(of_route(&tunnel("192.0.2.2", 1450), 1450, &v4), None);
        assert_eq!(of_route(&tunnel("192.0.2.2", 1200), 1450, &v6), Some(1280));
    }
}
