use proptest::prelude::*;

use super::*;

fn json_value() -> impl Strategy<Value = Value> {
    let words =
        ["10.11.0.0/16", "fd77::/48", "node1", "192.0.2.1", "::1", "auto", "gre", "main", "10.11.4.0/22", KEY, ""];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..130_u32).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,90}".prop_map(Value::from),
        "[0-9a-f:./]{0,16}".prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    let key = prop_oneof!["name", "addr", "Subnet", "retired", "publicKey", "[a-z]{0,3}"];
    leaf.prop_recursive(3, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_json_is_understood_or_refused(
        value in json_value(),
        key in prop::sample::select(vec![
            "network", "maskPerNode", "ipsPerNode", "tunnel", "tunnelMode", "port", "tables", "nodes", "node", "ipam",
        ]),
        in_node in prop::sample::select(vec!["name", "addr", "subnet", "retired", "publicKey"]),
    ) {
        for keys in [json!({key: value}), json!({"nodes": [{"name": "node1"}, {"name": "node2", in_node: value}]})] {
            match example_with(keys) {
                Ok(config) => {
                    prop_assert_eq!(config.networks.len(), config.prefixes.len());
                    prop_assert!(!config.this_node().retired && config.tables[0] == MAIN);
                }
                // What is a bridge's is told as there.
                Err(Error::Bridge(_)) => {}
                Err(error) => prop_assert!(!error.to_string().chars().any(char::is_control), "{}", error),
            }
        }
    }
}
