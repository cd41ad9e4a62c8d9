use super::*;
use crate::netlink::testing::{in_new_netns, pinned_netns};
use crate::netlink::{NewBridge, NewPair, RouteFilter};

/// Runs a test with a device `eth0` in a container.
fn in_a_container(test: impl FnOnce(&mut Inside<'_>, &Link) + Send) {
    in_new_netns(|| {
        let (home, netns) = (Netns::current().unwrap(), pinned_netns());
        let mut inside = Inside::open(&netns, &home).unwrap();
        let link = device(&mut inside, "eth0");
        test(&mut inside, &link);
    });
}

fn device(inside: &mut Inside<'_>, name: &str) -> Link {
    inside.socket.create_bridge(&NewBridge { name, mac: Mac([2; 6]), mtu: 1500 }).unwrap();
    inside.interface(name).unwrap().unwrap()
}

fn addresses(texts: &[(&str, &str)]) -> Vec<(IpNet, Option<IpAddr>)> {
    texts.iter().map(|(address, gateway)| (address.parse().unwrap(), gateway.parse().ok())).collect()
}

fn route(dst: &str, gw: &str) -> Route {
    Route::new(dst.parse().unwrap(), gw.parse().ok())
}

fn dual() -> Vec<(IpNet, Option<IpAddr>)> {
    addresses(&[("10.22.0.5/16", "10.22.0.1"), ("fd77::5/64", "fd77::1")])
}

#[test]
fn br6_addresses_and_default_routes_of_both_families() {
    in_a_container(|inside, link| {
        let (addresses, routes) = (dual(), [route("0.0.0.0/0", ""), route("::/0", "")]);
        let wanted = Interface { addresses: &addresses, routes: &routes, detect_duplicates: false, up: true };
        assert_eq!(inside.configure(link, &wanted).unwrap(), routes);
        let have = inside.socket.addresses(link).unwrap();
        for (address, _) in &addresses {
            assert!(have.iter().any(|have| have.address == *address && !have.is_tentative()));
        }
        let there = inside.socket.routes(&RouteFilter { protocol: Some(79), ..RouteFilter::default() }).unwrap();
        let gateways: Vec<_> = there.iter().map(|route| (route.dst.prefix_len(), route.next_hops[0].gateway)).collect();
        assert_eq!(gateways, [(0, addresses[0].1), (0, addresses[1].1)]);
        inside
            .netns
            .enter_from(inside.home, || {
                let read = |sysctl: Sysctl<'_>| sysctl.get().map(|value| value.unwrap_or_default());
                assert_eq!(read(Sysctl::V4("eth0", "arp_notify"))?, "1");
                assert_eq!(read(Sysctl::V6("eth0", "ndisc_notify"))?, "1");
                assert_eq!(read(Sysctl::V6("eth0", "accept_dad"))?, "0");
                assert_eq!(read(Sysctl::V6("eth0", "keep_addr_on_down"))?, "1");
                Ok(())
            })
            .unwrap();
    });
}

#[test]
fn ci2_ci4_gateways_of_the_family_and_several_paths() {
    in_a_container(|inside, link| {
        let addresses = dual();
        let routes = [
            route("1.0.0.0/8", ""),
            route("1.0.0.0/8", "10.22.0.9"),
            route("fd99::/64", "fd77::8"),
            route("fd99::/64", "fd77::9"),
            Route { scope: Some(253), ..route("2.0.0.0/8", "") },
            route("0.0.0.0/0", "10.22.0.1"),
            route("0.0.0.0/0", "10.22.0.2"),
        ];
        let wanted = Interface { addresses: &addresses, routes: &routes, detect_duplicates: false, up: true };
        assert_eq!(inside.configure(link, &wanted).unwrap(), routes);
        let there = inside.socket.routes(&RouteFilter { protocol: Some(79), ..RouteFilter::default() }).unwrap();
        let hops = |dst: &str| -> usize {
            there.iter().filter(|route| route.dst == dst.parse().unwrap()).map(|route| route.next_hops.len()).sum()
        };
        assert_eq!((hops("1.0.0.0/8"), hops("fd99::/64"), hops("2.0.0.0/8"), hops("0.0.0.0/0")), (2, 2, 1, 2));
    });
}

#[test]
fn what_the_kernel_takes_for_the_same_route_is_added_once() {
    in_a_container(|inside, link| {
        let addresses = dual();
        let routes = [
            route("fd99::/64", ""),
            Route { priority: Some(1024), ..route("fd99::/64", "fd77::1") },
            Route { table: Some(254), ..route("fd99::1/64", "") },
            Route { priority: Some(7), ..route("fd99::/64", "") },
        ];
        let wanted = Interface { addresses: &addresses, routes: &routes, detect_duplicates: false, up: true };
        assert_eq!(inside.configure(link, &wanted).unwrap(), [routes[0].clone(), routes[3].clone()]);
    });
}

#[test]
fn a_second_default_route_is_left_out() {
    in_a_container(|inside, link| {
        let second = device(inside, "eth1");
        let routes = [route("0.0.0.0/0", ""), route("::/0", ""), route("1.0.0.0/8", "")];
        let first_addresses = dual();
        let wanted = Interface { addresses: &first_addresses, routes: &routes, detect_duplicates: false, up: true };
        inside.configure(link, &wanted).unwrap();
        let second_addresses = addresses(&[("10.33.0.5/16", "10.33.0.1"), ("fd88::5/64", "fd88::1")]);
        let wanted = Interface { addresses: &second_addresses, ..wanted };
        assert_eq!(inside.configure(&second, &wanted).unwrap(), [route("1.0.0.0/8", "")]);
    });
}

#[test]
fn f3_a_gateway_that_is_not_there_is_named() {
    in_a_container(|inside, link| {
        let (addresses, routes) = (dual(), [route("1.0.0.0/8", "172.16.0.1")]);
        let wanted = Interface { addresses: &addresses, routes: &routes, detect_duplicates: false, up: true };
        let error = inside.configure(link, &wanted).unwrap_err();
        assert_eq!(error.code(), crate::Code::InvalidConfig);
        assert!(error.to_string().contains("1.0.0.0/8 via 172.16.0.1 on eth0"), "{error}");
    });
}

#[test]
fn br22_an_interface_that_stays_down() {
    in_a_container(|inside, link| {
        let wanted = Interface { addresses: &[], routes: &[], detect_duplicates: false, up: false };
        assert_eq!(inside.configure(link, &wanted).unwrap(), []);
        assert!(!inside.interface("eth0").unwrap().unwrap().up);
    });
}

#[test]
fn e50_duplicate_address_detection_only_when_asked_for() {
    in_new_netns(|| {
        let (home, netns) = (Netns::current().unwrap(), pinned_netns());
        let (mut socket, mut inside) = (RouteSocket::open().unwrap(), Inside::open(&netns, &home).unwrap());
        socket.create_bridge(&NewBridge { name: "br0", mac: Mac([2; 6]), mtu: 1500 }).unwrap();
        let bridge = socket.link_by_name("br0").unwrap().unwrap();
        socket.set_up(&bridge, true).unwrap();
        let addresses = addresses(&[("fd77::5/64", "")]);
        for (ifname, detect_duplicates) in [("eth0", false), ("eth1", true)] {
            let host = format!("h{ifname}");
            let pair = NewPair {
                host: &host,
                host_mac: Mac([2, 0, 0, 0, 0, 1]),
                master: bridge.index,
                peer: ifname,
                peer_mac: Mac([2, 0, 0, 0, 0, 2]),
                netns: &netns,
                mtu: 1500,
            };
            socket.create_pair(&pair).unwrap();
            let link = inside.interface(ifname).unwrap().unwrap();
            let wanted = Interface { addresses: &addresses, routes: &[], detect_duplicates, up: true };
            let started = Instant::now();
            inside.configure(&link, &wanted).unwrap();
            assert_eq!(started.elapsed() > Duration::from_millis(200), detect_duplicates);
            let have = inside.socket.addresses(&link).unwrap();
            assert!(have.iter().any(|have| have.address == addresses[0].0 && !have.is_tentative()));
            let host = socket.link_by_name(&host).unwrap().unwrap();
            socket.delete_link(&host).unwrap();
        }
    });
}
