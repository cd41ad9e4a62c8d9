use serde_json::{Value, json};

use super::*;
use crate::Code;
use crate::protocol::{CniArgs, Command, Config, PluginPath, SpecVersion};
use crate::{Attachment, Host};

mod arbitrary;
mod expose;
mod options;
mod target;

/// The call of a plugin entry with these keys.
fn call(keys: &Value) -> Call {
    Call {
        command: Command::Add,
        version: SpecVersion::V100,
        network: "net".parse().unwrap(),
        netns: Some("/run/netns/x".into()),
        args: CniArgs::default(),
        path: PluginPath::new("/nowhere"),
        config: Config::parse(keys.to_string().into_bytes()).unwrap(),
        host: Host { state: "/state".into(), run: "/run".into(), boot: "boot".into() },
    }
}

fn attachment() -> Attachment {
    Attachment { network: "net".parse().unwrap(), container: "c1".parse().unwrap(), ifname: "eth0".parse().unwrap() }
}

fn config(keys: &Value) -> Result<PortmapConfig, ConfigError> {
    PortmapConfig::from_call(&call(keys))
}

fn ports(list: Value) -> Result<PortmapConfig, ConfigError> {
    config(&json!({"runtimeConfig": {"portMappings": list}}))
}

fn shown(config: &PortmapConfig) -> Vec<String> {
    config.mappings.iter().map(ToString::to_string).collect()
}

fn refused<T: std::fmt::Debug>(result: Result<T, ConfigError>) -> (Code, String) {
    let error = result.unwrap_err();
    (error.code(), error.to_string())
}

#[test]
fn pm1_what_runtimes_send_is_understood() {
    let config = ports(json!([
        {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
        {"hostPort": 8081, "containerPort": 81, "protocol": "udp", "hostIP": ""},
        {"HostPort": 8082, "ContainerPort": 82, "Protocol": "TCP", "HostIP": "192.0.2.1"},
        {"hostport": 65535, "CONTAINERPORT": 1, "protocol": "Sctp", "hostip": "2001:db8::1"},
        {"hostPort": 8083, "containerPort": 83},
        {"hostPort": 8084, "containerPort": 84, "protocol": "", "hostIP": null},
        {"hostPort": 8085, "containerPort": 85, "hostIP": "::ffff:192.0.2.1", "range": 1},
        {"hostPort": 8086, "containerPort": 86, "hostIP": "0.0.0.0"},
        {"hostPort": 8087, "containerPort": 87, "hostIP": "::"},
        {"hostPort": 8088, "containerPort": 88, "hostIP": "127.0.0.1"},
    ]))
    .unwrap();
    let expected = [
        "8080->80/tcp",
        "8081->81/udp",
        "192.0.2.1:8082->82/tcp",
        "[2001:db8::1]:65535->1/sctp",
        "8083->83/tcp",
        "8084->84/tcp",
        "192.0.2.1:8085->85/tcp",
        "0.0.0.0:8086->86/tcp",
        "[::]:8087->87/tcp",
        "127.0.0.1:8088->88/tcp",
    ];
    assert_eq!(shown(&config), expected);
    assert_eq!(config.entries.len(), config.mappings.len());
    assert_eq!(config.entries[2], "portMappings[2] (192.0.2.1:8082->82/tcp)");
    assert_eq!(config.options, Options { snat: true, masq_all: false, allow_from: vec![] });
}

#[test]
fn pm2_no_mappings_are_no_error() {
    for keys in [
        json!({}),
        json!({"runtimeConfig": null, "args": null}),
        json!({"runtimeConfig": {}, "args": {}}),
        json!({"runtimeConfig": {"portMappings": null}, "args": {"cni": null}}),
        json!({"runtimeConfig": {"portMappings": []}, "args": {"cni": {"osvc.expose": null}}}),
        json!({"runtimeConfig": {"portMappings": ""}, "args": {"cni": {"osvc.expose": ""}}}),
        json!({"args": {"cni": {"osvc.expose": []}, "other": 5}, "runtimeConfig": {"ips": ["10.0.0.1"]}}),
    ] {
        let config = config(&keys).unwrap();
        assert!(config.mappings.is_empty() && config.entries.is_empty(), "{keys}");
    }
}

#[test]
fn pm3_ports_are_whole_numbers() {
    for bad in [json!(0), json!(65536), json!(-1), json!(70000), json!("80"), json!(1.5), json!(80.0), json!(1e300)] {
        let end = format!("{bad}: a port is a whole number from 1 to 65535");
        let good = json!({"hostPort": 1, "containerPort": 1});
        let host = ports(json!([good, {"hostPort": bad, "containerPort": 80}]));
        let expected = format!("portMappings[1] (hostPort {bad}): Invalid host port number: {end}");
        assert_eq!(refused(host), (Code::InvalidConfig, expected));
        let container = ports(json!([{"hostPort": 80, "containerPort": bad}]));
        let expected = format!("portMappings[0] (containerPort {bad}): Invalid container port number: {end}");
        assert_eq!(refused(container), (Code::InvalidConfig, expected));
    }
    for bad in [json!([80]), json!({"a": 1}), json!(true), json!(u64::MAX), json!(i64::MIN)] {
        assert_eq!(refused(ports(json!([{"hostPort": bad, "containerPort": 80}]))).0, Code::InvalidConfig, "{bad}");
    }
    for absent in [json!({"containerPort": 80}), json!({"hostPort": null, "containerPort": 80})] {
        let text = "portMappings[0] (no hostPort): Invalid host port number: 0: a port is a whole number";
        assert!(refused(ports(json!([absent]))).1.starts_with(text));
    }
}

#[test]
fn protocols_and_addresses_are_named_with_their_entry() {
    let entry = |protocol: &str, address: &str| {
        let good = json!({"hostPort": 1, "containerPort": 1});
        ports(json!([good, good, {"hostPort": 8080, "containerPort": 80, "protocol": protocol, "hostIP": address}]))
    };
    for bad in ["icmp", "tcp6", "tcp,udp", "6", " tcp", "tcp; flush ruleset", "tcp\n", "tcp\" }", "ťcp", "\u{0}"] {
        let expected = format!("portMappings[2] (protocol {}): the protocol must be tcp, udp or sctp", json!(bad));
        assert_eq!(refused(entry(bad, "")), (Code::InvalidConfig, expected));
    }
    let no_address = "hostIP is no IP address";
    let cases = [
        ("banana", no_address),
        ("1.2.3.4 drop", no_address),
        ("1.2.3.4; flush ruleset", no_address),
        ("1.2.3.4/32", no_address),
        ("1.2.3", no_address),
        ("01.2.3.4", no_address),
        ("[::1]", no_address),
        ("fe80::1%eth0", no_address),
        ("localhost", no_address),
        ("  ", no_address),
        ("224.0.0.1", "the address of a group"),
        ("::ffff:224.0.0.1", "the address of a group"),
        ("ff02::1", "the address of a group"),
        ("255.255.255.255", "the address of a group"),
        ("::1", "::1 cannot be published by translation"),
        ("0:0:0:0:0:0:0:1", "::1 cannot be published by translation"),
    ];
    for (bad, expected) in cases {
        let (code, text) = refused(entry("tcp", bad));
        assert_eq!(code, Code::InvalidConfig);
        let entry = format!("portMappings[2] (hostIP {}): ", json!(bad));
        assert!(text.starts_with(&entry) && text.contains(expected), "{text}");
    }
    // Not on this host, as far as anybody knows.
    assert!(entry("tcp", "203.0.113.77").is_ok());
}

#[test]
fn long_values_are_cut_in_messages() {
    let (_, text) = refused(ports(json!([{"hostPort": "é".repeat(1000), "containerPort": 80}])));
    assert!(text.chars().count() < 300 && text.contains('…'), "{text}");
}

#[test]
fn other_types_are_decoding_errors() {
    for (keys, expected) in [
        (json!({"runtimeConfig": {"portMappings": {}}}), "runtimeConfig.portMappings: invalid type"),
        (json!({"runtimeConfig": {"portMappings": [5]}}), "runtimeConfig.portMappings[0]: invalid type"),
        (json!({"runtimeConfig": {"portMappings": [null]}}), "runtimeConfig.portMappings[0]: invalid type"),
        (
            json!({"runtimeConfig": {"portMappings": [{"hostPort": 1, "containerPort": 1, "protocol": 6}]}}),
            "runtimeConfig.portMappings[0].protocol: invalid type: integer `6`",
        ),
        (
            json!({"runtimeConfig": {"portMappings": [{"hostPort": 1, "containerPort": 1, "hostIP": []}]}}),
            "runtimeConfig.portMappings[0].hostIP: invalid type",
        ),
        (json!({"runtimeConfig": 5}), "runtimeConfig: invalid type"),
        (json!({"args": {"cni": {"osvc.expose": 80}}}), "args.cni[\"osvc.expose\"]: invalid type"),
        (json!({"args": {"cni": {"osvc.expose": ["80:80/tcp", 5]}}}), "args.cni[\"osvc.expose\"][1]: invalid type"),
        (json!({"args": {"cni": ["x"]}}), "args.cni: invalid type"),
        (json!({"snat": "yes"}), "snat: invalid type: string \"yes\", expected a boolean"),
    ] {
        let (code, text) = refused(config(&keys));
        assert_eq!(code, Code::Decode);
        assert!(text.starts_with(&format!("error unmarshall network config: {expected}")), "{text}");
    }
}

#[test]
fn duplicates_are_one_and_contradictions_name_both() {
    let one = json!({"hostPort": 8080, "containerPort": 80});
    let config = ports(json!([
        one,
        {"hostPort": 8080, "containerPort": 80, "protocol": "udp"},
        {"HostPort": 8080, "ContainerPort": 80, "Protocol": "TCP", "HostIP": ""},
        {"hostPort": 8080, "containerPort": 81, "hostIP": "192.0.2.1"},
    ]));
    let config = config.unwrap();
    assert_eq!(shown(&config), ["8080->80/tcp", "8080->80/udp", "192.0.2.1:8080->81/tcp"], "the specific one wins");
    assert_eq!(config.entries[2], "portMappings[3] (192.0.2.1:8080->81/tcp)");

    for other in [json!(null), json!("0.0.0.0"), json!("::"), json!("::ffff:0.0.0.0")] {
        let two = json!({"hostPort": 8080, "containerPort": 81, "hostIP": other});
        for list in [json!([one, two]), json!([two, one])] {
            let (code, text) = refused(ports(list));
            assert_eq!(code, Code::InvalidConfig);
            assert!(text.starts_with("portMappings[1] ("), "{text}");
            assert!(text.contains("): it publishes the same host port as portMappings[0] ("), "{text}");
        }
    }
    let both = json!([
        {"hostPort": 8080, "containerPort": 80, "hostIP": "0.0.0.0"},
        {"hostPort": 8080, "containerPort": 81, "hostIP": "::"},
        {"hostPort": 8080, "containerPort": 80, "hostIP": "0.0.0.0"},
    ]);
    assert_eq!(ports(both).unwrap().mappings.len(), 2, "each family may lead elsewhere");
}

#[test]
fn podman_sends_a_range_port_by_port() {
    let list: Vec<Value> =
        (9000..9100).map(|port| json!({"hostPort": port, "containerPort": port, "protocol": "tcp"})).collect();
    let config = ports(list.into()).unwrap();
    assert_eq!(config.mappings.len(), 100);
    assert_eq!(config.entries[99], "portMappings[99] (9099->9099/tcp)");
}

#[test]
fn ten_thousand_entries_are_no_work() {
    let list: Vec<Value> = (0..10_000).map(|n| json!({"hostPort": 1 + n, "containerPort": 10_000 - n})).collect();
    let twice: Vec<Value> = list.iter().chain(&list).cloned().collect();
    let start = std::time::Instant::now();
    assert_eq!(ports(twice.into()).unwrap().mappings.len(), 10_000);
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}
