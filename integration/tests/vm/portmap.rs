//! `osvc-portmap` on Debian 12's kernel: SCTP, which the running kernel may not have; br_netfilter as a module; and no filtered
//! deletion from the connection table, so that each flow has to be found and deleted by itself.

use integration::{Container, Flow, Sandbox, Vm, port, report};
use serde_json::Value;

use crate::TALK;

const HOST4: &str = "192.0.2.2:8080";
const HOST6: &str = "[2001:db8:ffff::2]:8080";
const PROTOCOLS: [&str; 3] = ["tcp", "udp", "sctp"];

fn publish(container: &Container<'_>) {
    container.publish(PROTOCOLS.iter().map(|protocol| port(8080, 80, protocol)).collect::<Value>());
}

#[test]
fn tcp_udp_and_sctp_reach_a_container_and_move_to_the_next_one() {
    Vm::new().program(TALK).test(|| {
        let sandbox = Sandbox::with_tools(&[TALK]);
        let outside = sandbox.outside();
        let network = sandbox.network("net1", &["10.9.0.0/24", "fd09::/64"]);
        let (old, new) = (network.container("old"), network.container("new"));
        for container in [&old, &new] {
            sandbox.serve(Some(&container.netns), "tcp,udp,sctp", "[::]:80", &container.netns.name);
        }
        // Both began before anybody listened: the connection table has them, untranslated.
        let flows = [HOST4, HOST6].map(|to| sandbox.flow(Some(&outside), to));
        flows.iter().for_each(|flow| flow.reaches_nobody());

        publish(&old);
        let mut cases = vec![
            (Some(&outside), HOST4, "192.0.2.1"),
            (Some(&outside), HOST6, "2001:db8:ffff::1"),
            (None, HOST4, "192.0.2.2"),
            (None, HOST6, "2001:db8:ffff::2"),
            (None, "127.0.0.1:8080", "10.9.0.1"),
        ];
        for netns in [&old.netns, &new.netns] {
            cases.extend([(Some(netns), HOST4, "10.9.0.1"), (Some(netns), HOST6, "fd09::1")]);
        }
        for bridge_netfilter in [false, true] {
            if bridge_netfilter {
                // In this namespace its switches are on from the start.
                sandbox.sh("modprobe br_netfilter && [ $(cat /proc/sys/net/bridge/bridge-nf-call-iptables) = 1 ]").ok();
            }
            for protocol in PROTOCOLS {
                for (from, to, seen) in &cases {
                    let what = format!("{protocol} to {to} from {from:?}, br_netfilter {bridge_netfilter}");
                    assert_eq!(sandbox.ask(*from, protocol, to), format!("old {seen}"), "{what}");
                }
            }
        }
        reach(&flows, "old");
        old.withdraw();
        publish(&new);
        reach(&flows, "new");
        for protocol in PROTOCOLS {
            assert_eq!(sandbox.ask(Some(&outside), protocol, HOST4), "new 192.0.2.1", "{protocol} after replacement");
        }
        new.withdraw();
        flows.iter().for_each(|flow| flow.reaches_nobody());
        for protocol in PROTOCOLS {
            sandbox.ask_in_vain(Some(&outside), protocol, HOST4);
        }
        report::ran(
            &report::kernel(),
            "published tcp, udp and sctp ports, IPv4 and IPv6, without and with br_netfilter; udp flows move and stop",
        );
    });
}

fn reach(flows: &[Flow<'_>; 2], name: &str) {
    flows[0].reaches(&format!("{name} 192.0.2.1"));
    flows[1].reaches(&format!("{name} 2001:db8:ffff::1"));
}
