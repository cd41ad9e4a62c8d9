use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::Code;
use crate::protocol::json;

fn check(config: Value) -> Result<IpamConfig, ConfigError> {
    check_with(config, SpecVersion::V100, &[])
}

fn check_with(config: Value, version: SpecVersion, subnets: &[&str]) -> Result<IpamConfig, ConfigError> {
    let low = json::from_value(&config).map_err(ConfigError::Part)?;
    let subnets: Vec<IpNet> = subnets.iter().map(|subnet| subnet.parse().unwrap()).collect();
    IpamConfig::check(&"mynet".parse().unwrap(), &host(), Some(version), &subnets, low)
}

fn host() -> Host {
    Host { state: "/state".into(), run: "/run".into(), boot: "boot".into() }
}

fn ipam(ipam: Value) -> Result<IpamConfig, ConfigError> {
    check(json!({"ipam": ipam}))
}

fn sets(config: &IpamConfig) -> Vec<String> {
    config.sets.iter().map(ToString::to_string).collect()
}

#[test]
fn cf1_the_flat_form_is_one_set() {
    let config = ipam(json!({
        "type": "osvc-ipam", "subnet": "10.1.2.0/24", "rangeStart": "10.1.2.9", "rangeEnd": "10.1.2.20",
        "gateway": "10.1.2.30"
    }))
    .unwrap();
    assert_eq!(sets(&config), ["10.1.2.9-10.1.2.20"]);
    assert_eq!(config.sets[0].0[0].gateway, Some("10.1.2.30".parse().unwrap()));
    assert!(config.status_when_full);
}

#[test]
fn cf2_hl1_ranges_with_defaults_and_routes() {
    let config = ipam(json!({
        "type": "host-local",
        "ranges": [
            [{"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.9", "rangeEnd": "10.1.2.20", "gateway": "10.1.2.30"},
             {"subnet": "10.1.4.0/24", "gateway": ""}],
            [{"subnet": "11.1.2.0/24", "rangeStart": null}],
            [{"subnet": "2001:db8:1::/64"}]
        ],
        "routes": [
            {"dst": "0.0.0.0/0"},
            {"dst": "192.168.0.1/16", "gw": "10.1.2.30"},
            {"dst": "::/0", "GW": "2001:db8:1::9"},
            {"dst": "1.0.0.0/8", "mtu": 1400, "advmss": 1300, "priority": 5, "table": 100, "scope": 253}
        ]
    }))
    .unwrap();
    assert_eq!(
        sets(&config),
        [
            "10.1.2.9-10.1.2.20,10.1.4.1-10.1.4.254",
            "11.1.2.1-11.1.2.254",
            "2001:db8:1::1-2001:db8:1:0:ffff:ffff:ffff:ffff"
        ]
    );
    assert_eq!(config.sets[0].0[1].gateway, Some("10.1.4.1".parse().unwrap()));
    assert_eq!(config.routes[0], Route::new("0.0.0.0/0".parse().unwrap(), None));
    assert_eq!(config.routes[1].dst.to_string(), "192.168.0.1/16", "as it is written");
    assert_eq!(config.routes[2].gw, Some("2001:db8:1::9".parse().unwrap()));
    assert_eq!(
        serde_json::to_value(&config.routes[3]).unwrap(),
        json!({"dst": "1.0.0.0/8", "mtu": 1400, "advmss": 1300, "priority": 5, "table": 100, "scope": 253})
    );
}

#[test]
fn cf3_runtime_ranges_then_the_flat_form_then_ranges() {
    let config = check(json!({
        "runtimeConfig": {"ipRanges": [[{"subnet": "12.1.3.0/24"}]], "unknown": 5, "ips": null},
        "ipam": {"type": "x", "subnet": "10.1.2.0/24", "ranges": [[{"subnet": "11.1.2.0/24"}]]}
    }))
    .unwrap();
    assert_eq!(sets(&config), ["12.1.3.1-12.1.3.254", "10.1.2.1-10.1.2.254", "11.1.2.1-11.1.2.254"]);
}

#[test]
fn c22_go_cni_sends_a_flat_list_with_its_own_spelling() {
    let config = check(json!({
        "runtimeConfig": {"ipRanges": [
            {"Subnet": "10.1.0.0/24", "RangeStart": "10.1.0.9", "RangeEnd": "", "Gateway": ""},
            {"Subnet": "fd00::/64"},
            {"Subnet": "10.2.0.0/24"}
        ]},
        "ipam": {"type": "x"}
    }))
    .unwrap();
    assert_eq!(
        sets(&config),
        ["10.1.0.9-10.1.0.254,10.2.0.1-10.2.0.254", "fd00::1-fd00::ffff:ffff:ffff:ffff"],
        "an address of each family"
    );
}

#[test]
fn cf7_to_cf11_sets_that_cannot_be_together() {
    let text = |config: Value, version| check_with(config, version, &[]).unwrap_err().to_string();
    let two = |a: &str, b: &str| json!({"ipam": {"ranges": [[{"subnet": a}], [{"subnet": b}]]}});
    let overlap = text(two("10.1.0.0/22", "10.1.2.0/24"), SpecVersion::V100);
    assert!(overlap.starts_with("range set 0 overlaps with 1: 10.1.0.1-10.1.3.254 and"), "{overlap}");
    let one = json!({"ipam": {"ranges": [[{"subnet": "10.1.0.0/22"}, {"subnet": "10.1.2.0/24"}]]}});
    assert_eq!(
        text(one, SpecVersion::V100),
        "invalid range set 0: subnets 10.1.0.1-10.1.3.254 and 10.1.2.1-10.1.2.254 overlap (ipam.ranges[0])"
    );
    let mixed = json!({"ipam": {"ranges": [[{"subnet": "10.1.0.0/22"}, {"subnet": "fd00::/64"}]]}});
    assert_eq!(text(mixed, SpecVersion::V100), "invalid range set 0: mixed address families (ipam.ranges[0])");
    for (version, name) in [(SpecVersion::V010, "0.1.0"), (SpecVersion::V020, "0.2.0")] {
        assert_eq!(
            text(two("10.1.0.0/24", "10.2.0.0/24"), version),
            format!("CNI version {name} does not support more than 1 address per family")
        );
        assert!(check_with(two("10.1.0.0/24", "fd00::/64"), version, &[]).is_ok());
    }
    assert!(check_with(two("10.1.0.0/24", "10.2.0.0/24"), SpecVersion::V030, &[]).is_ok());
}

#[test]
fn b1_7_errors_with_the_texts_that_people_search_for() {
    let range = |range: Value| json!({"ranges": [[{"subnet": "172.16.0.0/24"}], [range]]});
    let cases = [
        (json!({}), "no IP ranges specified"),
        (json!({"ranges": []}), "no IP ranges specified"),
        (json!({"gateway": "10.0.0.1"}), "no IP ranges specified"),
        (json!({"ranges": [[]]}), "invalid range set 0: empty range set (ipam.ranges[0])"),
        (range(json!({})), "invalid range set 1: no subnet (ipam.ranges[1][0])"),
        (
            range(json!({"subnet": "10.0.0.0/31"})),
            "invalid range set 1: Network 10.0.0.0/31 too small to allocate from",
        ),
        (
            json!({"subnet": "192.0.2.12/24"}),
            "invalid range set 0: Network has host bits set. For a subnet mask of length 24 the network address is \
             192.0.2.0 (ipam)",
        ),
        (
            range(json!({"subnet": "10.0.0.0/24", "rangeStart": "10.0.1.1"})),
            "invalid range set 1: RangeStart 10.0.1.1 not in network 10.0.0.0/24",
        ),
        (
            range(json!({"subnet": "10.0.0.0/24", "rangeEnd": "10.0.1.1"})),
            "invalid range set 1: RangeEnd 10.0.1.1 not in network 10.0.0.0/24",
        ),
        (range(json!({"subnet": "::ffff:10.0.0.0/120"})), "invalid range set 1: IPNet IP and Mask version mismatch"),
        (range(json!({"subnet": "banana"})), "invalid CIDR address: banana (ipam.ranges[1][0].subnet)"),
        (range(json!({"subnet": "10.0.0.0"})), "invalid CIDR address: 10.0.0.0 (ipam.ranges[1][0].subnet)"),
        (
            range(json!({"subnet": "10.0.0.0/24", "gateway": "banana"})),
            "invalid IP address banana (ipam.ranges[1][0].gateway)",
        ),
        (
            json!({"subnet": "10.0.0.0/24", "routes": [{"dst": "0.0.0.0/0"}, {"dst": "banana"}]}),
            "invalid CIDR address: banana (ipam.routes[1].dst)",
        ),
        (json!({"subnet": "10.0.0.0/24", "routes": [{}]}), "invalid CIDR address:  (ipam.routes[0].dst)"),
        (
            json!({"subnet": "10.0.0.0/24", "routes": [{"dst": "::/0", "gw": "x"}]}),
            "invalid IP address x (ipam.routes[0].gw)",
        ),
        (json!({"subnet": "10.0.0.0/24", "dataDir": "x"}), "ipam.dataDir x is not an absolute path"),
        (json!({"subnet": "10.0.0.0/24", "key": "${"}), "ipam.key \"${\": `${` at byte 0 has no closing brace"),
    ];
    for (config, expected) in cases {
        let error = ipam(config).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}\n{expected}");
        assert_eq!(error.code(), Code::InvalidConfig, "{error}");
    }
}

#[test]
fn wrong_types_are_code_6_with_their_place() {
    for (config, place) in [
        (json!({"ipam": {"subnet": 5}}), "ipam.subnet"),
        (json!({"ipam": {"ranges": [{"subnet": "10.0.0.0/24"}]}}), "ipam.ranges[0]"),
        (json!({"ipam": "host-local"}), "ipam"),
        (json!({"ipam": {"routes": [{"dst": "::/0", "mtu": -1}]}}), "ipam.routes[0].mtu"),
        (json!({"ipam": {}, "runtimeConfig": {"ipRanges": [5]}}), "runtimeConfig.ipRanges[0]"),
        (json!({"ipam": {}, "runtimeConfig": {"ipRanges": [[{"subnet": 5}]]}}), "runtimeConfig.ipRanges[0][0].subnet"),
    ] {
        let error = check(config).unwrap_err();
        assert!(error.to_string().contains(&format!("{place}: ")), "{error}");
        assert_eq!(error.code(), Code::Decode);
    }
}

#[test]
fn claims_are_read_and_refused_by_name_and_value() {
    let config = ipam(json!({"subnet": "10.0.0.0/24", "claims": {"prod": 20, "*": 0}})).unwrap();
    assert_eq!((config.claims.limit("prod"), config.claims.limit("test")), (Some(20), Some(0)));
    let error = ipam(json!({"subnet": "10.0.0.0/24", "claims": {"prod": "20"}})).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("ipam.claims.\"prod\" \"20\"")), (Code::InvalidConfig, true));
    for absent in [json!({}), json!(null), json!("")] {
        assert_eq!(ipam(json!({"subnet": "10.0.0.0/24", "claims": absent})).unwrap().claims, Claims::default());
    }
    assert_eq!(ipam(json!({"subnet": "10.0.0.0/24", "claims": ["prod"]})).unwrap_err().code(), Code::Decode);
}

#[test]
fn exclusions_of_all_forms() {
    let config = ipam(json!({
        "ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "fd00::/64"}]],
        "exclude": ["10.0.0.9", "10.0.0.64/26", "10.0.0.10 - 10.0.0.19", "fd00::/120", "192.0.2.0/24"]
    }))
    .unwrap();
    let spans = |index: usize| {
        let spans = config.sets[index].0[0].exclude.iter().map(|(first, last)| format!("{first}-{last}"));
        spans.collect::<Vec<_>>()
    };
    assert_eq!(spans(0), ["10.0.0.9-10.0.0.19", "10.0.0.64-10.0.0.127"]);
    assert_eq!(spans(1), ["fd00::1-fd00::ff"]);
    for (text, reason) in [
        ("banana", "no address"),
        ("10.0.0.0/99", "no address"),
        ("10.0.0.5/24", "host bits"),
        ("10.0.0.9-10.0.0.1", "behind"),
        ("10.0.0.9-fd00::1", "families"),
        ("10.0.0.1-10.0.0.2-10.0.0.3", "no address"),
        ("", "no address"),
    ] {
        let error = ipam(json!({"subnet": "10.0.0.0/24", "exclude": ["10.0.0.9", text]})).unwrap_err();
        assert_eq!(error.code(), Code::InvalidConfig);
        assert!(error.to_string().contains(reason) && error.to_string().ends_with("(ipam.exclude[1])"), "{error}");
    }
}

#[test]
fn b1_8_a_gateway_is_nobodys_in_all_pools_of_its_subnet() {
    let pool = |start: &str, end: &str, gateway: &str| json!({"subnet": "10.0.0.0/24", "rangeStart": start, "rangeEnd": end, "gateway": gateway});
    let (first, second) = (pool("10.0.0.10", "10.0.0.20", "10.0.0.1"), pool("10.0.0.30", "10.0.0.40", "10.0.0.15"));
    for ranges in [json!([[first], [second]]), json!([[first, second]])] {
        let config = ipam(json!({"ranges": ranges})).unwrap();
        let first = &config.sets[0].0[0];
        assert!(!first.allocatable("10.0.0.15".parse().unwrap()) && first.allocatable("10.0.0.16".parse().unwrap()));
    }
}

#[test]
fn folders_as_configured() {
    let of = |extra: Value| {
        let mut low = json!({"subnet": "10.0.0.0/24"});
        low.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let config = ipam(low).unwrap();
        [config.folder, config.host_local, config.opensvc].map(|path| path.to_str().unwrap().to_owned())
    };
    assert_eq!(of(json!({})), ["/state/ipam/mynet", "/var/lib/cni/networks/mynet", "/var/lib/opensvc/ipam/mynet"]);
    assert_eq!(of(json!({"dataDir": "/d"})), ["/d/osvc/mynet", "/d/mynet", "/var/lib/opensvc/ipam/mynet"]);
    assert_eq!(
        of(json!({"dataDir": "/d", "hostLocalDir": "/h", "opensvcIpamDir": "/o"})),
        ["/d/osvc/mynet", "/h", "/o"]
    );
}

#[test]
fn one_line_each_subnet_is_a_set() {
    let config = check_with(json!({}), SpecVersion::V100, &["10.22.0.0/16", "fd22::/64", "10.23.0.0/16"]).unwrap();
    assert_eq!(config.sets.len(), 3);
    let low = json!({"ipam": {
        "exclude": ["10.22.0.2"], "gateway": "10.23.0.254", "rangeStart": "fd22::100", "rangeEnd": "10.22.0.99",
        "key": "${K8S_POD_NAME}", "routes": [{"dst": "0.0.0.0/0"}], "statusWhenFull": false
    }});
    let config = check_with(low, SpecVersion::V100, &["10.22.0.0/16", "fd22::/64", "10.23.0.0/16"]).unwrap();
    assert_eq!(
        sets(&config),
        ["10.22.0.1-10.22.0.99", "fd22::100-fd22::ffff:ffff:ffff:ffff", "10.23.0.1-10.23.255.254"]
    );
    assert_eq!(config.sets[0].0[0].exclude.len(), 1);
    assert_eq!(config.sets[2].0[0].gateway, Some("10.23.0.254".parse().unwrap()));
    assert!(config.key_template.is_some() && !config.status_when_full && config.routes.len() == 1);
}

#[test]
fn one_line_faults_name_the_subnet() {
    let text = |ipam: Value, subnets: &[&str]| {
        check_with(json!({"ipam": ipam}), SpecVersion::V100, subnets).unwrap_err().to_string()
    };
    assert_eq!(
        text(json!({}), &["10.22.0.1/16"]),
        "invalid range set 0: Network has host bits set. For a subnet mask of length 16 the network address is \
         10.22.0.0 (network 10.22.0.1/16)"
    );
    let elsewhere = text(json!({"rangeStart": "192.0.2.1"}), &["fd22::/64", "10.22.0.0/16"]);
    assert!(elsewhere.contains("RangeStart 192.0.2.1 not in network 10.22.0.0/16"), "{elsewhere}");
    let twice = text(json!({"subnet": "10.22.1.0/24"}), &["10.22.0.0/16"]);
    assert!(twice.starts_with("range set 0 overlaps with 1"), "{twice}");
    let family = text(json!({"gateway": "fd00::1"}), &["10.22.0.0/16"]);
    assert!(family.contains("is not of the address family"), "{family}");
    let network = "mynet".parse().unwrap();
    assert!(IpamConfig::from_subnets(&network, &[], &host()).is_err());
    assert_eq!(IpamConfig::from_subnets(&network, &["10.0.0.0/24".parse().unwrap()], &host()).unwrap().sets.len(), 1);
    let small = text(json!({}), &["10.0.0.0/31"]);
    assert!(small.contains("Network 10.0.0.0/31 too small to allocate from"), "{small}");
}

#[test]
fn b1_6_the_resolver_is_read_only_when_asked_for() {
    let config = ipam(json!({"subnet": "10.0.0.0/24", "resolvConf": "/nonexistent/resolv.conf"})).unwrap();
    assert_eq!(config.resolv_conf.as_deref(), Some(Path::new("/nonexistent/resolv.conf")));
    let error = config.load_dns().unwrap_err();
    assert_eq!(error.code(), Code::Io);
    assert!(error.to_string().contains("/nonexistent/resolv.conf"), "{error}");
    assert!(ipam(json!({"subnet": "10.0.0.0/24"})).unwrap().load_dns().unwrap().is_empty());
}
