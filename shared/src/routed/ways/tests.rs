use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use nix::errno::Errno;

use super::*;
use crate::NetworkName;
use crate::netlink::Error;

mod ends;
mod faults;

/// A kernel with these routes.
#[derive(Default, Clone)]
struct Kernel(HashMap<IpAddr, Path>);

impl Paths for Kernel {
    fn path_to(&mut self, address: IpAddr) -> Result<Option<Path>, Error> {
        if address.to_string() == "192.0.2.99" {
            return Err(Error::Refused { request: "look up".into(), errno: Errno::ENOBUFS, hint: None });
        }
        Ok(self.0.get(&address).cloned())
    }

    fn own(&mut self) -> Result<Vec<IpAddr>, Error> {
        Ok(self.0.iter().filter(|(_, path)| path.local).map(|(address, _)| *address).collect())
    }

    fn source_to(&mut self, _: IpAddr) -> Result<Option<IpAddr>, Error> {
        Ok(None)
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn path(on_link: bool) -> Path {
    let gateway = (!on_link).then(|| ip("192.168.1.254"));
    Path {
        local: false,
        on_link,
        gateway,
        default: !on_link,
        device: 2,
        name: "eth0".into(),
        arp: true,
        point_to_point: false,
        mtu: 1500,
    }
}

/// Node 1 has both families on a wire; nodes 2 (both), 3 (IPv4 only) and 4 (IPv6 only) are on it; nodes 5 (both) and 6
/// (IPv4 only) are behind a router.
fn kernel() -> Kernel {
    let own = || Path { local: true, ..path(true) };
    let mut all = vec![(ip("192.168.1.1"), own()), (ip("fd01::1"), own())];
    all.extend(["192.168.1.2", "192.168.1.3", "fd01::2", "fd01::4"].map(|text| (ip(text), path(true))));
    all.extend(["172.16.0.5", "172.16.0.6", "fd05::5"].map(|text| (ip(text), path(false))));
    Kernel(all.into_iter().collect())
}

fn node(number: u8, addresses: &[&str]) -> Node {
    let v4 = IpNet::new(Ipv4Addr::new(10, 11, number * 4, 0).into(), 22).unwrap();
    let v6 = IpNet::new(Ipv6Addr::new(0xfd11, 0, 0, number.into(), 0, 0, 0, 0).into(), 64).unwrap();
    let addresses = addresses.iter().map(|text| ip(text)).collect();
    Node {
        name: format!("node{number}"),
        addresses,
        literal: addresses,
        unresolved: Vec::new(),
        segments: vec![v4, v6],
        public_key: Some([number; 32]),
    }
}

fn nodes() -> Vec<Node> {
    vec![
        node(1, &["192.168.1.1", "fd01::1"]),
        node(2, &["192.168.1.2", "fd01::2"]),
        node(3, &["192.168.1.3"]),
        node(4, &["fd01::4"]),
        node(5, &["172.16.0.5", "fd05::5"]),
        node(6, &["172.16.0.6"]),
    ]
}

struct Case {
    name: NetworkName,
    networks: Vec<IpNet>,
    policy: Policy,
    mode: Mode,
    nodes: Vec<Node>,
    kernel: Kernel,
}

fn case(policy: Policy, mode: Mode) -> Case {
    let networks = ["10.11.0.0/16", "fd11::/48"].map(|text| text.parse().unwrap()).to_vec();
    Case { name: "prod".parse().unwrap(), networks, policy, mode, nodes: nodes(), kernel: kernel() }
}

impl Case {
    fn solve(&self) -> Peers {
        let Self { name, networks, policy, mode, nodes, .. } = self;
        let rules = Rules { network: name, networks, policy: *policy, mode: *mode, port: None };
        ways(&rules, &nodes[0], &nodes[1..], &mut self.kernel.clone())
    }

    /// Each peer's ways in IPv4 and IPv6: `direct <via>`, `<kind> <remote>`, or the fault.
    fn texts(&self) -> Vec<[String; 2]> {
        texts(&self.solve())
    }
}

fn texts(peers: &Peers) -> Vec<[String; 2]> {
    let text = |way: Option<&Result<Way, Fault>>| match way {
        None => "-".to_owned(),
        Some(Ok(Way::Direct { via, .. })) => format!("direct {via}"),
        Some(Ok(Way::Tunnel { device, remote, .. })) => {
            let tunnel = peers.tunnels.iter().find(|tunnel| tunnel.name == *device).unwrap();
            assert!(tunnel.sends, "{tunnel}");
            format!("{} {remote}", tunnel.kind.name())
        }
        Some(Err(fault)) => format!("{fault:?}").split([' ', '(']).next().unwrap_or_default().to_owned(),
    };
    peers.peers.iter().map(|peer| Family::BOTH.map(|family| text(peer.ways.get(family)))).collect()
}

#[test]
fn auto_tunnels_what_is_behind_a_router_and_ipv6_over_ipv4() {
    assert_eq!(
        case(Policy::Auto, Mode::Ipip).texts(),
        [
            ["direct 192.168.1.2", "direct fd01::2"],
            ["direct 192.168.1.3", "sit 192.168.1.3"],
            ["direct fd01::4", "direct fd01::4"],
            ["ipip 172.16.0.5", "ip6tnl fd05::5"],
            ["ipip 172.16.0.6", "sit 172.16.0.6"],
        ]
    );
}

#[test]
fn always_tunnels_all() {
    let of = |mode| case(Policy::Always, mode).texts();
    assert_eq!(of(Mode::Ipip)[0], ["ipip 192.168.1.2", "ip6tnl fd01::2"]);
    assert_eq!(of(Mode::Ipip)[2], ["ip6tnl fd01::4", "ip6tnl fd01::4"]);
    assert_eq!(of(Mode::Gre)[1], ["gre 192.168.1.3", "gre 192.168.1.3"]);
    assert_eq!(of(Mode::Gre)[3], ["gre 172.16.0.5", "ip6gre fd05::5"]);
    assert_eq!(of(Mode::Vxlan)[3], ["vxlan 172.16.0.5", "vxlan fd05::5"]);
}

#[test]
fn never_is_a_fault_of_those_elsewhere_and_of_ipv6_over_ipv4() {
    assert_eq!(
        case(Policy::Never, Mode::Ipip).texts(),
        [
            ["direct 192.168.1.2", "direct fd01::2"],
            ["direct 192.168.1.3", "Ipv6ByIpv4"],
            ["direct fd01::4", "direct fd01::4"],
            ["OffLink", "OffLink"],
            ["OffLink", "Ipv6ByIpv4"],
        ]
    );
}

#[test]
fn the_receiving_end_is_there_for_direct_peers_too() {
    for policy in [Policy::Auto, Policy::Never] {
        let peers = case(policy, Mode::Gre).solve();
        let to_2: Vec<_> = peers.tunnels.iter().filter(|tunnel| tunnel.peers[0].name == "node2").collect();
        assert_eq!(to_2.len(), 2);
        assert!(to_2.iter().all(|tunnel| !tunnel.sends), "{to_2:?}");
        assert_eq!(to_2.iter().map(|tunnel| tunnel.mtu).max(), Some(1472));
    }
}

#[test]
fn wireguard_is_never_left_out() {
    for policy in [Policy::Auto, Policy::Always, Policy::Never] {
        let mut case = case(policy, Mode::Wireguard);
        case.nodes[2].public_key = None;
        case.nodes[3].public_key = Some([0; 32]);
        case.nodes[5].public_key = case.nodes[4].public_key;
        let peers = case.solve();
        let both = |text: &str| [text.to_owned(), text.to_owned()];
        let wanted = ["wireguard 192.168.1.2", "NoKey", "NoKey", "SameKey", "SameKey"].map(both);
        assert_eq!(texts(&peers), wanted);
        let [tunnel] = peers.tunnels.as_slice() else { panic!("{:?}", peers.tunnels) };
        let [peer] = tunnel.peers.as_slice() else { panic!("{tunnel:?}") };
        assert_eq!((tunnel.mtu, &peer.segments), (1420, &case.nodes[1].segments));
        let Kind::Wireguard { port } = tunnel.kind else { panic!("{tunnel:?}") };
        let endpoint = SocketAddr::new(ip("192.168.1.2"), port);
        assert_eq!(peer.link, PeerLink::Wireguard { key: [2; 32], endpoint });
    }
    let mut case = case(Policy::Auto, Mode::Wireguard);
    case.networks.remove(0);
    assert_eq!(case.texts()[3][1], "wireguard fd05::5", "a network with IPv6 only prefers its own family");
}

#[test]
fn a_vxlan_has_one_device_for_each_underlay_and_knows_its_neighbours() {
    let case = case(Policy::Always, Mode::Vxlan);
    let peers = case.solve();
    assert_eq!(peers.tunnels.len(), 2);
    let over = |v4: bool| {
        let of = |tunnel: &&Tunnel| matches!(tunnel.kind, Kind::Vxlan { local, .. } if local.is_ipv4() == v4);
        peers.tunnels.iter().find(of).unwrap()
    };
    let names = |tunnel: &Tunnel| tunnel.peers.iter().map(|peer| peer.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(over(true)), ["node2", "node3", "node5", "node6"]);
    assert_eq!(names(over(false)), ["node2", "node4", "node5"]);
    assert_eq!((over(true).mtu, over(false).mtu), (1450, 1430));
    let mac = vtep(&case.name, &case.nodes[2].segments);
    let node3 = &over(true).peers[1];
    assert_eq!(node3.link, PeerLink::Vxlan { mac, hops: vec![ip("10.11.12.1"), hop(&case.nodes[2].segments[1])] });
    assert_eq!(node3.segments, case.nodes[2].segments);
}
