//! Source checks, by traffic: `macspoofchk` and `spoofcheck`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::IpAddr;
use std::os::fd::AsRawFd;

use integration::cluster::{Cluster, Underlay};
use integration::fault::Bench;
use integration::{Family, Netns, Plugin, Sandbox, addresses_of, container_mac, report, trace};
use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6};
use serde_json::{Value, json};

/// Where the records are.
const RECORDS: &str = "/var/lib/cni/osvc/spoof/attachments/net1";
/// Nobody's addresses in the network.
const OTHER4: &str = "10.9.0.200";
const OTHER6: &str = "fd09::200";
const OTHER_MAC: &str = "02:00:00:00:00:77";
/// System calls from the last one that names a file of the checks to their end.
const BEYOND: usize = 24;

fn config(mac: bool, addresses: bool) -> Value {
    json!({"cniVersion": "1.1.0", "name": "net1", "type": "osvc-bridge", "network": ["10.9.0.0/24", "fd09::/64"],
        "macspoofchk": mac, "spoofcheck": addresses})
}

fn call<'a>(sandbox: &'a Sandbox, config: &Value, netns: &Netns) -> Plugin<'a> {
    let plugin = sandbox.plugin(config["type"].as_str().unwrap());
    plugin.config(config.clone()).container(&netns.name).netns(netns).named(&netns.name)
}

/// A container with its call and result.
struct Pod<'a> {
    netns: Netns,
    call: Plugin<'a>,
    result: Value,
}

impl<'a> Pod<'a> {
    fn start(sandbox: &'a Sandbox, config: &Value, name: &str) -> Self {
        let netns = sandbox.netns(name);
        let call = call(sandbox, config, &netns);
        let result = call.add();
        Self { netns, call, result }
    }

    fn address(&self, index: usize) -> String {
        addresses_of(&self.result)[index].split('/').next().unwrap().to_owned()
    }

    /// The host end.
    fn port(&self) -> String {
        self.result["interfaces"][1]["name"].as_str().unwrap().to_owned()
    }

    fn mac(&self) -> &str {
        container_mac(&self.result).unwrap()
    }
}

/// What arrives at `to` when `from` sends `from`'s script: true if an address (in whatever header) is seen.
fn arrives(sandbox: &Sandbox, from: &Pod<'_>, to: &Pod<'_>, script: &str, address: &str) -> bool {
    let listened = sandbox.capture(Some(&to.netns.path));
    sandbox.sh(&format!("ip netns exec {} bash -c '{script}'", from.netns.name));
    let packets = listened.end();
    match address.parse::<IpAddr>() {
        Ok(address) => packets.with_address(address) > 0,
        Err(_) => packets.from_mac(address) > 0,
    }
}

/// The elements of a set that are a port's.
fn elements(sandbox: &Sandbox, port: &str) -> usize {
    sandbox.sh("nft list table bridge osvc-cni 2>/dev/null; true").ok().matches(port).count()
}

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

fn noted(what: &str) {
    report::ran(&report::kernel(), what);
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
fn del_needs_the_id_only_and_takes_everything_out() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let other = Pod::start(&sandbox, &both, "other");
    let before = (sandbox.ruleset(), sandbox.list(RECORDS));
    let pod = Pod::start(&sandbox, &both, "pod");
    assert_eq!(elements(&sandbox, &pod.port()), 8, "MAC address, IPv4, 2 of IPv6 twice, and the port twice");
    assert_eq!(sandbox.list(RECORDS).len(), 2);
    // Whatever the configuration says by now.
    call(&sandbox, &config(false, false), &pod.netns).no_netns().no_args().del();
    assert_eq!((sandbox.ruleset(), sandbox.list(RECORDS)), before);
    pod.call.del();
    other.call.del();
    assert_eq!(elements(&sandbox, "\"ov"), 0);
    assert!(!sandbox.exists(RECORDS));
}

/// Sixteen at once, each with its own elements, and then none.
#[test]
fn many_at_once() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let script = "for i in $(seq 16); do ip netns add n$i; done
        all() { for i in $(seq 16); do cni $1 c$i /run/netns/n$i w$i >/run/out$i || touch /run/failed & done; wait; }
        all ADD; ! [ -e /run/failed ]";
    sandbox.bulk("osvc-bridge", &both, script).ok();
    assert_eq!((elements(&sandbox, "\"ov"), sandbox.list(RECORDS).len()), (16 * 8, 16));
    for i in 1..=16 {
        let netns = Netns { name: format!("n{i}"), path: format!("/run/netns/n{i}") };
        assert!(sandbox.ping(&netns, "10.9.0.1"), "n{i}");
    }
    let script =
        "for i in $(seq 16); do cni DEL c$i /run/netns/n$i w$i || touch /run/failed & done; wait; ! [ -e /run/failed ]";
    sandbox.bulk("osvc-bridge", &both, script).ok();
    assert_eq!(elements(&sandbox, "\"ov"), 0);
    assert!(!sandbox.exists(RECORDS));
}

#[test]
fn who_asks_for_no_checks_pays_one_look() {
    let sandbox = Sandbox::new();
    let netns = sandbox.netns("pod");
    let plain = call(&sandbox, &config(false, false), &netns);
    for verb in ["ADD", "DEL"] {
        let calls = trace::system_calls(&sandbox, &plain, verb);
        let looks: Vec<_> = calls.iter().filter(|call| call.line.contains("osvc/spoof")).collect();
        assert!(looks.len() == 1 && looks[0].name == "statx", "{verb}: {looks:?}");
    }
}

/// `rm -rf` of the store is common advice: those that run stay checked, and the next one as well.
#[test]
fn a_lost_store_unchecks_nobody() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let (one, two) = (Pod::start(&sandbox, &both, "one"), Pod::start(&sandbox, &both, "two"));
    sandbox.sh("rm -rf /var/lib/cni/osvc").ok();
    let three = Pod::start(&sandbox, &both, "three");
    let script = format!("ip addr add {OTHER4}/32 dev eth0; ping -n -c 1 -W 1 -I {OTHER4} {}", three.address(0));
    for pod in [&one, &two] {
        assert_eq!(elements(&sandbox, &pod.port()), 8, "{}", pod.netns.name);
        assert!(sandbox.ping(&pod.netns, &three.address(0)), "{}", pod.netns.name);
        assert!(!arrives(&sandbox, pod, &three, &script, OTHER4), "{}", pod.netns.name);
    }
    three.call.check(&three.result);
    for pod in [one, two, three] {
        pod.call.del();
        sandbox.sh(&format!("ip netns del {}", pod.netns.name)).ok();
    }
    sandbox.wait_for("the pairs are gone", "! ip -o link | grep -q ': ov'");
    let last = Pod::start(&sandbox, &both, "last");
    assert_eq!(elements(&sandbox, "\"ov"), 8, "whose port is gone is forgotten");
    last.call.del();
    assert_eq!(elements(&sandbox, "\"ov"), 0);
}

/// With the last container that is checked everything goes, and nobody pays any more.
#[test]
fn nothing_is_left_when_nobody_is_checked_any_more() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let table = || sandbox.sh("nft list tables").ok().contains("bridge osvc-cni");
    for end in ["DEL", "gc"] {
        let pod = Pod::start(&sandbox, &both, "pod");
        assert!(table() && sandbox.exists("/var/lib/cni/osvc/spoof"));
        match end {
            "DEL" => pod.call.del(),
            _ => {
                sandbox.write(
                    "/etc/cni/net.d/net1.conflist",
                    &json!({"cniVersion": "1.1.0", "name": "net1", "plugins": [both]}).to_string(),
                );
                sandbox.delete_netns(&pod.netns);
                sandbox.wait_for("the pair is gone", "! ip -o link | grep -q ': ov'");
                sandbox.sh("/opt/cni/bin/osvc-net gc").ok();
            }
        }
        assert!(!table(), "after {end}");
        assert!(
            !sandbox.exists("/var/lib/cni/osvc/spoof"),
            "after {end}: {:?}",
            sandbox.list("/var/lib/cni/osvc/spoof")
        );
        sandbox.sh("ip netns del pod 2>/dev/null || true").ok();
    }
}

/// What is left of the boot before is no matter of an ADD without the keys, which waits for nobody.
#[test]
fn an_unchecked_add_waits_for_no_lock_and_an_earlier_boot_is_forgotten() {
    let mut sandbox = Sandbox::new();
    Pod::start(&sandbox, &config(true, true), "pod");
    sandbox.reboot();
    sandbox.background("exec flock /var/lib/cni/osvc/spoof/lock sleep 20", "/run/flock.log");
    sandbox.wait_for("the lock is held", "! flock -n /var/lib/cni/osvc/spoof/lock true");
    let started = std::time::Instant::now();
    Pod::start(&sandbox, &config(false, false), "plain");
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    sandbox.sh("pkill sleep").ok();
    let checked = Pod::start(&sandbox, &config(true, true), "checked");
    assert_eq!(sandbox.list(RECORDS).len(), 1);
    checked.call.del();
    assert!(!sandbox.exists("/var/lib/cni/osvc/spoof"));
}

#[test]
fn an_earlier_attachment_of_the_same_name_leaves_nothing() {
    let sandbox = Sandbox::new();
    let pod = Pod::start(&sandbox, &config(true, true), "pod");
    let other = Pod::start(&sandbox, &config(true, true), "other");
    // A runtime that died: the port is gone, and no DEL came.
    sandbox.ip(&format!("link del {}", pod.port()));
    let again = call(&sandbox, &config(true, true), &pod.netns).args("MAC=02:00:00:00:00:99");
    let result = again.add();
    again.check(&result);
    let table = sandbox.sh("nft list table bridge osvc-cni").ok();
    assert!(table.contains("02:00:00:00:00:99") && !table.contains(pod.mac()), "{table}");
    sandbox.ip(&format!("link del {}", pod.port()));
    call(&sandbox, &config(false, false), &pod.netns).add();
    assert_eq!(elements(&sandbox, &pod.port()), 0);
    assert!(elements(&sandbox, &other.port()) > 0);
}

#[test]
fn check_tells_what_is_missing_and_the_next_add_or_setup_puts_it_back() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let pod = Pod::start(&sandbox, &both, "pod");
    pod.call.check(&pod.result);
    let (port, mac) = (pod.port(), pod.mac());
    let mut conflist = both.clone();
    conflist.as_object_mut().unwrap().retain(|key, _| key != "cniVersion" && key != "name");
    let conflist = json!({"cniVersion": "1.1.0", "name": "net1", "plugins": [conflist]});
    sandbox.write("/etc/cni/net.d/net1.conflist", &conflist.to_string());
    for (fault, word, by_add) in [
        ("flush ruleset".to_owned(), "table bridge osvc-cni", true),
        ("flush chain bridge osvc-cni prerouting".to_owned(), "table bridge osvc-cni", true),
        ("flush set bridge osvc-cni mac_checked".to_owned(), "mac_checked lacks the port", false),
        (format!("delete element bridge osvc-cni macs {{ \"{port}\" . {mac} }}"), mac, false),
        (format!("delete element bridge osvc-cni addresses4 {{ \"{port}\" . {} }}", pod.address(0)), "10.9.0", false),
    ] {
        sandbox.nft(&fault);
        let (code, message) = pod.call.check_fails(&pod.result);
        assert!(code == 100 && message.contains(word), "{fault}: {code} {message}");
        if by_add {
            // Of another network, without the keys.
            let other =
                json!({"cniVersion": "1.1.0", "name": "plain", "type": "osvc-bridge", "network": "10.88.0.0/24"});
            let netns = sandbox.netns("plain");
            let other = call(&sandbox, &other, &netns);
            other.add();
            other.del();
            sandbox.delete_netns(&netns);
            assert_eq!(elements(&sandbox, &port), 8, "{fault}");
        }
        let told = sandbox.run(&["/opt/cni/bin/osvc-net", "setup"]).ok();
        assert!(told.contains("source checks: "), "{told}");
        pod.call.check(&pod.result);
    }
    assert_eq!(
        sandbox.run(&["/opt/cni/bin/osvc-net", "setup"]).ok().matches("source checks: in place, 1 containers").count(),
        1
    );
    // The keys came after the container.
    let bare = Pod::start(&sandbox, &config(false, false), "bare");
    let (code, message) = call(&sandbox, &both, &bare.netns).check_fails(&bare.result);
    assert!(code == 100 && message.contains("macspoofchk was not set"), "{code} {message}");
}

#[test]
fn gc_ends_the_checks_of_the_dead_only() {
    for by_command in [false, true] {
        let sandbox = Sandbox::new();
        let both = config(true, true);
        let (dead, live) = (Pod::start(&sandbox, &both, "dead"), Pod::start(&sandbox, &both, "live"));
        sandbox.delete_netns(&dead.netns);
        sandbox.wait_for("the pair is gone", &format!("! ip link show {}", dead.port()));
        if by_command {
            let told = sandbox.run(&["/opt/cni/bin/osvc-net", "gc", "net1"]).ok();
            assert!(told.contains("source checks of container dead"), "{told}");
        } else {
            let valid = json!([{"containerID": "live", "ifname": "eth0"}]);
            let gc = sandbox.plugin("osvc-bridge").config(both.clone()).with("cni.dev/valid-attachments", valid);
            gc.call("GC").done();
        }
        assert_eq!(elements(&sandbox, &dead.port()), 0);
        assert_eq!(elements(&sandbox, &live.port()), 8);
        live.call.check(&live.result);
    }
}

#[test]
fn an_add_that_fails_leaves_nothing() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let _other = Pod::start(&sandbox, &both, "other");
    let before = (sandbox.ruleset(), sandbox.list(RECORDS));
    let netns = sandbox.netns("pod");
    // A route that no gateway leads to: refused when the pair is there already.
    let mut bad = both.clone();
    bad["ipam"] = json!({"routes": [{"dst": "192.0.2.0/24", "gw": "203.0.113.1"}]});
    call(&sandbox, &bad, &netns).add_fails();
    assert_eq!((sandbox.ruleset(), sandbox.list(RECORDS)), before);
    assert_eq!(sandbox.links_in(&netns).len(), 1);
}

/// Sets, and not rules: what an ADD does is the same.
#[test]
fn an_add_costs_the_same_with_10_and_with_500_checked_containers() {
    let sandbox = Sandbox::new();
    let mut both = config(true, true);
    both["network"] = json!(["10.9.0.0/16", "fd09::/64"]);
    let netns = sandbox.netns("pod");
    let pod = call(&sandbox, &both, &netns);
    let count = |containers: usize| {
        let calls = trace::system_calls(&sandbox, &pod, "ADD").len();
        let del = trace::system_calls(&sandbox, &pod, "DEL").len();
        noted(&format!("ADD with {containers} checked containers: {calls} system calls, DEL {del}"));
        (calls, del)
    };
    let script = "for i in $(seq 10); do ip netns add n$i; cni ADD c$i /run/netns/n$i w$i >/dev/null || exit 1; done";
    sandbox.bulk("osvc-bridge", &both, script).ok();
    // Once before: what osvc-ipam keeps of a released address is there by then.
    pod.add();
    pod.del();
    let few = count(10);
    // The others' elements and records without their pairs: 490 of these would take ten seconds.
    sandbox
        .sh(&format!("cd {RECORDS} && one=$(ls | head -n 1) && for i in $(seq 490); do cp $one no$i.json; done"))
        .ok();
    fill(&sandbox, 490);
    let many = count(500);
    for (few, many) in [(few.0, many.0), (few.1, many.1)] {
        assert!(few.abs_diff(many) * 20 <= few, "{few} and {many} system calls");
    }
    let rules = sandbox.sh("nft list table bridge osvc-cni | grep -c ' drop$'").ok();
    assert_eq!(rules.trim(), "7", "whatever the number of containers");
}

/// Elements of that many more ports, as ADDs put them in.
fn fill(sandbox: &Sandbox, count: usize) {
    let mut text = String::new();
    for i in 0..count {
        let port = format!("ov{i:013x}");
        text += &format!(
            "add element bridge osvc-cni macs {{ \"{port}\" . 02:00:00:01:{:02x}:{:02x} }}
            add element bridge osvc-cni addresses4 {{ \"{port}\" . 10.9.{}.{} }}
            add element bridge osvc-cni mac_checked {{ \"{port}\" }}
            add element bridge osvc-cni address_checked {{ \"{port}\" }}\n",
            i / 256,
            i % 256,
            100 + i / 256,
            i % 256
        );
    }
    sandbox.nft(&text);
}

#[test]
fn killed_at_every_second_system_call_that_the_checks_need() {
    for verb in ["ADD", "DEL"] {
        let sandbox = Sandbox::new();
        let both = config(true, true);
        let other = Pod::start(&sandbox, &both, "other");
        let netns = sandbox.netns("pod");
        let bench = Bench::new(&sandbox, call(&sandbox, &both, &netns), &netns).afterwards(|what| {
            assert!(sandbox.ping(&netns, "10.9.0.1"), "{what}");
            assert_eq!(sandbox.list(RECORDS).len(), 2, "{what}");
        });
        // From the first look for a record to the last answer of the kernel about elements.
        bench.killed_from_to(verb, "osvc-bridge with source checks", "osvc/spoof", BEYOND);
        other.call.check(&other.result);
    }
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
