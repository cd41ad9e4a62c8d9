//! Networks that are not to be taken over, dry runs, bad input.

use integration::{Family, Sandbox};
use serde_json::json;

use super::{RECORDS, both, conflist, files, held, osvc_net, start, switch, tree, v4};

#[test]
fn a_conflist_that_still_says_host_local_is_refused_and_others_go_on() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &v4());
    let web = start(&sandbox, "web", "web");
    let mut other = conflist(Family::Reference, &json!({"ranges": [[{"subnet": "10.8.0.0/24"}]]}));
    (other["name"], other["plugins"][0]["bridge"]) = (json!("net0"), json!("br8"));
    sandbox.write("/etc/cni/net.d/net0.conflist", &other.to_string());
    sandbox.netns("zero");
    sandbox.sh("CNI_PATH=/opt/cni/bin cnitool add net0 /run/netns/zero").ok();
    switch(&sandbox, Family::Osvc, &v4());
    let told = osvc_net(&sandbox, &["adopt"]);
    assert_eq!(told.rc, 1, "{told}");
    let way_out = "network net0: change the type from \"bridge\" to \"osvc-bridge\" and ipam.type from \"host-local\" to \
                   \"osvc-ipam\" in /etc/cni/net.d/net0.conflist first";
    assert!(told.stderr.contains(way_out), "{told}");
    assert!(told.stdout.contains(&format!("net1: {} of \"web\"", web.address())), "{told}");
    assert_eq!(sandbox.list("/var/lib/cni/networks/net0").len(), 3, "its record, lock, last address");
    assert!(!sandbox.exists("/var/lib/cni/osvc/ipam/net0"));
    // Half of the way.
    other["plugins"][0]["type"] = json!("osvc-bridge");
    sandbox.write("/etc/cni/net.d/net0.conflist", &other.to_string());
    let told = osvc_net(&sandbox, &["adopt", "-n", "net0"]).failed();
    assert!(told.contains("net0: change ipam.type from"), "{told}");
    other["plugins"][0]["ipam"]["type"] = json!("osvc-ipam");
    sandbox.write("/etc/cni/net.d/net0.conflist", &other.to_string());
    let told = osvc_net(&sandbox, &["adopt"]).ok();
    assert!(told.starts_with("net0: 10.8.0.2 of ") && told.contains("net1: nothing"), "{told}");
}

#[test]
fn bad_input() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &v4());
    start(&sandbox, "web", "web");
    let before = tree(&sandbox, "/var/lib/cni");
    assert!(osvc_net(&sandbox, &["adopt", "-n", "nte1"]).failed().contains("did you mean \"net1\""));
    let plain = json!({"cniVersion": "1.0.0", "name": "plain", "plugins": [{"type": "loopback"}]});
    sandbox.write("/etc/cni/net.d/plain.conflist", &plain.to_string());
    assert!(osvc_net(&sandbox, &["adopt", "-n", "plain"]).failed().contains("network plain: no osvc plugin gives"));
    sandbox.write("/etc/cni/net.d/bad.conflist", "{\n  \"name\": }");
    assert!(osvc_net(&sandbox, &["adopt"]).failed().contains("bad.conflist:2:11"));
    assert_eq!(tree(&sandbox, "/var/lib/cni"), before);
}

#[test]
fn a_dry_run_changes_nothing_and_tells_all() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &v4());
    let (web, db) = (start(&sandbox, "web", "web"), start(&sandbox, "db", "db"));
    sandbox.delete_netns(&db.netns);
    switch(&sandbox, Family::Osvc, &v4());
    let dry = |words: &[&str]| {
        let before = tree(&sandbox, "/var/lib/cni");
        let told = osvc_net(&sandbox, &[words, &["--dry-run"]].concat()).ok();
        assert_eq!(tree(&sandbox, "/var/lib/cni"), before, "{words:?}");
        told
    };
    let as_done = |told: &str| {
        told.replace("would be taken", "taken")
            .replace("would be removed", "removed")
            .replace("would be given", "given")
    };
    let planned = dry(&["adopt"]);
    assert!(planned.contains("would be taken over") && planned.contains("would be removed"), "{planned}");
    assert!(!sandbox.exists("/var/lib/cni/osvc/ipam"), "not even the folder is made");
    assert_eq!(as_done(&planned), osvc_net(&sandbox, &["adopt"]).ok());
    let planned = dry(&["adopt", "--undo"]);
    assert!(
        planned.contains(&format!("{} of \"web\"", web.address())) && planned.contains("would be given"),
        "{planned}"
    );
    assert_eq!(as_done(&planned), osvc_net(&sandbox, &["adopt", "--undo"]).ok());
    assert_eq!((held(&sandbox).len(), files(&sandbox).len()), (0, 1));
    assert_eq!(dry(&["adopt", "--undo"]), "net1: nothing to give back to host-local\n");
}

#[test]
fn a_dry_run_tells_of_records_that_cannot_be_read() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Osvc, &v4());
    start(&sandbox, "ours", "ours");
    switch(&sandbox, Family::Reference, &v4());
    let (web, db) = (start(&sandbox, "web", "web"), start(&sandbox, "db", "db"));
    switch(&sandbox, Family::Osvc, &v4());
    let newer = r#"{"v":9,"key":{"source":"podman","text":"x"},"instance":0,"container":"x","ifname":"eth0","boot":"b","state":"held","uses":1,"since":"2026-01-01T00:00:00Z"}"#;
    let (at_web, elsewhere) = (format!("{RECORDS}/{}", web.address()), format!("{RECORDS}/10.9.0.99"));
    for path in [&at_web, &elsewhere] {
        sandbox.write(path, newer);
    }
    let (planned, done) = (osvc_net(&sandbox, &["adopt", "--dry-run"]), osvc_net(&sandbox, &["adopt"]));
    for told in [&planned, &done] {
        let why = format!("network net1: {at_web} has format 9");
        assert!(told.rc == 1 && told.stderr.matches(&why).count() == 1, "{told}");
        assert!(told.stdout.contains(&format!("{} of \"db\"", db.address())), "{told}");
        assert!(!told.stdout.contains(web.address()), "{told}");
    }
    assert!(planned.stderr.contains(&format!("network net1: {elsewhere} has format 9")), "{planned}");
    assert_eq!(files(&sandbox).into_keys().collect::<Vec<_>>(), [web.address()]);
}

#[test]
fn what_cannot_be_told_is_done_whole_and_nothing_more() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &both());
    let (one, two) = (start(&sandbox, "one", "one"), start(&sandbox, "two", "two"));
    switch(&sandbox, Family::Osvc, &both());
    for words in ["adopt", "adopt --undo"] {
        let told = sandbox.sh(&format!("/opt/cni/bin/osvc-net {words} > /dev/full")).failed();
        assert!(told.contains("cannot print"), "{told}");
        let (first, second) = (held(&sandbox), files(&sandbox).into_keys().collect());
        let (ours, theirs) = if words == "adopt" { (first, second) } else { (second, first) };
        assert_eq!(ours, one.addresses.iter().cloned().collect(), "{words}");
        assert_eq!(theirs, two.addresses.iter().cloned().collect(), "{words}");
        osvc_net(&sandbox, &words.split(' ').collect::<Vec<_>>()).ok();
    }
}
