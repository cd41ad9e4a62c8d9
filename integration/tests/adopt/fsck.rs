//! fsck has nothing to say of who was taken over or given back.

use integration::{Family, Sandbox};
use serde_json::{Value, json};

use super::{both, cnitool, files, held, osvc_net, records, start, switch};

/// Both families publish a port and check sources, so that their records name the addresses as well.
fn conflist(family: Family) -> Value {
    let mut conflist = super::conflist(family, &both());
    let portmap = if family == Family::Osvc { "osvc-portmap" } else { "portmap" };
    conflist["plugins"][0]["macspoofchk"] = json!(family == Family::Osvc);
    conflist["plugins"].as_array_mut().unwrap().push(json!({"type": portmap, "capabilities": {"portMappings": true}}));
    conflist
}

fn change(sandbox: &Sandbox, family: Family) {
    sandbox.write("/etc/cni/net.d/net1.conflist", &conflist(family).to_string());
}

#[track_caller]
fn silent(sandbox: &Sandbox, when: &str) {
    for words in [&["fsck"][..], &["fsck", "net1"]] {
        let told = osvc_net(sandbox, words);
        assert_eq!((told.rc, told.stdout.as_str()), (0, ""), "{when}: {told}");
    }
}

#[test]
fn is_silent_before_and_after_in_whatever_order() {
    let sandbox = Sandbox::new();
    change(&sandbox, Family::Reference);
    start(&sandbox, "old", "old");
    silent(&sandbox, "host-local's alone");
    change(&sandbox, Family::Osvc);
    osvc_net(&sandbox, &["setup"]).ok();
    silent(&sandbox, "the conflist switched");
    osvc_net(&sandbox, &["adopt"]).ok();
    silent(&sandbox, "taken over");
    sandbox.netns("new");
    let ports = r#"{"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}"#;
    let args = format!("CNI_PATH=/opt/cni/bin CAP_ARGS='{ports}' CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAME=new'");
    sandbox.sh(&format!("{args} cnitool add net1 /run/netns/new")).ok();
    silent(&sandbox, "with one of ours");
    osvc_net(&sandbox, &["adopt", "--undo"]).ok();
    assert_eq!((held(&sandbox).len(), files(&sandbox).len()), (0, 4));
    silent(&sandbox, "given back");
    change(&sandbox, Family::Reference);
    silent(&sandbox, "given back, and the conflist too");
    let before = records(&sandbox);
    assert_eq!(osvc_net(&sandbox, &["fsck", "--repair"]).ok(), "nothing to repair\n");
    assert_eq!((records(&sandbox), files(&sandbox).len()), (before, 4), "the way back is not undone");
    // Without a conflist the usual folder is host-local's.
    sandbox.sh("rm /etc/cni/net.d/net1.conflist").ok();
    silent(&sandbox, "without a conflist");
    // What is in neither store is told still.
    change(&sandbox, Family::Osvc);
    sandbox.sh(&format!("rm {}/*.*.*.*", super::FILES)).ok();
    let told = osvc_net(&sandbox, &["fsck"]);
    assert!(told.rc == 1 && told.stdout.contains("which no record says"), "{told}");
    switch(&sandbox, Family::Osvc, &both());
    cnitool(&sandbox, "del", "new", "new").ok();
}
