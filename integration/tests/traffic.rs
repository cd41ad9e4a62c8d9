//! Packets: between containers, outside through masquerading, past foreign firewalls, and the host's own IPv6.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use integration::{Family, Netns, Plugin, Sandbox, addresses_of, report};
use serde_json::{Value, json};

fn one_line() -> Value {
    json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "network": ["10.9.0.0/24", "fd09::/64"]})
}

fn reference() -> Value {
    json!({"cniVersion": "1.0.0", "name": "net1", "type": "bridge", "bridge": "cni9", "isDefaultGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]]}})
}

fn call<'a>(sandbox: &'a Sandbox, config: &Value, netns: &Netns) -> Plugin<'a> {
    sandbox
        .plugin(config["type"].as_str().unwrap())
        .config(config.clone())
        .container(&netns.name)
        .netns(netns)
        .named(&netns.name)
}

/// A container: its namespace, its IPv4 and its IPv6 address.
fn start(sandbox: &Sandbox, config: &Value, name: &str) -> (Netns, String, String) {
    let netns = sandbox.netns(name);
    let addresses = addresses_of(&call(sandbox, config, &netns).add());
    let bare = |index: usize| addresses[index].split('/').next().unwrap().to_owned();
    (netns, bare(0), bare(1))
}

fn noted(what: &str) {
    report::ran(&report::kernel(), what);
}

#[test]
fn containers_reach_each_other_their_gateway_and_outside_in_both_families() {
    for config in [reference(), one_line()] {
        let sandbox = Sandbox::new();
        sandbox.outside();
        sandbox.sh("echo 0 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv6/conf/all/forwarding").ok();
        let (a, a4, a6) = start(&sandbox, &config, "a");
        let (b, b4, b6) = start(&sandbox, &config, "b");
        for (from, to) in [(&a, &b4), (&a, &b6), (&b, &a4), (&b, &a6)] {
            assert!(sandbox.ping(from, to), "{} to {to}, {}", from.name, config["type"]);
        }
        if config["type"] == "bridge" {
            // The reference's gateway is not usable before duplicate address detection has ended.
            sandbox.wait_for("the reference's IPv6 gateway answers", "ip netns exec a ping -n -c 1 -W 1 fd09::1");
        }
        for to in ["10.9.0.1", "fd09::1", "192.0.2.1", "198.51.100.1", "2001:db8:ffff::1"] {
            assert!(sandbox.ping(&a, to), "a to {to}, {}", config["type"]);
        }
    }
    noted("container to container and outside, IPv4 and IPv6, with forwarding off before");
}

#[test]
fn the_cloud_s_metadata_address_is_reached_masqueraded() {
    let sandbox = Sandbox::new();
    sandbox.outside();
    let (a, ..) = start(&sandbox, &one_line(), "a");
    assert!(sandbox.ping(&a, "169.254.169.254"), "it has no route back: only a masqueraded packet is answered");
    noted("169.254.169.254 masqueraded");
}

#[test]
fn ipv6_from_outside_does_not_wait_for_duplicate_address_detection() {
    let sandbox = Sandbox::new();
    let outside = sandbox.outside();
    sandbox.ip("-n outside -6 route add fd09::/64 via 2001:db8:ffff::2");
    let (_, _, a6) = start(&sandbox, &one_line(), "a");
    let words = ["ip", "netns", "exec", &outside.name, "ping", "-n", "-c", "1", "-W", "1", &a6];
    assert_eq!(sandbox.run(&words).rc, 0, "the first packet from outside is answered within a second");
    let netns = sandbox.ip_json("-n a -6 addr show dev eth0 tentative");
    assert!(netns.iter().all(|link| link["addr_info"].as_array().is_none_or(Vec::is_empty)), "{netns:?}");
    noted("IPv6 without waiting for DAD");
}

/// As docker and ufw leave it. The reference without its firewall plugin proves that the policy bites.
#[test]
fn a_foreign_forward_policy_of_drop_does_not_stop_traffic() {
    for bridge_netfilter in [0, 1] {
        for (config, passes) in [(reference(), false), (one_line(), true)] {
            let sandbox = Sandbox::new();
            sandbox.outside();
            sandbox
                .sh(&format!(
                    "echo {bridge_netfilter} > /proc/sys/net/bridge/bridge-nf-call-iptables; iptables -P FORWARD DROP"
                ))
                .ok();
            let (a, ..) = start(&sandbox, &config, "a");
            let (_, b4, _) = start(&sandbox, &config, "b");
            let what = format!("{}, bridge-nf-call-iptables {bridge_netfilter}", config["type"]);
            assert_eq!(sandbox.ping(&a, "198.51.100.1"), passes, "outside, {what}");
            assert_eq!(sandbox.ping(&a, &b4), passes || bridge_netfilter == 0, "container to container, {what}");
        }
    }
    noted("foreign `ip filter FORWARD` policy drop, br_netfilter on and off");
}

#[test]
fn a_foreign_drop_that_comes_later_is_met_by_the_next_add() {
    let sandbox = Sandbox::new();
    sandbox.outside();
    let (a, ..) = start(&sandbox, &one_line(), "a");
    sandbox.sh("iptables -P FORWARD DROP").ok();
    assert!(!sandbox.ping(&a, "198.51.100.1"), "the policy bites");
    start(&sandbox, &one_line(), "b");
    assert!(sandbox.ping(&a, "198.51.100.1"), "the next ADD of the network sees it");
    let rules = sandbox.sh("iptables -S").ok();
    assert!(rules.contains("-P FORWARD DROP"), "the policy itself is not ours to change: {rules}");
    noted("foreign drop that comes later");
}

#[test]
fn forward_accept_never_leaves_foreign_chains_alone() {
    let sandbox = Sandbox::new();
    sandbox.outside();
    sandbox.sh("iptables -P FORWARD DROP").ok();
    let before = sandbox.sh("nft -s list table ip filter").ok();
    let mut config = one_line();
    config["forwardAccept"] = json!("never");
    let (a, ..) = start(&sandbox, &config, "a");
    assert_eq!(sandbox.sh("nft -s list table ip filter").ok(), before);
    assert!(!sandbox.ping(&a, "198.51.100.1"));
}

#[test]
fn a_flushed_ruleset_comes_back_with_the_next_add() {
    let sandbox = Sandbox::new();
    sandbox.outside();
    let (a, ..) = start(&sandbox, &one_line(), "a");
    let before = sandbox.ruleset();
    sandbox.sh("nft flush ruleset").ok();
    assert!(!sandbox.ping(&a, "198.51.100.1"), "without rules nothing is masqueraded");
    start(&sandbox, &one_line(), "b");
    assert_eq!(sandbox.ruleset(), before);
    assert!(sandbox.ping(&a, "198.51.100.1"));
    noted("flushed ruleset comes back");
}

/// Traffic between our own networks and to the host is not masqueraded: the other side sees the real source.
#[test]
fn what_stays_in_our_networks_keeps_its_source() {
    let sandbox = Sandbox::new();
    let (a, a4, _) = start(&sandbox, &one_line(), "a");
    let other = json!({"cniVersion": "1.0.0", "name": "net2", "type": "osvc-bridge", "network": "10.10.0.0/24"});
    let b = sandbox.netns("b");
    let b4 = addresses_of(&call(&sandbox, &other, &b).add())[0].split('/').next().unwrap().to_owned();
    for target in [b4.as_str(), "10.9.0.1"] {
        let netns = if target == b4 { "ip netns exec b" } else { "" };
        sandbox.background(&format!("exec {netns} tcpdump -n -i any -c 1 -l 'icmp[0] = 8'"), "/run/seen");
        sandbox.wait_for("tcpdump listens", "grep -q listening /run/seen");
        assert!(sandbox.ping(&a, target), "a reaches {target}");
        sandbox.wait_for("the request was seen", "grep -q 'echo request' /run/seen");
        let seen = sandbox.read("/run/seen");
        assert!(seen.contains(&format!("{a4} > ")), "{target} sees the container's own address: {seen}");
        sandbox.sh("rm -f /run/seen").ok();
    }
}

/// A published port, from the container that it leads to: out to the host and back through the same port of the bridge.
#[test]
fn a_container_reaches_itself_through_its_published_port() {
    for bridge_netfilter in [0, 1] {
        let sandbox = Sandbox::new();
        let outside = sandbox.outside();
        sandbox.sh(&format!("echo {bridge_netfilter} > /proc/sys/net/bridge/bridge-nf-call-iptables")).ok();
        let netns = sandbox.netns("a");
        let result = call(&sandbox, &one_line(), &netns).add();
        let portmap = json!({"cniVersion": "1.0.0", "name": "net1", "type": "portmap", "capabilities": {"portMappings": true},
            "runtimeConfig": {"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}, "prevResult": result});
        call(&sandbox, &portmap, &netns).add();
        sandbox.sh("mkdir -p /run/www; echo hello > /run/www/index.html").ok();
        sandbox.background("exec ip netns exec a /bin/busybox httpd -f -p 80 -h /run/www", "/run/httpd.log");
        for from in [&outside, &netns] {
            sandbox.wait_for_page(from, "192.0.2.2", 8080, "hello");
        }
    }
    noted("hairpin with the reference portmap, br_netfilter on and off");
}

/// RFC 4861: with forwarding on and accept_ra 1 the kernel drops the router that it learned.
#[test]
fn a_router_advertised_default_route_survives_the_first_dual_stack_container() {
    for (config, survives) in [(reference(), false), (one_line(), true)] {
        let sandbox = Sandbox::with_tools(&[env!("CARGO_BIN_EXE_advertise")]);
        sandbox
            .sh("set -e
                echo 0 > /proc/sys/net/ipv6/conf/all/forwarding
                ip netns add router
                ip link add up0 type veth peer name eth0 netns router
                ip netns exec router sysctl -q -w net.ipv6.conf.eth0.accept_dad=0 net.ipv6.conf.eth0.forwarding=1
                ip -n router link set eth0 up
                sysctl -q -w net.ipv6.conf.up0.accept_ra=1
                ip link set up0 up")
            .ok();
        let index = sandbox.link_in(&Netns { name: "router".into(), path: String::new() }, "eth0")["ifindex"].clone();
        sandbox
            .background(&format!("exec ip netns exec router advertise {index} 2001:db8:feed::"), "/run/advertise.log");
        sandbox.wait_for("the host has learned its router", "ip -6 route show default proto ra | grep -q up0");
        let netns = sandbox.netns("a");
        let reply = call(&sandbox, &config, &netns).call("ADD");
        std::thread::sleep(Duration::from_millis(1600));
        let route = sandbox.ip("-6 route show default proto ra");
        if survives {
            let log = reply.output.stderr.clone();
            reply.result();
            assert!(route.contains("up0"), "the host's own IPv6 is not cut: {route}");
            assert_eq!(sandbox.sh("cat /proc/sys/net/ipv6/conf/up0/accept_ra").ok().trim(), "2");
            assert_eq!(sandbox.sh("cat /proc/sys/net/ipv6/conf/all/forwarding").ok().trim(), "1");
            assert!(log.contains("accept_ra") || log.is_empty(), "{log}");
        } else {
            reply.result();
            assert!(!route.contains("up0"), "the reference cuts it, which proves the case: {route}");
        }
    }
    noted("router-advertised IPv6 default route kept");
}

#[test]
fn ln9_forwarding_that_is_on_is_not_written_again() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding").ok();
    let netns = sandbox.netns("a");
    call(&sandbox, &one_line(), &netns).through(&["strace", "-f", "-e", "trace=openat,open", "-o", "/run/trace"]).add();
    let trace = sandbox.read("/run/trace");
    let written: Vec<_> = trace
        .lines()
        .filter(|line| (line.contains("ip_forward") || line.contains("all/forwarding")) && line.contains("O_WRONLY"))
        .collect();
    assert!(written.is_empty(), "{written:?}");
    assert!(sandbox.held(Family::Osvc, "net1").len() == 2);
}
