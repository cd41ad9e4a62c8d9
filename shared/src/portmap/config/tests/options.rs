use super::*;

fn options(keys: Value) -> Result<Options, ConfigError> {
    Options::from_call(&call(&keys))
}

#[test]
fn keys_of_the_reference() {
    let options = |keys| options(keys).unwrap();
    assert_eq!(options(json!({})), Options { snat: true, masq_all: false, allow_from: vec![] });
    assert!(!options(json!({"SNAT": false, "masqAll": true})).masq_all, "only with snat");
    assert!(!options(json!({"snat": false})).snat);
    assert!(options(json!({"masqall": true})).masq_all);
    let accepted = json!({
        "backend": "nftables", "markMasqBit": 31, "externalSetMarkChain": "", "conditionsV4": [],
        "conditionsV6": null, "allowFrom": null, "snat": null
    });
    assert_eq!(options(accepted), options(json!({"backend": "", "markMasqBit": 0})));
}

#[test]
fn pm7_pm8_what_cannot_be_honoured_is_refused_by_name() {
    for (keys, code, expected) in [
        (json!({"backend": "iptables"}), Code::UnsupportedField, "backend \"iptables\" is not supported: "),
        (json!({"backend": "foo"}), Code::InvalidConfig, "unrecognized backend \"foo\""),
        (json!({"backend": "nft; drop\n"}), Code::InvalidConfig, "unrecognized backend \"nft; drop\\n\""),
        (json!({"markMasqBit": 32}), Code::InvalidConfig, "MasqMarkBit must be between 0 and 31"),
        (json!({"markMasqBit": -1}), Code::InvalidConfig, "MasqMarkBit must be between 0 and 31"),
        (
            json!({"externalSetMarkChain": "KUBE-MARK-MASQ", "markMasqBit": 5}),
            Code::UnsupportedField,
            "externalSetMarkChain \"KUBE-MARK-MASQ\" is not supported: ",
        ),
        (
            json!({"conditionsV4": ["-s", "1.2.3.4"]}),
            Code::UnsupportedField,
            "conditionsV4 [\"-s\",\"1.2.3.4\"] is not supported: rules are not made of words here; allowFrom",
        ),
        (json!({"conditionsV6": [""]}), Code::UnsupportedField, "conditionsV6 [\"\"] is not supported: "),
        (json!({"snat": 1}), Code::Decode, "error unmarshall network config: snat: "),
        (json!({"masqAll": "true"}), Code::Decode, "error unmarshall network config: masqAll: "),
        (json!({"markMasqBit": "13"}), Code::Decode, "error unmarshall network config: markMasqBit: "),
        (json!({"backend": ["nftables"]}), Code::Decode, "error unmarshall network config: backend: "),
        (json!({"conditionsV4": "-s"}), Code::Decode, "error unmarshall network config: conditionsV4: "),
        (json!({"allowFrom": "10.0.0.0/8"}), Code::Decode, "error unmarshall network config: allowFrom: "),
        (json!({"allowFrom": [null]}), Code::Decode, "error unmarshall network config: allowFrom[0]: "),
    ] {
        let (found, text) = refused(options(keys.clone()));
        assert!(found == code && text.starts_with(expected), "{text}");
        assert_eq!(refused(config(&keys)), (found, text), "the ports do not matter");
    }
}

#[test]
fn clients_are_networks_as_few_as_can_be() {
    let allow = |list: Value| {
        let networks = options(json!({"allowFrom": list})).unwrap().allow_from;
        networks.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(allow(json!(["192.0.2.7/24", " 10.0.0.1 ", "192.0.2.9"])), ["10.0.0.1/32", "192.0.2.0/24"]);
    assert_eq!(allow(json!(["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"])), ["0.0.0.0/0", "::/0"]);
    assert_eq!(allow(json!(["255.255.255.255", "255.255.255.254"])), ["255.255.255.254/31"]);
    assert_eq!(allow(json!(["2001:db8::5/64", "fe80::1"])), ["2001:db8::/64", "fe80::1/128"]);
    assert_eq!(allow(json!(["::ffff:10.1.2.3", "::ffff:10.2.0.1/112"])), ["10.1.2.3/32", "10.2.0.0/16"]);
}

#[test]
fn what_is_no_client_is_named() {
    let bad = ["", "0.0.0.0/0 }", "10.0.0.0/33", "::/129", "10.0.0.0-10.0.0.9", "banana", "10.0.0.0/8 drop", "/8"];
    for text in bad {
        let expected =
            format!("allowFrom[1] ({}): neither an IP address nor a network such as 192.0.2.0/24", json!(text));
        assert_eq!(refused(options(json!({"allowFrom": ["10.0.0.1", text]}))), (Code::InvalidConfig, expected));
    }
    assert_eq!(refused(options(json!({"allowFrom": []}))).0, Code::InvalidConfig, "nobody, or everybody?");
}

#[test]
fn broken_ports_do_not_matter_to_the_options() {
    for ports in [json!(5), json!([{"hostPort": 0}]), json!([{"hostPort": 1, "containerPort": 1, "protocol": "x"}])] {
        let keys = json!({"runtimeConfig": {"portMappings": ports}, "args": 5});
        assert!(options(keys.clone()).is_ok());
        assert!(config(&keys).is_err());
    }
}

#[test]
fn localhost_needs_snat() {
    let localhost = |snat| {
        let entry = json!({"hostPort": 8080, "containerPort": 80, "hostIP": "127.1.2.3"});
        config(&json!({"snat": snat, "runtimeConfig": {"portMappings": [entry]}}))
    };
    assert!(localhost(true).is_ok());
    let (code, text) = refused(localhost(false));
    assert_eq!(code, Code::InvalidConfig);
    assert!(text.starts_with("portMappings[0] (127.1.2.3:8080->80/tcp): 127.0.0.0/8 cannot be published"), "{text}");
}
