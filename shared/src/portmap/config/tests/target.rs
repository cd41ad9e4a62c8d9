use super::*;
use crate::protocol::CniResult;

fn result(version: SpecVersion, value: Value) -> CniResult {
    CniResult::parse(&value, version).unwrap()
}

fn found(value: Value) -> Result<Vec<String>, ConfigError> {
    let targets = targets(&result(SpecVersion::V100, value), &attachment())?;
    Ok(targets.iter().map(ToString::to_string).collect())
}

fn interfaces() -> Value {
    json!([{"name": "obr_net"}, {"name": "eth0", "sandbox": ""}, {"name": "eth0", "sandbox": "/run/netns/x"},
           {"name": "eth1", "sandbox": "/run/netns/x"}])
}

#[test]
fn pm1_the_addresses_are_those_of_the_containers_interface() {
    let ips = json!([
        {"address": "10.9.0.1/16", "interface": 0},
        {"address": "10.9.0.2/16", "interface": 1},
        {"address": "10.9.0.3/16", "interface": 3},
        {"address": "2001:db8::2/64", "interface": 2},
        {"address": "10.9.0.4/16", "interface": 2},
        {"address": "10.9.0.5/16", "interface": 2},
        {"address": "2001:db8::3/64", "interface": 2}
    ]);
    let targets = found(json!({"interfaces": interfaces(), "ips": ips})).unwrap();
    assert_eq!(targets, ["10.9.0.4/16", "2001:db8::2/64"]);
}

#[test]
fn pm9_addresses_without_an_index_qualify() {
    let ips = json!([{"address": "10.9.0.4/16"}, {"address": "10.9.0.5/16", "interface": 2}]);
    assert_eq!(found(json!({"interfaces": interfaces(), "ips": ips})).unwrap(), ["10.9.0.4/16"]);
    assert_eq!(found(json!({"ips": [{"address": "2001:db8::4/64"}]})).unwrap(), ["2001:db8::4/64"]);
    let old = result(SpecVersion::V020, json!({"ip4": {"ip": "10.9.0.4/16"}}));
    assert_eq!(targets(&old, &attachment()).unwrap(), ["10.9.0.4/16".parse().unwrap()]);
}

#[test]
fn an_index_out_of_range_is_refused_even_behind_a_good_address() {
    let ips = json!([{"address": "10.9.0.4/16", "interface": 2}, {"address": "10.9.0.5/16", "interface": 4}]);
    let expected = "prevResult.ips[1] (10.9.0.5/16) belongs to interface 4, but prevResult lists 4, counted from 0";
    let found = found(json!({"interfaces": interfaces(), "ips": ips}));
    assert_eq!(refused(found), (Code::InvalidConfig, expected.to_owned()));
}

#[test]
fn no_address_of_the_container_is_refused() {
    for value in [
        json!({}),
        json!({"interfaces": interfaces()}),
        json!({"interfaces": interfaces(), "ips": [{"address": "10.9.0.1/16", "interface": 0}]}),
    ] {
        let (code, text) = refused(found(value));
        assert_eq!(code, Code::InvalidConfig);
        assert!(text.starts_with("container c1 interface eth0 on network net: prevResult has no address"), "{text}");
    }
}

#[test]
fn a_host_address_of_a_family_without_target_is_refused() {
    let check = |address: &str, targets: &[&str]| {
        let entry = json!([
            {"hostPort": 1, "containerPort": 1}, {"hostPort": 8080, "containerPort": 80, "hostIP": address}
        ]);
        let targets: Vec<IpNet> = targets.iter().map(|target| target.parse().unwrap()).collect();
        ports(entry).unwrap().check_targets(&targets, &"web".parse().unwrap())
    };
    let (v4, v6) = ("10.9.0.4/16", "2001:db8::2/64");
    for (address, target) in [("192.0.2.1", v4), ("0.0.0.0", v4), ("::", v6), ("2001:db8:9::1", v6), ("", v4), ("", v6)]
    {
        assert!(check(address, &[target]).is_ok() && check(address, &[v4, v6]).is_ok());
    }
    for (address, target, shown, family) in [
        ("192.0.2.1", v6, "192.0.2.1:8080", "IPv4"),
        ("0.0.0.0", v6, "0.0.0.0:8080", "IPv4"),
        ("::", v4, "[::]:8080", "IPv6"),
        ("2001:db8:9::1", v4, "[2001:db8:9::1]:8080", "IPv6"),
    ] {
        let (code, text) = refused(check(address, &[target]));
        let start = format!("portMappings[1] ({shown}->80/tcp): the container has no {family} address on network web:");
        assert!(code == Code::InvalidConfig && text.starts_with(&start), "{text}");
    }
}

#[test]
fn the_host_end_is_the_one_that_osvc_bridge_made() {
    let host_end_in =
        |interfaces: Value| host_end(&result(SpecVersion::V100, json!({"interfaces": interfaces})), &attachment());
    let name = attachment().host_end();
    assert_eq!(host_end_in(json!([{"name": "eth0", "sandbox": "/x"}, {"name": name}])), Some(name.clone()));
    assert_eq!(host_end_in(json!([{"name": name, "sandbox": "/x"}])), None);
    assert_eq!(host_end_in(interfaces()), None);
}
