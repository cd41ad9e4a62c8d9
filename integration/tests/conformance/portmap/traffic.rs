//! PM6, PM10, PM11, PM14, PM15, PM17, PM18: what clients meet.

use integration::Family;
use serde_json::{Value, json};

use super::{OUTSIDE, Pod, is_target, machine, on, reached, rules, tcp};

both! {
    pm6_clients_are_limited_by_configuration
    pm10_one_address_of_the_host_or_all_of_a_family
    pm11_without_snat_the_client_is_who_it_is_and_localhost_is_not_served
    pm14_masq_all_hides_the_client
    pm15_more_ports_than_fit_a_rule
    pm17_tcp_from_everywhere
    pm18_udp_flows_follow_the_replacement
}

/// The reference takes words of rules; ours takes `allowFrom`, and conditions are refused by name (PM7, PM8 below).
fn pm6_clients_are_limited_by_configuration(family: Family) {
    let sandbox = machine();
    let pod = Pod::new(&sandbox, family, "pod");
    let server = pod.serve(80);
    let limited = |to: &str| {
        let call = pod.ports(json!([tcp(8080, 80)]));
        match family {
            Family::Osvc => call.with("allowFrom", json!([to, "fd99::/64"])),
            Family::Reference => {
                call.with("conditionsV4", json!(["-s", to])).with("conditionsV6", json!(["-s", "fd99::/64"]))
            }
        }
    };
    for (allowed, expected) in [("192.0.2.0/24", Some("pod")), ("198.51.100.0/24", None)] {
        let call = limited(allowed);
        call.add();
        assert_eq!(reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8080").as_deref(), expected, "{allowed} is allowed");
        assert_eq!(reached(&sandbox, Some(OUTSIDE), "[2001:db8:ffff::2]:8080"), None, "{allowed}: by IPv6");
        call.del();
    }
    drop(server);
}

/// The reference skips what cannot be for the container's families; ours refuses it, naming the entry: see below.
fn pm10_one_address_of_the_host_or_all_of_a_family(family: Family) {
    let sandbox = machine();
    sandbox.ip("addr add 192.0.2.3/24 dev up0");
    sandbox.ip("addr add 2001:db8:ffff::3/64 nodad dev up0");
    let pod = Pod::new(&sandbox, family, "pod");
    let servers = [80, 81, 82].map(|port| pod.serve(port));
    let call = pod.ports(json!([
        tcp(8080, 80),
        tcp(8081, 81),
        {"hostPort": 8080, "containerPort": 82, "protocol": "udp"},
        on("192.0.2.2", 8083, 80),
        on("0.0.0.0", 8084, 80),
        on("2001:db8:ffff::2", 8085, 80),
        on("::", 8086, 80),
        on("192.0.2.3", 8087, 82),
    ]));
    call.add();
    let (v4, other4) = ("192.0.2.2", "192.0.2.3");
    let (v6, other6) = ("[2001:db8:ffff::2]", "[2001:db8:ffff::3]");
    for (port, served) in [
        (8080, &[v4, other4, v6, other6][..]),
        (8081, &[v4, other4, v6, other6]),
        (8083, &[v4]),
        (8084, &[v4, other4]),
        (8085, &[v6]),
        (8086, &[v6, other6]),
        (8087, &[other4]),
    ] {
        for address in [v4, other4, v6, other6] {
            let expected = served.contains(&address).then_some("pod");
            let got = reached(&sandbox, Some(OUTSIDE), &format!("{address}:{port}"));
            assert_eq!(got.as_deref(), expected, "{address}:{port}");
        }
    }
    assert!(sandbox.datagrams(Some(OUTSIDE), "192.0.2.2:8080").ask().is_some(), "tcp and udp are not the same port");
    call.del();
    for port in [8080, 8083, 8084] {
        assert_eq!(reached(&sandbox, Some(OUTSIDE), &format!("192.0.2.2:{port}")), None, "{port} after DEL");
    }
    drop(servers);
}

fn pm11_without_snat_the_client_is_who_it_is_and_localhost_is_not_served(family: Family) {
    let sandbox = machine();
    let pod = Pod::new(&sandbox, family, "pod");
    let server = pod.serve(80);
    let call = pod.ports(json!([tcp(8080, 80)])).with("snat", json!(false));
    call.add();
    for (to, client) in [("192.0.2.2:8080", "192.0.2.1"), ("[2001:db8:ffff::2]:8080", "2001:db8:ffff::1")] {
        let answer = sandbox.connect_to(Some(OUTSIDE), to).unwrap_or_else(|| panic!("{to} is silent"));
        assert_eq!(answer.client.to_string(), client, "{to}");
    }
    assert_eq!(reached(&sandbox, None, "127.0.0.1:8080"), None, "localhost is nobody's address outside of the host");
    assert_eq!(reached(&sandbox, Some(&pod.netns.path), "192.0.2.2:8080"), None, "nor does hairpin work");
    call.del();
    drop(server);
}

fn pm14_masq_all_hides_the_client(family: Family) {
    let sandbox = machine();
    let pod = Pod::new(&sandbox, family, "pod");
    let server = pod.serve(80);
    for (masq_all, clients) in [(false, ["192.0.2.1", "2001:db8:ffff::1"]), (true, ["10.1.2.1", "fd01::1"])] {
        if masq_all && !family.is_ours() {
            // Debian's 1.1.1 is older than masqAll.
            continue;
        }
        let call = pod.ports(json!([tcp(8080, 80)])).with("masqAll", json!(masq_all));
        call.add();
        for (to, client) in ["192.0.2.2:8080", "[2001:db8:ffff::2]:8080"].into_iter().zip(clients) {
            let answer = sandbox.connect_to(Some(OUTSIDE), to).unwrap_or_else(|| panic!("{to} is silent"));
            assert_eq!(answer.client.to_string(), client, "masqAll {masq_all}, {to}");
        }
        assert_eq!(reached(&sandbox, None, "127.0.0.1:8080").as_deref(), Some("pod"), "masqAll {masq_all}: localhost");
        assert_eq!(reached(&sandbox, Some(&pod.netns.path), "192.0.2.2:8080").as_deref(), Some("pod"), "hairpin");
        call.del();
    }
    drop(server);
}

/// iptables matches 15 ports in a rule; names of chains and marks are the reference's own affair.
fn pm15_more_ports_than_fit_a_rule(family: Family) {
    let sandbox = machine();
    let pod = Pod::new(&sandbox, family, "pod");
    let server = pod.serve(80);
    let mut ports: Vec<Value> = (8080..8112).map(|port| tcp(port, 80)).collect();
    ports.extend((8080..8112).map(|port| json!({"hostPort": port, "containerPort": 80, "protocol": "udp"})));
    let call = pod.ports(Value::from(ports));
    call.add();
    for port in 8080..8112 {
        let to = format!("192.0.2.2:{port}");
        assert_eq!(reached(&sandbox, Some(OUTSIDE), &to).as_deref(), Some("pod"), "tcp {to}");
        assert!(sandbox.datagrams(Some(OUTSIDE), &to).ask().is_some(), "udp {to}");
    }
    assert_eq!(reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8112"), None);
    call.del();
    assert_eq!(reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8100"), None);
    drop(server);
}

fn pm17_tcp_from_everywhere(family: Family) {
    let sandbox = machine();
    let pod = Pod::new(&sandbox, family, "pod");
    let server = pod.serve(80);
    let call = pod.ports(json!([tcp(8080, 80)]));
    call.add();
    let direct = format!("{}:80", pod.address(4));
    let inside = pod.netns.path.as_str();
    for (what, from, to) in [
        ("directly", None, direct.as_str()),
        ("by the host's address", None, "192.0.2.2:8080"),
        ("by the host's address, from outside", Some(OUTSIDE), "192.0.2.2:8080"),
        ("by the host's IPv6 address, from outside", Some(OUTSIDE), "[2001:db8:ffff::2]:8080"),
        ("by localhost", None, "127.0.0.1:8080"),
        ("from itself", Some(inside), "192.0.2.2:8080"),
    ] {
        assert_eq!(reached(&sandbox, from, to).as_deref(), Some("pod"), "{what}");
    }
    let client = sandbox.connect_to(Some(OUTSIDE), "192.0.2.2:8080").unwrap().client;
    assert_eq!(client.to_string(), "192.0.2.1", "the container sees its client");
    call.del();
    let rules = rules(&sandbox);
    assert!(!is_target(family, &rules, &pod.address(4).to_string(), 80), "{rules}");
    assert_eq!(reached(&sandbox, None, "127.0.0.1:8080"), None, "after DEL");
    pod.bridge.del();
    drop(server);
}

/// Ours stops the flow at DEL as well; the reference forgets that (plugins#1190).
fn pm18_udp_flows_follow_the_replacement(family: Family) {
    let sandbox = machine();
    let (first, second) = (Pod::new(&sandbox, family, "first"), Pod::new(&sandbox, family, "second"));
    let servers = [first.serve(53), second.serve(53)];
    let udp = json!([{"hostPort": 5353, "containerPort": 53, "protocol": "udp"}]);
    let (call, successor) = (first.ports(udp.clone()), second.ports(udp));
    call.add();
    let flows = ["192.0.2.2:5353", "[2001:db8:ffff::2]:5353"].map(|to| sandbox.datagrams(Some(OUTSIDE), to));
    let local = sandbox.datagrams(None, "127.0.0.1:5353");
    let all: Vec<_> = flows.iter().chain([&local]).collect();
    for flow in &all {
        assert_eq!(flow.ask().expect("the first one answers").server, "first", "{flow:?}");
    }
    call.del();
    if family.is_ours() {
        assert_eq!(all[0].ask(), None, "nobody answers after DEL");
    }
    successor.add();
    for flow in &all {
        assert_eq!(flow.ask().expect("the second one answers").server, "second", "{flow:?}");
    }
    successor.del();
    drop(servers);
}
