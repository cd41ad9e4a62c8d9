use serde_json::json;

use super::*;
use SpecVersion::{V010, V020, V030, V031, V040, V100, V110};

fn dual_stack() -> CniResult {
    let interface = |name: &str, sandbox: Option<&str>| Interface {
        name: name.into(),
        mac: Some("0a:58:0a:4d:00:02".into()),
        mtu: Some(1450),
        sandbox: sandbox.map(Into::into),
        extra: Map::new(),
    };
    let ip = |address: &str, gateway: &str| Ip {
        interface: Some(0),
        ..Ip::new(address.parse().unwrap(), Some(gateway.parse().unwrap()))
    };
    CniResult {
        interfaces: vec![interface("eth0", Some("/run/netns/x")), interface("obr_x", None)],
        ips: vec![ip("10.77.0.2/24", "10.77.0.1"), ip("fd77::2/64", "fd77::1")],
        routes: vec![
            Route::new("0.0.0.0/0".parse().unwrap(), Some("10.77.0.1".parse().unwrap())),
            Route { mtu: Some(1400), ..Route::new("::/0".parse().unwrap(), None) },
        ],
        ..CniResult::default()
    }
}

#[test]
fn c50_form_of_1x() {
    let expected = |version: &str| {
        json!({
            "cniVersion": version,
            "interfaces": [
                {"name": "eth0", "mac": "0a:58:0a:4d:00:02", "mtu": 1450, "sandbox": "/run/netns/x"},
                {"name": "obr_x", "mac": "0a:58:0a:4d:00:02", "mtu": 1450}
            ],
            "ips": [
                {"address": "10.77.0.2/24", "gateway": "10.77.0.1", "interface": 0},
                {"address": "fd77::2/64", "gateway": "fd77::1", "interface": 0}
            ],
            "routes": [{"dst": "0.0.0.0/0", "gw": "10.77.0.1"}, {"dst": "::/0", "mtu": 1400}]
        })
    };
    assert_eq!(dual_stack().print(V110).unwrap(), expected("1.1.0"));
    assert_eq!(dual_stack().print(V100).unwrap(), expected("1.0.0"));
    assert_eq!(CniResult::default().print(V110).unwrap(), json!({"cniVersion": "1.1.0"}), "nothing empty");
}

#[test]
fn c51_form_of_03x_and_040() {
    for version in [V030, V031, V040] {
        let expected = json!({
            "cniVersion": version.as_str(),
            "interfaces": [
                {"name": "eth0", "mac": "0a:58:0a:4d:00:02", "sandbox": "/run/netns/x"},
                {"name": "obr_x", "mac": "0a:58:0a:4d:00:02"}
            ],
            "ips": [
                {"version": "4", "address": "10.77.0.2/24", "gateway": "10.77.0.1", "interface": 0},
                {"version": "6", "address": "fd77::2/64", "gateway": "fd77::1", "interface": 0}
            ],
            "routes": [{"dst": "0.0.0.0/0", "gw": "10.77.0.1"}, {"dst": "::/0", "mtu": 1400}],
            "dns": {}
        });
        assert_eq!(dual_stack().print(version).unwrap(), expected);
    }
}

#[test]
fn c52_form_of_010_and_020() {
    for version in [V010, V020] {
        let expected = json!({
            "cniVersion": version.as_str(),
            "ip4": {"ip": "10.77.0.2/24", "gateway": "10.77.0.1", "routes": [{"dst": "0.0.0.0/0", "gw": "10.77.0.1"}]},
            "ip6": {"ip": "fd77::2/64", "gateway": "fd77::1", "routes": [{"dst": "::/0"}]},
            "dns": {}
        });
        assert_eq!(dual_stack().print(version).unwrap(), expected);
    }
}

#[test]
fn c52_hl11_what_old_versions_cannot_say_is_refused() {
    let mut result = CniResult::default();
    let refusal = |result: &CniResult| {
        let error = result.check_version(V020).unwrap_err();
        assert_eq!(error.to_string(), result.print(V020).unwrap_err().to_string());
        assert!(result.check_version(V030).is_ok());
        (error.code(), error.to_string())
    };
    assert_eq!(refusal(&result), (1, "cannot convert: no valid IP addresses".to_owned()));
    for subnet in ["10.0", "10.1"] {
        result.ips.push(Ip::new(format!("{subnet}.0.2/24").parse().unwrap(), None));
    }
    let many = "CNI version 0.2.0 does not support more than 1 address per family";
    assert_eq!(refusal(&result), (1, many.to_owned()));
}

#[test]
fn c53_interface_0_is_not_no_interface_and_host_bits_stay() {
    for version in [V030, V040, V100, V110] {
        let mut result = dual_stack();
        result.ips[1].interface = None;
        let value = result.print(version).unwrap();
        assert_eq!(value["ips"][0]["interface"], json!(0));
        assert_eq!(value["ips"][1].get("interface"), None);
        let again = CniResult::parse(&value, V010).unwrap();
        assert_eq!((again.ips[0].interface, again.ips[1].interface), (Some(0), None));
        assert_eq!(again.ips[0].address.to_string(), "10.77.0.2/24");
    }
}

#[test]
fn c55_result_of_an_ipam_plugin() {
    let result = CniResult {
        ips: vec![Ip::new("10.88.0.2/29".parse().unwrap(), Some("10.88.0.1".parse().unwrap()))],
        routes: vec![Route::new("0.0.0.0/0".parse().unwrap(), None)],
        ..CniResult::default()
    };
    assert_eq!(
        result.print(V110).unwrap().to_string(),
        r#"{"cniVersion":"1.1.0","ips":[{"address":"10.88.0.2/29","gateway":"10.88.0.1"}],"routes":[{"dst":"0.0.0.0/0"}]}"#
    );
    assert_eq!(
        result.print(V040).unwrap().to_string(),
        r#"{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.88.0.2/29","gateway":"10.88.0.1"}],"routes":[{"dst":"0.0.0.0/0"}],"dns":{}}"#
    );
    assert_eq!(
        result.print(V020).unwrap().to_string(),
        r#"{"cniVersion":"0.2.0","ip4":{"ip":"10.88.0.2/29","gateway":"10.88.0.1","routes":[{"dst":"0.0.0.0/0"}]},"dns":{}}"#
    );
}

#[test]
fn c56_lc16_conversions_between_all_versions() {
    for from in SpecVersion::ALL {
        let value = dual_stack().print(from).unwrap();
        let read = CniResult::parse(&value, V110).unwrap();
        for to in SpecVersion::ALL {
            let printed = read.print(to).unwrap();
            assert_eq!(printed["cniVersion"], to.as_str());
            let again = CniResult::parse(&printed, V110).unwrap();
            assert_eq!(again.ips.len(), 2, "{from} to {to}");
            assert_eq!(again.routes[0], dual_stack().routes[0], "{from} to {to}: the gateway of a route stays");
            assert_eq!(again.ips[0].gateway, dual_stack().ips[0].gateway);
            if from >= V100 && to < V100 && to >= V030 {
                assert_eq!(printed["ips"][1]["version"], "6");
            }
        }
    }
    let error = CniResult::parse(&json!({"cniVersion": "9.0.0"}), V110).unwrap_err();
    assert_eq!((error.code(), error.to_string()), (1, "unsupported CNI result version \"9.0.0\"".to_owned()));
}

#[test]
fn c45_a_result_without_version_is_of_the_fallback() {
    let value = json!({"ip4": {"ip": "10.0.0.2/24"}});
    assert_eq!(CniResult::parse(&value, V020).unwrap().ips.len(), 1);
    assert_eq!(CniResult::parse(&value, V100).unwrap().ips.len(), 0);
}

const FOREIGN: &str = r#"{"x":{"a":[1]},"cniVersion":"1.0.0","interfaces":[{"sandbox":"/s","name":"eth0","pciID":"p","y":null},{"name":"lo"}],"ips":[{"version":"4","interface":0,"address":"10.0.0.2/24","z":1.5}],"routes":[{"dst":"0.0.0.0/0","w":"?"},{"dst":"10.9.0.0/16","v":1}],"dns":{"search":["a"],"u":{}}}"#;

#[test]
fn c110_c112_an_unchanged_result_passes_through_whole() {
    let read = CniResult::parse(&json::parse(FOREIGN.as_bytes()).unwrap(), V100).unwrap();
    let expected = FOREIGN.replace(r#""x":{"a":[1]},"cniVersion":"1.0.0","#, r#""cniVersion":"1.1.0","x":{"a":[1]},"#);
    assert_eq!(read.print(V110).unwrap().to_string(), expected);
    let bare = r#"{"cniVersion":"0.3.1","ips":[{"address":"10.0.0.2/24"}]}"#;
    let read = CniResult::parse(&json::parse(bare.as_bytes()).unwrap(), V100).unwrap();
    assert_eq!(read.print(V031).unwrap().to_string(), bare, "no empty \"version\" is added");
}

#[test]
fn c112_a_changed_result_keeps_what_is_unknown_in_it() {
    let mut result = CniResult::parse(&json::parse(FOREIGN.as_bytes()).unwrap(), V100).unwrap();
    result.interfaces[0].mac = Some("02:00:00:00:00:01".into());
    result.ips[0].gateway = Some("10.0.0.1".parse().unwrap());
    result.routes.remove(0);
    let expected = json!({
        "cniVersion": "1.0.0",
        "interfaces": [
            {"name": "eth0", "mac": "02:00:00:00:00:01", "sandbox": "/s", "pciID": "p", "y": null},
            {"name": "lo"}
        ],
        "ips": [{"address": "10.0.0.2/24", "gateway": "10.0.0.1", "interface": 0, "z": 1.5}],
        "routes": [{"dst": "10.9.0.0/16", "v": 1}],
        "dns": {"search": ["a"], "u": {}},
        "x": {"a": [1]}
    });
    assert_eq!(result.print(V100).unwrap(), expected);
    let older = result.print(V040).unwrap();
    assert_eq!(older["interfaces"][0], json!({"name": "eth0", "mac": "02:00:00:00:00:01", "sandbox": "/s", "y": null}));
}

#[test]
fn c143_1_1_keys_of_routes_are_read_and_printed() {
    let route = json!({"dst": "1.0.0.0/8", "gw": "10.89.0.9", "mtu": 1400, "advmss": 1300, "priority": 5, "table": 100, "scope": 253});
    let result = CniResult::parse(&json!({"routes": [route]}), V110).unwrap();
    let fresh = CniResult { routes: result.routes.clone(), ..CniResult::default() };
    assert_eq!(fresh.print(V110).unwrap()["routes"][0], route);
}

#[test]
fn faults_in_a_result_are_told_with_their_path() {
    let refusal = |value: Value| CniResult::parse(&value, V110).unwrap_err().to_string();
    assert_eq!(
        refusal(json!({"ips": [{"address": "10.0.0.2/24", "interface": -1}]})),
        "cannot read the result: ips[0].interface: invalid value: integer `-1`, expected u32"
    );
    assert_eq!(refusal(json!({"ips": [{}]})), "cannot read the result: ips[0]: missing field `address`");
    assert_eq!(refusal(json!([])), "cannot read the result: invalid type: list, expected an object");
}
