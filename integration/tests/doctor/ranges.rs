//! Addresses that others give too, that run out, and records that nobody can read.

use integration::Sandbox;
use serde_json::json;

use crate::{conflist, findings, machine, names, only, quiet, silent, start, write};

#[test]
fn a_range_that_is_nearly_full() {
    let sandbox = Sandbox::new();
    quiet(&sandbox);
    let small = |network: &str| conflist("net1", json!({"type": "osvc-bridge", "network": network}));
    write(&sandbox, "net1", &small("10.9.0.0/28"));
    for number in 1..=12 {
        if number == 12 {
            silent(&sandbox);
        }
        start(&sandbox, &small("10.9.0.0/28"), &sandbox.netns(&format!("c{number}")));
    }
    let found = only(&sandbox, "range-nearly-full", &["12 of 13 addresses", "10.9.0."]);
    assert!(found["help"].as_str().unwrap().contains("larger subnet, which holds the present one"), "{found}");
    write(&sandbox, "net1", &small("10.9.0.0/27"));
    sandbox.sh("/opt/cni/bin/osvc-net setup").ok();
    silent(&sandbox);
}

#[test]
fn ranges_that_opensvc_gives_too() {
    let (sandbox, _) = machine();
    sandbox.write("/etc/opensvc/cluster.conf", "[network#backend]\ntype = bridge\nnetwork = 10.9.0.0/16\n");
    only(&sandbox, "shared-with-opensvc", &["10.9.0.0/24", "10.9.0.0/16", "backend"]);
    sandbox.write("/etc/opensvc/cluster.conf", "[network#backend]\ntype = bridge\nnetwork = 10.23.0.0/16\n");
    silent(&sandbox);
    sandbox.write("/var/lib/opensvc/ipam/net1/10.9.0.77", "svc1/container#0");
    only(&sandbox, "shared-with-opensvc", &["10.9.0.77", "svc1/container#0", "/var/lib/opensvc/ipam/net1"]);
    sandbox.sh("rm /var/lib/opensvc/ipam/net1/*").ok();
    silent(&sandbox);
}

#[test]
fn ranges_that_host_local_gives_too() {
    let (sandbox, _) = machine();
    let ipam = json!({"type": "host-local", "ranges": [[{"subnet": "10.9.0.0/16"}]]});
    write(&sandbox, "old", &conflist("old", json!({"type": "bridge", "ipam": ipam})));
    only(&sandbox, "shared-with-host-local", &["10.9.0.0/24", "10.9.0.0/16", "/etc/cni/net.d/old.conflist"]);
    // Another part of the same subnet is nobody else's.
    let plugin = |from: &str, to: &str| {
        let range = json!({"subnet": "10.9.0.0/24", "rangeStart": from, "rangeEnd": to});
        json!({"type": "bridge", "ipam": {"type": "host-local", "ranges": [[range]]}})
    };
    let half = json!({"type": "osvc-bridge", "ipam": {"type": "osvc-ipam", "ranges": [[
        {"subnet": "10.9.0.0/24", "rangeEnd": "10.9.0.127"}]]}, "bridge": "obr_net1",
        "isGateway": true, "ipMasq": true});
    write(&sandbox, "net1", &conflist("net1", half));
    sandbox.sh("/opt/cni/bin/osvc-net setup net1").ok();
    write(&sandbox, "old", &conflist("old", plugin("10.9.0.128", "10.9.0.200")));
    silent(&sandbox);
    write(&sandbox, "old", &conflist("old", plugin("10.9.0.127", "10.9.0.200")));
    only(&sandbox, "shared-with-host-local", &["10.9.0.127"]);
    write(&sandbox, "net1", &crate::net1());
    sandbox.sh("rm /etc/cni/net.d/old.conflist; /opt/cni/bin/osvc-net setup net1").ok();
    silent(&sandbox);
    // A container that was started before the conflist was switched.
    let before = json!({"type": "bridge", "bridge": "obr_net1", "ipam": {"type": "host-local", "subnet": "10.9.0.0/24",
        "rangeStart": "10.9.0.100"}});
    start(&sandbox, &conflist("net1", before), &sandbox.netns("old"));
    let found = only(&sandbox, "host-local-records", &["10.9.0.100", "\"old\""]);
    assert_eq!(found["help"], "osvc-net adopt --network net1");
}

#[test]
fn records_that_cannot_be_read() {
    let (sandbox, _) = machine();
    let folder = "/var/lib/cni/osvc/ipam/net1";
    let record = sandbox.sh(&format!("cat {folder}/10.9.0.[0-9]*")).ok();
    assert!(record.contains("\"v\":1,"), "{record}");
    let newer = record.replacen("\"v\":1", "\"v\":99", 1);
    sandbox.write(&format!("{folder}/10.9.0.200"), "{\"v\": 1, \"ke");
    sandbox.write(&format!("{folder}/10.9.0.201"), &newer);
    let found = findings(&sandbox);
    let of = |id: &str| found.iter().find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("{id}: {found:#?}"));
    names(of("torn-record"), &["10.9.0.200"]);
    assert_eq!(of("torn-record")["help"], "osvc-net fsck net1");
    names(of("newer-record"), &["10.9.0.201", "99"]);
    sandbox.sh(&format!("rm {folder}/10.9.0.20[01]")).ok();
    silent(&sandbox);
    // The same of the network's own record.
    let path = "/var/lib/cni/osvc/networks/net1.json";
    let record = sandbox.read(path);
    sandbox.write(path, &record.replacen("\"v\":1", "\"v\":99", 1));
    let found = only(&sandbox, "newer-record", &["/var/lib/cni/osvc/networks/net1.json", "99"]);
    assert!(found["help"].as_str().unwrap().starts_with("install the osvc-cni version"), "{found}");
    sandbox.write(path, &record);
    silent(&sandbox);
}
