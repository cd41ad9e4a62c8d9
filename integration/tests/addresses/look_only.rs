//! What only looks changes nothing, whatever it finds: `ip explain`, and the dry runs.

use integration::{Sandbox, report};

use crate::{machine, net1, osvc_net, start};

const NET: &str = "10.9.0.0/28";
const FOLDER: &str = "/var/lib/cni/osvc/ipam/net1";

/// All files with their times, the queue included.
fn everything(sandbox: &Sandbox) -> String {
    sandbox
        .sh("cd /var/lib/cni; find . -printf '%p %y %s %T@ %l\\n' | sort; find . -type f | sort | xargs cat | sha256sum")
        .ok()
}

/// Looks in all ways. Returns what was printed.
fn look(sandbox: &Sandbox) -> String {
    let mut told = String::new();
    for words in [
        &["explain", "-n", "net1", "db"][..],
        &["explain", "-n", "net1", "new"],
        &["explain", "-n", "net1", "gone", "--source", "podman"],
        &["reserve", "-n", "net1", "new", "--dry-run"],
        &["reserve", "-n", "net1", "db", "--dry-run"],
        &["unreserve", "-n", "net1", "kept", "--dry-run"],
        &["release", "-n", "net1", "web", "--force", "--dry-run"],
    ] {
        let output = osvc_net(sandbox, &[&["ip"], words].concat());
        told += &format!("{words:?}: {}{}", output.stdout, output.stderr);
    }
    told
}

#[test]
fn the_store_is_what_it_was() {
    let cd = |script: &str| format!("cd {FOLDER}; {script}");
    for (what, damage) in [
        ("nothing", "true"),
        ("a torn record", "echo '{' > $(grep -l '\"gone\"' 10.*)"),
        ("a missing index", "rm index"),
        ("a lost record", "rm $(grep -l '\"web\"' 10.*)"),
        ("all records and the index lost", "rm 10.* index"),
        ("no derived files", "rm -r by-key by-attachment bitmap queue"),
        ("a read-only mount", "mount --bind /var/lib/cni /var/lib/cni && mount -o remount,bind,ro /var/lib/cni"),
        (
            "a read-only mount and a missing index",
            "rm index; mount --bind /var/lib/cni /var/lib/cni && mount -o remount,bind,ro /var/lib/cni",
        ),
    ] {
        let sandbox = machine(&[net1(NET)]);
        let [a, b] = ["a", "b"].map(|name| sandbox.netns(name));
        let web = start(&sandbox, &net1(NET), &a, "id-web", "web");
        let gone = start(&sandbox, &net1(NET), &b, "id-gone", "gone");
        crate::call(&sandbox, &net1(NET), "id-gone", "gone").netns(&b).del();
        osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "kept"]).ok();
        sandbox.sh(&cd(damage)).ok();
        let before = everything(&sandbox);
        let told = look(&sandbox);
        assert_eq!(everything(&sandbox), before, "{what}: {told}");
        assert!(told.contains("gets it: ") && told.contains("would be reserved for \"new\""), "{what}: {told}");
        if !what.contains("lost") {
            assert!(told.contains(&format!("{web} of \"web\"")) && told.contains("would be given back"), "{told}");
            assert!(told.contains("would be reserved no longer"), "{what}: {told}");
        }
        assert!(!told.contains(&format!("{gone} of")), "{told}");
    }
    report::ran(&report::kernel(), "osvc-net ip explain and --dry-run: the store is what it was, also read-only");
}

#[test]
fn a_living_container_whose_record_is_lost_keeps_its_address_in_a_plan() {
    let sandbox = machine(&[net1(NET)]);
    let a = sandbox.netns("a");
    let web = start(&sandbox, &net1(NET), &a, "id-web", "web");
    sandbox.sh(&format!("rm -r {FOLDER}")).ok();
    let told = osvc_net(&sandbox, &["ip", "explain", "-n", "net1", "web", "--source", "podman"]).ok();
    assert!(told.contains(&format!("{web}  has it")), "{told}");
    osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "db", &web, "--dry-run"]).failed();
    assert!(!sandbox.exists(FOLDER));
}

#[test]
fn nobody_is_waited_for() {
    let sandbox = machine(&[net1(NET)]);
    let a = sandbox.netns("a");
    start(&sandbox, &net1(NET), &a, "id-web", "web");
    sandbox.background(&format!("flock {FOLDER}/lock sleep 20"), "/run/flock.log");
    sandbox.wait_for("the lock is held", &format!("! flock -n {FOLDER}/lock true"));
    for words in [&["explain", "-n", "net1", "web"][..], &["reserve", "-n", "net1", "web", "--dry-run"]] {
        let output = osvc_net(&sandbox, &[&["ip"], words].concat());
        assert!(output.elapsed.as_secs() < 5, "{output}");
        output.ok();
    }
}
