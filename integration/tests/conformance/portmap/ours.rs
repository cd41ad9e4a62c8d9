//! PM4, PM5, PM7, PM8, PM10, PM11, F7, F8: where ours is otherwise than the reference.

use integration::{Family, Sandbox};
use serde_json::json;

use super::{OUTSIDE, Pod, machine, on, reached, tcp};

/// PM4, PM5, PM7, PM8: there is one backend.
#[test]
fn pm4_pm5_pm7_pm8_the_backend_is_nftables() {
    let sandbox = Sandbox::new();
    let pod = Pod::new(&sandbox, Family::Osvc, "pod");
    let call = pod.ports(json!([tcp(8080, 80)]));
    let before = sandbox.leftovers();
    for (key, value, expected, words) in [
        ("backend", json!("iptables"), 2, &["backend", "iptables", "nftables"][..]),
        ("backend", json!("foo"), 7, &["unrecognized backend \"foo\""]),
        ("externalSetMarkChain", json!("KUBE-MARK-MASQ"), 2, &["externalSetMarkChain"]),
        ("conditionsV4", json!(["-s", "192.0.2.0/24"]), 2, &["conditionsV4", "allowFrom"]),
        ("conditionsV6", json!(["ip6", "saddr", "fd00::/8"]), 2, &["conditionsV6", "allowFrom"]),
        ("markMasqBit", json!(32), 7, &["MasqMarkBit must be between 0 and 31"]),
    ] {
        let (code, message) = call.clone().with(key, value.clone()).add_fails();
        assert_eq!(code, expected, "{key} {value}: {message}");
        for word in words {
            assert!(message.contains(word), "{key} {value}: `{word}` is not named: {message}");
        }
        sandbox.leftovers().assert_same_as(&before, &format!("the refusal of {key} {value}"));
    }
    for (key, value) in [
        ("backend", json!("nftables")),
        ("backend", json!("")),
        ("backend", json!(null)),
        ("conditionsV4", json!([])),
        ("conditionsV6", json!(null)),
        ("externalSetMarkChain", json!(null)),
        ("markMasqBit", json!(31)),
    ] {
        let call = call.clone().with(key, value.clone());
        call.add();
        assert!(!sandbox.sh("iptables-save; ip6tables-save").stdout.contains("CNI-"), "{key} {value}");
        call.del();
    }
}

/// PM10, PM11 for a container of one family: the reference skips the other's entries without a word (E78).
#[test]
fn pm10_pm11_an_entry_for_a_family_that_the_container_lacks_is_refused() {
    let sandbox = Sandbox::new();
    let pod = Pod::new(&sandbox, Family::Osvc, "pod");
    let mut previous = pod.result.clone();
    previous["ips"].as_array_mut().unwrap().retain(|ip| ip["address"].as_str().unwrap().contains('.'));
    let before = sandbox.leftovers();
    for address in ["2001:db8::1", "::"] {
        let call = pod.ports(json!([tcp(8080, 80), on(address, 8081, 80)])).with("prevResult", previous.clone());
        let (code, message) = call.add_fails();
        assert_eq!(code, 7, "{message}");
        for word in ["portMappings[1]", address, "mynet"] {
            assert!(message.contains(word), "`{word}` is not named: {message}");
        }
        sandbox.leftovers().assert_same_as(&before, &format!("the refusal of {address}"));
    }
}

/// F7: what goes wrong with the reference's nftables backend.
#[test]
fn f7_a_networks_limits_are_its_own_and_bad_entries_change_nothing() {
    let sandbox = machine();
    let a = Pod::new(&sandbox, Family::Osvc, "a");
    let mut other = Family::Osvc.bridge_config("1.0.0", "othernet", json!({"subnet": "10.1.3.0/24"}));
    other["bridge"] = json!("cni8");
    let b = Pod::on(&sandbox, Family::Osvc, "b", other);
    let servers = [a.serve(80), b.serve(80)];
    let mut limited = a.ports(json!([tcp(8080, 80)])).with("allowFrom", json!(["198.51.100.0/24"]));
    limited.add();
    b.ports(json!([tcp(8081, 80)])).add();
    assert_eq!(reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8080"), None, "a's limit outlives b's ADD");
    assert_eq!(reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8081").as_deref(), Some("b"), "and is not b's");
    limited.del();
    let before = sandbox.leftovers();
    for (bad, words) in [
        (on("banana", 8082, 80), &["portMappings[1]", "banana"][..]),
        (json!({"hostPort": 70000, "containerPort": 80, "protocol": "tcp"}), &["portMappings[1]", "70000"]),
        (json!({"hostPort": 8082, "containerPort": 80, "protocol": "icmp"}), &["icmp", "tcp, udp", "sctp"]),
        (json!({"hostPort": 8082, "containerPort": 80, "protocol": "tcp } delete table ip x {"}), &["portMappings[1]"]),
    ] {
        let (code, message) = a.ports(json!([tcp(8080, 80), bad])).add_fails();
        assert_eq!(code, 7, "{message}");
        for word in words {
            assert!(message.contains(word), "`{word}` is not named: {message}");
        }
        sandbox.leftovers().assert_same_as(&before, &message);
    }
    limited = a.ports(json!([{"hostPort": 8080, "containerPort": 80, "protocol": "TCP"}]));
    limited.add();
    assert_eq!(reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8080").as_deref(), Some("a"), "TCP is tcp");
    drop(servers);
}

/// F8: the reference's comment is too long from 129 characters on.
#[test]
fn f8_container_ids_of_any_length() {
    let sandbox = machine();
    let pod = Pod::new(&sandbox, Family::Osvc, "pod");
    let server = pod.serve(80);
    let before = sandbox.leftovers();
    let call = pod.ports(json!([tcp(8080, 80)])).container(&"x".repeat(300));
    call.add();
    assert_eq!(reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8080").as_deref(), Some("pod"));
    call.del();
    assert_eq!(sandbox.leftovers().ports, before.ports);
    assert_eq!(reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8080"), None);
    drop(server);
}
