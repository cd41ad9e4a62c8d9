//! What cannot be published is refused before anything is changed, by its number and value.

use integration::{port, port_on};
use serde_json::{Value, json};

use crate::{everything, leads_to, machine, net1, noted};

fn entry(key: &str, value: Value) -> Value {
    let mut entry = port(8080, 80, "tcp");
    entry[key] = value;
    entry
}

/// Each row: the second of three entries, and words of the refusal.
#[test]
fn entries_are_refused_by_number_and_value() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    let before = everything(&sandbox);
    let rows: Vec<(Value, Vec<&str>)> = vec![
        (entry("hostPort", json!(0)), vec!["Invalid host port number: 0"]),
        (entry("hostPort", json!(-1)), vec!["Invalid host port number: -1"]),
        (entry("hostPort", json!(65536)), vec!["65536"]),
        (entry("hostPort", json!(70000)), vec!["70000"]),
        (entry("hostPort", json!(1.5)), vec!["1.5"]),
        (entry("hostPort", json!("80")), vec!["80"]),
        (entry("hostPort", json!(18_446_744_073_709_551_615_u64)), vec!["18446744073709551615"]),
        (entry("hostPort", Value::Null), vec!["hostPort"]),
        (entry("hostPort", json!([80])), vec!["hostPort"]),
        (json!({"containerPort": 80, "protocol": "tcp"}), vec!["hostPort"]),
        (json!({"hostPort": 8080, "protocol": "tcp"}), vec!["containerPort"]),
        (entry("containerPort", json!(0)), vec!["Invalid container port number: 0"]),
        (entry("containerPort", json!(-1)), vec!["Invalid container port number: -1"]),
        (entry("containerPort", json!(65536)), vec!["65536"]),
        (entry("containerPort", json!("80")), vec!["80"]),
        (entry("protocol", json!("icmp")), vec!["icmp", "tcp", "udp", "sctp"]),
        (entry("protocol", json!("tcp; flush ruleset")), vec!["flush ruleset", "tcp", "udp", "sctp"]),
        (entry("protocol", json!(6)), vec!["protocol"]),
        (entry("hostIP", json!("banana")), vec!["banana"]),
        (entry("hostIP", json!("192.0.2.0/24")), vec!["192.0.2.0/24"]),
        (entry("hostIP", json!("192.0.2.1 }; flush ruleset; {")), vec!["flush ruleset"]),
        (entry("hostIP", json!("192.0.2.256")), vec!["192.0.2.256"]),
        (entry("hostIP", json!("fe80::1%eth0")), vec!["fe80::1%eth0"]),
        (entry("hostIP", json!("::1")), vec!["::1"]),
        (entry("hostIP", json!("224.0.0.1")), vec!["224.0.0.1"]),
        (entry("hostIP", json!("ff02::1")), vec!["ff02::1"]),
        (entry("hostIP", json!("255.255.255.255")), vec!["255.255.255.255"]),
        (entry("hostIP", json!(7)), vec!["hostIP"]),
        (json!("8080:80"), vec![]),
        (json!(8080), vec![]),
    ];
    for (bad, words) in rows {
        let wanted = json!([port(7000, 80, "tcp"), bad, port(7001, 80, "tcp")]);
        let (code, message) = a.ports(wanted).add_fails();
        assert!(code == 7 || code == 6, "{bad}: {code} {message}");
        for word in words.iter().chain(&["portMappings[1]"]) {
            assert!(message.contains(word), "{bad}: {word} in {message}");
        }
        assert_eq!(everything(&sandbox), before, "{bad}");
    }
    for list in [json!("8080:80"), json!({"hostPort": 8080}), json!(7)] {
        let (code, message) = a.ports(list.clone()).add_fails();
        assert!(code == 7 || code == 6, "{list}: {code} {message}");
        assert!(message.contains("portMappings"), "{list}: {message}");
        assert_eq!(everything(&sandbox), before, "{list}");
    }
    noted("bad entries are refused by number and value, and nothing is changed");
}

#[test]
fn an_address_of_a_family_that_the_container_lacks_is_refused() {
    for (subnet, addresses) in
        [("10.9.0.0/24", ["::", "2001:db8:ffff::2", "fd09::1"]), ("fd09::/64", ["0.0.0.0", "192.0.2.2", "127.0.0.1"])]
    {
        let sandbox = machine();
        let a = sandbox.network("net1", &[subnet]).container("a");
        let before = everything(&sandbox);
        for address in addresses {
            let (code, message) =
                a.ports(json!([port(7000, 80, "tcp"), port_on(address, 8080, 80, "tcp")])).add_fails();
            assert_eq!(code, 7, "{message}");
            for word in ["portMappings[1]", "net1", address] {
                assert!(message.contains(word), "{word} in {message}");
            }
            assert_eq!(everything(&sandbox), before, "{address}");
        }
    }
}

#[test]
fn localhost_without_snat_is_refused() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    let before = everything(&sandbox);
    for address in ["127.0.0.1", "127.1.2.3", "::ffff:127.0.0.1"] {
        let (code, message) =
            a.ports(json!([port_on(address, 8080, 80, "tcp")])).with("snat", json!(false)).add_fails();
        assert_eq!(code, 7, "{message}");
        assert!(message.contains("portMappings[0]") && message.contains("snat"), "{message}");
        assert_eq!(everything(&sandbox), before, "{address}");
    }
}

#[test]
fn what_is_unusual_but_possible_is_accepted() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    for wanted in [
        json!([port(1, 65535, "TCP")]),
        json!([port(65535, 1, "Udp")]),
        json!([port_on("203.0.113.200", 8080, 80, "tcp")]),
        json!([port(8080, 80, "tcp"), port(8080, 80, "tcp")]),
        json!([port(8080, 80, "tcp"), port_on("192.0.2.1", 8080, 81, "tcp")]),
        json!([port(8080.try_into().unwrap(), 80, "SCTP")]),
    ] {
        a.publish(wanted.clone());
        a.ports(wanted).check(&a.result);
        a.withdraw();
    }
}

/// Each row: a key of the configuration, its code, and words of the refusal.
#[test]
fn keys_that_cannot_be_honoured_are_refused_by_name() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    let before = everything(&sandbox);
    let rows = [
        ("backend", json!("iptables"), 2, vec!["backend", "iptables", "nftables"]),
        ("backend", json!("foo"), 7, vec!["unrecognized backend \"foo\""]),
        ("externalSetMarkChain", json!("KUBE-MARK-MASQ"), 2, vec!["externalSetMarkChain"]),
        ("conditionsV4", json!(["-s", "192.0.2.0/24"]), 2, vec!["conditionsV4", "allowFrom"]),
        ("conditionsV6", json!(["ip6 saddr ::/0"]), 2, vec!["conditionsV6", "allowFrom"]),
        ("markMasqBit", json!(32), 7, vec!["MasqMarkBit must be between 0 and 31"]),
        ("markMasqBit", json!(-1), 7, vec!["MasqMarkBit must be between 0 and 31"]),
        ("snat", json!("yes"), 6, vec!["snat"]),
        ("masqAll", json!(1), 6, vec!["masqAll"]),
    ];
    for (key, value, expected, words) in rows {
        let call = a.ports(json!([port(8080, 80, "tcp")])).with(key, value.clone());
        let (code, message) = call.add_fails();
        assert_eq!(code, expected, "{key} {value}: {message}");
        for word in words {
            assert!(message.contains(word), "{key} {value}: {word} in {message}");
        }
        assert_eq!(everything(&sandbox), before, "{key} {value}");
    }
    for (key, value) in [
        ("backend", json!("nftables")),
        ("backend", json!("")),
        ("markMasqBit", json!(0)),
        ("markMasqBit", json!(31)),
        ("externalSetMarkChain", json!("")),
        ("externalSetMarkChain", Value::Null),
        ("conditionsV4", json!([])),
        ("conditionsV6", Value::Null),
        ("snat", Value::Null),
        ("somebodyElse's", json!({"x": 1})),
    ] {
        let call = a.ports(json!([port(8080, 80, "tcp")])).with(key, value);
        call.add();
        a.withdraw();
    }
}

#[test]
fn a_container_id_of_300_characters_is_no_problem() {
    let sandbox = machine();
    let netns = sandbox.netns("pod");
    let id = "x".repeat(300);
    let a = net1(&sandbox).attach(&netns, &id, "eth0", "web");
    a.publish(json!([port(8080, 80, "tcp")]));
    assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", a.v4)));
    let b = net1(&sandbox).container("b");
    let (code, message) = b.ports(json!([port(8080, 80, "tcp")])).add_fails();
    assert_eq!(code, 101);
    assert!(message.contains(&id), "{message}");
    a.withdraw();
    b.publish(json!([port(8080, 80, "tcp")]));
}

/// Names are data: in rules, in messages, in files.
#[test]
fn text_that_would_be_nft_syntax_is_text() {
    let sandbox = machine();
    let netns = sandbox.netns("pod");
    let name = "x\" }; flush ruleset; #";
    let a = net1(&sandbox).attach(&netns, "id-1", "eth0", name);
    let mapping = port(8080, 80, "tcp");
    a.publish(json!([mapping]));
    assert!(sandbox.ruleset().contains("table ip osvc-cni {"), "{}", sandbox.ruleset());
    assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", a.v4)));
    let (code, message) = net1(&sandbox).container("b").ports(json!([mapping])).add_fails();
    assert_eq!(code, 101);
    assert!(message.contains("flush ruleset") || message.contains("id-1"), "{message}");
    a.withdraw();
}
