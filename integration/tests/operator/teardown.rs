//! `osvc-net teardown --all`.

use integration::{Sandbox, report};
use serde_json::json;

use super::{install, osvc_net};

#[test]
fn all_networks_of_ours_go_but_those_in_use() {
    let sandbox = Sandbox::new();
    let before = (sandbox.ip("-o link"), sandbox.ruleset());
    let used = sandbox.network("used", &["10.9.0.0/24"]);
    sandbox.write("/etc/cni/net.d/used.conflist", &used.conflist().to_string());
    for (name, subnet) in [("one", "10.1.0.0/24"), ("two", "10.2.0.0/24"), ("gone", "10.3.0.0/24")] {
        install(&sandbox, "/etc/cni/net.d", name, subnet);
    }
    let foreign = r#"{"cniVersion": "1.0.0", "name": "foreign", "plugins": [{"type": "bridge", "bridge": "br9"}]}"#;
    sandbox.write("/etc/cni/net.d/foreign.conflist", foreign);
    let web = used.container("web");
    osvc_net(&sandbox, &["setup"]).ok();
    sandbox.sh("rm /etc/cni/net.d/gone.conflist; ip link add br9 type bridge").ok();
    let state = || (sandbox.ip("-o link"), sandbox.ruleset());
    let full = state();
    let planned = osvc_net(&sandbox, &["teardown", "--all", "--dry-run"]);
    assert_eq!((planned.rc, state()), (1, full));
    for name in ["one", "two", "gone"] {
        assert!(planned.stdout.contains(&format!("{name}: would remove bridge obr_{name}")), "{planned}");
    }
    let told = osvc_net(&sandbox, &["teardown", "--all"]);
    assert!(told.rc == 1 && told.stderr.contains("network used is in use by 10.9.0."), "{told}");
    assert!(told.stdout.contains("gone: removed bridge obr_gone") && !told.stdout.contains("foreign"), "{told}");
    assert!(sandbox.ping(&web.netns, "10.9.0.1"), "the one in use works");
    web.bridge.del();
    sandbox.delete_netns(&web.netns);
    osvc_net(&sandbox, &["teardown", "--all"]).ok();
    sandbox.ip("link del br9");
    assert_eq!((sandbox.ip("-o link"), sandbox.ruleset().contains("osvc-cni {")), (before.0, false), "{}", before.1);
    let told = osvc_net(&sandbox, &["teardown"]);
    assert!(told.rc == 2 && told.stderr.contains("required"), "no name is no network: {told}");
    report::ran(&report::kernel(), "osvc-net teardown --all");
}

/// A bridge of a name of its own is found again without its record, which goes first.
#[test]
fn a_teardown_that_was_killed_is_finished_by_the_next() {
    let sandbox = Sandbox::new();
    let told = osvc_net(&sandbox, &["conf", "new", "bridge", "net1", "--network", "10.9.0.0/24", "--bridge", "br-own"]);
    sandbox.write("/etc/cni/net.d/net1.conflist", &told.ok());
    osvc_net(&sandbox, &["setup"]).ok();
    sandbox.sh("rm /var/lib/cni/osvc/networks/net1.json").ok();
    let told = osvc_net(&sandbox, &["teardown", "net1"]).ok();
    assert!(told.contains("net1: removed bridge br-own"), "{told}");
    assert!(sandbox.ip_json("link show type bridge").is_empty());
    report::ran(&report::kernel(), "osvc-net teardown of a network without record");
}

/// What is said of a dry run and what is done, line by line.
#[track_caller]
fn as_planned(sandbox: &Sandbox, words: &[&str]) -> String {
    let state = || (sandbox.ip("-o addr"), sandbox.ruleset());
    let before = state();
    let planned = osvc_net(sandbox, &[words, &["--dry-run"]].concat()).ok();
    assert_eq!(state(), before, "{planned}");
    let done = osvc_net(sandbox, words).ok();
    let said = planned.replace("would remove", "removed").replace("would stay", "stays");
    assert_eq!(said.replace("would switch", "switched"), done);
    done
}

#[test]
fn a_plan_knows_what_is_there_and_what_is_gone_by_then() {
    let sandbox = Sandbox::new();
    for (name, subnet) in [("net1", "10.12.0.0/24"), ("net2", "10.13.0.0/24"), ("net3", "10.14.0.0/24")] {
        let network = sandbox.network(name, &[subnet]).with_bridge("bridge", json!("br-a"));
        let network = if name == "net3" { network } else { network.with_bridge("promiscMode", json!(true)) };
        sandbox.write(&format!("/etc/cni/net.d/{name}.conflist"), &network.conflist().to_string());
    }
    osvc_net(&sandbox, &["setup"]).ok();
    let done = as_planned(&sandbox, &["teardown", "net3"]);
    assert!(done.contains("net3: removed address 10.14.0.1/24 from bridge br-a\n"), "{done}");
    osvc_net(&sandbox, &["setup"]).ok();
    sandbox.ip("addr flush dev br-a");
    let done = as_planned(&sandbox, &["teardown", "net3"]);
    assert!(!done.contains("address") && done.contains("net3: bridge br-a stays"), "{done}");
    osvc_net(&sandbox, &["setup"]).ok();
    let done = as_planned(&sandbox, &["teardown", "--all"]);
    assert!(done.contains("net3: removed bridge br-a\n") && done.matches("stays").count() == 2, "{done}");
    // The mode goes with the last one that wants it.
    sandbox.ip("link add br-a type bridge");
    osvc_net(&sandbox, &["setup"]).ok();
    let done = as_planned(&sandbox, &["teardown", "--all"]);
    assert!(done.contains("net2: switched promiscuous mode of bridge br-a off\n"), "{done}");
    report::ran(&report::kernel(), "osvc-net teardown --dry-run of networks that share a bridge");
}
