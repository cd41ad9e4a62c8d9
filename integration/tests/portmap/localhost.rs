//! What the host keeps to itself on 127.0.0.1 stays there, although a route to it is opened for published ports.

use integration::{Family, Netns, Sandbox, port, port_on};
use serde_json::json;

use crate::{DUAL, machine, net1, noted};

/// A container that sends packets for 127.0.0.1 to its gateway, as root in a container with a capability too many can.
fn sends_127_to_the_gateway(sandbox: &Sandbox, netns: &Netns) {
    let name = &netns.name;
    sandbox
        .sh(&format!(
            "set -e
            ip -n {name} addr del 127.0.0.1/8 dev lo
            ip netns exec {name} sysctl -q -w net.ipv4.conf.all.route_localnet=1
            ip -n {name} route add 127.0.0.0/8 via 10.9.0.1 dev eth0"
        ))
        .ok();
}

#[test]
fn a_container_does_not_reach_a_service_of_the_host_s_127_0_0_1() {
    for (family, reached) in [(Family::Reference, true), (Family::Osvc, false)] {
        let sandbox = machine();
        let network = sandbox.network_of(family, "net1", &DUAL);
        let (a, b) = (network.container("a"), network.container("b"));
        a.publish(json!([port_on("127.0.0.1", 8081, 80, "tcp")]));
        sandbox.serve(Some(&a.netns), "tcp", "[::]:80", "a");
        sandbox.serve(None, "tcp,udp", "127.0.0.1:6000", "host");
        assert_eq!(sandbox.ask(None, "tcp", "127.0.0.1:6000"), "host 127.0.0.1");
        for container in [&a, &b] {
            sends_127_to_the_gateway(&sandbox, &container.netns);
            for protocol in ["tcp", "udp"] {
                for to in ["127.0.0.1:6000", "127.0.0.1:8081"] {
                    if !reached {
                        sandbox.ask_in_vain(Some(&container.netns), protocol, to);
                    }
                }
                if reached {
                    let seen = sandbox.ask(Some(&container.netns), protocol, "127.0.0.1:6000");
                    assert_eq!(seen, format!("host {}", container.v4), "the reference lets it in: the case is real");
                }
            }
        }
        assert_eq!(sandbox.ask(None, "tcp", "127.0.0.1:8081"), "a 10.9.0.1", "publishing there works, {family:?}");
    }
    noted("services of the host's 127.0.0.1 are out of reach of containers");
}

/// A packet that claims to come from 127.0.0.1 would be taken for the host's own, where `accept_local` lets it in.
#[test]
fn a_container_cannot_speak_as_127_0_0_1() {
    for (family, heard) in [(Family::Reference, true), (Family::Osvc, false)] {
        let sandbox = machine();
        let a = sandbox.network_of(family, "net1", &DUAL).container("a");
        a.publish(json!([port_on("127.0.0.1", 8081, 80, "tcp")]));
        sandbox
            .sh("set -e
                ip netns exec a sysctl -q -w net.ipv4.conf.all.route_localnet=1
                ip -n a route add 192.0.2.9/32 via 10.9.0.1 dev eth0 src 127.0.0.1
                ip addr add 192.0.2.9/32 dev lo
                sysctl -q -w net.ipv4.conf.obr_net1.accept_local=1")
            .ok();
        let count = "table inet probe { chain c { type filter hook input priority 0; ip saddr 127.0.0.1 iifname obr_net1 counter; }; }";
        sandbox.nft(count);
        sandbox.serve(None, "udp", "192.0.2.9:6000", "host");
        sandbox.ask_in_vain(Some(&a.netns), "udp", "192.0.2.9:6000");
        let counted = sandbox.sh("nft list table inet probe").ok();
        assert_eq!(!counted.contains("packets 0 "), heard, "{family:?}: {counted}");
    }
}

/// `::1` cannot be published by translation, and is left to the host.
#[test]
fn what_is_sent_to_the_host_s_own_1_is_not_lost() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    a.publish(json!([port(8080, 80, "tcp"), port(8080, 80, "udp")]));
    sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
    let refused = sandbox.run(&["talk", "ask", "tcp", "[::1]:8080"]);
    assert!(refused.rc != 0 && refused.stderr.contains("refused"), "{refused}");
    sandbox.serve(None, "tcp,udp", "[::1]:8080", "host");
    for protocol in ["tcp", "udp"] {
        assert_eq!(sandbox.ask(None, protocol, "[::1]:8080"), "host ::1");
        assert_eq!(sandbox.ask(None, protocol, "127.0.0.1:8080"), "a 10.9.0.1");
        assert_eq!(sandbox.ask(None, protocol, "[fd09::1]:8080"), "a fd09::1");
    }
    noted("what listens on [::1] is not hidden by a published port");
}
