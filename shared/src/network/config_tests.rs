use super::*;
use crate::Code;

fn parse(json: &str) -> Result<BridgeConfig, Error> {
    let low: Low = json::from_value(&serde_json::from_str(json).unwrap())?;
    BridgeConfig::new(&"net".parse().unwrap(), &low)
}

fn refused(json: &str) -> (Code, String) {
    let error = parse(json).unwrap_err();
    (error.code(), error.to_string())
}

#[test]
fn one_line_is_enough() {
    let config = parse(r#"{"network": "10.22.0.0/16"}"#).unwrap();
    assert_eq!(config.bridge.name, "obr_net");
    assert_eq!(config.addresses, Addresses::Subnets(vec!["10.22.0.0/16".parse().unwrap()]));
    assert!(config.is_gateway && config.is_default_gateway && config.masquerade_v4 && config.hairpin && config.up);
    assert_eq!(config.forward_accept, ForwardAccept::Auto);
    assert_eq!((config.mtu, config.dns), (None, None));
}

#[test]
fn the_one_line_form_can_be_modified() {
    let config = parse(
        r#"{"network": ["10.22.0.0/16", "fd77::/64"], "isDefaultGateway": false, "public": true, "hairpinMode": false,
            "bridge": "br7", "mtu": 9000, "forwardAccept": "never", "enabledad": true, "ipam": {"type": "osvc-ipam"}}"#,
    )
    .unwrap();
    assert!(config.is_gateway && !config.is_default_gateway && !config.masquerade_v4 && !config.hairpin);
    assert_eq!((config.bridge.name.as_str(), config.mtu, config.detect_duplicates), ("br7", Some(9000), true));
    assert_eq!(config.forward_accept, ForwardAccept::Never);
    let plain = parse(r#"{"network": "10.22.0.0/16", "isGateway": false}"#).unwrap();
    assert!(!plain.is_gateway && !plain.is_default_gateway);
}

#[test]
fn b4_keys_of_the_reference_plugin_mean_the_same() {
    let config = parse(
        r#"{"bridge": "cni-podman0", "isGateway": true, "ipMasq": true, "ipMasqBackend": "iptables", "hairpinMode": true,
            "forceAddress": true, "mtu": 1400, "vlan": 0, "vlanTrunk": [], "preserveDefaultVlan": true, "promiscMode": false,
            "ipam": {"type": "host-local", "subnet": "10.88.0.0/16"}, "dns": {"domain": "a.b"}}"#,
    )
    .unwrap();
    assert_eq!(config.bridge.name, "cni-podman0");
    assert_eq!(config.addresses, Addresses::Plugin("host-local".to_owned()));
    assert!(config.is_gateway && !config.is_default_gateway && config.masquerade_v6 && config.force_address);
    assert_eq!(config.dns.unwrap().domain.as_deref(), Some("a.b"));
    let defaults = parse(r#"{"ipam": {"type": "host-local"}}"#).unwrap();
    assert_eq!(defaults.bridge.name, "cni0");
    assert!(!defaults.is_gateway && !defaults.masquerade_v4 && !defaults.hairpin && !defaults.force_address);
    assert!(parse(r#"{"isDefaultGateway": true, "ipam": {"type": "x"}}"#).unwrap().is_gateway);
}

#[test]
fn c22_keys_in_any_case() {
    let config = parse(r#"{"NETWORK": "10.22.0.0/16", "IsDefaultGateway": false, "IPMASQ": {"V4": false}}"#).unwrap();
    assert!(config.is_gateway && !config.is_default_gateway && !config.masquerade_v4 && config.masquerade_v6);
}

#[test]
fn br9_layer_2_without_addresses() {
    for json in ["{}", r#"{"ipam": {}}"#, r#"{"ipam": {"type": ""}}"#, r#"{"ipam": null, "bridge": ""}"#] {
        let config = parse(json).unwrap();
        assert_eq!((config.addresses, config.bridge.name.as_str()), (Addresses::None, "obr_net"), "{json}");
        assert!(!config.is_gateway && !config.masquerade_v4);
    }
    let as_reference =
        parse(r#"{"ipam": {}, "isGateway": true, "ipMasq": true, "disableContainerInterface": true}"#).unwrap();
    assert!(!as_reference.is_gateway && !as_reference.masquerade_v4 && !as_reference.up);
    assert_eq!(
        refused(r#"{"isGateway": true}"#),
        (Code::InvalidConfig, "isGateway needs addresses: give `network`, or `ipam` with a `type`".to_owned())
    );
    assert!(refused(r#"{"ipMasq": true}"#).1.starts_with("ipMasq needs addresses"));
}

#[test]
fn e51_ip_masq_for_each_family() {
    let masq = |json: &str| {
        let config = parse(json).unwrap();
        (config.masquerade_v4, config.masquerade_v6)
    };
    assert_eq!(masq(r#"{"network": "10.22.0.0/16", "ipMasq": {"v6": false}}"#), (true, false));
    assert_eq!(masq(r#"{"ipam": {"type": "x"}, "ipMasq": {"v4": true}}"#), (true, false));
    assert_eq!(masq(r#"{"network": "10.22.0.0/16", "ipMasq": false}"#), (false, false));
    let (code, text) = refused(r#"{"network": "10.22.0.0/16", "ipMasq": {"v4": "yes"}}"#);
    assert!(code == Code::Decode && text.contains("ipMasq.v4"), "{text}");
    let (code, text) = refused(r#"{"network": "10.22.0.0/16", "ipMasq": {"v5": true}}"#);
    assert!(code == Code::UnsupportedField && text.contains(r#"ipMasq {"v5":true}"#), "{text}");
    assert_eq!(refused(r#"{"network": "10.22.0.0/16", "public": true, "ipMasq": true}"#).0, Code::InvalidConfig);
}

#[test]
fn what_cannot_be_honoured_is_refused_by_key_and_value() {
    let cases = [
        (r#""vlan": 5000"#, "vlan 5000: invalid VLAN ID 5000 (must be between 0 and 4094)"),
        (r#""vlan": -100"#, "vlan -100: invalid VLAN ID -100 (must be between 0 and 4094)"),
        (r#""vlanTrunk": [{"id": 0}]"#, r#"vlanTrunk {"id":0}: incorrect trunk id parameter, ids are 1 to 4094"#),
        (r#""mtu": -1"#, "mtu -1: it must be between 68 and 65535"),
        (r#""mtu": 70000"#, "mtu 70000: it must be between 68 and 65535"),
        (r#""mtu": 1000"#, "mtu 1000: it must be 1280 or more for IPv6"),
        (r#""forwardAccept": "always""#, r#"forwardAccept "always": it must be "auto" or "never""#),
        (r#""bridge": "a-name-of-16-chr""#, r#"bridge "a-name-of-16-chr": interface name is too long"#),
        (r#""bridge": "a/b""#, r#"bridge "a/b": interface name contains / or : or whitespace characters"#),
    ];
    for (key, expected) in cases {
        let (code, text) = refused(&format!(r#"{{"network": ["10.22.0.0/16", "fd77::/64"], {key}}}"#));
        assert_eq!((code, text), (Code::UnsupportedField, format!("cannot honour {expected}")));
    }
}

#[test]
fn a_network_is_a_subnet_or_a_list_of_them() {
    let cases = [
        (r#""10.22.0.1/16""#, r#"network "10.22.0.1/16": it has host bits set, the network is 10.22.0.0/16"#),
        (r#""10.22.0.0""#, r#"network "10.22.0.0": it is not a subnet such as 10.22.0.0/16"#),
        (r#""banana""#, r#"network "banana": it is not a subnet such as 10.22.0.0/16"#),
        ("[]", "network []: it is not a subnet"),
        (r#"["10.22.0.0/16", "10.22.4.0/24"]"#, r#"network "10.22.4.0/24": it overlaps 10.22.0.0/16"#),
        (r#""0.0.0.0/0""#, r#"network "0.0.0.0/0": it is not a network that containers can have addresses of"#),
        (r#""224.0.0.0/8""#, r#"network "224.0.0.0/8": it is not a network that containers can have addresses of"#),
    ];
    for (value, expected) in cases {
        let (code, text) = refused(&format!(r#"{{"network": {value}}}"#));
        assert_eq!((code, text), (Code::UnsupportedField, format!("cannot honour {expected}")));
    }
    let (code, text) = refused(r#"{"network": ["10.22.0.0/16", 5]}"#);
    assert!(code == Code::Decode && text.contains("network[1]"), "{text}");
    assert_eq!(refused(r#"{"network": 5}"#).0, Code::Decode);
}

#[test]
fn br22_contradictions() {
    let cases = [
        (
            r#"{"network": "10.22.0.0/16", "disableContainerInterface": true}"#,
            "cannot use IPAM when DisableContainerInterface flag is set: leave out `disableContainerInterface: true`, or `network` and `ipam`",
        ),
        (
            r#"{"hairpinMode": true, "promiscMode": true}"#,
            "cannot set hairpin mode and promiscuous mode at the same time: leave out `hairpinMode: true` or `promiscMode: true`",
        ),
        (
            r#"{"network": "10.22.0.0/16", "ipam": {"subnet": "10.23.0.0/16"}}"#,
            "`network` and ipam.subnet both say which addresses the network has: leave out one of them",
        ),
        (
            r#"{"network": "10.22.0.0/16", "ipam": {"type": "host-local"}}"#,
            "`network` is for osvc-ipam, and ipam.type is \"host-local\": leave out one of them",
        ),
    ];
    for (json, expected) in cases {
        assert_eq!(refused(json), (Code::InvalidConfig, expected.to_owned()));
    }
}

#[test]
fn b4_keys_of_the_ports_are_off_by_default_and_taken_up() {
    let plain = parse(r#"{"network": "10.22.0.0/16"}"#).unwrap();
    assert!(plain.hairpin && plain.up && !plain.vlans.filter() && !plain.promiscuous && !plain.port_isolation);
    let all = parse(
        r#"{"network": "10.22.0.0/16", "vlan": 100, "vlanTrunk": [{"id": 101}], "preserveDefaultVlan": true,
            "promiscMode": true, "portIsolation": true, "ipMasqBackend": "whatever"}"#,
    )
    .unwrap();
    assert!(!all.hairpin && all.promiscuous && all.port_isolation && all.vlans.filter() && all.vlans.keep_default);
    assert_eq!((all.vlans.access, all.masquerade_backend.as_deref()), (Some(100), Some("whatever")));
    let kept = parse(r#"{"network": "10.22.0.0/16", "preserveDefaultVlan": true}"#).unwrap();
    assert!(!kept.vlans.filter(), "without a VLAN it means nothing");
    let wanted = |json: &str| {
        let gateway = ("10.22.0.0/16".parse().unwrap(), "10.22.0.1".parse().ok());
        crate::network::Wanted::new(&parse(json).unwrap(), [gateway], None).vlan_names()
    };
    let (l3, l2) = (r#"{"bridge": "br7", "vlan": 7, "isGateway": true, "ipam": {"type": "x"}}"#, r#"{"vlan": 7}"#);
    assert_eq!(wanted(l3).map(|names| names.device).as_deref(), Some("br7.7"));
    assert_eq!((wanted(l2), wanted(r#"{"isGateway": true, "ipam": {"type": "x"}}"#)), (None, None));
}

#[test]
fn br17_a_requested_mac_is_taken_in_order() {
    let mac = |json: &str, argument: Option<&str>| {
        let low: Low = json::from_value(&serde_json::from_str(json).unwrap()).unwrap();
        low.mac(argument).map(|mac| mac.map(|mac| mac.to_string())).map_err(|error| (error.code(), error.to_string()))
    };
    let (a, b, c) = ("02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c");
    let all = format!(r#"{{"args": {{"cni": {{"mac": "{b}"}}}}, "RuntimeConfig": {{"mac": "{c}"}}}}"#);
    assert_eq!(mac(&all, Some(a)), Ok(Some(c.to_owned())));
    assert_eq!(mac(&format!(r#"{{"args": {{"cni": {{"mac": "{b}"}}}}}}"#), Some(a)), Ok(Some(b.to_owned())));
    assert_eq!(mac("{}", Some(a)), Ok(Some(a.to_owned())));
    assert_eq!(mac("{}", None), Ok(None));
    for bad in ["zz", "01:00:00:00:00:01", "00:00:00:00:00:00", "02:00:00:00:00:00:00:01"] {
        let (code, text) = mac("{}", Some(bad)).unwrap_err();
        assert!(code == Code::UnsupportedField && text.contains("MAC") && text.contains(bad), "{text}");
    }
}
