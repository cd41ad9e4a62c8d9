//! Where networks are found, and new ones.

use integration::{Sandbox, report};
use serde_json::{Value, json};

use super::{install, osvc_net};

#[test]
fn networks_are_found_where_all_runtimes_look() {
    let sandbox = Sandbox::new();
    let folders = ["/etc/cni/net.d", "/etc/cni/net.d/default", "/opt/cni/config", "/var/lib/opensvc/cni/net.d"];
    for (index, folder) in folders.iter().enumerate() {
        install(&sandbox, folder, &format!("net{index}"), &format!("10.{index}.0.0/24"));
    }
    let told = osvc_net(&sandbox, &["setup"]).ok();
    for index in 0..4 {
        assert!(told.contains(&format!("net{index}: set up, bridge obr_net{index} with 10.{index}.0.1/24")), "{told}");
    }
    // Only where it is told to look, and of what was set up before.
    let told = osvc_net(&sandbox, &["setup", "--conf-dir", "/opt/cni/config", "--conf-dir", "/etc/cni/net.d"]).ok();
    assert!(told.contains("net0: in place") && told.contains("net2: in place"), "{told}");
    assert!(told.contains("net3: set up here, but it has no configuration any more: left alone"), "{told}");
    let told = osvc_net(&sandbox, &["setup", "--conf-dir", "/etc/absent"]).failed();
    assert!(told.contains("/etc/absent") && told.contains("No such file"), "{told}");
    report::ran(&report::kernel(), "osvc-net: folders of podman, containerd, nerdctl, Nomad and OpenSVC");
}

#[test]
fn a_new_bridge_network_is_one_that_works() {
    let sandbox = Sandbox::new();
    let words = [
        "conf",
        "new",
        "bridge",
        "prod",
        "--network",
        "10.7.0.0/24",
        "--network",
        "fd07::/64",
        "--isolate",
        "--spoofcheck",
    ];
    let text = osvc_net(&sandbox, &words).ok();
    let conflist: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(conflist["plugins"][0]["network"], json!(["10.7.0.0/24", "fd07::/64"]), "{text}");
    assert_eq!(
        (&conflist["plugins"][0]["isolate"], &conflist["plugins"][1]["type"]),
        (&json!(true), &json!("osvc-portmap"))
    );
    sandbox.write("/etc/cni/net.d/prod.conflist", &text);
    let told = osvc_net(&sandbox, &["setup"]).ok();
    assert!(told.contains("bridge obr_prod with 10.7.0.1/24, fd07::1/64"), "{told}");
    for (words, what) in [
        (["--network", "10.7.0.1/24"].as_slice(), "10.7.0.1/24"),
        (&["--network", "10.7.0.0/33"], "10.7.0.0/33"),
        (&["--network", "10.7.0.0/24", "--vlan", "5000"], "5000"),
        (&["--network", "10.7.0.0/24", "--bridge", "much-too-long-a-name"], "much-too-long-a-name"),
    ] {
        let argv: Vec<&str> = ["conf", "new", "bridge", "bad"].iter().chain(words).copied().collect();
        let told = osvc_net(&sandbox, &argv);
        assert!(told.rc != 0 && told.stdout.is_empty() && told.stderr.contains(what), "{told}");
    }
    let told = osvc_net(&sandbox, &["conf", "new", "bridge", "../x", "--network", "10.7.0.0/24"]).failed();
    assert!(told.contains("../x"), "{told}");
    report::ran(&report::kernel(), "osvc-net conf new bridge");
}
