//! Ports of one of the host's addresses.

use integration::{port, port_on};
use serde_json::json;

use crate::{HOST4, HOST6, machine_and_outside, net1, noted};

#[test]
fn a_port_of_one_address_beats_the_port_of_all() {
    let (sandbox, outside) = machine_and_outside();
    let a = net1(&sandbox).container("a");
    a.publish(json!([
        port(8080, 80, "tcp"),
        port_on(HOST4, 8080, 81, "tcp"),
        port_on("2001:db8:ffff::2", 8080, 81, "tcp")
    ]));
    sandbox.serve(Some(&a.netns), "tcp", "[::]:80", "wildcard");
    sandbox.serve(Some(&a.netns), "tcp", "[::]:81", "specific");
    for host in [HOST4, HOST6] {
        for from in [Some(&outside), None, Some(&a.netns)] {
            let answer = sandbox.ask(from, "tcp", &format!("{host}:8080"));
            assert!(answer.starts_with("specific "), "{host}: {answer}");
        }
    }
    for host in ["127.0.0.1", "10.9.0.1", "[fd09::1]"] {
        let answer = sandbox.ask(None, "tcp", &format!("{host}:8080"));
        assert!(answer.starts_with("wildcard "), "{host}: {answer}");
    }
    noted("a port of one host address beside the same port of all");
}

#[test]
fn a_wildcard_is_of_one_family_and_no_address_is_of_both() {
    let (sandbox, outside) = machine_and_outside();
    let a = net1(&sandbox).container("a");
    a.publish(json!([
        port_on("0.0.0.0", 8004, 80, "tcp"),
        port_on("::", 8006, 80, "tcp"),
        port_on("", 8046, 80, "tcp"),
        port_on("::ffff:192.0.2.2", 8047, 80, "tcp")
    ]));
    sandbox.serve(Some(&a.netns), "tcp", "[::]:80", "a");
    for (number, v4, v6) in [(8004, true, false), (8006, false, true), (8046, true, true), (8047, true, false)] {
        for (host, answers) in [(HOST4, v4), (HOST6, v6)] {
            let to = format!("{host}:{number}");
            if answers {
                sandbox.ask(Some(&outside), "tcp", &to);
            } else {
                sandbox.ask_in_vain(Some(&outside), "tcp", &to);
            }
        }
    }
}

#[test]
fn a_port_of_127_0_0_1_is_for_the_host_alone() {
    let (sandbox, outside) = machine_and_outside();
    let network = net1(&sandbox);
    let (a, b) = (network.container("a"), network.container("b"));
    a.publish(json!([port_on("127.0.0.1", 8081, 80, "tcp"), port_on("127.0.0.1", 8081, 80, "udp")]));
    sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
    sandbox.ip("-n outside route add 127.0.0.2/32 via 192.0.2.2");
    for protocol in ["tcp", "udp"] {
        assert_eq!(sandbox.ask(None, protocol, "127.0.0.1:8081"), "a 10.9.0.1");
        sandbox.ask_in_vain(None, protocol, &format!("{HOST4}:8081"));
        for from in [&outside, &a.netns, &b.netns] {
            sandbox.ask_in_vain(Some(from), protocol, &format!("{HOST4}:8081"));
            sandbox.ask_in_vain(Some(from), protocol, &format!("{HOST6}:8081"));
        }
    }
    noted("a port of 127.0.0.1");
}

#[test]
fn an_address_that_is_not_there_yet_is_published_when_it_comes() {
    let (sandbox, outside) = machine_and_outside();
    let a = net1(&sandbox).container("a");
    a.publish(json!([port_on("192.0.2.77", 8080, 80, "tcp"), port_on("2001:db8:ffff::77", 8080, 80, "tcp")]));
    sandbox.serve(Some(&a.netns), "tcp", "[::]:80", "a");
    sandbox.ask_in_vain(Some(&outside), "tcp", "192.0.2.77:8080");
    sandbox.ip("addr add 192.0.2.77/24 dev up0");
    sandbox.ip("addr add 2001:db8:ffff::77/64 dev up0 nodad");
    // Its failed search for the address may still be remembered.
    sandbox.ip("-n outside neigh flush all");
    assert_eq!(sandbox.ask(Some(&outside), "tcp", "192.0.2.77:8080"), "a 192.0.2.1");
    assert_eq!(sandbox.ask(Some(&outside), "tcp", "[2001:db8:ffff::77]:8080"), "a 2001:db8:ffff::1");
    sandbox.ask_in_vain(Some(&outside), "tcp", &format!("{HOST4}:8080"));
    noted("a port of an address that comes later");
}
