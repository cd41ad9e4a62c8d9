//! LN: the pair.

use integration::{Family, Sandbox, addresses_of, container_mac};
use serde_json::json;

use crate::{bridge, one_line};

#[test]
fn ln3_a_device_that_is_gone_is_no_error_of_del_and_named_by_check() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = bridge(&sandbox, &pod, one_line("1.1.0"));
    for script in ["ip -n pod link del eth0", "ip link del $(ls /sys/class/net | grep ^ov)"] {
        let result = call.add();
        let host_end = result["interfaces"][1]["name"].as_str().unwrap().to_owned();
        sandbox.sh(&script.replace("$(ls /sys/class/net | grep ^ov)", &host_end)).ok();
        let (code, message) = call.check_fails(&result);
        assert_eq!(code, 100, "{message}");
        assert!(message.contains(&host_end) && message.contains("eth0"), "both ends are named: {message}");
        call.del();
        assert!(sandbox.held(Family::Osvc, "net1").is_empty(), "its address is free after `{script}` and DEL");
    }
}

#[test]
fn ln4_a_host_end_s_name_that_somebody_else_has_is_a_useful_error() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = bridge(&sandbox, &pod, one_line("1.1.0"));
    let result = call.add();
    let name = result["interfaces"][1]["name"].as_str().unwrap();
    call.del();
    sandbox.ip(&format!("link add name {name} type bridge"));
    let before = sandbox.leftovers();
    let (code, message) = call.add_fails();
    assert_eq!(code, 101, "{message}");
    assert!(message.contains(name) && message.contains("rename or delete"), "it names thing and way out: {message}");
    sandbox.leftovers().assert_same_as(&before, "an ADD whose name was taken");
    call.del();
    sandbox.leftovers().assert_same_as(&before, "a DEL: the foreign device stays");
    sandbox.ip(&format!("link del {name}"));
    assert_eq!(addresses_of(&call.add()), addresses_of(&result), "then it works, with the same address");
}

#[test]
fn ln6_an_explicit_mac_is_honoured() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let canonical = "02:1a:22:33:44:5f";
    for mac in [canonical, "02:1A:22:33:44:5F", "02-1A-22-33-44-5F"] {
        let call = bridge(&sandbox, &pod, one_line("1.1.0")).with("runtimeConfig", json!({"mac": mac}));
        let result = call.add();
        assert_eq!(sandbox.link_in(&pod, "eth0")["address"], canonical, "{mac}: the kernel's");
        assert_eq!(container_mac(&result), Some(canonical), "{mac}: the result's");
        call.check(&result);
        call.del();
    }
    for bad in ["zz", "01:00:5e:00:00:01", "00:00:00:00:00:00", "02:11:22:33:44:55:66:77", "02:11"] {
        let call = bridge(&sandbox, &pod, one_line("1.1.0")).with("runtimeConfig", json!({"mac": bad}));
        let (code, message) = call.add_fails();
        assert!(code != 999 && message.contains(bad), "{bad} is refused by name: {code} {message}");
        assert_eq!(sandbox.links_in(&pod), ["lo".to_owned()].into(), "{bad}: nothing is made");
    }
}

#[test]
fn ln8_no_addresses_is_an_empty_list_and_link_local_ones_do_not_count() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = bridge(&sandbox, &pod, json!({"cniVersion": "1.1.0", "name": "net1", "type": "osvc-bridge"}));
    let result = call.add();
    sandbox.wait_for("the link-local address is there", "ip -n pod -6 addr show dev eth0 | grep -q fe80");
    assert!(addresses_of(&result).is_empty(), "layer 2 has no addresses: {result}");
    assert!(result["ips"].as_array().is_none_or(Vec::is_empty), "and no list of them: {result}");
    call.check(&result);
    call.del();
}
