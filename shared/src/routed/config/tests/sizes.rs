use super::*;

#[test]
fn sizes_of_segments() {
    let sizes = |keys: Value| example_with(keys).unwrap().prefixes;
    let both = json!(["10.11.0.0/16", "fd77::/48"]);
    assert_eq!(sizes(json!({"maskPerNode": null})), [22], "1024 addresses, as OpenSVC");
    assert_eq!(sizes(json!({"maskPerNode": null, "ipsPerNode": 64})), [26]);
    assert_eq!(sizes(json!({"network": both, "maskPerNode": null, "ipsPerNode": 64})), [26, 122]);
    assert_eq!(sizes(json!({"network": both, "maskPerNode": null, "ipsPerNode": [1024, 65536]})), [22, 112]);
    assert_eq!(sizes(json!({"ipsPerNode": 3})), [22], "maskPerNode wins");
    assert_eq!(sizes(json!({"maskPerNode": [22]})), [22]);
    assert_eq!(sizes(json!({"maskPerNode": 16, "nodes": [{"name": "node1"}]})), [16]);
    let room = "for segments of network 10.11.0.0/16 that have room for a container";
    let cases = [
        (json!({"maskPerNode": 8}), 2, format!("cannot honour maskPerNode 8: it must be between 16 and 30, {room}")),
        (json!({"maskPerNode": 31}), 2, format!("cannot honour maskPerNode 31: it must be between 16 and 30, {room}")),
        (json!({"maskPerNode": -1}), 2, format!("cannot honour maskPerNode -1: it must be between 16 and 30, {room}")),
        (
            json!({"maskPerNode": null, "ipsPerNode": 131_072}),
            2,
            "cannot honour ipsPerNode 131072: it is more than network 10.11.0.0/16 has".to_owned(),
        ),
        (
            json!({"network": both, "maskPerNode": 22}),
            7,
            "maskPerNode has 1 values and `network` has 2: give one for each, in the same order".to_owned(),
        ),
        (
            json!({"network": "fd77::/48", "maskPerNode": null, "nodes": [{"name": "node1"}]}),
            7,
            "maskPerNode is missing: give the prefix length of a node's segment of fd77::/48, such as 64".to_owned(),
        ),
        (
            json!({"network": "10.11.0.0/24", "maskPerNode": null, "nodes": [{"name": "node1"}]}),
            7,
            "maskPerNode is missing: give the prefix length of a node's segment of 10.11.0.0/24, such as 26".to_owned(),
        ),
    ];
    for (keys, code, expected) in cases {
        assert_eq!(refused(keys), (code, expected));
    }
    for count in [0, -1, 2, 3, 1000, i64::MIN] {
        let (code, text) = refused(json!({"maskPerNode": null, "ipsPerNode": count}));
        assert!(code == 2 && text.contains(&format!("ipsPerNode {count}: it must be a power of two")), "{text}");
    }
    for value in [json!("22"), json!(22.5), json!({}), json!([null]), json!(["22"])] {
        let (code, text) = refused(json!({"maskPerNode": value}));
        assert!(code == 6 && text.contains("maskPerNode"), "{text}");
    }
}
