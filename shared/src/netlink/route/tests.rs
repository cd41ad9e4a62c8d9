use super::*;
use crate::Route;
use crate::netlink::testing::in_new_netns;
use crate::netlink::{Link, Mac, NewBridge, PROTOCOL};
use nix::errno::Errno;

fn device(socket: &mut RouteSocket) -> Link {
    socket.create_bridge(&NewBridge { name: "br0", mac: Mac([2; 6]), mtu: 1500 }).unwrap();
    let link = socket.link_by_name("br0").unwrap().unwrap();
    socket.set_up(&link, true).unwrap();
    for address in ["10.22.0.1/16", "fd77::1/64"] {
        socket.add_address(&link, address.parse().unwrap(), false).unwrap();
    }
    link
}

fn add(socket: &mut RouteSocket, link: &Link, route: &Route) -> Result<(), Error> {
    socket.add_route(&NewRoute { route, device: link.index, name: &link.name, multipath: true })
}

fn ours() -> RouteFilter {
    RouteFilter { protocol: Some(PROTOCOL), ..RouteFilter::default() }
}

#[test]
fn ci1_routes_with_mtu_advmss_priority_table_and_scope() {
    in_new_netns(|| {
        let mut socket = RouteSocket::open().unwrap();
        let link = device(&mut socket);
        let gw = Some("10.22.0.9".parse().unwrap());
        let full = Route {
            mtu: Some(1400),
            advmss: Some(1300),
            priority: Some(5),
            table: Some(1000),
            ..Route::new("1.0.0.0/8".parse().unwrap(), gw)
        };
        let link_scope = Route { scope: Some(253), ..Route::new("2.0.0.0/8".parse().unwrap(), None) };
        let v6 = Route { mtu: Some(1280), ..Route::new("::/0".parse().unwrap(), Some("fd77::9".parse().unwrap())) };
        for route in [&full, &link_scope, &v6] {
            add(&mut socket, &link, route).unwrap();
        }
        let found = socket.routes(&ours()).unwrap();
        assert_eq!(found.len(), 3, "{found:?}");
        let first = found.iter().find(|route| route.dst == full.dst).unwrap();
        assert_eq!((first.mtu, first.advmss, first.priority, first.table), (Some(1400), Some(1300), 5, 1000));
        assert_eq!(first.next_hops, [NextHop { gateway: gw, device: Some(link.index) }]);
        assert_eq!(found.iter().find(|route| route.dst == link_scope.dst).unwrap().scope, 253);
        assert!(found.iter().any(|route| route.is_default() && route.mtu == Some(1280)));
        let main = RouteFilter { table: Some(MAIN), v6: Some(false), ..ours() };
        assert_eq!(socket.routes(&main).unwrap().len(), 1);
        socket.delete_route(&full, link.index).unwrap();
        socket.delete_route(&full, link.index).unwrap();
        assert_eq!(socket.routes(&ours()).unwrap().len(), 2);
    });
}

#[test]
fn ci2_several_routes_to_one_destination() {
    in_new_netns(|| {
        let mut socket = RouteSocket::open().unwrap();
        let link = device(&mut socket);
        for (dst, gateways) in [("3.0.0.0/8", ["10.22.0.8", "10.22.0.9"]), ("fd99::/64", ["fd77::8", "fd77::9"])] {
            for gateway in gateways {
                let route = Route::new(dst.parse().unwrap(), Some(gateway.parse().unwrap()));
                add(&mut socket, &link, &route).unwrap();
                let again = add(&mut socket, &link, &route).unwrap_err();
                assert!(again.is(Errno::EEXIST), "{again}");
            }
        }
        let found = socket.routes(&ours()).unwrap();
        let hops = |v6: bool| -> usize {
            found.iter().filter(|route| route.dst.addr().is_ipv6() == v6).map(|route| route.next_hops.len()).sum()
        };
        assert_eq!((hops(false), hops(true)), (2, 2), "{found:?}");
    });
}

#[test]
fn the_route_to_an_address() {
    in_new_netns(|| {
        let mut socket = RouteSocket::open().unwrap();
        assert_eq!(socket.route_to("8.8.8.8".parse().unwrap()).unwrap(), None);
        assert_eq!(socket.route_to("2001:db8::1".parse().unwrap()).unwrap(), None);
        let link = device(&mut socket);
        let found = socket.route_to("10.22.7.7".parse().unwrap()).unwrap().unwrap();
        assert_eq!(found.next_hops, [NextHop { gateway: None, device: Some(link.index) }]);
        assert!(socket.route_to("fd77::7".parse().unwrap()).unwrap().is_some());
        let bad = Route::new("9.0.0.0/8".parse().unwrap(), Some("172.16.0.1".parse().unwrap()));
        let text = add(&mut socket, &link, &bad).unwrap_err().to_string();
        assert!(text.starts_with("cannot add route 9.0.0.0/8 via 172.16.0.1 on br0: Network is unreachable"), "{text}");
    });
}
