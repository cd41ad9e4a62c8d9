//! Each kind of tunnel between two nodes, made and changed by the library: it carries what it says it does, in packets as
//! long as its overhead allows. In the VM all kinds are there; on the running kernel those that it has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use integration::{Vm, report};
use nix::errno::Errno;
use osvc_cni::netlink::tunnel::Inside;
use osvc_cni::netlink::wireguard::{PrivateKey, WantedPeer, WireguardChange, public_key};
use osvc_cni::netlink::{Error, Link, Mac, NewTunnel, Tunnel, WireguardSocket};

use crate::nodes::{Node, UNDERLAY, with_two_nodes};

const MAC: [Mac; 2] = [Mac([2, 0, 0, 0, 7, 1]), Mac([2, 0, 0, 0, 7, 2])];
const PORT: u16 = 7079;

fn v4(address: IpAddr) -> Ipv4Addr {
    if let IpAddr::V4(v4) = address { v4 } else { panic!("{address}") }
}

fn v6(address: IpAddr) -> Ipv6Addr {
    if let IpAddr::V6(v6) = address { v6 } else { panic!("{address}") }
}

/// A tunnel from one underlay address to another, whatever the family that the kind wants.
type Make = fn([IpAddr; 2], [IpAddr; 2]) -> Tunnel;

/// The tunnels to one peer: name, overhead, and how one is made.
const TO_ONE: [(&str, u32, Make); 8] = [
    ("ipip", 20, |a, b| Tunnel::ipip(v4(a[0]), v4(b[0]))),
    ("sit", 20, |a, b| Tunnel::sit(v4(a[0]), v4(b[0]), Inside::Both)),
    ("ip6ip", 20, |a, b| Tunnel::sit(v4(a[0]), v4(b[0]), Inside::V6)),
    ("ip6tnl", 40, |a, b| Tunnel::ip6tnl(v6(a[1]), v6(b[1]), Inside::Both)),
    ("ip6ip6", 40, |a, b| Tunnel::ip6tnl(v6(a[1]), v6(b[1]), Inside::V6)),
    ("ipip6", 40, |a, b| Tunnel::ip6tnl(v6(a[1]), v6(b[1]), Inside::V4)),
    ("gre", 28, |a, b| Tunnel::gre(v4(a[0]), v4(b[0]), 0xffff_0001)),
    ("ip6gre", 48, |a, b| Tunnel::ip6gre(v6(a[1]), v6(b[1]), 0xffff_0001)),
];

/// Whether this kernel has the kind.
fn has(tunnel: &Tunnel) -> bool {
    let mut answer = true;
    with_two_nodes(|a, _| {
        let made = a.socket.create_tunnel(&NewTunnel { name: "try", tunnel, mtu: 1400, mac: None });
        match made {
            Ok(()) => {}
            Err(Error::NoModule { .. }) => answer = false,
            Err(error) => panic!("{error}"),
        }
    });
    answer
}

/// Both reach each other in packets as long as the device allows, in the families that the tunnel carries.
fn talk(a: &Node, b: &Node, tunnel: &Tunnel, mtu: u32, what: &str) {
    for family in [0, 1] {
        for (from, to) in [(a, b), (b, a)] {
            let to = to.own[family];
            let carried = tunnel.inside.carries(family == 1);
            assert!(!carried || from.reaches(to, mtu), "{what}: {to} is not reached with {mtu} bytes");
        }
    }
}

fn to_one_peer(name: &str, overhead: u32, make: Make) {
    with_two_nodes(|a, b| {
        let mtu = UNDERLAY - overhead;
        let wanted = make(a.underlay, b.underlay);
        // To nobody first, and then in place to the right one.
        let nobody = ["192.0.2.9", "2001:db8::9"].map(|address| address.parse().unwrap());
        let wrong = make(a.underlay, nobody);
        let mine = a.tunnel("t", &wrong, mtu, None);
        let theirs = b.tunnel("t", &make(b.underlay, a.underlay), mtu, None);
        let (mine, theirs) = (mine.link, theirs.link);
        for family in [0, 1] {
            a.route(b, family, &mine, None);
            b.route(a, family, &theirs, None);
        }
        assert!(wrong.can_become(&wanted));
        a.socket.change_tunnel(&mine, &wanted, mtu).unwrap();
        let changed = a.socket.tunnel_by_name("t").unwrap().unwrap();
        assert_eq!((changed.link.index, changed.link.mtu), (mine.index, mtu), "{name}");
        assert_eq!(changed.tunnel, wanted);
        talk(a, b, &wanted, mtu, name);
        let twice = a.socket.create_tunnel(&NewTunnel { name: "t2", tunnel: &wanted, mtu, mac: None }).unwrap_err();
        assert!(twice.is(Errno::EEXIST), "{name}: {twice}");
        if let Some(key) = wanted.key {
            let other = Tunnel { key: Some(key + 1), ..wanted.clone() };
            a.tunnel("t2", &other, mtu, None);
        }
        // The kernel's own devices have neither end.
        let ours = a.socket.tunnels().unwrap().into_iter().filter(|found| found.is_ours());
        assert_eq!(ours.count(), 1 + usize::from(wanted.key.is_some()), "{name}");
    });
}

fn vxlan(family: usize) {
    with_two_nodes(|a, b| {
        let mtu = UNDERLAY - [50, 70][family];
        let [mine, theirs] = [&*a, &*b].map(|node| Tunnel::vxlan(4711, node.underlay[family], PORT));
        let devices = [a.tunnel("t", &mine, mtu, Some(MAC[0])).link, b.tunnel("t", &theirs, mtu, Some(MAC[1])).link];
        let lead = |node: &mut Node, peer: &Node, device: &Link, mac: Mac| {
            node.socket.set_forwarding(device, mac, peer.underlay[family]).unwrap();
            for (inside, gateway) in peer.own.into_iter().enumerate() {
                node.socket.set_neighbour(device, gateway, mac).unwrap();
                node.route(peer, inside, device, Some(gateway));
            }
        };
        lead(a, b, &devices[0], MAC[1]);
        lead(b, a, &devices[1], MAC[0]);
        talk(a, b, &mine, mtu, "vxlan");
    });
}

fn wireguard(family: usize) {
    with_two_nodes(|a, b| {
        let mtu = UNDERLAY - [60, 80][family];
        let keys = [PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap()];
        let tunnel = Tunnel::wireguard();
        let devices = [&mut *a, &mut *b].map(|node| node.tunnel("t", &tunnel, mtu, None).link);
        let [mut mine, mut theirs] = [&*a, &*b].map(|node| node.netns.enter(WireguardSocket::open).unwrap());
        let wanted = |node: &Node, key: &PrivateKey| WantedPeer {
            public_key: public_key(key).unwrap(),
            endpoint: Some((node.underlay[family], PORT).into()),
            roams: false,
            keepalive: 0,
            allowed: node.segments.iter().map(|segment| segment.parse().unwrap()).collect(),
        };
        let (to_b, to_a) = ([wanted(b, &keys[1])], [wanted(a, &keys[0])]);
        let set = |socket: &mut WireguardSocket, n: usize, peers: &[WantedPeer]| {
            let found = socket.device(&devices[n]).unwrap().unwrap();
            socket.change_device(&devices[n], &found.change_to(&keys[n], PORT, peers)).unwrap();
        };
        set(&mut mine, 0, &to_b);
        set(&mut theirs, 1, &to_a);
        for inside in [0, 1] {
            a.route(b, inside, &devices[0], None);
            b.route(a, inside, &devices[1], None);
        }
        talk(a, b, &tunnel, mtu, "wireguard");
        for (socket, n, peers) in [(&mut mine, 0, &to_b), (&mut theirs, 1, &to_a)] {
            let found = socket.device(&devices[n]).unwrap().unwrap();
            let peer = &found.peers[0];
            assert!(peer.last_handshake.is_some() && peer.received > 0 && peer.sent > 0, "{found:?}");
            assert!(found.change_to(&keys[n], PORT, peers).is_empty());
        }
        let gone = WireguardChange { remove: vec![to_b[0].public_key], ..WireguardChange::default() };
        mine.change_device(&devices[0], &gone).unwrap();
        assert!(!a.reaches(b.own[0], 100), "without the peer's key nothing goes");
        set(&mut mine, 0, &to_b);
        assert!(a.reaches(b.own[0], 100));
    });
}

/// All kinds that the kernel has; their names.
fn every_kind() -> Vec<&'static str> {
    let (mine, theirs) = (
        [Ipv4Addr::new(192, 0, 2, 1).into(), "2001:db8::1".parse().unwrap()],
        [Ipv4Addr::new(192, 0, 2, 2).into(), "2001:db8::2".parse().unwrap()],
    );
    let mut done = Vec::new();
    for (name, overhead, make) in TO_ONE {
        if has(&make(mine, theirs)) {
            to_one_peer(name, overhead, make);
            done.push(name);
        }
    }
    for (name, tunnel, act) in
        [("vxlan", Tunnel::vxlan(1, mine[0], PORT), vxlan as fn(usize)), ("wireguard", Tunnel::wireguard(), wireguard)]
    {
        if has(&tunnel) {
            act(0);
            act(1);
            done.push(name);
        }
    }
    report::ran(&report::kernel(), &format!("two nodes talk by {}", done.join(", ")));
    done
}

#[test]
fn all_kinds_carry_full_packets_in_the_vm() {
    Vm::new().test(|| {
        assert_eq!(every_kind().len(), TO_ONE.len() + 2);
    });
}

#[test]
fn the_kinds_of_the_running_kernel_carry_full_packets() {
    assert!(every_kind().contains(&"vxlan"));
}

#[test]
fn ipv4_by_ipip_and_ipv6_by_sit_go_together() {
    Vm::new().test(|| {
        with_two_nodes(|a, b| {
            let strict = || {
                for device in ["all", "default"] {
                    std::fs::write(format!("/proc/sys/net/ipv4/conf/{device}/rp_filter"), "1").unwrap();
                }
                Ok(())
            };
            let make = |node: &mut Node, peer: &Node, inside| {
                node.netns.enter(strict).unwrap();
                let (local, remote) = (v4(node.underlay[0]), v4(peer.underlay[0]));
                let ipip = node.tunnel("i", &Tunnel::ipip(local, remote), 1480, None).link;
                let sit = node.tunnel("s", &Tunnel::sit(local, remote, inside), 1480, None).link;
                node.route(peer, 0, if inside == Inside::Both { &sit } else { &ipip }, None);
                node.route(peer, 1, &sit, None);
                [ipip, sit]
            };
            let devices = [make(a, b, Inside::V6), make(b, a, Inside::V6)];
            assert_eq!(b.own.map(|to| a.reaches(to, 1480)), [true; 2]);
            // Why not all by sit: IPv4 comes in by the other one.
            for (node, devices) in [&mut *a, &mut *b].into_iter().zip(devices) {
                devices.iter().for_each(|device| node.socket.delete_link(device).unwrap());
            }
            make(a, b, Inside::Both);
            make(b, a, Inside::Both);
            assert_eq!(b.own.map(|to| a.reaches(to, 1480)), [false, true]);
            report::ran(&report::kernel(), "ipip and sit with the same ends, and a strict rp_filter");
        });
    });
}
