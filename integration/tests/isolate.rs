//! Isolated networks, by traffic: what no longer passes, and what still does.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::cluster::Cluster;
use integration::{Container, Netns, Network, Sandbox, port, report};
use serde_json::{Value, json};

const NET_A: [&str; 2] = ["10.9.0.0/24", "fd09::/64"];
const NET_B: [&str; 2] = ["10.10.0.0/24", "fd10::/64"];
/// The machine's addresses towards [`Sandbox::outside`].
const HOST: [&str; 2] = ["192.0.2.2", "[2001:db8:ffff::2]"];

fn machine() -> (Sandbox, Netns) {
    let sandbox = Sandbox::with_tools(&[env!("CARGO_BIN_EXE_talk")]);
    let outside = sandbox.outside();
    // Not with the help of br_netfilter.
    sandbox.sh("cd /proc/sys/net/bridge && echo 0 | tee bridge-nf-call-iptables bridge-nf-call-ip6tables").ok();
    (sandbox, outside)
}

/// Two containers of two networks, each with a server that is published.
struct Pair<'a> {
    sandbox: &'a Sandbox,
    a: Container<'a>,
    b: Container<'a>,
}

impl<'a> Pair<'a> {
    fn start(sandbox: &'a Sandbox, net_a: &Network<'a>, net_b: &Network<'a>) -> Self {
        let (a, b) = (net_a.container("a"), net_b.container("b"));
        // On one bridge the host tells of the shorter way, past what it translates.
        for netns in ["a", "b"] {
            sandbox
                .sh(&format!("ip netns exec {netns} sh -c 'echo 0 | tee /proc/sys/net/ipv?/conf/*/accept_redirects'"))
                .ok();
        }
        a.publish(json!([port(8081, 80, "tcp")]));
        b.publish(json!([port(8082, 80, "tcp")]));
        sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
        sandbox.serve(Some(&b.netns), "tcp,udp", "[::]:80", "b");
        Self { sandbox, a, b }
    }

    /// All ways from one to the other: addresses that answer to an echo request, and servers.
    fn ways(from: &'a str, to: &Container<'_>) -> (Vec<String>, Vec<String>) {
        let (port, net) = if from == "a" { (8082, "10") } else { (8081, "09") };
        let gateways = [format!("10.{}.0.1", net.trim_start_matches('0')), format!("fd{net}::1")];
        let echo = vec![to.v4.clone(), to.v6.clone(), gateways[0].clone(), gateways[1].clone()];
        let mut servers = vec![format!("{}:80", to.v4), format!("[{}]:80", to.v6)];
        servers.extend(HOST.map(|host| format!("{host}:{port}")));
        servers.extend([format!("{}:{port}", gateways[0]), format!("[{}]:{port}", gateways[1])]);
        (echo, servers)
    }

    #[track_caller]
    fn expect(&self, connected: bool, what: &str) {
        for (from, name, to, to_name) in [(&self.a, "a", &self.b, "b"), (&self.b, "b", &self.a, "a")] {
            let (echo, servers) = Self::ways(name, to);
            if connected {
                for address in echo {
                    assert!(self.sandbox.ping(&from.netns, &address), "{name} to {address}, {what}");
                }
                for server in servers {
                    let answer = self.sandbox.ask(Some(&from.netns), "tcp", &server);
                    assert!(answer.starts_with(&format!("{to_name} ")), "{name} to {server}, {what}: {answer}");
                }
                continue;
            }
            // All at once: each waits in vain.
            let ns = &from.netns.name;
            let mut script = String::new();
            for address in echo {
                script += &format!("(ip netns exec {ns} ping -n -c 1 -W 1 {address} >/dev/null && echo {address}) &\n");
            }
            for server in servers {
                script += &format!("(ip netns exec {ns} talk ask tcp {server} 700 2>/dev/null && echo {server}) &\n");
            }
            let reached = self.sandbox.sh(&format!("{script}wait")).ok();
            assert_eq!(reached, "", "{name} reaches nothing of {to_name}, {what}");
        }
    }

    /// Outside, the own gateway, and the own containers, directly and through the host's port.
    #[track_caller]
    fn expect_own(&self, what: &str) {
        for (container, name, net, port) in [(&self.a, "a", "09", 8081), (&self.b, "b", "10", 8082)] {
            let short = net.trim_start_matches('0');
            for address in [&format!("10.{short}.0.1"), &format!("fd{net}::1"), "198.51.100.1", "2001:db8:ffff::1"] {
                assert!(self.sandbox.ping(&container.netns, address), "{name} to {address}, {what}");
            }
            for host in HOST {
                let answer = self.sandbox.ask(Some(&container.netns), "tcp", &format!("{host}:{port}"));
                assert!(answer.starts_with(&format!("{name} ")), "{name} to itself by {host}, {what}: {answer}");
            }
        }
    }
}

fn isolated<'a>(network: Network<'a>, isolate: bool) -> Network<'a> {
    if isolate { network.with_bridge("isolate", json!(true)) } else { network }
}

fn noted(what: &str) {
    report::ran(&report::kernel(), what);
}

#[test]
fn nothing_passes_between_an_isolated_network_and_another_one() {
    for (isolate_a, isolate_b) in [(false, false), (true, false), (false, true), (true, true)] {
        let (sandbox, outside) = machine();
        let net_a = isolated(sandbox.network("a", &NET_A), isolate_a);
        let net_b = isolated(sandbox.network("b", &NET_B), isolate_b);
        let pair = Pair::start(&sandbox, &net_a, &net_b);
        let what = format!("isolate {isolate_a} and {isolate_b}");
        pair.expect(!(isolate_a || isolate_b), &what);
        pair.expect_own(&what);
        for (port, name) in [(8081, "a"), (8082, "b")] {
            let answer = sandbox.ask(Some(&outside), "tcp", &format!("{}:{port}", HOST[0]));
            assert!(answer.starts_with(&format!("{name} ")), "the published port from outside, {what}: {answer}");
        }
        let other = net_a.container("a2");
        for address in [&pair.a.v4, &pair.a.v6] {
            assert!(sandbox.ping(&other.netns, address), "within the network, {what}");
        }
        pair.a.bridge.check(&pair.a.result);
        pair.b.bridge.check(&pair.b.result);
    }
    noted("isolate: one of two networks, or both, IPv4 and IPv6, by address, gateway and published port");
}

#[test]
fn an_edit_of_the_configuration_holds_from_the_next_add_on() {
    let (sandbox, _outside) = machine();
    let net_a = sandbox.network("a", &NET_A).with_bridge("isolate", json!(true));
    let pair = Pair::start(&sandbox, &net_a, &sandbox.network("b", &NET_B));
    pair.expect(false, "isolated");
    let open = sandbox.network("a", &NET_A);
    open.container("a2");
    pair.expect(true, "isolated no longer");
    net_a.container("a3");
    pair.expect(false, "isolated again");
}

#[test]
fn what_somebody_removed_is_found_by_check_and_comes_back() {
    let (sandbox, _outside) = machine();
    let net_a = sandbox.network("a", &NET_A).with_bridge("isolate", json!(true));
    let pair = Pair::start(&sandbox, &net_a, &sandbox.network("b", &NET_B));
    for fault in ["flush chain ip osvc-cni input", "flush chain ip6 osvc-cni forward", "flush ruleset"] {
        sandbox.nft(fault);
        let (code, message) = pair.a.bridge.check_fails(&pair.a.result);
        assert_eq!(code, 100, "{fault}: {message}");
        sandbox.network("c", &["10.99.0.0/24"]).container(&format!("c{}", fault.len()));
        pair.a.bridge.check(&pair.a.result);
    }
    pair.expect(false, "after a flush");
}

/// On one bridge frames pass, as in any network of layer 2; what this host forwards does not.
#[test]
fn networks_that_share_a_bridge_are_told_apart_by_their_addresses() {
    for (isolate, bridge_netfilter) in [(false, 0), (true, 0), (true, 1)] {
        let (sandbox, _outside) = machine();
        let set = format!("echo {bridge_netfilter} | tee bridge-nf-call-iptables bridge-nf-call-ip6tables");
        sandbox.sh(&format!("cd /proc/sys/net/bridge && {set}")).ok();
        let net_a = isolated(sandbox.network("a", &NET_A), isolate).with_bridge("bridge", json!("shared0"));
        let net_b = sandbox.network("b", &NET_B).with_bridge("bridge", json!("shared0"));
        let pair = Pair::start(&sandbox, &net_a, &net_b);
        pair.expect(!isolate, &format!("shared bridge, isolate {isolate}"));
        pair.expect_own("shared bridge");
    }
}

/// The host's uplink is a port of a bridge that is not ours, and a network of ours is on it: nobody is cut off from what
/// is behind, whichever of the networks is isolated.
#[test]
fn a_network_on_the_bridge_of_the_host_s_uplink_cuts_nobody_off() {
    for (isolate_lan, isolate_b) in [(false, true), (true, false), (true, true)] {
        let (sandbox, outside) = machine();
        sandbox
            .sh("set -e
                ip link add br0 type bridge; ip link set br0 up
                ip addr del 192.0.2.2/24 dev up0; ip link set up0 master br0; ip addr add 192.0.2.2/24 dev br0
                ip route add default via 192.0.2.1")
            .ok();
        let range = json!({"type": "osvc-ipam", "subnet": "192.0.2.0/24", "rangeStart": "192.0.2.64", "rangeEnd": "192.0.2.95"});
        let mut lan =
            json!({"cniVersion": "1.0.0", "name": "lan", "type": "osvc-bridge", "bridge": "br0", "ipam": range});
        lan["isolate"] = json!(isolate_lan);
        let pod = sandbox.netns("pod");
        sandbox.plugin("osvc-bridge").config(lan).container("pod").netns(&pod).add();
        let b = isolated(sandbox.network("b", &NET_B), isolate_b).container("b");
        b.publish(json!([port(8082, 80, "tcp")]));
        sandbox.serve(Some(&b.netns), "tcp", "[::]:80", "b");
        let what = format!("isolate {isolate_lan} on the link, {isolate_b} behind the host");
        for to in ["192.0.2.1", "192.0.2.2"] {
            assert!(sandbox.ping(&b.netns, to), "{to}, {what}");
            assert!(sandbox.ping(&pod, to), "{to} on the link, {what}");
        }
        assert_eq!(sandbox.ask(Some(&outside), "tcp", "192.0.2.2:8082"), "b 192.0.2.1", "{what}");
    }
    noted("isolate with a network on the bridge of the host's uplink");
}

/// A source of nobody's, or of its own network's, changes nothing.
#[test]
fn a_container_with_another_source_reaches_the_other_network_neither() {
    for isolate in [false, true] {
        let (sandbox, _outside) = machine();
        let net_a = sandbox.network("a", &NET_A);
        let net_b = isolated(sandbox.network("b", &NET_B), isolate);
        let pair = Pair::start(&sandbox, &net_a, &net_b);
        let listened = sandbox.capture(Some(&pair.b.netns.path));
        // Nobody routes an answer back: what matters is what arrives.
        sandbox.sh("echo 0 | tee /proc/sys/net/ipv4/conf/*/rp_filter; ip -n a addr add 203.0.113.7/32 dev eth0").ok();
        sandbox.sh(&format!("ip netns exec a ping -n -c 1 -W 1 -I 203.0.113.7 {}", pair.b.v4));
        let seen = listened.end().with_address("203.0.113.7".parse().unwrap()) > 0;
        assert_eq!(seen, !isolate, "isolate {isolate}");
    }
}

#[test]
fn a_routed_network_is_isolated_from_a_node_s_own_and_reaches_its_other_nodes() {
    let cluster = Cluster::new(&[0, 0], &[]);
    let mut routed: Value = cluster.network("net", integration::cluster::Underlay::V4, &[("10.11.0.0/16", 22)]);
    routed["tunnelMode"] = json!("vxlan");
    let local = json!({"cniVersion": "1.1.0", "name": "local", "type": "osvc-bridge", "network": ["10.22.0.0/16"]});
    for (isolate_routed, isolate_local) in [(false, false), (true, false), (false, true)] {
        let (mut routed, mut local) = (routed.clone(), local.clone());
        routed["isolate"] = json!(isolate_routed);
        local["isolate"] = json!(isolate_local);
        let pods = cluster.start_everywhere(&routed);
        let other = cluster.nodes[0].start(&local, "x");
        let what = format!("isolate {isolate_routed} and {isolate_local}");
        assert!(pods[0].reaches(&pods[1]) && pods[1].reaches(&pods[0]), "other nodes, {what}");
        let apart = isolate_routed || isolate_local;
        assert_eq!(pods[0].reaches(&other), !apart, "the same node, {what}");
        assert_eq!(other.reaches(&pods[0]), !apart, "and back, {what}");
        // There it has this node's address, and could not be told apart.
        assert_eq!(other.ask(pods[1].addresses[0]).is_some(), !apart, "another node, {what}");
        for node in &cluster.nodes {
            node.sandbox.sh("for n in $(ip netns list | cut -d' ' -f1); do ip netns del $n; done").ok();
        }
    }
    noted("isolate: a routed network beside a node-local one");
}

/// Frames to the groups of a link (LLDP's) are the port's own: the bridge does not look at them, and neither do its checks.
/// The host must not take an IP packet from one, whatever it says of its source and of whom it is for.
#[test]
fn no_packet_comes_in_by_a_port_past_its_bridge() {
    for (key, bridge_netfilter) in
        [(None, 0), (Some("isolate"), 0), (Some("isolate"), 1), (Some("spoofcheck"), 0), (Some("macspoofchk"), 1)]
    {
        let (sandbox, _outside) = machine();
        let set = format!("echo {bridge_netfilter} | tee bridge-nf-call-iptables bridge-nf-call-ip6tables");
        sandbox.sh(&format!("cd /proc/sys/net/bridge && {set}")).ok();
        let mut network = sandbox.network("a", &NET_A);
        if let Some(key) = key {
            network = network.with_bridge(key, json!(true));
        }
        let a = network.container("a");
        sandbox.network("b", &NET_B).container("b");
        assert!(
            sandbox.ping(&a.netns, "10.9.0.1") && sandbox.ping(&a.netns, "fd09::1"),
            "{key:?}: its gateway answers"
        );
        sandbox.nft("table inet seen { chain in { type filter hook input priority 200; udp dport 9 counter; }; }");
        for group in ["01:80:c2:00:00:0e", "01:80:c2:00:00:02"] {
            sandbox
                .sh(&format!(
                    "set -e
                    ip -n a neigh replace 10.9.0.1 lladdr {group} dev eth0; ip -n a neigh replace fd09::1 lladdr {group} dev eth0
                    for to in 10.9.0.1 10.10.0.1 fd09::1 fd10::1; do ip netns exec a bash -c \"echo x > /dev/udp/$to/9\"; done"
                ))
                .ok();
        }
        sandbox.sh("sleep 0.2").ok();
        let seen = sandbox.sh("nft list table inet seen").ok();
        let none = seen.contains("counter packets 0 bytes 0");
        assert_eq!(none, key.is_some(), "{key:?}, br_netfilter {bridge_netfilter}: {seen}");
    }
    noted("no IP packet by a port past its bridge, while sources are checked or a network is isolated");
}
