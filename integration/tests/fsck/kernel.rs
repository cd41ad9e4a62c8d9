//! Records against host ends.

use integration::{Family, Sandbox, report};
use serde_json::Value;

use super::*;

#[test]
fn lost_records_come_back_from_the_host_ends_of_what_lives() {
    let sandbox = Sandbox::new();
    let network = network(&sandbox);
    let pods = containers(&network);
    let held = sandbox.held(Family::Osvc, "net1");
    for (what, damage) in [
        ("a record", format!("rm {FOLDER}/{}", pods[0].v4)),
        ("a record that says released", format!("sed -i 's/\"held\"/\"released\"/' {FOLDER}/{}", pods[1].v6)),
        ("all records", format!("rm {FOLDER}/*.* {FOLDER}/*:*")),
    ] {
        sandbox.sh(&damage).ok();
        let told = osvc_net(&sandbox, &["fsck"]);
        assert!(
            told.rc == 1 && told.stdout.contains(", which no record says; --repair: its record is made again"),
            "{what}: {told}"
        );
        osvc_net(&sandbox, &["fsck", "--repair"]).ok();
        assert_eq!(sandbox.held(Family::Osvc, "net1"), held, "{what}");
        silent(&sandbox, what);
    }
    // Nobody else gets them, and their workloads get them again.
    let other = network.container("other");
    assert!(pods.iter().all(|pod| pod.v4 != other.v4 && pod.v6 != other.v6));
    pods[0].remove();
    sandbox.delete_netns(&pods[0].netns);
    assert_eq!(network.container("web").v4, pods[0].v4);
    // As if nothing of the network had ever been there.
    sandbox.sh("rm -rf /var/lib/cni/osvc/ipam").ok();
    let told = osvc_net(&sandbox, &["fsck", "--repair"]);
    assert_eq!(told.rc, 0, "{told}");
    assert_eq!(sandbox.held(Family::Osvc, "net1").len(), 6, "{told}");
    silent(&sandbox, "a lost store");
    report::ran(&report::kernel(), "osvc-net fsck: lost records");
}

#[test]
fn host_ends_that_are_missing_elsewhere_or_on_one_address() {
    let sandbox = Sandbox::new();
    let network = network(&sandbox);
    let pods = containers(&network);
    let ends: Vec<String> = pods
        .iter()
        .map(|pod| {
            let record: Value = sandbox.record(FOLDER, &pod.v4);
            record["host"]["ifname"].as_str().unwrap().to_owned()
        })
        .collect();
    let told = |damage: &str, said: &[&str]| {
        sandbox.sh(damage).ok();
        let output = osvc_net(&sandbox, &["fsck", "--repair"]);
        assert_eq!(output.rc, 1, "{output}");
        for word in said {
            assert!(output.stdout.contains(word), "{word:?} is in {output}");
        }
    };
    told(
        &format!("ip link set {} nomaster", ends[0]),
        &[&format!("{} is not in bridge obr_net1; `osvc-net setup net1`", ends[0])],
    );
    osvc_net(&sandbox, &["setup"]).ok();
    silent(&sandbox, "set up again");
    let two = format!("ip link set {} alias 'osvc:net1:{} eth0 db podman db'", ends[1], pods[0].v4);
    told(&two, &["two have one address", &format!("has {}", pods[0].v4)]);
    sandbox
        .sh(&format!("ip link set {} alias 'osvc:net1:{},{} eth0 db podman db'", ends[1], pods[1].v4, pods[1].v6))
        .ok();
    silent(&sandbox, "one each");
    let held = sandbox.held(Family::Osvc, "net1");
    told(&format!("ip link del {}", ends[1]), &[&format!("{} is missing: \"db\"", ends[1]), "restart the container"]);
    assert_eq!(sandbox.held(Family::Osvc, "net1"), held, "what lives keeps its address");
    report::ran(&report::kernel(), "osvc-net fsck: host ends");
}

#[test]
fn killed_anywhere_the_next_one_does_the_rest() {
    let sandbox = Sandbox::new();
    let network = network(&sandbox);
    let pods = containers(&network);
    let held = sandbox.held(Family::Osvc, "net1");
    let damage = format!(
        "cd {FOLDER}; rm -rf by-key; echo x > notes.txt; echo '{{' > 10.9.0.251; echo '{{' > ../../ports/attachments/0123456789abc
         mkdir -p ../../folders/net1; ln -sfn /nowhere ../../folders/net1/0123456789abcdef"
    );
    let calls =
        "symlink,symlinkat,unlink,unlinkat,rmdir,rename,renameat,renameat2,link,linkat,mkdir,mkdirat,write,pwrite64";
    let killed = |damage: &str, n: u32| {
        sandbox.sh(damage).ok();
        let when = format!("inject={calls}:signal=KILL:when={n}");
        let words =
            ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &when, "/opt/cni/bin/osvc-net", "fsck", "--repair"];
        let is_over = sandbox.run(&words).rc == 0;
        if !is_over {
            osvc_net(&sandbox, &["fsck", "--repair"]).ok();
            silent(&sandbox, &format!("killed at {n}"));
            assert_eq!(sandbox.held(Family::Osvc, "net1"), held, "killed at {n}");
        }
        !is_over
    };
    // Each call that changes something.
    let count = (1..).take_while(|n| killed(&damage, *n)).count();
    assert!(count > 20, "it was killed {count} times");
    // With a lost record it has to look again and again.
    let lost = format!("{damage}; rm {FOLDER}/{}", pods[0].v4);
    assert!([5, 15, 25].iter().filter(|n| killed(&lost, **n)).count() > 1);
    report::ran(&report::kernel(), "osvc-net fsck --repair, killed");
}
