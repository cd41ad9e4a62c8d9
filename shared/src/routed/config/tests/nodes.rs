use super::*;

#[test]
fn nodes_by_themselves() {
    let node = |key: &str, value: Value| json!([{"name": "node1"}, {"name": "Node2", key: value}]);
    let cases = [
        (json!([]), 7, "`nodes` is missing or empty"),
        (json!(null), 7, "`nodes` is missing or empty"),
        (json!([{"name": "node1"}, {"addr": "192.0.2.1"}]), 7, "nodes[1] has no name"),
        (json!([{"name": "node1"}, {"name": "a b"}]), 2, r#"nodes[1].name "a b": it must be a name of letters"#),
        (json!([{"name": "-x"}]), 2, r#"nodes[0].name "-x""#),
        (json!([{"name": "a/../b"}]), 2, r#"nodes[0].name "a/../b""#),
        (json!([{"name": "10.1.2"}]), 2, r#"nodes[0].addr of 10.1.2 "10.1.2": it is not an IP address or the name"#),
        (json!([{"name": 5}]), 6, "nodes[0].name"),
        (json!("node1"), 6, "nodes"),
        (node("addr", json!("192.0.2.1/24")), 2, r#"nodes[1].addr of node2 "192.0.2.1/24": it is not an IP address"#),
        (node("addr", json!("192.0.2")), 2, "it is not an IP address or the name of a host"),
        (node("addr", json!("300.1.1.1")), 2, "it is not an IP address or the name of a host"),
        (node("addr", json!("-oProxy")), 2, "it is not an IP address or the name of a host"),
        (node("addr", json!("127.0.0.1")), 2, "it is not an address at which other nodes reach this one"),
        (node("addr", json!("::")), 2, "it is not an address at which"),
        (node("addr", json!("fe80::1")), 2, "it is not an address at which"),
        (node("addr", json!("224.0.0.1")), 2, "it is not an address at which"),
        (node("addr", json!("::ffff:127.0.0.1")), 2, "it is not an address at which"),
        (node("addr", json!("10.11.9.9")), 2, "cannot be inside the network 10.11.0.0/16 itself"),
        (node("addr", json!([])), 2, "nodes[1].addr of node2 []: it is not an address or a name"),
        (node("addr", json!(["192.0.2.1", "192.0.2.2"])), 2, r#"["192.0.2.1","192.0.2.2"]: a node has one address of"#),
        (node("addr", json!(["192.0.2.1", "a.example"])), 2, "a node has one address of each family, or one name"),
        (node("addr", json!(["192.0.2.1", 7])), 6, "nodes[1].addr[1]"),
        (node("subnet", json!("10.11.4.1/22")), 2, "it has host bits set, the network is 10.11.4.0/22"),
        (node("subnet", json!("10.12.0.0/22")), 2, "it is not inside `network` (10.11.0.0/16)"),
        (node("subnet", json!("10.0.0.0/8")), 2, "it is not inside `network` (10.11.0.0/16)"),
        (node("subnet", json!("10.11.4.0/31")), 2, "it has no room for a gateway and a container"),
        (node("subnet", json!("10.11.4.0")), 2, "it is not a subnet such as 10.11.4.0/22"),
        (node("subnet", json!(["10.11.4.0/22", "10.11.8.0/22"])), 2, "it is not one segment of each network"),
        (node("retired", json!("yes")), 6, "nodes[1].retired"),
        (json!([{"name": "node1"}, "node2"]), 6, "nodes[1]"),
        (
            node("address", json!("192.0.2.1")),
            2,
            "nodes[1].address …: a node has no such key, it has name, addr, subnet",
        ),
        (node("retire", json!(true)), 2, "nodes[1].retire …: a node has no such key"),
        (node("privateKey", json!(KEY)), 2, "nodes[1].privateKey …: a node has no such key"),
    ];
    for (nodes, code, expected) in cases {
        let (got, text) = nodes_refused(nodes.clone());
        assert!(got == code && text.contains(expected), "{nodes}: {text}");
        assert!(!text.contains(KEY), "it may be a private one: {text}");
    }
    assert!(nodes_are_good(node("PublicKey", json!(KEY))), "in any case");
}

fn nodes_are_good(nodes: Value) -> bool {
    example_with(json!({"nodes": nodes})).is_ok()
}

#[test]
fn nodes_beside_each_other() {
    let two = |a: Value, b: Value| {
        let named = |name: &str, keys: Value| {
            let mut node = json!({"name": name});
            node.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
            node
        };
        json!([named("node1", a), named("node2", b)])
    };
    let cases = [
        (two(json!({}), json!({"name": "NODE1"})), "nodes[0] and nodes[1] have one name, node1"),
        (two(json!({"addr": "192.0.2.1"}), json!({"addr": "::ffff:192.0.2.1"})), "have one address, 192.0.2.1"),
        (two(json!({}), json!({"addr": "Node1"})), "nodes node1 and node2 have one address, node1"),
        (two(json!({"publicKey": KEY}), json!({"publicKey": KEY})), "nodes node1 and node2 have one publicKey"),
        (
            two(json!({"subnet": "10.11.4.0/23"}), json!({"subnet": "10.11.4.0/22"})),
            "`subnet` 10.11.4.0/22 of node node2 overlaps `subnet` 10.11.4.0/23 of node node1",
        ),
    ];
    for (nodes, expected) in cases {
        let (code, text) = nodes_refused(nodes);
        assert!(code == 7 && text.contains(expected), "{text}");
    }
    let replaced = two(json!({"addr": "192.0.2.1"}), json!({"addr": "192.0.2.1", "retired": true, "publicKey": KEY}));
    assert!(example_with(json!({"nodes": replaced})).is_ok(), "what replaces a node may have its address");
}

#[test]
fn a_malformed_key_is_named_and_not_shown() {
    for bad in ["AbCdEfGh", &KEY[1..], "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="] {
        let (code, text) = nodes_refused(json!([{"name": "node1", "publicKey": bad}]));
        let expected = format!("nodes[0].publicKey of node1 \"{}…\" ({} characters): it is not", &bad[..4], bad.len());
        assert!(code == 2 && text.contains(&expected) && !text.contains(&bad[..5]), "{text}");
    }
    assert_eq!(example_with(json!({"nodes": [{"name": "node1", "publicKey": ""}]})).unwrap().nodes[0].public_key, None);
}
