//! Ports in the forms in which runtimes and OpenSVC give them.

use integration::port;
use serde_json::{Value, json};

use crate::{HOST4, everything, leads_to, machine, machine_and_outside, net1, noted};

/// go-cni has no names for JSON: its fields go out as Go spells them.
#[test]
fn nerdctl_s_spelling_is_understood() {
    let (sandbox, outside) = machine_and_outside();
    let a = net1(&sandbox).container("a");
    let entry = |host: u16, protocol: &str, address: &str| json!({"HostPort": host, "ContainerPort": 80, "Protocol": protocol, "HostIP": address});
    a.publish(json!([entry(8080, "tcp", ""), entry(8080, "UDP", "0.0.0.0"), entry(8081, "tcp", "127.0.0.1")]));
    sandbox.serve(Some(&a.netns), "tcp,udp", "[::]:80", "a");
    for (from, protocol, to) in [
        (Some(&outside), "tcp", format!("{HOST4}:8080")),
        (Some(&outside), "tcp", "[2001:db8:ffff::2]:8080".to_owned()),
        (Some(&outside), "udp", format!("{HOST4}:8080")),
        (None, "tcp", "127.0.0.1:8081".to_owned()),
    ] {
        sandbox.ask(from, protocol, &to);
    }
    sandbox.ask_in_vain(Some(&outside), "tcp", &format!("{HOST4}:8081"));
    noted("containerd's and nerdctl's spelling of ports");
}

/// Podman's: lower case, empty `hostIP`, ranges as single entries.
#[test]
fn unset_values_are_as_if_they_were_not_there() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    a.publish(json!([
        {"hostPort": 8001, "containerPort": 80, "protocol": "", "hostIP": ""},
        {"hostPort": 8002, "containerPort": 80, "protocol": null, "hostIP": null},
        {"hostPort": 8003, "containerPort": 80},
        {"hostport": 8004, "CONTAINERPORT": 80, "PROTOCOL": "TCP", "more": {"x": 1}}
    ]));
    for number in 8001..=8004 {
        for (family, address) in [("ip", &a.v4), ("ip6", &a.v6)] {
            assert_eq!(leads_to(&sandbox, family, number), Some(format!("{address} . 80")), "{number}");
        }
    }
}

#[test]
fn opensvc_s_expose_is_published() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    let with = |expose: Value| a.portmap.clone().with("args", json!({"cni": {"osvc.expose": expose}}));
    for (expose, host, container) in [
        (json!("80:8001/tcp"), 8001, 80),
        (json!("80/tcp:8001"), 8001, 80),
        (json!(["80:8001/tcp"]), 8001, 80),
        (json!(["443/tcp", "80/tcp:8001"]), 8001, 80),
        (json!("443/tcp  80:8002/udp\n81:8001/TCP"), 8001, 81),
    ] {
        assert_eq!(with(expose.clone()).add(), a.result, "{expose}");
        let there = leads_to(&sandbox, "ip", host);
        assert_eq!(there, Some(format!("{} . {container}", a.v4)), "{expose}");
        assert_eq!(leads_to(&sandbox, "ip", 443), None, "{expose}: not published");
        with(expose.clone()).check(&a.result);
        a.withdraw();
    }
    // Both, and the port mappings come first.
    a.ports(json!([port(9000, 90, "tcp")])).with("args", json!({"cni": {"osvc.expose": "80:8001/tcp"}})).add();
    assert_eq!(leads_to(&sandbox, "ip", 9000), Some(format!("{} . 90", a.v4)));
    assert_eq!(leads_to(&sandbox, "ip", 8001), Some(format!("{} . 80", a.v4)));
    noted("OpenSVC's expose forms");
}

#[test]
fn an_expose_that_cannot_be_read_is_refused_by_number_and_value() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    let before = everything(&sandbox);
    for (expose, words) in [
        (json!("80:x/tcp"), vec!["osvc.expose[0]", "80:x/tcp"]),
        (json!("80:8001/tcp 80:70000/tcp"), vec!["osvc.expose[1]", "80:70000/tcp"]),
        (json!(["80:8001/tcp", "0:8002/tcp"]), vec!["osvc.expose[1]", "0:8002/tcp"]),
        (json!(["80:8001/icmp"]), vec!["osvc.expose[0]", "80:8001/icmp", "tcp", "udp", "sctp"]),
        (json!(["80:8001/tcp:8002"]), vec!["osvc.expose[0]", "80:8001/tcp:8002"]),
        (json!(["-80:8001/tcp"]), vec!["osvc.expose[0]", "-80:8001/tcp"]),
        (json!(["banana"]), vec!["osvc.expose[0]", "banana"]),
        (json!(["80:8001/tcp; flush ruleset"]), vec!["osvc.expose[0]"]),
        (json!(["80:8001/tcp", "81:8001/tcp"]), vec!["osvc.expose[0]", "osvc.expose[1]", "8001"]),
        (json!(7), vec!["osvc.expose"]),
        (json!([7]), vec!["osvc.expose"]),
        (json!({"80": 8001}), vec!["osvc.expose"]),
    ] {
        let (code, message) = a.portmap.clone().with("args", json!({"cni": {"osvc.expose": expose}})).add_fails();
        assert!(code == 7 || code == 6, "{expose}: {code} {message}");
        for word in words {
            assert!(message.contains(word), "{expose}: {word} in {message}");
        }
        assert_eq!(everything(&sandbox), before, "{expose}");
    }
}
