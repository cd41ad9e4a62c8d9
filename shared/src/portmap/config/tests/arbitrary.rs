use proptest::prelude::*;

use super::*;

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..70_000_u32).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[0-9]{0,5}[:/]?(tcp|udp6|sctp)?[:/]?[0-9]{0,6}".prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["::1", "0.0.0.0", "192.0.2.1", "tcp", "UDP"]).prop_map(Value::from),
    ];
    let key = prop_oneof!["hostPort", "ContainerPort", "protocol", "hostIP", "[a-z]{0,3}"];
    leaf.prop_recursive(3, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// What is nearly a list of entries.
fn entries() -> impl Strategy<Value = Value> {
    let port = prop_oneof![4 => (0..65_540_u32).prop_map(Value::from), 1 => json_value()];
    let word = prop::sample::select(vec!["", "tcp", "UDP", "icmp", "192.0.2.1", "::", "::ffff:0.0.0.0", "127.0.0.1"]);
    let entry = (port.clone(), port, word.clone(), word).prop_map(|(host, container, protocol, address)| {
        json!({"hostPort": host, "containerPort": container, "protocol": protocol, "hostIP": address})
    });
    prop::collection::vec(entry, 0..3).prop_map(Value::from)
}

proptest! {
    #[test]
    fn arbitrary_json_is_understood_or_refused(value in json_value(), list in entries()) {
        for keys in [
            json!({"runtimeConfig": {"portMappings": list}}),
            json!({"runtimeConfig": {"portMappings": value}}),
            json!({"runtimeConfig": {"portMappings": list}, "args": {"cni": {"osvc.expose": value}}}),
            json!({"runtimeConfig": {"portMappings": list}, "allowFrom": value}),
            json!({"backend": value}),
            json!({"conditionsV4": value, "externalSetMarkChain": value}),
        ] {
            match config(&keys) {
                Ok(config) => {
                    prop_assert_eq!(config.mappings.len(), config.entries.len());
                    prop_assert!(config.mappings.iter().all(|one| one.host_port != 0 && one.container_port != 0));
                }
                Err(error) => prop_assert!(!error.to_string().chars().any(char::is_control)),
            }
        }
    }
}
