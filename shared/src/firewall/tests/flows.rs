//! UDP flows that the kernel knows.

use std::collections::BTreeSet;
use std::net::UdpSocket;

use super::super::conntrack::by_protocol;
use super::super::nfnetlink::Nfnetlink;
use super::*;
use crate::netlink::testing::in_new_netns;

const FAMILIES: [(u8, &str); 2] = [(2, "127.0.0.1"), (10, "::1")];

/// Sends a packet to each port.
fn send(address: &str, ports: &[u16]) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    for port in ports {
        // The second one may tell that nobody listened to the first.
        let _ = socket.send_to(b"x", (address, *port));
    }
    socket
}

/// The ports of the flows in the kernel's own list, of one family.
fn known(address: &str) -> Vec<u16> {
    let family = if address.contains(':') { "ipv6" } else { "ipv4" };
    let text = std::fs::read_to_string("/proc/thread-self/net/nf_conntrack").unwrap();
    let flows = text.lines().filter(|line| line.starts_with(family) && line.contains(" udp "));
    let port = |line: &str| line.split_whitespace().find_map(|word| word.strip_prefix("dport=")?.parse().ok());
    let mut ports: Vec<u16> = flows.filter_map(port).collect();
    ports.sort_unstable();
    ports
}

/// Flows of both families to some ports are made, and those of one family to some of them forgotten.
fn forget(direct: usize, ports: &[u16]) {
    in_new_netns(|| {
        run("ip", &["link", "set", "lo", "up"]);
        nft("table inet t { chain c { type filter hook output priority 0; ct state new accept; }; }");
        let mut kernel = Nfnetlink::open().unwrap();
        for (family, address) in FAMILIES {
            kernel.forget_udp_up_to(direct, family, ports).unwrap();
            let _socket = send(address, &[5353, 5354, 5355, 5356]);
            assert_eq!(known(address), [5353, 5354, 5355, 5356]);
        }
        // A source port is none, nor a port of TCP.
        let [a, b] = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        a.send_to(b"x", b.local_addr().unwrap()).unwrap();
        kernel.forget_udp_up_to(direct, 2, &[a.local_addr().unwrap().port()]).unwrap();
        assert!(known("127.0.0.1").contains(&b.local_addr().unwrap().port()));
        kernel.forget_udp_up_to(direct, 2, &[b.local_addr().unwrap().port()]).unwrap();
        let left: Vec<u16> = [5353, 5354, 5355, 5356].into_iter().filter(|port| !ports.contains(port)).collect();
        kernel.forget_udp_up_to(direct, 2, ports).unwrap();
        assert_eq!(known("127.0.0.1"), left);
        assert_eq!(known("::1"), [5353, 5354, 5355, 5356], "the other family is left alone");
        kernel.forget_udp_up_to(direct, 10, ports).unwrap();
        assert_eq!(known("::1"), left);
        kernel.forget_udp_up_to(direct, 10, ports).unwrap();
    });
}

#[test]
fn some_ports_are_forgotten_by_filtered_deletions() {
    forget(4, &[5353, 5355]);
}

#[test]
fn many_ports_are_forgotten_by_a_list() {
    forget(0, &[5353, 5355, 5355, 9]);
}

#[test]
fn more_ports_than_are_deleted_one_by_one() {
    forget(4, &[1, 5353, 5354, 5355, 9]);
}

#[test]
fn this_kernel_takes_the_filters_and_no_fallback_hides_a_fault() {
    in_new_netns(|| {
        run("ip", &["link", "set", "lo", "up"]);
        nft("table inet t { chain c { type filter hook output priority 0; ct state new accept; }; }");
        let mut kernel = Nfnetlink::open().unwrap();
        for (family, address) in FAMILIES {
            let _socket = send(address, &[53, 54]);
            let port = BTreeSet::from([53]);
            let names = kernel.entries(family, &port, by_protocol()).unwrap();
            assert_eq!(names.len(), 1);
            assert_eq!(kernel.entries(family, &port, vec![]).unwrap(), names);
            // Linux 6.1 has no deletion by port; from 6.12 on it is there for sure.
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
            let version: Vec<u32> = release.split('.').take(2).filter_map(|part| part.parse().ok()).collect();
            let direct = kernel.forget_each(family, &port).unwrap();
            assert!(direct || version < vec![6, 12], "{release}");
            assert_eq!(known(address), if direct { vec![54] } else { vec![53, 54] });
        }
    });
}

#[test]
fn no_port_and_no_flow_are_no_work() {
    in_new_netns(|| {
        let mut kernel = Nfnetlink::open().unwrap();
        kernel.forget_udp(2, &[]).unwrap();
        kernel.forget_udp(10, &[53]).unwrap();
    });
}
