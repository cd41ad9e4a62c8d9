//! The way back, in whatever order.

use integration::{Family, Sandbox};
use serde_json::json;

use super::{FILES, RECORDS, both, cnitool, files, held, osvc_net, start, switch, tree, v4};

#[test]
fn the_files_are_as_they_were() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &both());
    start(&sandbox, "web", "web");
    start(&sandbox, "db", "db");
    let before = tree(&sandbox, FILES);
    switch(&sandbox, Family::Osvc, &both());
    osvc_net(&sandbox, &["adopt"]).ok();
    assert!(files(&sandbox).is_empty());
    osvc_net(&sandbox, &["adopt", "--undo"]).ok();
    let told = osvc_net(&sandbox, &["adopt", "--undo"]).ok();
    assert_eq!(told, "net1: nothing to give back to host-local\n");
    // Names, modes, texts, and times to the microsecond; but for the folder's own time.
    let comparable = |tree: String| -> Vec<String> {
        let lines = tree.lines().filter(|line| !line.starts_with(". d"));
        lines
            .map(|line| {
                line.split_whitespace()
                    .map(|word| &word[..word.len().min(33)])
                    .map(|word| {
                        word.split_once('.')
                            .filter(|(whole, _)| whole.len() == 10)
                            .map_or(word.to_owned(), |(whole, part)| format!("{whole}.{}", &part[..6]))
                    })
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    };
    assert_eq!(comparable(tree(&sandbox, FILES)), comparable(before));
    // And forth again: the memory of the keys is in nobody's way.
    assert_eq!(osvc_net(&sandbox, &["adopt"]).ok().lines().count(), 4);
    assert_eq!(held(&sandbox).len(), 4);
}

#[test]
fn the_reference_plugins_go_on_with_containers_of_ours() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Osvc, &v4());
    let (one, two) = (start(&sandbox, "one", "one"), start(&sandbox, "two", "two"));
    // A released and a reserved one stay what they are.
    let gone = start(&sandbox, "gone", "gone");
    cnitool(&sandbox, "del", "gone", "gone").ok();
    let mut record = sandbox.record(RECORDS, gone.address());
    (record["state"], record["pinned"]) = (json!("reserved"), json!(true));
    sandbox.write(&format!("{RECORDS}/10.9.0.99"), &record.to_string());
    // The conflist first: the network is known by its records, and by host-local's keys.
    switch(&sandbox, Family::Reference, &v4());
    let told = osvc_net(&sandbox, &["adopt", "--undo"]).ok();
    assert_eq!(told.lines().count(), 2, "{told}");
    assert_eq!(sandbox.record(RECORDS, "10.9.0.99"), record);
    assert_eq!(files(&sandbox).len(), 2);
    // host-local gives these addresses to nobody.
    let mut all = vec![one.address().to_owned(), two.address().to_owned()];
    for number in 0..4 {
        all.push(start(&sandbox, &format!("n{number}"), &format!("n{number}")).address().to_owned());
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 6);
    assert_eq!(one.restart(&sandbox).len(), 1);
    cnitool(&sandbox, "del", "two", "two").ok();
    assert!(!files(&sandbox).contains_key(two.address()));
    assert!(!sandbox.links_in(&two.netns).contains("eth0"));
}

#[test]
fn without_a_conflist_and_with_a_folder_of_its_own() {
    let sandbox = Sandbox::new();
    let ipam = json!({"ranges": [[{"subnet": "10.9.0.0/24"}]], "dataDir": "/var/lib/elsewhere"});
    switch(&sandbox, Family::Osvc, &ipam);
    let web = start(&sandbox, "web", "web");
    switch(&sandbox, Family::Reference, &ipam);
    osvc_net(&sandbox, &["adopt", "--undo"]).ok();
    let text = sandbox.read(&format!("/var/lib/elsewhere/net1/{}", web.address()));
    assert!(text.ends_with("\r\neth0"), "{text:?}");
    cnitool(&sandbox, "del", "web", "web").ok();
    assert!(!sandbox.exists(&format!("/var/lib/elsewhere/net1/{}", web.address())));
    switch(&sandbox, Family::Osvc, &v4());
    let db = start(&sandbox, "db", "db");
    sandbox.sh("rm /etc/cni/net.d/net1.conflist").ok();
    assert!(osvc_net(&sandbox, &["adopt", "-n", "net1"]).failed().contains("no configuration"));
    osvc_net(&sandbox, &["adopt", "--undo"]).ok();
    assert!(files(&sandbox).contains_key(db.address()));
}

#[test]
fn what_host_local_gave_to_another_and_what_is_dead_is_not_given_back() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Osvc, &v4());
    let (web, db) = (start(&sandbox, "web", "web"), start(&sandbox, "db", "db"));
    sandbox.delete_netns(&db.netns);
    sandbox.write(&format!("{FILES}/{}", web.address()), "stranger\r\neth0");
    let told = osvc_net(&sandbox, &["adopt", "--undo"]);
    assert_eq!(told.rc, 1, "{told}");
    assert!(
        told.stderr.contains(&format!("{} of container ", web.address())) && told.stderr.contains("\"stranger\""),
        "{told}"
    );
    assert!(
        told.stdout.contains(&format!("{} of \"db\" (", db.address())) && told.stdout.contains("it is gone; released"),
        "{told}"
    );
    assert_eq!(held(&sandbox), [web.address().to_owned()].into());
    assert_eq!(files(&sandbox)[web.address()], "stranger\r\neth0");
    assert!(!files(&sandbox).contains_key(db.address()));
}

#[test]
fn a_network_that_never_was_host_locals_is_given_back_only_by_name() {
    let sandbox = Sandbox::new();
    let conflist =
        json!({"cniVersion": "1.0.0", "name": "net1", "plugins": [{"type": "osvc-bridge", "network": "10.9.0.0/24"}]});
    sandbox.write("/etc/cni/net.d/net1.conflist", &conflist.to_string());
    let web = start(&sandbox, "web", "web");
    assert_eq!(osvc_net(&sandbox, &["adopt", "--undo"]).ok(), "");
    assert_eq!(held(&sandbox), [web.address().to_owned()].into());
    osvc_net(&sandbox, &["adopt", "--undo", "-n", "net1"]).ok();
    assert!(held(&sandbox).is_empty() && files(&sandbox).contains_key(web.address()));
}
