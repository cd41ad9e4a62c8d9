//! The plugins under containerd (`ctr run --cni`): the container id is the workload, and DELs are lost as a matter of course.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::containerd::{self, address, ctr, exec, inet};
use integration::{Family, Sandbox, podman, report};
use serde_json::{Value, json};

fn write_network(sandbox: &Sandbox, conflist: &Value) {
    sandbox.write("/etc/cni/net.d/10-net1.conflist", &conflist.to_string());
}

fn ours() -> Value {
    json!({"cniVersion": "1.0.0", "name": "net1", "plugins": [{"type": "osvc-bridge", "network": "10.22.0.0/16"}]})
}

fn in_the_reference_s_keys(family: Family, subnet: &str) -> Value {
    json!({"cniVersion": "1.0.0", "name": "net1", "plugins": [{
        "type": family.bridge(), "bridge": "cni0", "isGateway": true, "ipMasq": true,
        "ipam": {"type": family.ipam(), "subnet": subnet, "routes": [{"dst": "0.0.0.0/0"}]}
    }]})
}

fn machine(conflist: &Value) -> Sandbox {
    let mut sandbox = Sandbox::new();
    podman::install(&mut sandbox);
    write_network(&sandbox, conflist);
    containerd::start(&mut sandbox);
    sandbox
}

fn noted(what: &str) {
    report::ran("containerd (ctr run --cni)", what);
}

/// Proves the harness: this is containerd issue 6604.
#[test]
fn the_reference_plugins_refuse_an_id_whose_del_was_lost() {
    let sandbox = machine(&in_the_reference_s_keys(Family::Reference, "10.77.0.0/24"));
    containerd::run(&sandbox, "c1");
    ctr(&sandbox, &["task", "rm", "-f", "c1"]).ok();
    ctr(&sandbox, &["c", "rm", "c1"]).ok();
    let cgroup = format!("/{}/c1", sandbox.id);
    let image = containerd::image(&sandbox);
    let words = ["run", "-d", "--cni", "--cgroup", &cgroup, &image, "c1", "sleep", "9"];
    let message = ctr(&sandbox, &words).failed();
    assert!(message.contains("duplicate allocation is not allowed"), "{message}");
    noted("reference plugins, lost DEL: duplicate allocation, as users report");
}

#[test]
fn containers_reach_each_other_and_outside_and_keep_their_addresses_over_lost_dels() {
    let sandbox = machine(&ours());
    sandbox.outside();
    containerd::run(&sandbox, "web");
    containerd::run(&sandbox, "db");
    let (web, db) = (address(&sandbox, "web"), address(&sandbox, "db"));
    assert_ne!(web, db);
    exec(&sandbox, "web", &["ping", "-c", "1", "-W", "2", &db]).ok();
    exec(&sandbox, "web", &["ping", "-c", "1", "-W", "2", "198.51.100.1"]).ok();
    for turn in 1..=2 {
        ctr(&sandbox, &["task", "rm", "-f", "web"]).ok();
        ctr(&sandbox, &["c", "rm", "web"]).ok();
        containerd::run(&sandbox, &format!("other{turn}"));
        containerd::run(&sandbox, "web");
        assert_eq!(address(&sandbox, "web"), web, "p11: the same id after a DEL that never came, turn {turn}");
        exec(&sandbox, "db", &["ping", "-c", "1", "-W", "2", &web]).ok();
    }
    noted("two containers, masquerading, recreated over lost DELs: same addresses");
}

#[test]
fn p8_del_without_a_netns_leaves_nothing() {
    let sandbox = machine(&ours());
    let first = inet(&containerd::run_to_the_end(&sandbox, "job", &["ip", "-4", "addr", "show", "dev", "eth0"]));
    assert!(sandbox.held(Family::Osvc, "net1").is_empty(), "ctr called DEL with CNI_NETNS empty");
    let left: Vec<_> = sandbox.links().into_iter().collect();
    assert_eq!(left, ["lo", "obr_net1"], "only the bridge is left");
    let second = inet(&containerd::run_to_the_end(&sandbox, "job", &["ip", "-4", "addr", "show", "dev", "eth0"]));
    assert_eq!(first, second, "the same id gets the same address again");
    noted("foreground run: DEL with an empty CNI_NETNS");
}

#[test]
fn a_reboot_without_any_del_keeps_every_address() {
    let mut sandbox = machine(&ours());
    containerd::run(&sandbox, "a");
    containerd::run(&sandbox, "b");
    let before = (address(&sandbox, "a"), address(&sandbox, "b"));
    sandbox.reboot();
    containerd::start(&mut sandbox);
    for name in ["a", "b"] {
        ctr(&sandbox, &["c", "rm", name]).ok();
    }
    containerd::run(&sandbox, "other");
    containerd::run(&sandbox, "b");
    containerd::run(&sandbox, "a");
    assert_eq!((address(&sandbox, "a"), address(&sandbox, "b")), before);
    noted("reboot without DEL: same addresses");
}

#[test]
fn p9_the_conflist_switched_under_running_reference_containers() {
    let subnet = "10.77.0.0/29";
    let sandbox = machine(&in_the_reference_s_keys(Family::Reference, subnet));
    containerd::run(&sandbox, "old1");
    containerd::run(&sandbox, "old2");
    let (old1, old2) = (address(&sandbox, "old1"), address(&sandbox, "old2"));
    write_network(&sandbox, &in_the_reference_s_keys(Family::Osvc, subnet));
    for name in ["new1", "new2", "new3"] {
        containerd::run(&sandbox, name);
        let new = address(&sandbox, name);
        assert!(new != old1 && new != old2, "{name} got {new}, which a running container has");
        exec(&sandbox, name, &["ping", "-c", "1", "-W", "2", &old1]).ok();
    }
    // ctr 1.6 calls no DEL for a detached container. This is the call that later ones make in `ctr task kill`, and CRI.
    let mut config = in_the_reference_s_keys(Family::Osvc, subnet)["plugins"][0].clone();
    config["cniVersion"] = json!("1.0.0");
    config["name"] = json!("net1");
    let tasks = ctr(&sandbox, &["task", "ls"]).ok();
    let task = tasks.lines().find(|line| line.starts_with("old1 ")).unwrap();
    let netns = format!("/proc/{}/ns/net", task.split_whitespace().nth(1).unwrap());
    let call = sandbox.plugin("osvc-bridge").config(config).container("default-old1").args("IgnoreUnknown=1");
    call.netns_path(&netns).del();
    assert!(!sandbox.exists(&format!("/var/lib/cni/networks/net1/{old1}")), "host-local's file is cleaned up");
    let veths = sandbox.links().into_iter().filter(|name| name.starts_with("veth")).count();
    assert_eq!(veths, 1, "and its veth, old2's stays: {:?}", sandbox.links());
    noted("conflist switched under running reference containers");
}
