use super::*;
use crate::netlink::route::{MAIN, RouteFilter};
use crate::netlink::testing::in_new_netns;
use crate::netlink::{Link, Mac, NewBridge};
use crate::routed::path::Paths;

fn device(socket: &mut RouteSocket, name: &str, addresses: &[&str]) -> Link {
    socket.create_bridge(&NewBridge { name, mac: Mac([2; 6]), mtu: 1500 }).unwrap();
    let link = socket.link_by_name(name).unwrap().unwrap();
    socket.set_up(&link, true).unwrap();
    for address in addresses {
        socket.add_address(&link, address.parse().unwrap(), false).unwrap();
    }
    link
}

fn ours(socket: &mut RouteSocket) -> Vec<RouteEntry> {
    socket.routes(&RouteFilter { protocol: Some(PROTOCOL), ..RouteFilter::default() }).unwrap()
}

fn by(link: &Link, dst: &str, gateway: Option<&str>) -> HostRoute {
    let gateway = gateway.map(|gateway| gateway.parse().unwrap());
    let target =
        RouteTarget::Device { index: link.index, name: link.name.clone(), gateway, onlink: false, source: None };
    HostRoute { dst: dst.parse().unwrap(), target, table: MAIN, metric: 0, mtu: None }
}

fn nowhere(dst: &str) -> HostRoute {
    HostRoute {
        dst: dst.parse().unwrap(),
        target: RouteTarget::Unreachable,
        table: MAIN,
        metric: 4_000_000_000,
        mtu: None,
    }
}

#[test]
fn each_kind_of_route_is_put_once_found_again_and_removed() {
    in_new_netns(|| {
        let mut socket = RouteSocket::open().unwrap();
        let link = device(&mut socket, "br0", &["10.22.0.1/16", "fd77::1/64"]);
        let via = by(&link, "10.11.4.0/22", Some("10.22.0.2"));
        let with_source = |mut route: HostRoute, from: &str| {
            if let RouteTarget::Device { source, .. } = &mut route.target {
                *source = Some(from.parse().unwrap());
            }
            route
        };
        let mut beyond = by(&link, "10.11.20.0/22", Some("10.99.0.1"));
        if let RouteTarget::Device { onlink, .. } = &mut beyond.target {
            *onlink = true;
        }
        let routes = [
            HostRoute { mtu: Some(1400), ..via.clone() },
            HostRoute { table: 1000, ..via.clone() },
            HostRoute { table: 100, metric: 7, ..via },
            by(&link, "10.11.8.0/22", Some("fd77::2")),
            with_source(by(&link, "10.11.12.0/22", None), "10.22.0.1"),
            by(&link, "10.11.16.0/22", None),
            beyond,
            nowhere("10.11.0.0/16"),
            HostRoute { mtu: Some(1300), ..with_source(by(&link, "fd11:4::/64", Some("fd77::2")), "fd77::1") },
            by(&link, "fd11:8::/64", None),
            HostRoute { table: 1000, ..by(&link, "fd11:8::/64", None) },
            nowhere("fd11::/16"),
        ];
        for round in 0..2 {
            let found = ours(&mut socket);
            for route in &routes {
                assert_eq!(socket.put_route(route, &found).unwrap(), round == 0, "{route} among {found:#?}");
            }
        }
        let found = ours(&mut socket);
        assert_eq!(found.len(), routes.len(), "{found:#?}");
        for route in &found {
            socket.remove_route(route).unwrap();
            socket.remove_route(route).unwrap();
        }
        assert_eq!(ours(&mut socket), []);
    });
}

#[test]
fn a_route_of_ours_is_replaced_and_one_of_somebody_else_is_not() {
    in_new_netns(|| {
        let mut socket = RouteSocket::open().unwrap();
        let link = device(&mut socket, "br0", &["10.22.0.1/16", "fd77::1/64"]);
        for (dst, gateways) in [("10.11.4.0/22", ["10.22.0.2", "10.22.0.3"]), ("fd11::/64", ["fd77::2", "fd77::3"])] {
            // The last one has no gateway: IPv6 takes it for another kind of route.
            let wanted = [Some(gateways[0]), Some(gateways[1]), None, Some(gateways[0])];
            for route in wanted.map(|gateway| by(&link, dst, gateway)) {
                let before = ours(&mut socket);
                assert!(socket.put_route(&route, &before).unwrap());
                let found = ours(&mut socket);
                assert_eq!(found.len(), 1, "{found:#?}");
                assert!(route.is(&found[0]), "{route}: {found:?}");
            }
            let found = ours(&mut socket);
            socket.remove_route(&found[0]).unwrap();

            // Another's: by protocol, for it is made by the same request.
            let foreign = by(&link, dst, Some(gateways[1]));
            let mut request = foreign.message();
            request.header.protocol = 4.into();
            let flags = NLM_F_CREATE | NLM_F_EXCL;
            socket.change(libc::RTM_NEWROUTE, flags, &request, format_args!("add")).unwrap();
            let refused = socket.put_route(&by(&link, dst, Some(gateways[0])), &[]).unwrap_err();
            assert!(refused.is(Errno::EEXIST), "{refused}");
            let text = format!("cannot add route {dst} via {} on br0: File exists", gateways[0]);
            assert!(refused.to_string().starts_with(&text), "{refused}");
            let theirs = RouteFilter { protocol: Some(4), ..RouteFilter::default() };
            let found = socket.routes(&theirs).unwrap();
            assert_eq!(found.len(), 1);
            socket.remove_route(&RouteEntry { protocol: PROTOCOL, ..found[0].clone() }).unwrap();
            assert_eq!(socket.routes(&theirs).unwrap().len(), 1, "it is not ours");
            socket.remove_route(&found[0]).unwrap();
        }
    });
}

#[test]
fn the_way_to_an_address_tells_gateway_default_and_device() {
    in_new_netns(|| {
        let mut socket = RouteSocket::open().unwrap();
        let lo = socket.link_by_name("lo").unwrap().unwrap();
        socket.set_up(&lo, true).unwrap();
        let link = device(&mut socket, "br0", &["10.22.0.1/16", "fd77::1/64"]);
        for (to, source) in [("10.22.0.9", "10.22.0.1"), ("fd77::9", "fd77::1")] {
            let found = socket.path_to(to.parse().unwrap()).unwrap().unwrap();
            assert!(found.is_direct() && found.gateway.is_none(), "{found:?}");
            assert_eq!((found.device, found.mtu), (link.index, 1500));
            assert_eq!(socket.source_to(to.parse().unwrap()).unwrap(), Some(source.parse().unwrap()));
        }
        assert!(socket.path_to("10.22.0.1".parse().unwrap()).unwrap().unwrap().local);
        // The kernel makes the route to an IPv6 address of its own a moment later, in a work queue.
        let is_local = |socket: &mut RouteSocket| socket.path_to("fd77::1".parse().unwrap()).unwrap().unwrap().local;
        let local = (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            is_local(&mut socket)
        });
        assert!(local);
        let mut way = |to: &str| socket.path_to(to.parse().unwrap()).unwrap();
        assert_eq!((way("198.51.100.1"), way("2001:db8::1")), (None, None));

        for (default, beyond, gateway) in [("0.0.0.0/0", "10.0.0.0/8", "10.22.0.2"), ("::/0", "fd00::/8", "fd77::2")] {
            let beyond = HostRoute { mtu: Some(1380), ..by(&link, beyond, Some(gateway)) };
            for route in [by(&link, default, Some(gateway)), beyond] {
                socket.put_route(&route, &[]).unwrap();
            }
        }
        let mut way = |to: &str| socket.path_to(to.parse().unwrap()).unwrap().unwrap();
        for (outside, beyond) in [("198.51.100.1", "10.1.0.1"), ("2001:db8::1", "fd01::1")] {
            let found = way(outside);
            assert!(found.default && !found.is_direct() && found.gateway.is_some(), "{found:?}");
            let found = way(beyond);
            assert!(!found.default && !found.is_direct() && found.gateway.is_some(), "{found:?}");
            assert_eq!(found.mtu, 1380);
        }
        socket.put_route(&nowhere("10.22.3.0/24"), &[]).unwrap();
        assert_eq!(socket.path_to("10.22.3.1".parse().unwrap()).unwrap(), None);
    });
}
