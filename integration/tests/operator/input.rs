//! What osvc-net cannot work with: told clearly, with a status, and nothing is changed.

use integration::{Sandbox, report};

use super::{install, osvc_net};

const READING: [&[&str]; 8] =
    [&["ls"], &["ip", "ls"], &["port", "ls"], &["claim", "ls"], &["peers"], &["fsck"], &["metrics"], &["hosts"]];

fn machine() -> Sandbox {
    let sandbox = Sandbox::new();
    install(&sandbox, "/etc/cni/net.d", "net1", "10.9.0.0/24");
    osvc_net(&sandbox, &["setup"]).ok();
    sandbox
}

#[test]
fn unknown_networks_are_told_with_the_nearest() {
    let sandbox = machine();
    let commands: [&[&str]; 15] = [
        &["setup", "nte1"],
        &["teardown", "nte1"],
        &["ls", "nte1"],
        &["ip", "ls", "-n", "nte1"],
        &["ip", "explain", "-n", "nte1", "web"],
        &["ip", "reserve", "-n", "nte1", "web"],
        &["ip", "unreserve", "-n", "nte1", "web"],
        &["ip", "release", "-n", "nte1", "web"],
        &["ip", "history", "-n", "nte1"],
        &["gc", "nte1"],
        &["fsck", "nte1"],
        &["doctor", "nte1"],
        &["adopt", "-n", "nte1"],
        &["watch", "nte1"],
        &["hosts", "-n", "nte1"],
    ];
    let before = sandbox.leftovers();
    for words in commands {
        let told = osvc_net(&sandbox, words);
        assert!(told.rc == 1 && told.stderr.contains("did you mean \"net1\""), "{words:?}: {told}");
    }
    sandbox.leftovers().assert_same_as(&before, "a wrong name");
    report::ran(&report::kernel(), "osvc-net with an unknown network");
}

#[test]
fn an_unreadable_conflist_is_told_with_line_and_column_and_costs_the_others_nothing() {
    let sandbox = machine();
    sandbox
        .write("/etc/cni/net.d/bad.conflist", "{\n  \"name\": \"bad\",\n  \"plugins\": [\n    {\"type\": 5}\n  ]\n}\n");
    for words in [&["setup"][..], &["ls"], &["ip", "ls"], &["gc"], &["metrics"]] {
        let told = osvc_net(&sandbox, words);
        assert!(told.rc == 1 && told.stderr.contains("/etc/cni/net.d/bad.conflist:4:5"), "{words:?}: {told}");
    }
    let told = osvc_net(&sandbox, &["setup"]);
    assert!(told.stdout.contains("net1: in place"), "{told}");
    osvc_net(&sandbox, &["setup", "net1"]).ok();
    report::ran(&report::kernel(), "osvc-net with an unreadable conflist");
}

#[test]
fn a_reader_that_goes_away_is_told_with_a_status_and_no_panic() {
    let sandbox = machine();
    for words in READING {
        let script = format!("set -o pipefail; /opt/cni/bin/osvc-net {} | true", words.join(" "));
        let told = sandbox.sh(&format!("{script}; echo ${{PIPESTATUS[0]}}"));
        assert!(!told.stderr.contains("panic"), "{words:?}: {told}");
    }
    // One that is surely gone by then; what was to be done is done all the same.
    sandbox.ip("link del obr_net1");
    let told = sandbox.sh("mkfifo /tmp/pipe; exec 8<> /tmp/pipe; exec 9> /tmp/pipe; exec 8<&-
        /opt/cni/bin/osvc-net setup >&9; echo $?");
    assert!(told.stdout.trim() == "1" && told.stderr.contains("cannot print: Broken pipe"), "{told}");
    sandbox.ip("link show obr_net1");
    report::ran(&report::kernel(), "osvc-net into a closed pipe");
}

#[test]
fn who_may_not_is_told_so() {
    let sandbox = machine();
    let network = sandbox.network("net1", &["10.9.0.0/24"]);
    let web = network.container("web");
    let before = (sandbox.leftovers(), sandbox.ip("-4 -o addr"));
    let as_nobody = |words: &[&str]| {
        let argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/opt/cni/bin/osvc-net"];
        sandbox.run(&argv.iter().chain(words).copied().collect::<Vec<_>>())
    };
    for words in READING.iter().copied().chain([&["setup"][..], &["teardown", "net1"], &["gc"], &["adopt"]]) {
        let told = as_nobody(words);
        assert!(told.rc == 1 && told.stderr.contains("ermission denied"), "{words:?}: {told}");
        assert!(told.stderr.contains("run it as root"), "{words:?}: {told}");
    }
    before.0.assert_same_as(&sandbox.leftovers(), "nobody");
    assert_eq!(sandbox.ip("-4 -o addr"), before.1);
    web.bridge.check(&web.result);
    report::ran(&report::kernel(), "osvc-net as nobody");
}

#[test]
fn a_store_of_a_newer_format_is_named_and_left_alone() {
    let sandbox = machine();
    let network = sandbox.network("net1", &["10.9.0.0/24"]);
    let web = network.container("web");
    let path = format!("/var/lib/cni/osvc/ipam/net1/{}", web.v4);
    let newer = sandbox.read(&path).replace("\"v\":1", "\"v\":9");
    sandbox.write(&path, &newer);
    // This network never was host-local's: it is given back only by name.
    let undo = &["adopt", "--undo", "-n", "net1"][..];
    for words in [&["ls"][..], &["ip", "ls"], &["fsck"], &["fsck", "--repair"], &["metrics"], &["hosts"], undo] {
        let told = osvc_net(&sandbox, words);
        assert!(
            told.rc == 1 && format!("{}{}", told.stdout, told.stderr).contains("has format 9"),
            "{words:?}: {told}"
        );
    }
    osvc_net(&sandbox, &["gc"]);
    assert_eq!(sandbox.read(&path), newer);
    report::ran(&report::kernel(), "osvc-net with a store of a newer format");
}
