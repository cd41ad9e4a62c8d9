//! `dataDir` was changed while containers ran.

use integration::report;

use super::*;

/// The folder of before, and the one of now.
const FOLDERS: [&str; 2] = ["/var/lib/cni/osvc/ipam/net1", "/var/lib/elsewhere/osvc/net1"];

fn records(sandbox: &Sandbox, folder: &str) -> usize {
    sandbox.list(folder).iter().filter(|name| name.starts_with("10.") || name.starts_with("fd09")).count()
}

#[test]
fn one_attachment_in_two_folders_is_nobodys_fault() {
    let sandbox = Sandbox::new();
    let network = network(&sandbox);
    let pods = containers(&network);
    let moved = network.with_bridge("ipam", json!({"dataDir": "/var/lib/elsewhere"}));
    sandbox.write("/etc/cni/net.d/net1.conflist", &moved.conflist().to_string());
    // A runtime that asks once more.
    let config = json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "ipam": {"type": "osvc-ipam",
        "ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]], "dataDir": "/var/lib/elsewhere"}});
    let again = sandbox.plugin("osvc-ipam").config(config).container("web").named("web").netns(&pods[0].netns).add();
    let again: Vec<String> = integration::addresses_of(&again);
    assert_eq!(again, [format!("{}/24", pods[0].v4), format!("{}/64", pods[0].v6)]);
    assert_eq!(FOLDERS.map(|folder| records(&sandbox, folder)), [4, 2]);
    silent(&sandbox, "recorded in two folders");
    let listed = osvc_net(&sandbox, &["ip", "ls"]).ok();
    assert_eq!(listed.lines().filter(|line| line.starts_with("web ")).count(), 2, "{listed}");
    let counted: Value = serde_json::from_str(&osvc_net(&sandbox, &["ls", "-o", "json"]).ok()).unwrap();
    assert_eq!((&counted[0]["held"], &counted[1]["held"]), (&json!(2), &json!(2)), "{counted}");
    // A second holder of one address is still told.
    let stolen = sandbox.read(&format!("{}/{}", FOLDERS[0], pods[1].v4));
    let path = format!("{}/{}", FOLDERS[1], pods[0].v4);
    let own = sandbox.read(&path);
    sandbox.write(&path, &stolen);
    let told = osvc_net(&sandbox, &["fsck"]);
    assert!(told.rc == 1 && told.stdout.contains("two containers have one address"), "{told}");
    sandbox.write(&path, &own);
    osvc_net(&sandbox, &["fsck", "--repair"]).ok();
    silent(&sandbox, "put right");
    // One DEL ends it in both.
    pods[0].remove();
    let listed = osvc_net(&sandbox, &["ip", "ls"]).ok();
    let states = listed.lines().filter(|line| line.starts_with("web ")).map(|line| line.contains(" released "));
    assert_eq!(states.collect::<Vec<_>>(), [true, true], "{listed}");
    report::ran(&report::kernel(), "osvc-net fsck: one attachment in two folders");
}

#[test]
fn a_folder_of_before_does_not_take_what_the_one_of_now_has() {
    let sandbox = Sandbox::new();
    let network = network(&sandbox).with_bridge("ipam", json!({"dataDir": "/var/lib/elsewhere"}));
    sandbox.write("/etc/cni/net.d/net1.conflist", &network.conflist().to_string());
    let pods = containers(&network);
    // As it is left by somebody who removed what he did not know.
    sandbox.sh(&format!("mkdir -p {}", FOLDERS[0])).ok();
    pods[1].remove();
    assert_eq!(FOLDERS.map(|folder| records(&sandbox, folder)), [0, 4]);
    silent(&sandbox, "an empty folder of before");
    // What really is lost comes back.
    sandbox.sh(&format!("rm -r {}/*", FOLDERS[1])).ok();
    network.container("new");
    assert_eq!(records(&sandbox, FOLDERS[1]), 4);
    report::ran(&report::kernel(), "records of host ends, with a folder of before");
}
