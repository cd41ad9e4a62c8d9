//! What a container may send, and what not.

use super::*;

/// A neighbour advertisement to all, from the container's own address, that says to have another one (RFC 4861, 4.4).
fn advertise(sandbox: &Sandbox, from: &Pod<'_>, target: &str) {
    let index = sandbox.link_in(&from.netns, "eth0")["ifindex"].as_u64().unwrap();
    let target: std::net::Ipv6Addr = target.parse().unwrap();
    let source = from.address(1).parse().unwrap();
    sandbox.within(Some(&from.netns.path), || {
        let socket =
            socket::socket(AddressFamily::Inet6, SockType::Raw, SockFlag::empty(), SockProtocol::IcmpV6).unwrap();
        let at = |address, scope| SockaddrIn6::from(std::net::SocketAddrV6::new(address, 0, 0, scope));
        socket::bind(socket.as_raw_fd(), &at(source, 0)).unwrap();
        let message = [&[136, 0, 0, 0, 0x20, 0, 0, 0], &target.octets()[..]].concat();
        let all = at("ff02::1".parse().unwrap(), u32::try_from(index).unwrap());
        socket::sendto(socket.as_raw_fd(), &message, &all, MsgFlags::empty()).unwrap();
    });
}

/// Ways to send what is not one's own, and by which key each is stopped.
const TRICKS: [(&str, &str, &str, bool, bool); 6] = [
    ("IPv4", "ip addr add 10.9.0.200/32 dev eth0; ping -n -c 1 -W 1 -I 10.9.0.200 TO4", OTHER4, false, true),
    ("IPv6", "ip addr add fd09::200/128 dev eth0 nodad; ping -n -c 1 -W 1 -I fd09::200 TO6", OTHER6, false, true),
    (
        "gratuitous ARP",
        "ip addr add 10.9.0.200/32 dev eth0; ip link set eth0 address $(cat /sys/class/net/eth0/address)",
        OTHER4,
        false,
        true,
    ),
    (
        "IPv6 link-local",
        "ip addr add fe80::200/64 dev eth0 nodad; ip link set eth0 address $(cat /sys/class/net/eth0/address)",
        "fe80::200",
        false,
        true,
    ),
    (
        "MAC address for IPv6",
        "ip link set eth0 address 02:00:00:00:00:77; ping -n -c 1 -W 1 TO6",
        OTHER_MAC,
        true,
        false,
    ),
    (
        "MAC address for ARP",
        "ip link set eth0 address 02:00:00:00:00:77; ip neigh flush dev eth0; ping -n -c 1 -W 1 TO4",
        OTHER_MAC,
        true,
        false,
    ),
];

#[test]
fn what_is_not_one_s_own_is_dropped_and_only_that() {
    for (mac, addresses) in [(false, false), (true, false), (false, true), (true, true)] {
        let sandbox = Sandbox::new();
        sandbox.outside();
        let config = config(mac, addresses);
        let to = Pod::start(&sandbox, &config, "to");
        let keys = format!("macspoofchk {mac}, spoofcheck {addresses}");
        for (index, (name, script, seen, by_mac, by_addresses)) in TRICKS.into_iter().enumerate() {
            let from = Pod::start(&sandbox, &config, &format!("from{index}"));
            for target in [&to.address(0), &to.address(1), "10.9.0.1", "fd09::1", "192.0.2.1", "2001:db8:ffff::1"] {
                assert!(sandbox.ping(&from.netns, target), "its own addresses to {target}, {keys}");
            }
            let script = script.replace("TO4", &to.address(0)).replace("TO6", &to.address(1));
            let passes = !(mac && by_mac || addresses && by_addresses);
            assert_eq!(arrives(&sandbox, &from, &to, &script, seen), passes, "{name}, {keys}");
            from.call.del();
        }
        let from = Pod::start(&sandbox, &config, "advertiser");
        for (target, is_own) in [(from.address(1).as_str(), true), (OTHER6, false)] {
            let listened = sandbox.capture(Some(&to.netns.path));
            advertise(&sandbox, &from, target);
            std::thread::sleep(std::time::Duration::from_millis(200));
            let seen = listened.end().with_address(target.parse().unwrap()) > 0;
            assert_eq!(seen, is_own || !addresses, "neighbour advertisement of {target}, {keys}");
        }
    }
    noted("macspoofchk and spoofcheck, alone and together: IPv4, IPv6, ARP, neighbour advertisements, MAC addresses");
}

/// The frame's own address is right, and what it says of its sender is not.
#[test]
fn an_arp_message_with_another_mac_address_inside_is_dropped() {
    for mac in [false, true] {
        let sandbox = Sandbox::new();
        let (from, to) =
            (Pod::start(&sandbox, &config(mac, false), "from"), Pod::start(&sandbox, &config(mac, false), "to"));
        sandbox
            .sh(&format!(
                "ip netns exec from nft 'table arp forge {{ chain out {{ type filter hook output priority 0;
                     arp saddr ether set {OTHER_MAC}; }}; }}'
                 ip -n to neigh flush dev eth0; ip -n from neigh flush dev eth0
                 ip netns exec from ping -n -c 1 -W 1 {} || true",
                to.address(0)
            ))
            .ok();
        let learned = sandbox.sh("ip -n to neigh show dev eth0").ok();
        assert_eq!(learned.contains(OTHER_MAC), !mac, "macspoofchk {mac}: {} is {learned}", from.address(0));
    }
}

/// BR21: the same frames pass and do not pass as with the reference plugin's rules.
#[test]
fn br21_macspoofchk_drops_what_the_reference_drops() {
    for family in [Family::Reference, Family::Osvc] {
        for checked in [false, true] {
            let sandbox = Sandbox::new();
            let ipam = json!({"type": family.ipam(), "ranges": [[{"subnet": "10.9.0.0/24"}]]});
            let config = json!({"cniVersion": "1.0.0", "name": "net1", "type": family.bridge(), "bridge": "cni9",
                "isGateway": true, "macspoofchk": checked, "ipam": ipam});
            let (to, from) = (Pod::start(&sandbox, &config, "to"), Pod::start(&sandbox, &config, "from"));
            assert!(sandbox.ping(&from.netns, &to.address(0)), "{family:?} {checked}");
            let script = format!("ip link set eth0 address {OTHER_MAC}; ping -n -c 1 -W 1 {}", to.address(0));
            assert_eq!(arrives(&sandbox, &from, &to, &script, OTHER_MAC), !checked, "{family:?} {checked}");
            from.call.del();
        }
    }
}

#[test]
fn a_network_of_layer_2_and_a_long_id() {
    let sandbox = Sandbox::new();
    let config = json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "macspoofchk": true});
    let netns = sandbox.netns("a");
    let long = call(&sandbox, &config, &netns).container(&"x".repeat(250));
    let result = long.add();
    let from = Pod { netns, call: long, result };
    let to = Pod::start(&sandbox, &config, "b");
    from.call.check(&from.result);
    for (pod, address) in [(&from, "10.1.1.1/24"), (&to, "10.1.1.2/24")] {
        sandbox.ip(&format!("-n {} addr add {address} dev eth0", pod.netns.name));
    }
    assert!(sandbox.ping(&from.netns, "10.1.1.2"));
    let script = format!("ip link set eth0 address {OTHER_MAC}; ping -n -c 1 -W 1 10.1.1.2");
    assert!(!arrives(&sandbox, &from, &to, &script, OTHER_MAC));
    from.call.del();
    assert_eq!(elements(&sandbox, &from.port()), 0);
}

#[test]
fn a_routed_network_checks_sources_too() {
    let cluster = Cluster::new(&[0, 0], &[]);
    let mut config = cluster.network("net", Underlay::V4, &[("10.11.0.0/16", 22)]);
    config["tunnelMode"] = json!("vxlan");
    config["macspoofchk"] = json!(true);
    config["spoofcheck"] = json!(true);
    let pods = cluster.start_everywhere(&config);
    assert!(pods[0].reaches(&pods[1]) && pods[1].reaches(&pods[0]));
    pods[0].check();
    let node = &cluster.nodes[0].sandbox;
    let other = cluster.nodes[0].start(&config, "other");
    let sent = |script: &str| {
        let listened = node.capture(Some(&other.netns.path));
        node.sh(&format!("ip netns exec {} bash -c '{script}'", pods[0].netns.name));
        listened.end()
    };
    let target = other.addresses[0];
    let packets = sent(&format!("ping -n -c 1 -W 1 {target}"));
    assert!(packets.with_address(pods[0].addresses[0]) > 0);
    let packets = sent(&format!("ip addr add 10.11.3.200/32 dev eth0; ping -n -c 1 -W 1 -I 10.11.3.200 {target}"));
    assert_eq!(packets.with_address("10.11.3.200".parse().unwrap()), 0);
    let packets = sent(&format!("ip link set eth0 address {OTHER_MAC}; ping -n -c 1 -W 1 {target}"));
    assert_eq!(packets.from_mac(OTHER_MAC), 0);
}
