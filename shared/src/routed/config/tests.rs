use std::fs;

use serde_json::json;

use super::*;

mod arbitrary;
mod nodes;
mod sizes;

/// The three nodes of the design's example; the second has its segment fixed.
pub(crate) const EXAMPLE: &str = r#"{
    "type": "osvc-routed", "network": "10.11.0.0/16", "maskPerNode": 22, "tunnel": "auto", "tunnelMode": "ipip",
    "node": "node1", "nodes": [
        {"name": "node1", "addr": "192.168.1.1"},
        {"name": "node2", "addr": "192.168.1.2", "subnet": "10.11.4.0/22"}
    ]}"#;

/// Places with nothing in them.
fn nowhere() -> Places {
    let nowhere = PathBuf::from("/nonexistent");
    Places { node: nowhere.clone(), host_name: nowhere.clone(), tables: vec![nowhere] }
}

/// A configuration as the plugin reads it.
pub(crate) fn config(value: &Value) -> Result<RoutedConfig, Error> {
    RoutedConfig::new(&"net".parse().unwrap(), &json::from_value(value)?, &json::from_value(value)?, &nowhere())
}

/// The example with these keys instead of its own; `null` removes one.
fn example_with(keys: Value) -> Result<RoutedConfig, Error> {
    let mut value: Value = serde_json::from_str(EXAMPLE).unwrap();
    value.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    config(&value)
}

fn refused(keys: Value) -> (u32, String) {
    let text = keys.to_string();
    match example_with(keys) {
        Err(error) => (error.code() as u32, error.to_string()),
        Ok(config) => panic!("{text} became {config:?}"),
    }
}

fn nodes_refused(nodes: Value) -> (u32, String) {
    refused(json!({"nodes": nodes}))
}

const KEY: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

#[test]
fn the_example_of_the_design() {
    let config = example_with(json!({})).unwrap();
    assert_eq!(config.networks, ["10.11.0.0/16".parse().unwrap()]);
    assert_eq!((config.prefixes.as_slice(), config.tunnel, config.mode), (&[22][..], Policy::Auto, Mode::Ipip));
    assert_eq!((config.tables.as_slice(), config.port, config.here), (&[254][..], None, 0));
    assert_eq!(config.this_node().addresses, [Address::Ip("192.168.1.1".parse().unwrap())]);
    assert_eq!(config.peers().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["node2"]);
    assert_eq!(config.nodes[1].subnets, ["10.11.4.0/22".parse().unwrap()]);
    let bridge = config.bridge_with(vec!["10.11.0.0/22".parse().unwrap()]);
    assert_eq!(bridge.addresses, Addresses::Subnets(vec!["10.11.0.0/22".parse().unwrap()]));
    assert!(bridge.is_gateway && bridge.is_default_gateway && bridge.masquerade_v4 && bridge.hairpin);
}

#[test]
fn everything_at_once_and_keys_in_any_case() {
    let config = config(&json!({
    "Network": ["10.11.0.0/16", "fd77::/48"], "MASKPERNODE": [22, 64], "ipsPerNode": "not read", "tunnel": "always",
    "TunnelMode": "wireguard", "port": 51900, "tables": [100, "main"], "node": "C", "mtu": 1400, "public": true,
    "hairpinMode": false, "forwardAccept": "never", "isDefaultGateway": false, "bridge": "br7",
    "nodes": [
        {"name": "a", "addr": ["192.0.2.1", "2001:db8::1"], "subnet": ["fd77:0:0:8::/64", "10.11.8.0/22"]},
        {"name": "b.example", "Addr": "B7.example", "publicKey": KEY},
        {"name": "C", "subnet": "", "addr": null, "retired": false},
        {"name": "d", "retired": true, "addr": "192.0.2.1", "publicKey": KEY}
    ]}))
    .unwrap();
    assert_eq!((config.tunnel, config.mode, config.port), (Policy::Always, Mode::Wireguard, Some(51900)));
    assert_eq!((&config.prefixes[..], &config.tables[..], config.here), (&[22, 64][..], &[254, 100][..], 2));
    assert_eq!(config.nodes[0].subnet_in(&config.networks[1]), Some("fd77:0:0:8::/64".parse().unwrap()));
    assert_eq!(config.nodes[1].addresses, [Address::Name("b7.example".to_owned())]);
    assert_eq!(config.nodes[1].public_key, key::parse(KEY));
    assert_eq!(config.nodes[2].addresses, [Address::Name("c".to_owned())], "its name");
    assert!(config.nodes[3].retired && config.peers_names() == ["a", "b.example"]);
    assert_eq!((config.bridge.mtu, config.bridge.bridge.name.as_str()), (Some(1400), "br7"));
    assert!(!config.bridge.masquerade_v4 && !config.bridge.hairpin && !config.bridge.is_default_gateway);
}

impl RoutedConfig {
    fn peers_names(&self) -> Vec<&str> {
        self.peers().map(|node| node.name.as_str()).collect()
    }
}

#[test]
fn tunnels_and_modes() {
    for (mode, expected) in [("ipip", Mode::Ipip), ("ip6ip6", Mode::Ipip), ("gre", Mode::Gre), ("vxlan", Mode::Vxlan)] {
        let config = example_with(json!({"tunnelMode": mode, "tunnel": "never"})).unwrap();
        assert_eq!((config.tunnel, config.mode), (Policy::Never, expected));
    }
    let wireguard = |tunnel: Value| example_with(json!({"tunnelMode": "wireguard", "tunnel": tunnel}));
    assert_eq!(wireguard(Value::Null).unwrap().tunnel, Policy::Always, "auto means always");
    let never =
        (7, "tunnel \"never\" excludes tunnelMode \"wireguard\", which sends nothing in clear: leave out one of them");
    assert_eq!(refused(json!({"tunnelMode": "wireguard", "tunnel": "never"})), (never.0, never.1.to_owned()));
    let cases = [
        (json!({"tunnel": "sometimes"}), r#"tunnel "sometimes": it must be "auto", "always" or "never""#),
        (
            json!({"tunnelMode": "IPIP"}),
            r#"tunnelMode "IPIP": it must be "ipip", "ip6ip6", "gre", "vxlan" or "wireguard""#,
        ),
        (json!({"port": 0}), "port 0: it must be between 1 and 65535"),
        (json!({"port": 65536}), "port 65536: it must be between 1 and 65535"),
        (
            json!({"port": 4789, "tunnelMode": "vxlan"}),
            "port 4789: other programs use vxlan at this port: choose another one, or leave it out",
        ),
    ];
    for (keys, expected) in cases {
        assert_eq!(refused(keys), (2, format!("cannot honour {expected}")));
    }
    assert_eq!(example_with(json!({"port": 4789})).unwrap().port, Some(4789), "of no use to ipip, and no harm");
}

#[test]
fn networks() {
    let cases = [
        (json!(null), 7, "`network` is missing"),
        (json!("10.11.0.1/16"), 2, r#"network "10.11.0.1/16": it has host bits set, the network is 10.11.0.0/16"#),
        (json!([]), 2, "network []: it is not a subnet"),
        (json!(["10.11.0.0/16", "10.12.0.0/16"]), 7, "networks 10.11.0.0/16 and 10.12.0.0/16 are of one family"),
        (json!("::ffff:10.0.0.0/112"), 2, r#"network "::ffff:10.0.0.0/112": it is not a network: write it as an IPv4"#),
        (json!("10.11.0.0/31"), 2, r#"network "10.11.0.0/31": it has no room for a gateway and a container"#),
        (json!(5), 6, "network"),
    ];
    for (network, code, expected) in cases {
        let (got, text) = refused(json!({"network": network}));
        assert!(got == code && text.contains(expected), "{text}");
    }
}

#[test]
fn keys_of_a_bridge_are_checked_as_for_a_bridge() {
    let cases = [
        (json!({"isGateway": false}), 7, "a routed network needs its gateway"),
        (json!({"ipam": {"type": "host-local"}}), 7, "ipam.type is \"host-local\""),
        (json!({"public": true, "ipMasq": true}), 7, "public and ipMasq exclude each other"),
        (json!({"mtu": 1}), 2, "mtu 1"),
        (json!({"vlan": 5000}), 2, "vlan 5000: invalid VLAN ID"),
        (json!({"vlan": 7}), 2, "vlan 7: it is not for a routed network"),
        (json!({"vlanTrunk": [{"id": 7}]}), 2, "vlanTrunk \"{7}\": it is not for a routed network"),
        (json!({"bridge": "a/b"}), 2, "bridge \"a/b\""),
    ];
    for (keys, code, expected) in cases {
        let (got, text) = refused(keys);
        assert!(got == code && text.contains(expected), "{text}");
    }
}

#[test]
fn this_node_is_in_the_list() {
    let (code, text) = refused(json!({"node": "node9"}));
    assert!(code == 7 && text.starts_with("this node, node9 (`node`), is not one of `nodes` (node1, node2)"), "{text}");
    let (code, text) = nodes_refused(json!([{"name": "node1", "retired": true}]));
    assert!(code == 7 && text.starts_with("this node, node1, is \"retired\": true"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let places = Places { node: folder.path().join("node"), ..nowhere() };
    fs::write(&places.node, "node2\n").unwrap();
    let mut value: Value = serde_json::from_str(EXAMPLE).unwrap();
    value.as_object_mut().unwrap().remove("node");
    let read = |places| {
        let (low, bridge) = (json::from_value(&value).unwrap(), json::from_value(&value).unwrap());
        RoutedConfig::new(&"net".parse().unwrap(), &low, &bridge, places)
    };
    assert_eq!(read(&places).unwrap().here, 1);
    assert_eq!(read(&nowhere()).unwrap_err().code(), crate::Code::Io, "no host name");
    let host_name = fs::read_to_string(Places::default().host_name).unwrap();
    assert!(!host_name.trim().is_empty());
}

#[test]
fn a_name_of_60_characters_is_a_name() {
    let name = "n".repeat(60).parse().unwrap();
    let value: Value = serde_json::from_str(EXAMPLE).unwrap();
    let (low, bridge) = (json::from_value(&value).unwrap(), json::from_value(&value).unwrap());
    let config = RoutedConfig::new(&name, &low, &bridge, &nowhere()).unwrap();
    assert_eq!(config.bridge.bridge.name.len(), 15);
}
