//! With containers of podman.

use integration::podman::{self, CONF, podman as run_podman};
use integration::report;

use super::*;

#[test]
fn containers_of_podman_keep_their_addresses() {
    let mut sandbox = Sandbox::new();
    podman::install(&mut sandbox);
    let conflist = json!({"cniVersion": "1.0.0", "name": "net1", "plugins": [
        {"type": "osvc-bridge", "network": "10.9.0.0/24"},
        {"type": "osvc-portmap", "capabilities": {"portMappings": true}}]});
    sandbox.write(&format!("{CONF}/net1.conflist"), &conflist.to_string());
    podman::run(&sandbox, "web", "net1", &["-p", "8080:80"]);
    podman::run(&sandbox, "db", "net1", &[]);
    silent(&sandbox, "podman's containers");
    let addresses = ["web", "db"].map(|name| podman::address(&sandbox, name));
    sandbox.sh(&format!("cd {FOLDER}; rm {}; rm -rf by-attachment; echo > {}", addresses[0], addresses[1])).ok();
    let told = osvc_net(&sandbox, &["fsck", "--repair"]);
    assert_eq!(told.rc, 0, "{told}");
    silent(&sandbox, "mended");
    for name in ["web", "db"] {
        run_podman(&sandbox, &["restart", "-t", "0", name]).ok();
    }
    assert_eq!(["web", "db"].map(|name| podman::address(&sandbox, name)), addresses);
    silent(&sandbox, "restarted");
    report::ran(&podman::version(&sandbox), "osvc-net fsck");
}
