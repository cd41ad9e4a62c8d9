//! The stores: what is no record, what derives from records, links that lead nowhere.

use integration::{Family, Sandbox, report};
use serde_json::json;

use super::*;

/// The containers keep what they have, and a restart gives the same again.
#[track_caller]
fn keep(network: &Network<'_>, containers: &[Container<'_>], sandbox: &Sandbox) {
    for container in containers {
        let held: Vec<String> = sandbox.held(Family::Osvc, "net1").iter().map(ToString::to_string).collect();
        assert!(held.contains(&container.v4) && held.contains(&container.v6), "{held:?}");
    }
    containers[1].bridge.del();
    sandbox.delete_netns(&containers[1].netns);
    let again = network.container("db");
    assert_eq!((&again.v4, &again.v6), (&containers[1].v4, &containers[1].v6));
}

#[test]
fn each_damage_of_the_store_is_named_and_mended() {
    let sandbox = Sandbox::new();
    let network = network(&sandbox);
    let pods = containers(&network);
    // Something released, for the queue.
    network.container("gone").remove();
    silent(&sandbox, "before");
    let cd = |script: &str| format!("cd {FOLDER}; {script}");
    for (what, damage, said) in [
        (
            "a torn file",
            "head -c 40 10.9.0.1?* > 10.9.0.250; echo '{' > 10.9.0.251",
            &["10.9.0.251 is no address record"][..],
        ),
        (
            "an unknown file",
            "echo hello > notes.txt",
            &["notes.txt is no address record: its name is no address; --repair: set aside"],
        ),
        ("a lost index", "rm -rf by-key", &["by-key is missing", "index does not fit"]),
        (
            "a dangling entry",
            "ln -s 10.9.0.222 by-attachment/0123456789abc.0",
            &["by-attachment leads to what has no record: 10.9.0.222"],
        ),
        (
            "a wrong entry",
            "ln -s $(basename $(ls -d 10.9.0.* | head -1)) by-key/00000000.0",
            &["by-key has under another name 10.9.0."],
        ),
        ("a lost bitmap", "rm bitmap/10.9", &["bitmap misses 10.9.0."]),
        (
            "a bitmap of ones",
            "head -c 8192 /dev/zero | tr '\\0' '\\377' > bitmap/10.9",
            &["bitmap marks, without a record, 10.9.0."],
        ),
        ("a lost queue", "rm queue/*", &["queue misses, of the released addresses,"]),
        ("a lost seal", "rm index", &["index is missing"]),
    ] {
        mended(&sandbox, what, &cd(damage), said);
    }
    assert!(sandbox.list(&format!("{FOLDER}/corrupt")).len() >= 3, "set aside, not deleted");
    keep(&network, &pods, &sandbox);
    report::ran(&report::kernel(), "osvc-net fsck: the store");
}

#[test]
fn links_ports_checks_and_claims() {
    let sandbox = Sandbox::new();
    let network = network(&sandbox).with_bridge("ipam", json!({"claims": {"default": 20}}));
    sandbox.write("/etc/cni/net.d/net1.conflist", &network.conflist().to_string());
    let pods = containers(&network);
    silent(&sandbox, "before");
    let state = "cd /var/lib/cni/osvc;";
    for (what, damage, said) in [
        (
            "a link that leads nowhere",
            "mkdir -p folders/net1; ln -s /nowhere/osvc/net1 folders/net1/0123456789abcdef",
            &["folders/net1/0123456789abcdef leads to /nowhere/osvc/net1, which is not there; --repair: removed"][..],
        ),
        (
            "a torn record of host ports",
            "echo '{' > ports/attachments/0123456789abc",
            &["0123456789abc is no record of host ports"],
        ),
        ("a lost link of a port", "rm ports/by-port/tcp-8080.0", &["by-port misses tcp-8080 of"]),
        (
            "a wrong member",
            "touch ports/by-network/net1/0123456789abc",
            &["by-network has, wrongly, net1 of 0123456789abc"],
        ),
        (
            "a torn record of source checks",
            "echo x > spoof/attachments/net1/0123456789abc.json",
            &["0123456789abc.json is no record of source checks"],
        ),
        (
            "a wrong count",
            "cd ipam/net1/by-namespace; for d in [0-9a-f]*[0-9]*/; do rm $d/held; ln -s '7 0' $d/held; done",
            &["counts 7 addresses of \"default\", which holds 4"],
        ),
    ] {
        mended(&sandbox, what, &format!("{state} {damage}"), said);
    }
    for pod in &pods {
        pod.bridge.check(&pod.result);
    }
    pods[0].ports(json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}])).check(&pods[0].result);
    report::ran(&report::kernel(), "osvc-net fsck: links, ports, checks, claims");
}

#[test]
fn what_only_somebody_can_decide_is_told_and_left_alone() {
    let sandbox = Sandbox::new();
    let network = network(&sandbox);
    let pods = containers(&network);
    let later = sandbox.read(&format!("{FOLDER}/{}", pods[0].v4)).replace("\"v\":1", "\"v\":9");
    sandbox.write(&format!("{FOLDER}/10.9.0.200"), &later);
    // The folder was moved (`dataDir`), and two have one address.
    let other = "/var/lib/cni/elsewhere/osvc/net1";
    sandbox
        .sh(&format!(
            "mkdir -p {other} /var/lib/cni/osvc/folders/net1; ln -s {other} /var/lib/cni/osvc/folders/net1/0011223344556677
             cp {FOLDER}/{} {other}/{}",
            pods[1].v4, pods[0].v4
        ))
        .ok();
    let told = osvc_net(&sandbox, &["fsck", "net1"]);
    assert_eq!(told.rc, 1, "{told}");
    for word in
        ["10.9.0.200 has format 9", "install the version that wrote it", "says that", "two containers have one address"]
    {
        assert!(told.stdout.contains(word), "{word:?} is in {told}");
    }
    let held =
        |folder: &str| sandbox.sh(&format!("cat {folder}/10.9.0.200 {folder}/{} 2>/dev/null", pods[0].v4)).stdout;
    let before = (held(FOLDER), held(other));
    let done = osvc_net(&sandbox, &["fsck", "--repair"]);
    assert_eq!((done.rc, (held(FOLDER), held(other))), (1, before), "neither is touched: {done}");
    // Another range: who is outside of it is told, and has its address until it ends.
    sandbox.sh(&format!("rm -rf {other} /var/lib/cni/osvc/folders {FOLDER}/10.9.0.200")).ok();
    osvc_net(&sandbox, &["fsck", "--repair"]).ok();
    let moved = sandbox.network("net1", &["10.8.0.0/24"]);
    sandbox.write("/etc/cni/net.d/net1.conflist", &moved.conflist().to_string());
    let told = osvc_net(&sandbox, &["fsck"]);
    for word in [
        format!("{} is held for \"web\", but outside of the network's ranges", pods[0].v4),
        format!("{} is held", pods[0].v6),
    ] {
        assert!(told.stdout.contains(&word), "{word:?} is in {told}");
    }
    assert!(told.stdout.contains("IPv6, and the network has none"), "{told}");
    assert!(osvc_net(&sandbox, &["fsck", "nte1"]).failed().contains("did you mean \"net1\""));
    let found = list(&sandbox);
    assert!(found.iter().all(|found| found["network"] == "net1" && found["mendable"] == false), "{found:?}");
    report::ran(&report::kernel(), "osvc-net fsck: what is not for it to decide");
}

#[test]
fn records_of_another_network_and_two_of_one_attachment() {
    let sandbox = Sandbox::new();
    let network = network(&sandbox);
    let pods = containers(&network);
    let other = sandbox.network("net2", &["10.8.0.0/24"]);
    let stranger = other.container("stranger");
    silent(&sandbox, "before");
    sandbox
        .sh(&format!(
            "cd {FOLDER}; cp ../net2/{} 10.9.0.251; cp {} 10.9.0.252; /opt/cni/bin/osvc-net fsck --repair",
            stranger.v4, pods[0].v4
        ))
        .failed();
    let found = list(&sandbox);
    let what = |name: &str| {
        let of = |found: &&Value| found["subject"].as_str().is_some_and(|subject| subject.ends_with(name));
        let found: Vec<&Value> = found.iter().filter(of).collect();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        (found[0]["what"].as_str().unwrap().to_owned(), found[0]["help"].as_str().unwrap().to_owned())
    };
    let (told, help) = what("/10.9.0.251");
    assert!(told.contains("is not of this network") && help.contains("move it away"), "{told}; {help}");
    let (told, help) = what("/10.9.0.252");
    assert!(told.contains(&format!("which holds {} of the same ranges as well", pods[0].v4)), "{told}");
    assert!(help.contains("osvc-net ip release --network net1"), "{help}");
    // The way out that is told.
    sandbox.sh(&format!("mv {FOLDER}/10.9.0.251 /run")).ok();
    osvc_net(&sandbox, &["ip", "release", "--network", "net1", "10.9.0.252", "--force"]).ok();
    osvc_net(&sandbox, &["fsck", "--repair"]).ok();
    silent(&sandbox, "put right");
    assert!(sandbox.held(Family::Osvc, "net1").iter().any(|held| held.to_string() == pods[0].v4));
    report::ran(&report::kernel(), "osvc-net fsck: records of others");
}
