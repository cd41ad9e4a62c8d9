//! What the runtime asks of our plugins about a container that was taken over: CHECK, GC, DEL with and without its
//! namespace.

use integration::{Family, Sandbox, report};
use serde_json::{Value, json};

use super::{Pod, RECORDS, both, cnitool, conflist, files, held, osvc_net, start, switch, v4};

fn veths(sandbox: &Sandbox) -> usize {
    sandbox.links().iter().filter(|name| name.starts_with("veth")).count()
}

/// Two containers that were taken over.
fn adopted(ipam: &Value) -> (Sandbox, Pod, Pod) {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, ipam);
    let (web, db) = (start(&sandbox, "web", "web"), start(&sandbox, "db", "db"));
    switch(&sandbox, Family::Osvc, ipam);
    osvc_net(&sandbox, &["adopt"]).ok();
    (sandbox, web, db)
}

#[test]
fn a_record_says_all_that_an_add_would_have_said() {
    let (sandbox, web, _) = adopted(&v4());
    let record = sandbox.record(RECORDS, web.address());
    assert_eq!(record["key"], json!({"source": "podman", "text": "web"}));
    for (key, value) in
        [("instance", json!(0)), ("uses", json!(1)), ("state", json!("held")), ("ifname", json!("eth0"))]
    {
        assert_eq!(record[key], value, "{key} of {record}");
    }
    assert_eq!(record["netns"]["path"], "/run/netns/web");
    let host_end = record["host"]["ifname"].as_str().unwrap();
    assert!(host_end.starts_with("veth") && sandbox.links().contains(host_end), "{record}");
    assert_eq!(record["boot"], sandbox.read("/run/boot_id").trim());
    let rows: Value = serde_json::from_str(&osvc_net(&sandbox, &["ip", "ls", "-o", "json"]).ok()).unwrap();
    assert_eq!(rows[0]["liveness"], "running", "{rows}");
    // As after an ADD: the namespace is told by its cookie, not by its path only.
    sandbox.ip("netns add other");
    sandbox.sh("umount /run/netns/web; mount --bind /run/netns/other /run/netns/web").ok();
    let rows: Value = serde_json::from_str(&osvc_net(&sandbox, &["ip", "ls", "-o", "json"]).ok()).unwrap();
    assert_eq!(rows[0]["liveness"], "dead", "{rows}");
}

#[test]
fn check_passes_and_finds_what_is_gone() {
    let (sandbox, web, _) = adopted(&both());
    osvc_net(&sandbox, &["setup"]).ok();
    let check = || cnitool(&sandbox, "check", "web", "web");
    check().ok();
    let port = sandbox.record(RECORDS, web.address())["host"]["ifname"].as_str().unwrap().to_owned();
    sandbox.ip(&format!("link set {port} nomaster"));
    let told = check().failed();
    assert!(told.contains("is no port of bridge br9"), "{told}");
    sandbox.ip(&format!("link set {port} master br9"));
    check().ok();
    sandbox.ip("-n web addr flush dev eth0 scope global");
    assert!(check().failed().contains("has no address"));
    report::ran("cnitool", "CHECK of a container that was taken over");
}

#[test]
fn del_removes_the_reference_plugins_pair_with_or_without_what_the_runtime_tells() {
    // With its cached result, as runtimes do.
    let (sandbox, web, _) = adopted(&v4());
    cnitool(&sandbox, "del", "web", "web").ok();
    assert_eq!(veths(&sandbox), 1, "only db's is left");
    assert!(!held(&sandbox).contains(web.address()));
    assert!(!sandbox.links_in(&web.netns).contains("eth0"));
    // Without result and without namespace: the record tells.
    let (sandbox, web, db) = adopted(&v4());
    let container = |pod: &Pod| sandbox.record(RECORDS, pod.address())["container"].as_str().unwrap().to_owned();
    let mut config = conflist(Family::Osvc, &v4())["plugins"][0].clone();
    config["cniVersion"] = json!("1.0.0");
    config["name"] = json!("net1");
    let call = sandbox.plugin("osvc-bridge").config(config).named("web");
    call.clone().container(&container(&web)).no_netns().del();
    assert_eq!((veths(&sandbox), held(&sandbox)), (1, [db.address().to_owned()].into()));
    assert!(sandbox.ping(&db.netns, "10.9.0.1"), "the other one's is not touched");
    // Again, and somebody who is nobody's.
    call.clone().container("stranger").no_netns().del();
    assert_eq!(veths(&sandbox), 1);
    call.container(&container(&db)).netns(&db.netns).del();
    assert_eq!((veths(&sandbox), held(&sandbox).len()), (0, 0));
    report::ran(&report::kernel(), "DEL of a container that was taken over");
}

#[test]
fn gc_keeps_the_living_and_frees_the_dead() {
    let (sandbox, web, db) = adopted(&v4());
    assert_eq!(osvc_net(&sandbox, &["gc"]).ok(), "net1: nothing to give back\n");
    let mut config = conflist(Family::Osvc, &v4())["plugins"][0].clone();
    for (key, value) in
        [("cniVersion", json!("1.1.0")), ("name", json!("net1")), ("cni.dev/valid-attachments", json!([]))]
    {
        config[key] = value;
    }
    sandbox.plugin("osvc-bridge").config(config.clone()).call("GC").done();
    assert_eq!(held(&sandbox).len(), 2, "they live: another runtime's");
    assert_eq!(veths(&sandbox), 2);
    sandbox.delete_netns(&db.netns);
    sandbox.plugin("osvc-bridge").config(config).call("GC").done();
    assert_eq!(held(&sandbox), [web.address().to_owned()].into());
}

#[test]
fn a_restart_keeps_the_address_and_so_does_a_reboot() {
    let (mut sandbox, web, db) = adopted(&both());
    assert_eq!(web.restart(&sandbox), web.addresses);
    assert_eq!(db.restart(&sandbox), db.addresses);
    assert_eq!(veths(&sandbox), 0);
    sandbox.reboot();
    sandbox.netns("db");
    assert_eq!(super::add(&sandbox, "db", "db"), db.addresses);
    assert!(files(&sandbox).is_empty());
}
