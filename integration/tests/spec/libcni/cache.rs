//! The cache of results, and what it does to DEL and CHECK.

use integration::{Sandbox, addresses_of};
use serde_json::{Value, json};

use super::{CACHE, CONFLIST, add, cnitool, conflist, del, held, machine, verb};
use crate::inside;
use crate::scripted::{Scripted, address, order, recorded};

/// The one cache file: its name and its content.
fn cached(sandbox: &Sandbox) -> (String, Value) {
    let names = sandbox.list(CACHE);
    assert_eq!(names.len(), 1, "one attachment, one cache file: {names:?}");
    (names[0].clone(), serde_json::from_str(&sandbox.read(&format!("{CACHE}/{}", names[0]))).unwrap())
}

#[test]
fn c131_lc6_the_cache_file_holds_our_result_and_del_gets_it_back() {
    let sandbox = machine("1.1.0", &["last"]);
    sandbox.netns("pod");
    let last = Scripted::new(&sandbox, "last");
    let result = add(&sandbox);
    let (name, cache) = cached(&sandbox);
    let id = cache["containerId"].as_str().unwrap();
    assert_eq!(name, format!("net1-{id}-eth0"), "network, container and interface name it");
    assert_eq!(sandbox.sh(&format!("stat -c %a {CACHE} {CACHE}/*")).ok(), "700\n600\n", "nobody else reads it");
    assert_eq!(cache["kind"], "cniCacheV1", "{cache}");
    assert_eq!(
        (&cache["networkName"], &cache["ifName"], &cache["netns"]),
        (&json!("net1"), &json!("eth0"), &json!("/run/netns/pod")),
        "{cache}"
    );
    assert_eq!(cache["result"], result, "the result is what was printed");
    assert!(cache["config"].as_str().is_some_and(|text| text.len() > 40), "with the configuration: {cache}");
    order(&sandbox);
    cnitool(&sandbox, "check net1 /run/netns/pod").ok();
    assert_eq!(verb(&recorded(&sandbox), "last CHECK").stdin["prevResult"], result, "CHECK gets the cached result");
    del(&sandbox);
    assert_eq!(verb(&recorded(&sandbox), "last DEL").stdin["prevResult"], result, "and so does DEL");
    assert!(sandbox.list(CACHE).is_empty() && held(&sandbox) == 0, "cache file and address are gone");
    last.fails("ADD");
    cnitool(&sandbox, "add net1 /run/netns/pod").failed();
    assert!(sandbox.list(CACHE).is_empty(), "LC5: a chain that failed has no cache file");
}

#[test]
fn lc4_an_add_whose_cache_file_cannot_be_written_is_undone_by_del() {
    let sandbox = machine("1.1.0", &[]);
    let pod = sandbox.netns("pod");
    add(&sandbox);
    del(&sandbox);
    let before = (sandbox.leftovers(), inside(&sandbox, &pod));
    sandbox.sh(&format!("mkdir -p {CACHE} && mount -t tmpfs -o ro tmpfs {CACHE}")).ok();
    cnitool(&sandbox, "add net1 /run/netns/pod").failed();
    assert_eq!(held(&sandbox), 1, "libcni leaves what the plugins made");
    sandbox.sh(&format!("umount {CACHE}")).ok();
    del(&sandbox);
    sandbox.leftovers().assert_same_as(&before.0, "an ADD without cache file and its DEL");
    assert_eq!(inside(&sandbox, &pod), before.1, "the container after it");
}

#[test]
fn lc10_a_broken_cache_fails_check_and_not_del() {
    for (what, write) in [
        ("no JSON", "echo '{' > $f"),
        ("an empty file", ": > $f"),
        ("a result of no known version", r#"jq -c '.result.cniVersion = "9.0.0"' $f > /run/c && cp /run/c $f"#),
    ] {
        let sandbox = machine("1.1.0", &[]);
        let pod = sandbox.netns("pod");
        add(&sandbox);
        sandbox.sh(&format!("f=$(ls {CACHE}/net1-*); {write}")).ok();
        cnitool(&sandbox, "check net1 /run/netns/pod").failed();
        del(&sandbox);
        assert_eq!(held(&sandbox), 0, "DEL frees the address with {what} for a cache file");
        assert_eq!(sandbox.links_in(&pod), ["lo".to_owned()].into(), "and removes the interface with {what}");
    }
}

#[test]
fn lc10_a_cached_result_is_converted_to_a_conflist_of_another_version() {
    let sandbox = machine("0.4.0", &["last"]);
    sandbox.netns("pod");
    Scripted::new(&sandbox, "last");
    let result = add(&sandbox);
    let mut list: Value = serde_json::from_str(&sandbox.read(CONFLIST)).unwrap();
    list["cniVersion"] = json!("1.1.0");
    conflist(&sandbox, &list);
    cnitool(&sandbox, "check net1 /run/netns/pod").ok();
    del(&sandbox);
    let calls = recorded(&sandbox);
    let previous = &verb(&calls, "last DEL").stdin["prevResult"];
    assert_eq!(previous["cniVersion"], "1.1.0", "libcni converts it: {previous}");
    assert_eq!(addresses_of(previous), addresses_of(&result), "with the same addresses");
    assert_eq!(held(&sandbox), 0, "ours is detached");
}

#[test]
fn lc11_each_interface_has_a_cache_file_of_its_own() {
    let sandbox = machine("1.1.0", &[]);
    let pod = sandbox.netns("pod");
    let by = |ifname: &str, verb: &str| {
        sandbox.sh(&format!("CNI_IFNAME={ifname} CNI_PATH=/opt/cni/bin cnitool {verb} net1 /run/netns/pod"))
    };
    for name in ["eth0", "eth1"] {
        by(name, "add").ok();
    }
    let names = sandbox.list(CACHE);
    assert!(names.len() == 2 && names[0].ends_with("-eth0") && names[1].ends_with("-eth1"), "{names:?}");
    by("eth0", "del").ok();
    assert_eq!(sandbox.list(CACHE), names[1..], "the other's stays");
    by("eth1", "check").ok();
    assert_eq!(sandbox.links_in(&pod), ["eth1", "lo"].map(str::to_owned).into(), "and so does the other interface");
}

/// What an IPAM plugin of the chain gives without an index keeps none on its way to the cache and back.
#[test]
fn lc15_no_index_stays_none_through_the_cache() {
    let sandbox = machine("1.1.0", &["last"]);
    sandbox.netns("pod");
    let last = Scripted::new(&sandbox, "last");
    let mut given = address();
    given["interfaces"] = json!([{"name": "eth0", "sandbox": "/run/netns/pod"}]);
    given["ips"] = json!([{"address": "10.9.0.5/24", "interface": 0}, {"address": "10.9.0.6/24"}]);
    last.gives("ADD", &given);
    let result = add(&sandbox);
    assert_eq!(result["ips"][0]["interface"], 0, "0 is an index: {result}");
    assert!(result["ips"][1]["interface"].is_null(), "and none is none: {result}");
    let message = cnitool(&sandbox, "check net1 /run/netns/pod").failed();
    assert!(message.contains("10.9.0.5") || message.contains("10.9.0.6"), "both are said to be eth0's: {message}");
    del(&sandbox);
    assert_eq!(held(&sandbox), 0, "DEL does not need it");
}
