//! Locks that cannot be had, and how often they are asked for. How long they are waited for is tested with the locks.

use integration::{Family, Sandbox, trace};
use serde_json::json;

use super::{FILES, RECORDS, conflist, files, held, osvc_net, start, switch, v4};

#[test]
fn a_lock_that_cannot_be_had_is_told_once_and_ends_the_network() {
    for (words, folder, name) in [
        (&["adopt"][..], FILES, "host-local's lock: "),
        (&["adopt"], RECORDS, ""),
        (&["adopt", "--undo"], FILES, "host-local's lock: "),
        (&["adopt", "--undo"], RECORDS, ""),
    ] {
        let sandbox = Sandbox::new();
        let mut other = conflist(Family::Osvc, &json!({"ranges": [[{"subnet": "10.8.0.0/24"}]]}));
        (other["name"], other["plugins"][0]["bridge"]) = (json!("net2"), json!("br8"));
        sandbox.write("/etc/cni/net.d/net2.conflist", &other.to_string());
        switch(&sandbox, Family::Reference, &v4());
        for name in ["one", "two", "three"] {
            start(&sandbox, name, name);
        }
        switch(&sandbox, Family::Osvc, &v4());
        if words.len() == 2 {
            osvc_net(&sandbox, &["adopt"]).ok();
        }
        let lock = format!("{folder}/lock");
        sandbox.sh(&format!("rm -f {lock}; mkdir -p {lock}")).ok();
        let told = osvc_net(&sandbox, words);
        let line = format!("network net1: {name}cannot lock {lock}: ");
        assert_eq!((told.rc, told.stderr.matches(&line).count()), (1, 1), "{words:?}: {told}");
        assert_eq!(told.stderr.matches(&lock).count(), 1, "{words:?}: {told}");
        assert!(told.stdout.starts_with("net2: nothing to "), "others go on: {told}");
        assert_eq!(held(&sandbox).len() + files(&sandbox).len(), 3, "{words:?}: nothing is changed");
        sandbox.sh(&format!("rmdir {lock}")).ok();
        assert_eq!(osvc_net(&sandbox, words).ok().lines().count(), 4, "{words:?}");
    }
}

/// The records of one that was taken over are looked at before they are locked: the whole of a DEL waits for a lock but
/// once, and one that finds nothing locks no more than any other.
#[test]
fn a_del_locks_the_records_once() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &v4());
    let web = start(&sandbox, "web", "web");
    switch(&sandbox, Family::Osvc, &v4());
    osvc_net(&sandbox, &["adopt"]).ok();
    let mut config = conflist(Family::Osvc, &v4())["plugins"][0].clone();
    (config["cniVersion"], config["name"]) = (json!("1.0.0"), json!("net1"));
    let id = sandbox.record(RECORDS, web.address())["container"].as_str().unwrap().to_owned();
    for container in [id.as_str(), id.as_str(), "stranger"] {
        let call = sandbox.plugin("osvc-bridge").config(config.clone()).container(container).no_netns();
        let calls = trace::system_calls(&sandbox, &call, "DEL");
        let opened = calls.iter().filter(|call| call.line.contains(&format!("{RECORDS}/lock\""))).count();
        assert_eq!(opened, 1, "{container}");
        assert!(!sandbox.links().iter().any(|name| name.starts_with("veth")), "its pair is gone at the first");
    }
    assert!(held(&sandbox).is_empty());
}
