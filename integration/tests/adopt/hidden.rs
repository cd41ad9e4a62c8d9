//! Containers whose network namespaces are mounted where this command does not see them.

use integration::{Family, Sandbox, report};
use serde_json::{Value, json};

use super::{FILES, RECORDS, cnitool, files, held, osvc_net, start, switch, v4};

/// As seen from a mount namespace that has nothing at the path: the mount point, or not even that.
fn elsewhere(sandbox: &Sandbox, hide: &str, command: &str) -> integration::Output {
    sandbox.sh(&format!("unshare -m sh -c 'umount /run/netns/web && {hide} && exec {command}'"))
}

const ADOPT: &str = "/opt/cni/bin/osvc-net adopt";
const FILE: &str = "true";
const NOTHING: &str = "mount -t tmpfs none /run/netns";

/// A network without host ends: only its addresses can become ours.
fn pairless(sandbox: &Sandbox, family: Family) {
    let ipam = json!({"type": family.ipam(), "ranges": [[{"subnet": "10.9.0.0/24"}]]});
    let plugin = json!({"type": "host-device", "device": "lan0", "ipam": ipam});
    let conflist = json!({"cniVersion": "1.0.0", "name": "net1", "plugins": [plugin]});
    sandbox.write("/etc/cni/net.d/net1.conflist", &conflist.to_string());
}

#[test]
fn who_has_no_pair_is_not_taken_for_dead() {
    let sandbox = Sandbox::new();
    sandbox.ip("link add lan0 type veth peer name lan1");
    pairless(&sandbox, Family::Reference);
    let web = start(&sandbox, "web", "web");
    let file = format!("{FILES}/{}", web.address());
    pairless(&sandbox, Family::Osvc);
    for (hide, what) in [(FILE, "is a plain file here"), (NOTHING, "is not there")] {
        for command in [ADOPT, "/opt/cni/bin/osvc-net adopt --dry-run"] {
            let told = elsewhere(&sandbox, hide, command);
            assert_eq!((told.rc, told.stdout.as_str()), (1, ""), "{told}");
            let why = format!("its network namespace /run/netns/web {what}: another mount namespace may hide it");
            let way_out = format!("it cannot be told whether it runs: if it does not, remove {file}; it is left with");
            assert!(told.stderr.contains(&why) && told.stderr.contains(&way_out), "{told}");
            assert_eq!((files(&sandbox).len(), held(&sandbox).len()), (1, 0), "{told}");
        }
    }
    // Nor does an ADD give its address to another from there.
    let config = json!({"cniVersion": "1.0.0", "name": "net1", "type": "x", "ipam": {"type": "osvc-ipam",
        "ranges": [[{"subnet": "10.9.0.0/24"}]]}});
    sandbox.write("/run/config", &config.to_string());
    let call = format!(
        "CNI_COMMAND=ADD CNI_CONTAINERID=other CNI_IFNAME=eth0 CNI_NETNS=/run/netns/other \
                        CNI_PATH=/opt/cni/bin CNI_ARGS=IP={}",
        web.address()
    );
    let told = elsewhere(&sandbox, FILE, &format!("env {call} /opt/cni/bin/osvc-ipam < /run/config"));
    assert!(told.rc == 1 && told.stdout.contains("is not available: held by"), "{told}");
    // Where it is seen, it is taken over.
    assert!(osvc_net(&sandbox, &["adopt"]).ok().contains(&format!("{} of \"web\"", web.address())));
    assert_eq!(sandbox.record(RECORDS, web.address())["netns"]["path"], "/run/netns/web");
    // After a reboot there is nobody, wherever one looks.
    let text = "old\r\neth0";
    sandbox.write(&format!("{FILES}/10.9.0.77"), text);
    sandbox.sh(&format!("touch -d 2001-01-01 {FILES}/10.9.0.77")).ok();
    let entry = json!({"kind": "cniCacheV1", "containerId": "old", "ifName": "eth0", "networkName": "net1",
        "result": {"interfaces": [{"name": "eth0", "sandbox": "/run/netns/old"}]}});
    sandbox.write("/var/lib/cni/results/net1-old-eth0", &entry.to_string());
    let told = osvc_net(&sandbox, &["adopt"]).ok();
    assert!(
        told.contains("10.9.0.77 of container old, eth0 not taken over: its record is of an earlier boot"),
        "{told}"
    );
    assert!(files(&sandbox).is_empty());
    report::ran("host-device", "osvc-net adopt from another mount namespace");
}

/// Its end on the host is seen from everywhere: there it lives, gone it is dead.
#[test]
fn a_pair_tells_of_its_container() {
    for hide in [FILE, NOTHING] {
        let sandbox = Sandbox::new();
        switch(&sandbox, Family::Reference, &v4());
        let web = start(&sandbox, "web", "web");
        switch(&sandbox, Family::Osvc, &v4());
        let ask = format!("CNI_ARGS=\"IgnoreUnknown=1;IP={}\" CNI_PATH=/opt/cni/bin cnitool add net1", web.address());
        sandbox.netns("other");
        // The new container is where both see it.
        let look = format!(
            "mkdir -p /run/seen && touch /run/seen/other && mount --bind /run/netns/other /run/seen/other && {hide}"
        );
        let told = elsewhere(&sandbox, &look, &format!("env {ask} /run/seen/other")).failed();
        assert!(told.contains("is not available: held by"), "{told}");
        let told = elsewhere(&sandbox, hide, ADOPT).ok();
        assert!(told.contains(&format!("{} of \"web\"", web.address())), "{told}");
        let record = sandbox.record(RECORDS, web.address());
        assert_eq!(record["netns"], Value::Null, "what is not seen is not recorded: {record}");
        assert!(record["host"]["ifname"].as_str().unwrap().starts_with("veth"), "{record}");
        cnitool(&sandbox, "del", "web", "web").ok();
        assert!(held(&sandbox).is_empty() && !sandbox.links().iter().any(|name| name.starts_with("veth")));
    }
}
