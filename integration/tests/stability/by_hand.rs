//! Records, folders and locks that somebody else made, changed or took away while everything ran.

use std::collections::BTreeSet;
use std::time::Duration;

use integration::{Family, Sandbox, addresses_of};
use serde_json::json;

use crate::{ipam, plugin, start};

const FOLDER: &str = "/var/lib/cni/osvc/ipam/net1";

#[test]
fn a_record_removed_by_hand_is_a_free_address() {
    let sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/29"}));
    for n in 0..5 {
        start(&sandbox, &config, &format!("id-{n}"), &format!("name{n}"));
    }
    sandbox.sh(&format!("rm {FOLDER}/10.9.0.4")).ok();
    assert_eq!(start(&sandbox, &config, "new", "new").1, ["10.9.0.4/29"]);
}

#[test]
fn a_record_put_back_by_hand_is_its_keys() {
    let sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/24"}));
    let (_, first) = start(&sandbox, &config, "id-1", "web");
    let file = format!("{FOLDER}/{}", first[0].trim_end_matches("/24"));
    sandbox.sh(&format!("sed 's/\"web\"/\"db\"/; s/\"held\"/\"reserved\"/' {file} > {FOLDER}/10.9.0.77")).ok();
    assert_eq!(start(&sandbox, &config, "id-2", "db").1, ["10.9.0.77/24"]);
    plugin(&sandbox, &config).container("id-2").del();
    assert_eq!(sandbox.record(FOLDER, "10.9.0.77")["state"], "reserved", "and stays reserved for it");
}

#[test]
fn links_pipes_and_folders_in_place_of_records_stop_nobody() {
    let sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/29"}));
    sandbox
        .sh(&format!(
            "set -e; mkdir -p {FOLDER}/10.9.0.2/x {FOLDER}/notes; ln -s nowhere {FOLDER}/10.9.0.3; mkfifo {FOLDER}/10.9.0.4
             ln -s /dev/zero {FOLDER}/10.9.0.5; mkdir -p /var/lib/cni/networks/net1
             mkfifo /var/lib/cni/networks/net1/10.9.0.6"
        ))
        .ok();
    let given: BTreeSet<_> =
        (0..5).map(|n| start(&sandbox, &config, &format!("id-{n}"), &format!("name{n}")).1).collect();
    assert_eq!(given.len(), 5, "every address is usable: {given:?}");
    assert!(sandbox.exists(&format!("{FOLDER}/notes")), "a folder is in nobody's way");
    plugin(&sandbox, &config).container("id-0").del();
}

#[test]
fn an_address_that_lives_under_another_data_dir_is_not_given_twice() {
    let sandbox = Sandbox::new();
    let config = |folder: &str| ipam(json!({"subnet": "10.9.0.0/29", "dataDir": folder}));
    let (_, first) = start(&sandbox, &config("/var/lib/a"), "id-1", "web");
    let address = first[0].trim_end_matches("/29");
    let netns = sandbox.netns("pod");
    let call = plugin(&sandbox, &config("/var/lib/b")).container("id-2").netns(&netns).args(&format!("IP={address}"));
    let (_, message) = call.add_fails();
    assert!(message.contains("web") && message.contains("id-1"), "the holder is named: {message}");
    let rest: BTreeSet<_> =
        (2..6).map(|n| start(&sandbox, &config("/var/lib/b"), &format!("id-{n}"), &format!("name{n}")).1).collect();
    assert!(rest.len() == 4 && !rest.contains(&first), "{rest:?}");
    let (code, message) = plugin(&sandbox, &config("/var/lib/b")).call("STATUS").error();
    assert_eq!(code, 50, "{message}");
    // Its own ADD again is not in its own way, and its DEL frees both records.
    let own = plugin(&sandbox, &config("/var/lib/b")).container("id-1").netns_path("/run/netns/id-1");
    assert_eq!(addresses_of(&own.clone().args(&format!("IP={address};K8S_POD_NAME=web")).add()), first);
    own.del();
    call.add();
}

#[test]
fn a_folder_that_cannot_be_there_keeps_no_del_from_succeeding() {
    let sandbox = Sandbox::new();
    sandbox.sh("ln -s loop /run/loop").ok();
    let long = format!("/{}", "x".repeat(300));
    let (_, address) = start(&sandbox, &ipam(json!({"subnet": "10.9.0.0/24"})), "id-1", "web");
    for key in ["dataDir", "hostLocalDir"] {
        for folder in ["/etc/passwd", "/dev/null", "/run/loop", "/a\0b", "relative", &long] {
            plugin(&sandbox, &ipam(json!({"subnet": "10.9.0.0/24", key: folder}))).container("id-0").del();
        }
    }
    plugin(&sandbox, &ipam(json!({"dataDir": "/etc/passwd"}))).container("id-1").del();
    assert!(sandbox.held(Family::Osvc, "net1").is_empty(), "{address:?} is free");
}

#[test]
fn a_data_dir_elsewhere_needs_nothing_of_var_lib_cni() {
    let sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/24", "dataDir": "/run/data"}));
    sandbox.sh("mount -t tmpfs -o ro tmpfs /var/lib/cni").ok();
    plugin(&sandbox, &config).call("STATUS").done();
    start(&sandbox, &config, "id-1", "web");
    plugin(&sandbox, &config).container("id-1").del();
    let (code, _) = plugin(&sandbox, &ipam(json!({"subnet": "10.9.0.0/24"}))).call("STATUS").error();
    assert_eq!(code, 50);
}

#[test]
fn no_data_dir_makes_one_network_the_folder_of_the_others() {
    let sandbox = Sandbox::new();
    let (_, first) = start(&sandbox, &ipam(json!({"subnet": "10.9.0.0/24"})), "id-1", "web");
    let mut config = ipam(json!({"subnet": "10.8.0.0/24", "dataDir": "/var/lib/cni"}));
    for name in ["ipam", "folders", "networks"] {
        config["name"] = json!(name);
        start(&sandbox, &config, name, "web");
    }
    assert!(sandbox.exists(&format!("{FOLDER}/{}", first[0].trim_end_matches("/24"))), "the record is where it was");
}

#[test]
fn a_relative_netns_is_the_same_one_from_everywhere() {
    let sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/24"}));
    sandbox.netns("pod");
    let call = plugin(&sandbox, &config).args("IP=10.9.0.9");
    let from_run = ["env", "-C", "/run", "--"];
    call.clone().container("id-1").netns_path("netns/pod").through(&from_run).add();
    let other = sandbox.netns("other");
    let (code, message) = call.container("id-2").netns(&other).add_fails();
    assert_eq!(code, 101, "{message}");
}

#[test]
fn status_does_not_wait_for_a_lock_as_an_add_does() {
    let sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/24"}));
    start(&sandbox, &config, "id-1", "web");
    sandbox.background(&format!("exec flock {FOLDER}/lock sleep 60"), "/run/log");
    sandbox.wait_for("the lock is held", &format!("! flock -n {FOLDER}/lock true"));
    let reply = plugin(&sandbox, &config).call("STATUS");
    assert!(reply.elapsed() < Duration::from_secs(5), "{:?}", reply.elapsed());
    let (code, message) = reply.error();
    assert_eq!(code, 50, "{message}");
    assert!(message.contains("lock"), "{message}");
}

#[test]
fn what_host_local_or_opensvc_keeps_for_the_caller_is_the_callers() {
    let sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/24"}));
    sandbox.write("/var/lib/cni/networks/net1/10.9.0.50", "id-1\r\neth0");
    sandbox.write("/var/lib/opensvc/ipam/net1/10.9.0.60", "test/svc/web!ip#0\n");
    let netns = sandbox.netns("pod");
    let call = |id: &str, args: &str| plugin(&sandbox, &config).container(id).netns(&netns).args(args);
    for (id, args) in [("id-2", "IP=10.9.0.50"), ("id-2", "OSVC_KEY=test/svc/db!ip#0;IP=10.9.0.60")] {
        assert_eq!(call(id, args).add_fails().0, 101, "somebody else's: {args}");
    }
    assert_eq!(addresses_of(&call("id-1", "IP=10.9.0.50").add()), ["10.9.0.50/24"]);
    assert_eq!(addresses_of(&call("id-3", "OSVC_KEY=test/svc/web!ip#0;IP=10.9.0.60").add()), ["10.9.0.60/24"]);
    call("id-1", "").del();
    assert!(!sandbox.exists("/var/lib/cni/networks/net1/10.9.0.50"), "the DEL was for both records");
    call("id-4", "IP=10.9.0.50").add();
}
