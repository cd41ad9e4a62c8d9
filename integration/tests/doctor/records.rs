//! Records of what was set up: torn ones, newer ones, those of before a reboot.

use integration::Sandbox;
use integration::cluster::Cluster;
use serde_json::json;

use crate::{doctor, help, machine, only, silent};

const RECORD: &str = "/var/lib/cni/osvc/networks/net1.json";

/// All files of the store and what is in them, and when that was changed.
fn store(sandbox: &Sandbox) -> String {
    sandbox
        .sh("cd /var/lib/cni/osvc; find . -type f -printf '%p %T@\\n' -exec cat {} + | sort; find . -type d | sort")
        .ok()
}

#[test]
fn a_torn_record_stays_where_it_is_for_those_who_only_look() {
    let (sandbox, _) = machine();
    let whole = sandbox.read(RECORD);
    sandbox.write(RECORD, &whole[..whole.len() / 2]);
    let before = store(&sandbox);
    for words in [
        &["ls"][..],
        &["ip", "ls"],
        &["peers"],
        &["metrics"],
        &["fsck"],
        &["setup", "--dry-run"],
        &["teardown", "--dry-run", "net1"],
        &["gc", "--dry-run"],
        &["doctor"],
    ] {
        let told = sandbox.osvc_net(words);
        assert_eq!(store(&sandbox), before, "{words:?}");
        assert_eq!(told.rc, 1, "{words:?}: {told}");
        let text = format!("{}{}", told.stdout, told.stderr);
        assert_eq!(text.matches(RECORD).count(), 1, "{words:?}: {told}");
        assert!(!text.contains("set aside as"), "{words:?}: {told}");
    }
    let found = only(&sandbox, "torn-record", &[RECORD, "is no record"]);
    assert_eq!(found["network"], "net1");
    // It matters to its own network alone.
    crate::write(&sandbox, "net2", &crate::conflist("net2", json!({"type": "osvc-bridge", "network": "10.10.0.0/24"})));
    sandbox.osvc_net(&["ls", "net2"]).ok();
    sandbox.sh("rm /etc/cni/net.d/net2.conflist").ok();
    help(&sandbox, &found);
    assert_eq!(sandbox.read(RECORD), whole);
    sandbox.sh("ls /var/lib/cni/osvc/networks/corrupt/net1.json").ok();
    silent(&sandbox);
}

#[test]
fn torn_and_newer_records_of_a_routed_network() {
    let cluster = Cluster::new(&[0, 0], &[]);
    crate::by_vxlan(&cluster);
    let sandbox = &cluster.nodes[0].sandbox;
    silent(sandbox);
    let files = sandbox.sh("find /var/lib/cni/osvc/segments /var/lib/cni/osvc/routed -name net.json").ok();
    assert_eq!(files.lines().count(), 2, "{files}");
    for file in files.lines() {
        let whole = sandbox.read(file);
        sandbox.write(file, "{\"v\":1,");
        let before = store(sandbox);
        let found = crate::one_of(sandbox, "torn-record", &[file]);
        assert_eq!(found["network"], "net");
        assert_eq!(store(sandbox), before, "{file}");
        help(sandbox, &found);
        assert_eq!(sandbox.read(file), whole, "{file}");
        silent(sandbox);
        sandbox.write(file, "{\"v\":9}");
        let found = only(sandbox, "newer-record", &[file, "has format 9"]);
        assert_eq!(found["network"], "net");
        sandbox.write(file, &whole);
        silent(sandbox);
    }
}

#[test]
fn records_of_a_later_version_are_told_by_every_command() {
    let (sandbox, _) = machine();
    let path = "/var/lib/cni/osvc/networks/v6.json";
    sandbox.write(path, "{\"v\":9}");
    let before = store(&sandbox);
    for words in [
        &["ls"][..],
        &["ls", "v6"],
        &["setup"],
        &["setup", "v6"],
        &["setup", "--dry-run"],
        &["teardown", "v6"],
        &["teardown", "--all", "--dry-run"],
        &["gc"],
        &["fsck"],
        &["ip", "ls"],
        &["metrics"],
    ] {
        let told = sandbox.osvc_net(words);
        assert_eq!(told.rc, 1, "{words:?}: {told}");
        let line = format!("network v6: {path} has format 9, this version knows 1: install the version that wrote it");
        assert_eq!(told.stderr.matches(&line).count(), 1, "{words:?}: {told}");
        assert!(!told.stderr.contains("teardown v6"), "{words:?}: {told}");
    }
    assert_eq!(store(&sandbox), before);
    sandbox.osvc_net(&["setup", "net1"]).ok();
    let found = only(&sandbox, "newer-record", &[path, "has format 9"]);
    assert_eq!(found["network"], "v6");
    assert!(found["help"].as_str().unwrap().starts_with("install the osvc-cni version"), "{found}");
    sandbox.sh(&format!("rm {path}")).ok();
    silent(&sandbox);
}

#[test]
fn what_was_set_up_before_a_reboot_is_not_set_up() {
    let (mut sandbox, _) = machine();
    sandbox.sh("rm /etc/cni/net.d/net1.conflist").ok();
    only(&sandbox, "conflist-gone", &["bridge obr_net1"]);
    sandbox.reboot();
    doctor(&sandbox, &[]).ok();
    silent(&sandbox);
}
