//! Files of configurations that are wrong, doubled or gone.

use serde_json::json;

use crate::{conflist, doctor, help, machine, net1, one_of, only, silent, start, write};

#[test]
fn a_conflist_that_cannot_be_read() {
    let (sandbox, _) = machine();
    sandbox.write("/etc/cni/net.d/bad.conflist", "{\n  \"name\": \"bad\",\n}");
    let found = only(&sandbox, "unreadable-conflist", &["/etc/cni/net.d/bad.conflist:3:1: trailing comma"]);
    assert!(found["help"].as_str().unwrap().contains("conf lint /etc/cni/net.d/bad.conflist"), "{found}");
    write(&sandbox, "bad", &conflist("bad", json!({"type": "bridge", "ipam": {}})));
    silent(&sandbox);
}

#[test]
fn a_configuration_that_the_plugin_refuses() {
    let (sandbox, _) = machine();
    write(&sandbox, "net2", &conflist("net2", json!({"type": "osvc-bridge", "network": "10.10.0.1/24"})));
    only(&sandbox, "configuration", &["/etc/cni/net.d/net2.conflist:1:", "10.10.0.1/24"]);
    // Named ones alone are looked at.
    doctor(&sandbox, &["net1"]).ok();
    sandbox.sh("rm /etc/cni/net.d/net2.conflist").ok();
    silent(&sandbox);
}

#[test]
fn two_conflists_of_one_name() {
    let (sandbox, _) = machine();
    sandbox.write("/etc/cni/net.d/z.conflist", &net1().to_string());
    let found = only(&sandbox, "two-conflists", &["/etc/cni/net.d/z.conflist", "/etc/cni/net.d/net1.conflist"]);
    assert_eq!(found["network"], "net1");
    help(&sandbox, &found);
    silent(&sandbox);
    // In another folder, the same is no harm.
    sandbox.write("/opt/cni/config/net1.conflist", &format!("{:#}", net1()));
    silent(&sandbox);
    sandbox.write(
        "/opt/cni/config/net1.conflist",
        &conflist("net1", json!({"type": "osvc-bridge", "network": "10.8.0.0/24"})).to_string(),
    );
    help(&sandbox, &only(&sandbox, "two-conflists", &["/opt/cni/config/net1.conflist", "says otherwise"]));
    silent(&sandbox);
}

#[test]
fn a_conflist_that_is_gone() {
    let (sandbox, netns) = machine();
    sandbox.sh("rm /etc/cni/net.d/net1.conflist").ok();
    let found = only(&sandbox, "conflist-gone", &["bridge obr_net1"]);
    sandbox
        .plugin("osvc-bridge")
        .config(json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge",
        "network": "10.9.0.0/24"}))
        .container("web")
        .netns(&netns)
        .del();
    help(&sandbox, &found);
    silent(&sandbox);
}

#[test]
fn a_network_that_is_not_set_up_or_was_taken_apart() {
    let (sandbox, _) = machine();
    write(&sandbox, "net2", &conflist("net2", json!({"type": "osvc-bridge", "network": "10.10.0.0/24"})));
    help(&sandbox, &only(&sandbox, "not-set-up", &["not set up since this host was started", "obr_net2"]));
    silent(&sandbox);
    sandbox.ip("link del obr_net2");
    help(&sandbox, &only(&sandbox, "not-set-up", &["its bridge obr_net2 is gone"]));
    silent(&sandbox);
    sandbox.sh("nft flush ruleset").ok();
    let found = one_of(&sandbox, "not-set-up", &["its firewall rules are not there"]);
    help(&sandbox, &found);
    // Both have the same rules.
    silent(&sandbox);
}

#[test]
fn host_ports_that_are_not_published_any_more() {
    let (sandbox, _) = machine();
    let network = sandbox.network("net2", &["10.10.0.0/24"]);
    write(&sandbox, "net2", &network.conflist());
    network.container("db").publish(json!([{"hostPort": 8080, "containerPort": 80}]));
    silent(&sandbox);
    sandbox.sh("nft delete table ip osvc-cni-portmap").ok();
    help(&sandbox, &only(&sandbox, "ports-not-set-up", &["1 published host ports"]));
    silent(&sandbox);
}

#[test]
fn networks_of_the_same_addresses() {
    let (sandbox, _) = machine();
    write(&sandbox, "net2", &conflist("net2", json!({"type": "osvc-bridge", "network": "10.9.0.0/16"})));
    one_of(&sandbox, "networks-overlap", &["10.9.0.0/24", "10.9.0.0/16", "net2"]);
    let apart = conflist("net2", json!({"type": "osvc-bridge", "network": "10.10.0.0/24"}));
    write(&sandbox, "net2", &apart);
    start(&sandbox, &apart, &sandbox.netns("b"));
    silent(&sandbox);
}
