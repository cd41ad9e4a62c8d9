//! Runtimes that cannot read what is configured.

use integration::podman;
use serde_json::json;

use crate::{doctor, fake, help, machine, names, net1, only, silent, write};

fn newer() -> serde_json::Value {
    let mut conflist = net1();
    conflist["cniVersion"] = json!("1.1.0");
    conflist
}

#[test]
fn versions_that_the_runtimes_of_this_host_cannot_read() {
    let (sandbox, _) = machine();
    write(&sandbox, "net1", &newer());
    // The real ones: podman 4 and containerd 1.6 or 1.7.
    let found = crate::findings(&sandbox);
    let versions: Vec<_> = found.iter().filter(|finding| finding["id"] == "cni-version").collect();
    assert_eq!((versions.len(), found.len()), (2, 2), "{found:#?}");
    names(versions[0], &["podman 4.", "/etc/cni/net.d/net1.conflist", "1.1.0", "1.0.0 at most"]);
    names(versions[1], &["containerd 1.", "1.1.0", "1.0.0 at most"]);
    fake(&sandbox, "containerd", "echo containerd github.com/containerd/containerd/v2 v2.0.1 abc");
    let found = only(&sandbox, "cni-version", &["podman 4."]);
    assert!(found["help"].as_str().unwrap().contains("\"cniVersion\": \"1.0.0\""), "{found}");
    fake(&sandbox, "podman", "echo podman version 3.4.4");
    only(&sandbox, "cni-version", &["podman 3.4.4", "0.4.0 at most"]);
    // What older runtimes read is this key alone, whatever else is offered.
    let mut offered = net1();
    offered["cniVersion"] = json!("0.4.0");
    offered["cniVersions"] = json!(["0.4.0", "1.0.0", "1.1.0"]);
    write(&sandbox, "net1", &offered);
    silent(&sandbox);
}

#[test]
fn podman_that_does_not_look_at_cni() {
    let (sandbox, _) = machine();
    fake(&sandbox, "podman", "echo podman version 5.4.1");
    let found = only(&sandbox, "podman-without-cni", &["podman 5.4.1"]);
    assert!(found["why"].as_str().unwrap().contains("net1"), "{found}");
    fake(&sandbox, "podman", "echo podman version 4.9.3");
    silent(&sandbox);
    sandbox.write("/etc/containers/containers.conf", "[network]\nnetwork_backend = \"netavark\"\n");
    only(&sandbox, "podman-without-cni", &["netavark by /etc/containers/containers.conf"]);
    sandbox.write("/etc/containers/containers.conf", "[network]\nnetwork_backend = \"cni\"\n");
    silent(&sandbox);
    sandbox.sh("rm /etc/containers/containers.conf").ok();
    sandbox.write("/var/lib/containers/storage/defaultNetworkBackend", "netavark");
    only(&sandbox, "podman-without-cni", &["defaultNetworkBackend"]);
}

#[test]
fn a_network_of_podmans_containers() {
    let (mut sandbox, _) = machine();
    podman::install(&mut sandbox);
    podman::run(&sandbox, "one", "net1", &[]);
    silent(&sandbox);
    sandbox.sh("echo 0 > /proc/sys/net/ipv4/ip_forward").ok();
    let found = only(&sandbox, "forwarding-off", &["ip_forward is 0"]);
    help(&sandbox, &found);
    silent(&sandbox);
    let told = doctor(&sandbox, &["nte1"]);
    assert!(told.rc == 1 && told.stderr.contains("did you mean \"net1\""), "{told}");
}
