//! `osvc-net setup` each minute by a timer: it is silent as long as nothing is new.

use integration::cluster::{Cluster, Underlay};
use integration::report;
use serde_json::json;

use super::{install, osvc_net};
use integration::Sandbox;

/// A kernel without the module of tunnels that only receive: `tunnel` is never, and others may still send by ipip.
#[test]
fn a_kind_of_tunnel_that_is_missing_is_told_once() {
    let cluster = Cluster::new(&[0, 0], &[]);
    let node = &cluster.nodes[0];
    let mut config = cluster.network("net1", Underlay::V4, &[("10.11.0.0/16", 22)]);
    config["tunnel"] = json!("never");
    node.install(&config);
    // What is in the kernel cannot be taken away from it; that it is not made can.
    let lacks = node.sandbox.sh("ip link add try type ipip local 127.0.0.1 remote 127.0.0.2").rc != 0;
    if !lacks {
        node.sandbox.ip("link del try");
        report::ran(&report::kernel(), "osvc-net setup --quiet: the kernel has ipip, nothing is missing");
        return;
    }
    let missing = "nothing can be received by ipip: this kernel has no module ipip";
    let told = node.osvc_net(&["setup", "--quiet"]);
    assert!(told.rc == 0 && told.stdout.contains("net1: set up") && told.stderr.contains(missing), "{told}");
    let files = "find /var/lib/cni /run/osvc-cni -type f -printf '%p %T@ %i\n' | sort; nft -a list ruleset";
    let state = || node.sandbox.sh(files).ok();
    let before = state();
    let told = node.osvc_net(&["setup"]);
    assert!(told.rc == 0 && told.stdout.contains("net1: in place") && !told.stdout.contains("firewall"), "{told}");
    assert!(told.stderr.contains(missing), "who asks is told: {told}");
    assert_eq!(state(), before);
    let told = node.osvc_net(&["setup", "--quiet"]);
    assert_eq!((told.rc, told.stdout.as_str(), told.stderr.as_str()), (0, "", ""), "{told}");
    assert_eq!(state(), before);
    report::ran(&report::kernel(), "osvc-net setup --quiet on a kernel without ipip");
}

#[test]
fn a_record_that_cannot_be_read_is_told_once() {
    let sandbox = Sandbox::new();
    install(&sandbox, "/etc/cni/net.d", "net1", "10.9.0.0/24");
    let web = sandbox.network("net1", &["10.9.0.0/24"]).container("web");
    let path = format!("/var/lib/cni/osvc/ipam/net1/{}", web.v4);
    let whole = sandbox.read(&path);
    for (text, what) in [(whole.replace("\"v\":1", "\"v\":9"), "has format 9"), ("{\"v\":1,".to_owned(), "")] {
        sandbox.write(&path, &text);
        let told = osvc_net(&sandbox, &["setup", "--quiet"]);
        assert!(told.rc == 1 && told.stderr.contains(what), "{told}");
        assert_eq!(told.stderr.matches(&path).count(), 1, "{told}");
        assert_eq!(sandbox.read(&path), text);
    }
    sandbox.write(&path, &whole);
    assert_eq!(osvc_net(&sandbox, &["setup", "--quiet"]).ok(), "");
    report::ran(&report::kernel(), "osvc-net setup with an unreadable address record");
}

/// Told to people, once by doctor, and not each minute by a timer.
#[test]
fn a_file_of_somebody_else_is_told_to_people_alone() {
    let sandbox = Sandbox::new();
    super::install(&sandbox, "/etc/cni/net.d", "net1", "10.9.0.0/24");
    sandbox.write("/etc/cni/net.d/other.conf", r#"{"kubeconfig": "/etc/x"}"#);
    let told = osvc_net(&sandbox, &["setup"]);
    assert!(told.rc == 0 && told.stderr.contains("/etc/cni/net.d/other.conf"), "{told}");
    for words in [["setup", "--quiet"], ["gc", "--quiet"]] {
        let told = osvc_net(&sandbox, &words);
        assert_eq!((told.rc, told.stdout.as_str(), told.stderr.as_str()), (0, "", ""), "{words:?}");
    }
    report::ran(&report::kernel(), "osvc-net setup --quiet beside somebody else's files");
}
