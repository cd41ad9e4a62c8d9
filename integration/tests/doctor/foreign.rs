//! Files and networks of others: they are not accused of what is no fault.

use serde_json::{Value, json};

use crate::{conflist, findings, machine, net1, only, silent};

const CHANGING: [&[&str]; 6] = [&["setup"], &["setup", "--quiet"], &["gc"], &["ls"], &["ip", "ls"], &["metrics"]];

#[test]
fn files_beside_the_configurations_and_below() {
    let (sandbox, _) = machine();
    sandbox.write("/etc/cni/net.d/whereabouts.d/whereabouts.conf", r#"{"datastore": "kubernetes", "log_level": "x"}"#);
    sandbox.write("/etc/cni/net.d/multus.d/daemon.json", r#"{"chrootDir": "/hostroot"}"#);
    silent(&sandbox);
    for words in CHANGING {
        let told = sandbox.osvc_net(words);
        assert_eq!((told.rc, told.stderr.as_str()), (0, ""), "{words:?}: {told}");
    }
    // In the folder itself they may be meant as networks.
    sandbox.write("/etc/cni/net.d/05-other.conf", r#"{"cniVersion": "1.0.0", "type": "flannel"}"#);
    sandbox.write("/etc/cni/net.d/default/torn.conflist", "{");
    for words in CHANGING {
        let told = sandbox.osvc_net(words);
        assert_eq!(told.rc, 0, "{words:?}: {told}");
        // A timer has told nobody anything new.
        let is_told = !words.contains(&"--quiet");
        for file in ["net.d/05-other.conf:1:1: missing network name", "net.d/default/torn.conflist:1:"] {
            assert_eq!(told.stderr.contains(&format!("warning: /etc/cni/{file}")), is_told, "{words:?}: {told}");
        }
    }
    let told = sandbox.osvc_net(&["setup", "absent"]);
    assert!(told.rc == 1 && told.stderr.contains("05-other.conf:1:1") && !told.stderr.contains("warning"), "{told}");
    let found = findings(&sandbox);
    assert!(found.len() == 2 && found.iter().all(|finding| finding["id"] == "unreadable-conflist"), "{found:#?}");
    let told = sandbox.osvc_net(&["conf", "lint"]);
    assert!(told.rc == 1 && told.stdout.contains("05-other.conf:1:1: error: missing network name"), "{told}");
    // With a plugin of ours it is ours.
    for (file, text) in [
        ("05-other.conf", r#"{"type": "osvc-bridge"}"#),
        ("default/torn.conflist", r#"{"plugins": [{"type": "osvc-bridge"},]}"#),
        ("torn.conf", "{"),
        ("list.conflist", r#"{"name": "a", "plugins": [{"type": 5}]}"#),
    ] {
        sandbox.sh("rm -f /etc/cni/net.d/05-other.conf /etc/cni/net.d/default/* /etc/cni/net.d/torn.conf").ok();
        sandbox.write(&format!("/etc/cni/net.d/{file}"), text);
        for words in CHANGING {
            let told = sandbox.osvc_net(words);
            assert!(told.rc == 1 && told.stderr.contains(file), "{words:?}, {file}: {told}");
        }
    }
}

/// As nerdctl writes it, for a namespace of containerd.
fn nerdctl(id: &str, name: &str, plugin: Value) -> String {
    let mut list = conflist(name, plugin);
    list["nerdctlID"] = json!(id);
    list["nerdctlLabels"] = json!({"nerdctl/default-network": "true"});
    format!("{list:#}")
}

#[test]
fn networks_of_nerdctl_in_two_namespaces() {
    let (sandbox, _) = machine();
    let file = |namespace: &str| format!("/etc/cni/net.d/{namespace}/nerdctl-bridge.conflist");
    let foreign = |bridge: &str| json!({"type": "bridge", "bridge": bridge, "ipam": {"type": "host-local"}});
    sandbox.write(&file("a"), &nerdctl("1", "bridge", foreign("nerdctl0")));
    sandbox.write(&file("b"), &nerdctl("2", "bridge", foreign("nerdctl1")));
    sandbox.write("/etc/cni/net.d/a/x.conflist", &nerdctl("3", "bridge", foreign("nerdctl0")));
    silent(&sandbox);
    sandbox.sh("rm -r /etc/cni/net.d/a /etc/cni/net.d/b").ok();
    // The same network in both: what nerdctl notes for itself is no difference.
    let ours = net1()["plugins"][0].clone();
    sandbox.write(&file("a"), &nerdctl("1", "net1", ours.clone()));
    sandbox.write(&file("b"), &nerdctl("2", "net1", ours));
    silent(&sandbox);
    // One that says otherwise is none to be written over.
    sandbox.write(&file("b"), &nerdctl("2", "net1", foreign("nerdctl1")));
    let found = only(&sandbox, "two-conflists", &[&file("b"), "/etc/cni/net.d/net1.conflist"]);
    let help = found["help"].as_str().unwrap();
    assert!(
        !help.contains("cp ") && help.contains("another name") && help.contains("nerdctl network rm net1"),
        "{help}"
    );
}
