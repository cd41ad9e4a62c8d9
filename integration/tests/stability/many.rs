//! Many calls at once.

use std::collections::BTreeSet;

use integration::{Family, Sandbox};
use serde_json::{Value, json};

use crate::{bridge, ipam};

fn two_hundred_from_sixteen_processes(plugin: &str, config: &Value, netns: &str) {
    let sandbox = Sandbox::new();
    if plugin == "osvc-bridge" {
        sandbox.sh("for n in $(seq 200); do echo netns add n$n; done | ip -batch -").ok();
        sandbox.bulk(plugin, config, "cni ADD id-0 /run/netns/n200 name-0 && cni DEL id-0 /run/netns/n200 name-0").ok();
    } else {
        sandbox.netns("pod");
    }
    let before = sandbox.leftovers();
    sandbox
        .bulk(plugin, config, &format!("mkdir -p /run/out; seq 200 | xargs -P 16 -I{{}} bash -c 'cni ADD id-{{}} {netns} name-{{}} > /run/out/{{}} || exit 1'"))
        .ok();
    let mut given = BTreeSet::new();
    for n in 1..=200 {
        let result: Value = serde_json::from_str(&sandbox.read(&format!("/run/out/{n}"))).unwrap();
        let address = result["ips"][0]["address"].as_str().unwrap().to_owned();
        assert!(given.insert(address.clone()), "{address} was given twice");
    }
    assert_eq!(sandbox.held(Family::Osvc, "net1").len(), 200, "the store agrees");
    sandbox
        .bulk(
            plugin,
            config,
            &format!("seq 200 | xargs -P 16 -I{{}} bash -c 'cni DEL id-{{}} {netns} name-{{}} || exit 1'"),
        )
        .ok();
    sandbox.leftovers().assert_same_as(&before, "200 ADDs and 200 DELs");
    // ADDs and DELs of different containers mixed, each twice.
    sandbox
        .bulk(plugin, config, &format!("seq 100 | xargs -P 16 -I{{}} bash -c 'cni ADD id-{{}} {netns} name-{{}} > /dev/null && cni DEL id-{{}} {netns} name-{{}} && cni DEL id-{{}} {netns} name-{{}} || exit 1'"))
        .ok();
    sandbox.leftovers().assert_same_as(&before, "100 ADDs mixed with 200 DELs");
}

#[test]
fn two_hundred_addresses_from_sixteen_processes() {
    two_hundred_from_sixteen_processes("osvc-ipam", &ipam(json!({"subnet": "10.9.0.0/24"})), "/run/netns/pod");
}

#[test]
fn two_hundred_bridge_ports_from_sixteen_processes() {
    two_hundred_from_sixteen_processes("osvc-bridge", &bridge("10.9.0.0/24"), "/run/netns/n{}");
}

#[test]
fn sixteen_first_adds_of_a_network_at_once() {
    let sandbox = Sandbox::new();
    let config = bridge("10.9.0.0/24");
    sandbox.sh("for n in $(seq 16); do echo netns add n$n; done | ip -batch -").ok();
    sandbox
        .bulk(
            "osvc-bridge",
            &config,
            "seq 16 | xargs -P 16 -I{} bash -c 'cni ADD id-{} /run/netns/n{} name-{} > /dev/null || exit 1'",
        )
        .ok();
    assert_eq!(sandbox.links().len(), 2 + 16, "lo, one bridge, sixteen ports: {:?}", sandbox.links());
    assert_eq!(sandbox.ruleset().matches("masquerade").count(), 1, "one table: {}", sandbox.ruleset());
}
