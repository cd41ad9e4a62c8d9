//! The same under podman: a container's name is its key.

use integration::podman::{self, address, podman};
use integration::{Sandbox, report};
use serde_json::json;

use crate::osvc_net;

#[test]
fn an_address_is_reserved_before_the_first_start() {
    let mut sandbox = Sandbox::new();
    podman::install(&mut sandbox);
    let conflist =
        json!({"cniVersion": "1.0.0", "name": "net1", "plugins": [{"type": "osvc-bridge", "network": "10.9.0.0/24"}]});
    sandbox.write(&format!("{}/net1.conflist", podman::CONF), &conflist.to_string());
    let net = |words: &[&str]| osvc_net(&sandbox, &[words, &["--conf-dir", podman::CONF]].concat());
    let told = net(&["ip", "explain", "-n", "net1", "db"]).ok();
    net(&["ip", "reserve", "-n", "net1", "web", "10.9.0.99"]).ok();
    podman::run(&sandbox, "web", "net1", &[]);
    podman::run(&sandbox, "db", "net1", &[]);
    assert_eq!(address(&sandbox, "web"), "10.9.0.99");
    let db = address(&sandbox, "db");
    assert!(told.contains(&format!("{db} ")) && told.contains("never used"), "{db}: {told}");
    let listed = net(&["ip", "ls"]).ok();
    assert!(listed.lines().any(|line| line.starts_with("web ") && line.contains("10.9.0.99")), "{listed}");
    let full = net(&["ls"]).ok();
    assert!(full.lines().any(|line| line.starts_with("net1 ") && line.contains(" 253   2     251   0")), "{full}");
    assert!(net(&["hosts"]).ok().contains("10.9.0.99\tweb web.net1"));
    podman(&sandbox, &["rm", "-f", "-t", "0", "web"]).ok();
    podman::run(&sandbox, "web", "net1", &[]);
    assert_eq!(address(&sandbox, "web"), "10.9.0.99");
    let told = net(&["ip", "release", "-n", "net1", "web"]).failed();
    assert!(told.contains("--force"), "{told}");
    assert_eq!(net(&["ip", "history", "web"]).ok().lines().count(), 5, "reserved, held, reserved, held");
    podman(&sandbox, &["rm", "-f", "-a", "-t", "0"]).ok();
    report::ran(&podman::version(&sandbox), "osvc-net ip reserve, explain, ls, hosts, history");
}
