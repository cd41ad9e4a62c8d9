//! Kinds of containers and records: dead ones, two sets, templates, what cannot be taken over.

use integration::{Family, Sandbox, report};
use serde_json::json;

use super::{FILES, RECORDS, add, both, cnitool, files, held, osvc_net, start, switch, v4};

#[test]
fn the_dead_are_not_taken_over_and_their_files_go() {
    let mut sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &v4());
    let (web, db) = (start(&sandbox, "web", "web"), start(&sandbox, "db", "db"));
    sandbox.delete_netns(&db.netns);
    switch(&sandbox, Family::Osvc, &v4());
    let told = osvc_net(&sandbox, &["adopt"]).ok();
    let line = told.lines().find(|line| line.contains(db.address())).unwrap();
    assert!(line.ends_with("its network namespace /run/netns/db is gone; host-local's file removed"), "{line}");
    assert!(told.contains(&format!("{} of \"web\"", web.address())), "{told}");
    assert_eq!((held(&sandbox), files(&sandbox).len()), ([web.address().to_owned()].into(), 0));
    // Of an earlier boot; nothing of it is cached.
    sandbox.write(&format!("{FILES}/10.9.0.77"), "old\r\neth0");
    sandbox.sh(&format!("touch -d 2001-01-01 {FILES}/10.9.0.77")).ok();
    let told = osvc_net(&sandbox, &["adopt"]).ok();
    assert!(
        told.contains("10.9.0.77 of container old, eth0 not taken over: its record is of an earlier boot"),
        "{told}"
    );
    assert!(files(&sandbox).is_empty() && !held(&sandbox).contains("10.9.0.77"));
    // All of it.
    switch(&sandbox, Family::Reference, &v4());
    sandbox.netns("last");
    add(&sandbox, "last", "last");
    sandbox.reboot();
    switch(&sandbox, Family::Osvc, &v4());
    assert!(osvc_net(&sandbox, &["adopt"]).ok().contains("is gone"));
    assert!(files(&sandbox).is_empty());
}

#[test]
fn two_sets_are_two_files_and_one_container() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &both());
    let web = start(&sandbox, "web", "web");
    assert_eq!((web.addresses.len(), files(&sandbox).len()), (2, 2));
    switch(&sandbox, Family::Osvc, &both());
    assert_eq!(osvc_net(&sandbox, &["adopt"]).ok().lines().count(), 2);
    assert_eq!(held(&sandbox), web.addresses.iter().cloned().collect());
    assert_eq!(web.restart(&sandbox), web.addresses);
    // One of the two cannot be taken over: none is, or its DEL would look in one place only.
    switch(&sandbox, Family::Reference, &both());
    let db = start(&sandbox, "db", "db");
    let other = json!({"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd10::/64"}]]});
    switch(&sandbox, Family::Osvc, &other);
    let told = osvc_net(&sandbox, &["adopt"]);
    assert_eq!(told.rc, 1, "{told}");
    assert!(told.stderr.contains(&format!("{} is not in the ranges", db.addresses[1])), "{told}");
    assert!(db.addresses.iter().all(|address| files(&sandbox).contains_key(address)), "{told}");
}

#[test]
fn two_containers_of_one_name_are_two_instances() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Osvc, &v4());
    // The name had another address before.
    let memory = start(&sandbox, "before", "web");
    cnitool(&sandbox, "del", "before", "web").ok();
    sandbox.delete_netns(&memory.netns);
    switch(&sandbox, Family::Reference, &v4());
    let (one, two) = (start(&sandbox, "one", "web"), start(&sandbox, "two", "web"));
    switch(&sandbox, Family::Osvc, &v4());
    osvc_net(&sandbox, &["adopt"]).ok();
    let instance = |address: &str| sandbox.record(RECORDS, address)["instance"].clone();
    assert_eq!([instance(one.address()), instance(two.address())], [json!(0), json!(1)]);
    assert_ne!(memory.address(), one.address());
    assert!(!sandbox.exists(&format!("{RECORDS}/{}", memory.address())), "what the name has now is what it keeps");
    assert_eq!(two.restart(&sandbox), two.addresses);
    assert_eq!(one.restart(&sandbox), one.addresses);
    // Recreated: nothing but the name is the same.
    cnitool(&sandbox, "del", "one", "web").ok();
    assert_eq!(start(&sandbox, "three", "web").addresses, one.addresses);
}

#[test]
fn keys_by_template_and_by_whatever_the_runtime_said() {
    let sandbox = Sandbox::new();
    let ipam = json!({"ranges": [[{"subnet": "10.9.0.0/24"}]], "key": "pod-${K8S_POD_NAME}"});
    switch(&sandbox, Family::Reference, &ipam);
    let web = start(&sandbox, "web", "web");
    switch(&sandbox, Family::Osvc, &ipam);
    osvc_net(&sandbox, &["adopt"]).ok();
    let key = |address: &str| sandbox.record(RECORDS, address)["key"].clone();
    assert_eq!(key(web.address()), json!({"source": "template", "text": "pod-web"}));
    assert_eq!(web.restart(&sandbox), web.addresses);
    // libcni's result is lost: all that is known is the container id.
    switch(&sandbox, Family::Reference, &ipam);
    let db = start(&sandbox, "db", "db");
    let container = files(&sandbox)[db.address()].split("\r\n").next().unwrap().to_owned();
    sandbox.sh("mkdir /run/elsewhere; mv /var/lib/cni/results/*-eth0 /run/elsewhere").ok();
    switch(&sandbox, Family::Osvc, &v4());
    let told = osvc_net(&sandbox, &["adopt", "--dry-run"]).ok();
    assert!(told.contains("its key is its container id"), "{told}");
    // Another runtime's folder.
    let told = osvc_net(&sandbox, &["adopt", "--dry-run", "--results", "/nowhere", "--results", "/run/elsewhere"]).ok();
    assert!(told.contains(&format!("{} of \"db\" (", db.address())), "{told}");
    osvc_net(&sandbox, &["adopt"]).ok();
    assert_eq!(key(db.address()), json!({"source": "container", "text": container}));
    report::ran("cnitool", "osvc-net adopt: keys");
}

#[test]
fn what_is_out_of_range_or_somebody_elses_is_told_and_left_alone() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Osvc, &v4());
    // Ours, at the addresses that host-local gives first.
    let ours: Vec<_> = ["10.9.0.2", "10.9.0.3"]
        .into_iter()
        .map(|address| {
            let netns = sandbox.netns(&format!("ours{}", address.rsplit('.').next().unwrap()));
            let args = format!("CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAME={};IP={address}'", netns.name);
            sandbox.sh(&format!("CNI_PATH=/opt/cni/bin {args} cnitool add net1 {}", netns.path)).ok();
            netns
        })
        .collect();
    switch(&sandbox, Family::Reference, &v4());
    let pods: Vec<_> = ["a", "b", "c"].iter().map(|name| start(&sandbox, name, name)).collect();
    assert_eq!(pods[1].address(), "10.9.0.3");
    // The second of ours ends without a word.
    sandbox.delete_netns(&ours[1]);
    sandbox.wait_for("the pair is gone", "[ $(ip -o link show type veth | wc -l) -eq 4 ]");
    let narrow = json!({"ranges": [[{"subnet": "10.9.0.0/24", "rangeEnd": "10.9.0.3"}]]});
    switch(&sandbox, Family::Osvc, &narrow);
    let told = osvc_net(&sandbox, &["adopt"]);
    assert_eq!(told.rc, 1, "{told}");
    for word in ["10.9.0.2 is somebody else's as well: held by \"ours2\"", "10.9.0.4 is not in the ranges", "10.9.0.3"]
    {
        assert!(told.stderr.contains(word), "{word}: {told}");
    }
    assert_eq!(told.stdout.lines().count(), 1, "the dead are in nobody's way: {told}");
    assert!(told.stdout.contains("10.9.0.3 of \"b\""), "{told}");
    assert_eq!(files(&sandbox).into_keys().collect::<Vec<_>>(), ["10.9.0.2", "10.9.0.4"]);
    assert_eq!(sandbox.record(RECORDS, "10.9.0.2")["key"]["text"], "ours2");
    // A reservation is a decision.
    switch(&sandbox, Family::Osvc, &v4());
    cnitool(&sandbox, "del", "b", "b").ok();
    let mut record = sandbox.record(RECORDS, "10.9.0.3");
    (record["state"], record["pinned"]) = (json!("reserved"), json!(true));
    sandbox.write(&format!("{RECORDS}/10.9.0.4"), &record.to_string());
    let told = osvc_net(&sandbox, &["adopt"]);
    assert!(told.stderr.contains("10.9.0.4 is somebody else's as well: reserved for \"b\""), "{told}");
    assert_eq!(sandbox.record(RECORDS, "10.9.0.4"), record);
    report::ran("cnitool", "osvc-net adopt: what cannot be taken over");
}

#[test]
fn what_no_range_gives_is_told_with_its_own_way_out() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &v4());
    let pods: Vec<_> = ["a", "b", "c"].iter().map(|name| start(&sandbox, name, name)).collect();
    let range = json!({"subnet": "10.9.0.0/24", "gateway": pods[0].address(), "rangeStart": pods[0].address(),
        "rangeEnd": pods[1].address()});
    let ipam = json!({"ranges": [[range]], "exclude": [pods[1].address()]});
    switch(&sandbox, Family::Osvc, &ipam);
    let told = osvc_net(&sandbox, &["adopt"]);
    for (pod, word) in [
        (&pods[0], "is the gateway of 10.9.0.0/24 by the configuration: set another gateway, or stop the container"),
        (&pods[1], "is excluded by the configuration: take it out of ipam.exclude, or stop the container"),
        (&pods[2], "is not in the ranges of the configuration (10.9.0.2-10.9.0.3): widen them, or stop the container"),
    ] {
        assert!(told.rc == 1 && told.stderr.contains(&format!("{} {word}", pod.address())), "{word}: {told}");
    }
    assert_eq!((told.stdout.as_str(), files(&sandbox).len()), ("", 3), "{told}");
}

#[test]
fn records_of_old_and_addresses_that_were_asked_for() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &v4());
    let old = start(&sandbox, "old", "old");
    let file = format!("{FILES}/{}", old.address());
    let id = files(&sandbox)[old.address()].split("\r\n").next().unwrap().to_owned();
    sandbox.write(&file, &id);
    sandbox.netns("asked");
    let args = "CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAME=asked;IP=10.9.0.200'";
    sandbox.sh(&format!("CNI_PATH=/opt/cni/bin {args} cnitool add net1 /run/netns/asked")).ok();
    let ipam = json!({"ranges": [[{"subnet": "10.9.0.0/24"}]], "exclude": ["10.9.0.200"]});
    switch(&sandbox, Family::Osvc, &ipam);
    osvc_net(&sandbox, &["adopt"]).ok();
    let record = sandbox.record(RECORDS, old.address());
    assert_eq!(
        [&record["container"], &record["ifname"], &record["key"]["text"]],
        [&json!(id), &json!("eth0"), &json!("old")]
    );
    assert_eq!(old.restart(&sandbox), old.addresses);
    assert_eq!(sandbox.record(RECORDS, "10.9.0.200")["requested"], true);
    cnitool(&sandbox, "del", "asked", "asked").ok();
    assert_eq!(add(&sandbox, "asked", "asked"), ["10.9.0.200"], "excluded, but its own");
}

#[test]
fn a_process_id_may_be_anothers_by_now() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &v4());
    sandbox.netns("x");
    sandbox.background("exec ip netns exec x sleep 1000", "/run/log");
    sandbox.wait_for("the process runs", "ip netns pids x | grep -q .");
    let path = format!("/proc/{}/ns/net", sandbox.ip("netns pids x").trim());
    sandbox
        .sh(&format!("CNI_PATH=/opt/cni/bin CNI_ARGS='K8S_POD_NAME=web;IgnoreUnknown=1' cnitool add net1 {path}"))
        .ok();
    switch(&sandbox, Family::Osvc, &v4());
    sandbox.ip("-n x addr del 10.9.0.2/24 dev eth0");
    let told = osvc_net(&sandbox, &["adopt"]);
    assert_eq!(told.rc, 1, "{told}");
    assert!(told.stderr.contains(&format!("its network namespace {path} has no eth0 with this address")), "{told}");
    assert_eq!(files(&sandbox).len(), 1);
    sandbox.ip("-n x addr add 10.9.0.2/24 dev eth0");
    assert!(osvc_net(&sandbox, &["adopt"]).ok().contains("10.9.0.2 of \"web\""));
    assert_eq!(sandbox.record(RECORDS, "10.9.0.2")["netns"]["path"], json!(path));
}
