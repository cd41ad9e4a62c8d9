use netlink_packet_core::Emitable;
use nix::errno::Errno;

use super::*;
use crate::netlink::testing::in_new_netns;
use crate::netlink::{Error, GROUP, Mac, RouteSocket};

const A4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const B4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

fn all() -> [Tunnel; 8] {
    [
        Tunnel::ipip(A4, B4),
        Tunnel::sit(A4, B4, Inside::Both),
        Tunnel::ip6tnl(A6, B6, Inside::Both),
        Tunnel::ip6tnl(A6, B6, Inside::V6),
        Tunnel::gre(A4, B4, 0xdead_beef),
        Tunnel::ip6gre(A6, B6, 7),
        Tunnel::vxlan(0x00ab_cdef, A4.into(), 4799),
        Tunnel::vxlan(7, A6.into(), 4799),
    ]
}

fn bytes(tunnel: &Tunnel) -> Vec<u8> {
    let data = data::write(tunnel, false);
    let mut bytes = vec![0; data.as_slice().buffer_len()];
    data.as_slice().emit(&mut bytes);
    bytes
}

#[test]
fn what_is_written_is_read() {
    for tunnel in all() {
        assert_eq!(data::read(tunnel.kind, &bytes(&tunnel)), tunnel);
        assert_eq!(TunnelKind::of(tunnel.kind.name()), Some(tunnel.kind));
    }
    assert_eq!(data::read(TunnelKind::Wireguard, &[]), Tunnel::wireguard());
    assert_eq!(TunnelKind::of("veth"), None);
}

#[test]
fn parameters_are_those_of_the_kernel_s_headers() {
    let ipip = [5, 0, 4, 0, 64, 0, 0, 0, 5, 0, 9, 0, 4, 0, 0, 0, 8, 0, 2, 0, 192, 0, 2, 1];
    let rest = [8, 0, 3, 0, 192, 0, 2, 2, 5, 0, 10, 0, 1, 0, 0, 0];
    assert_eq!(bytes(&Tunnel::ipip(A4, B4)), [&ipip[..], &rest].concat());
    let gre = bytes(&Tunnel::gre(A4, B4, 0x0102_0304));
    for part in [[6, 0, 2, 0, 0x20, 0, 0, 0], [6, 0, 3, 0, 0x20, 0, 0, 0], [8, 0, 4, 0, 1, 2, 3, 4]] {
        assert!(gre.windows(8).any(|window| window == part), "{part:?} in {gre:?}");
    }
    let vxlan = bytes(&Tunnel::vxlan(7, A4.into(), 4799));
    assert!(vxlan.windows(8).any(|window| window == [6, 0, 15, 0, 0x12, 0xbf, 0, 0]), "{vxlan:?}");
}

#[test]
fn what_is_unusual_is_told() {
    let with = |tunnel: &Tunnel, more: &[u8]| data::read(tunnel.kind, &[&bytes(tunnel), more].concat());
    let [ipip, _, ip6tnl, _, gre, _, vxlan, _] = all();
    // The device; the encapsulation; use of the inner traffic class; checksums; multicast questions.
    let cases: [(&Tunnel, &[u8]); 5] = [
        (&ipip, &[8, 0, 1, 0, 3, 0, 0, 0]),
        (&ipip, &[6, 0, 15, 0, 1, 0, 0, 0]),
        (&ip6tnl, &[8, 0, 8, 0, 3, 0, 0, 0]),
        (&gre, &[6, 0, 2, 0, 0xa0, 0, 0, 0]),
        (&vxlan, &[5, 0, 14, 0, 1, 0, 0, 0]),
    ];
    for (tunnel, more) in cases {
        let found = with(tunnel, more);
        assert!(found.unusual && !found.can_become(tunnel), "{found:?}");
    }
    assert_eq!(with(&ip6tnl, &[8, 0, 8, 0, 1, 0, 7, 0]), ip6tnl, "what the kernel found out does not count");
    let limited = with(&ip6tnl, &[8, 0, 8, 0, 0, 0, 0, 0]);
    assert_eq!(limited.encap_limit, Some(0));
    assert!(limited.can_become(&ip6tnl));
}

#[test]
fn which_ones_exclude_each_other_and_which_can_change() {
    for (n, one) in all().iter().enumerate() {
        for (m, other) in all().iter().enumerate() {
            // Both ip6tnl have the same ends.
            let same = n == m || (n, m) == (2, 3) || (n, m) == (3, 2);
            assert_eq!((one.excludes(other), one.can_become(other)), (same, same), "{one:?} {other:?}");
        }
    }
    let [ipip, _, _, _, gre, _, vxlan, _] = all();
    assert!(!gre.excludes(&Tunnel::gre(A4, B4, 1)) && gre.can_become(&Tunnel::gre(B4, A4, 1)));
    assert!(ipip.can_become(&Tunnel::ipip(B4, A4)) && !ipip.can_become(&Tunnel { remote: None, ..ipip.clone() }));
    assert!(vxlan.can_become(&Tunnel::vxlan(0x00ab_cdef, B4.into(), 4799)));
    assert!(!vxlan.can_become(&Tunnel::vxlan(0x00ab_cdef, A4.into(), 4800)));
}

#[test]
fn a_vxlan_is_made_found_and_changed_in_place() {
    in_new_netns(|| {
        let mut socket = RouteSocket::open().unwrap();
        let mac = Mac([0x0a, 0x58, 1, 2, 3, 4]);
        for (name, local, moved) in [("vx4", A4.into(), B4.into()), ("vx6", IpAddr::from(A6), B6.into())] {
            let tunnel = Tunnel::vxlan(u32::from(name.as_bytes()[2]), local, 4799);
            let new = NewTunnel { name, tunnel: &tunnel, mtu: 1400, mac: Some(mac) };
            socket.create_tunnel(&new).unwrap();
            let made = socket.tunnel_by_name(name).unwrap().unwrap();
            assert_eq!(made.tunnel, tunnel);
            assert_eq!((made.link.mac, made.link.mtu, made.link.group), (Some(mac.0), 1400, GROUP));
            assert!(made.is_ours() && !made.link.up);
            socket.set_up(&made.link, true).unwrap();
            let error = socket.create_tunnel(&NewTunnel { name: "other", ..new }).unwrap_err();
            assert!(error.is(Errno::EEXIST), "{error}");

            let wanted = Tunnel { local: Some(moved), ..tunnel };
            assert!(made.tunnel.can_become(&wanted));
            socket.change_tunnel(&made.link, &wanted, 1390).unwrap();
            let changed = socket.tunnel_by_name(name).unwrap().unwrap();
            assert_eq!((changed.link.index, changed.link.mtu), (made.link.index, 1390));
            assert_eq!(changed.tunnel, wanted);
        }
        // The kernel's own (`tunl0`, …) may be there as well.
        let ours = socket.tunnels().unwrap().into_iter().filter(TunnelDevice::is_ours);
        assert_eq!(ours.map(|found| found.link.name).collect::<Vec<_>>(), ["vx4", "vx6"]);
        assert_eq!(socket.tunnel_by_name("lo").unwrap(), None);
        assert_eq!(socket.tunnel_by_name("nothing").unwrap(), None);
    });
}

#[test]
fn a_kernel_without_the_kind_is_told_with_its_module() {
    in_new_netns(|| {
        let mut socket = RouteSocket::open().unwrap();
        for tunnel in all().into_iter().chain([Tunnel::wireguard()]) {
            // 8 kinds on one kernel are there, on another one they are not: both are right, anything else is not.
            match socket.create_tunnel(&NewTunnel { name: "tun", tunnel: &tunnel, mtu: 1400, mac: None }) {
                Ok(()) => {
                    let found = socket.tunnel_by_name("tun").unwrap().unwrap();
                    assert_eq!(found.tunnel, tunnel);
                    socket.delete_link(&found.link).unwrap();
                }
                Err(error) => {
                    let (kind, module) = (tunnel.kind.name(), tunnel.kind.module());
                    let text = format!(
                        "cannot create {kind} tun: this kernel has no devices of kind {kind}: install or load its module {module}"
                    );
                    assert!(matches!(error, Error::NoModule { .. }), "{error}");
                    assert_eq!(error.to_string(), text);
                }
            }
        }
    });
}
