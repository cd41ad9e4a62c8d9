//! STATUS and GC.

use integration::{Family, Sandbox};
use serde_json::{Value, json};

use crate::scripted::{Scripted, order, recorded};
use crate::{both, bridge, ipam, keys, one_line};

const VALID: &str = "cni.dev/valid-attachments";

#[test]
fn c90_status_fails_when_the_range_is_full_and_changes_nothing() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let one = json!({"subnet": "10.9.0.0/24", "rangeStart": "10.9.0.9", "rangeEnd": "10.9.0.9"});
    for (plugin, config) in [("osvc-ipam", ipam(one.clone())), ("osvc-bridge", keys(one))] {
        let call = sandbox.plugin(plugin).netns(&pod).config(config);
        let blank = sandbox.leftovers();
        call.call("STATUS").done();
        sandbox.leftovers().assert_same_as(&blank, "a STATUS");
        call.add();
        let before = sandbox.leftovers();
        let (code, message) = call.call("STATUS").error();
        assert_eq!(code, 50, "{plugin}: an ADD would fail: {message}");
        assert!(message.contains("no IP addresses available"), "{plugin}: {message}");
        sandbox.leftovers().assert_same_as(&before, "a STATUS that fails");
        call.del();
        call.call("STATUS").done();
    }
}

#[test]
fn c90_status_is_forwarded_to_the_delegate_and_fails_with_it() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let script = Scripted::ipam(&sandbox, "script");
    let config = keys(json!({"type": "script"}));
    let call = bridge(&sandbox, &pod, config.clone());
    call.call("STATUS").done();
    let calls = recorded(&sandbox);
    assert_eq!(calls.iter().map(|call| call.what.as_str()).collect::<Vec<_>>(), ["script STATUS"], "it is asked");
    assert_eq!(calls[0].stdin, config, "with the whole configuration");
    script.fails("STATUS");
    assert_eq!(call.call("STATUS").error(), (142, "the script refuses (STATUS)".to_owned()), "its error is ours");
    let missing = bridge(&sandbox, &pod, keys(json!({"type": "not-installed"})));
    let (_, message) = missing.call("STATUS").error();
    assert!(message.contains("not-installed"), "a delegate that is not there cannot serve an ADD: {message}");
}

#[test]
fn c91_status_and_gc_know_no_attachment() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let script = Scripted::ipam(&sandbox, "script");
    script.succeeds("GC");
    let mut calls = both(&sandbox, &pod).to_vec();
    calls.push(bridge(&sandbox, &pod, keys(json!({"type": "script"}))));
    for call in calls {
        for verb in ["STATUS", "GC"] {
            call.call(verb).done();
            // What they do not know they do not judge either.
            let odd = call.clone().env("CNI_CONTAINERID", "_").env("CNI_IFNAME", "a/b").env("CNI_NETNS", "/nowhere");
            odd.call(verb).done();
            for version in ["0.4.0", "1.0.0"] {
                let (code, message) = call.clone().with("cniVersion", json!(version)).call(verb).error();
                assert_eq!(code, 1, "{version} has no {verb}: {message}");
            }
        }
    }
    let verbs = order(&sandbox);
    assert_eq!(verbs, ["script STATUS", "script STATUS", "script GC", "script GC"], "the delegate is asked as well");
}

/// Two networks, in each a living container `alive` and `dead` and `listed` without namespace.
fn two_networks(sandbox: &Sandbox) -> [Value; 2] {
    [("net1", "10.9.0.0/24"), ("net2", "10.10.0.0/24")].map(|(name, subnet)| {
        let config = json!({"cniVersion": "1.1.0", "name": name, "type": "osvc-bridge", "network": subnet});
        for id in ["alive", "dead", "listed"] {
            let netns = sandbox.netns(&format!("{id}-{name}"));
            bridge(sandbox, &netns, config.clone()).container(id).add();
            if id != "alive" {
                sandbox.delete_netns(&netns);
            }
        }
        config
    })
}

#[test]
fn c102_gc_frees_what_is_not_listed_and_not_alive_in_its_network_only() {
    for (valid, left) in [
        (json!({VALID: [{"containerID": "listed", "ifname": "eth0"}]}), 2),
        (json!({VALID: [{"containerID": "listed", "ifname": "eth1"}]}), 1),
        (json!({VALID: [{"containerID": "other", "ifname": "eth0"}]}), 1),
        (json!({VALID: []}), 1),
        (json!({VALID: null}), 1),
        (json!({}), 1),
    ] {
        for plugin in crate::PLUGINS {
            let sandbox = Sandbox::new();
            let [config, _] = two_networks(&sandbox);
            sandbox.wait_for("the pairs of the dead are gone", "[ $(ip -o link | grep -c ': ov') = 2 ]");
            let mut config = if plugin == "osvc-ipam" { ipam(json!({"subnet": "10.9.0.0/24"})) } else { config };
            for (key, value) in valid.as_object().unwrap() {
                config[key] = value.clone();
            }
            let links = sandbox.links();
            for turn in 0..2 {
                sandbox.plugin(plugin).config(config.clone()).call("GC").done();
                assert_eq!(sandbox.held(Family::Osvc, "net1").len(), left, "{plugin}, turn {turn}, {valid}");
                assert_eq!(sandbox.held(Family::Osvc, "net2").len(), 3, "{plugin}: net2 is not its affair, {valid}");
                assert_eq!(sandbox.links(), links, "{plugin}: what lives keeps its pair, {valid}");
            }
        }
    }
}

#[test]
fn c102_gc_is_forwarded_to_the_delegate_and_its_error_does_not_stop_ours() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let script = Scripted::ipam(&sandbox, "script");
    let call = bridge(&sandbox, &pod, keys(json!({"type": "script"})));
    // Our own records of a container that was on the network before its ipam.type was changed.
    let ours = bridge(&sandbox, &pod, keys(json!({"subnet": "10.9.0.0/24"}))).container("before").ifname("eth7");
    ours.add();
    sandbox.delete_netns(&pod);
    sandbox.wait_for("the pair of the dead is gone", "! ip -o link | grep -q ': ov'");
    let gc = call.with(VALID, json!([{"containerID": "x", "ifname": "eth0"}]));
    script.fails("GC");
    assert_eq!(gc.call("GC").error(), (142, "the script refuses (GC)".to_owned()), "the delegate's error is reported");
    assert!(sandbox.held(Family::Osvc, "net1").is_empty(), "ours was done all the same");
    let calls = recorded(&sandbox);
    assert_eq!(calls.len(), 1, "it is called once: {calls:?}");
    assert_eq!(calls[0].stdin[VALID], json!([{"containerID": "x", "ifname": "eth0"}]), "with the list");
    script.succeeds("GC");
    gc.call("GC").done();
}

/// host-local's folder is only read: its lock, its last address, and what it wrote before it knew interfaces.
#[test]
fn c103_gc_and_add_and_del_leave_host_local_s_own_files_alone() {
    for data_dir in [None, Some("/var/lib/other")] {
        let sandbox = Sandbox::new();
        let pod = sandbox.netns("pod");
        let folder = format!("{}/net1", data_dir.unwrap_or("/var/lib/cni/networks"));
        for (name, content) in [
            ("lock", ""),
            ("last_reserved_ip.0", "10.9.0.7"),
            ("10.9.0.20", "legacy"),
            ("10.9.0.21", "theirs\r\neth0"),
            ("10.9.0.22", ""),
        ] {
            sandbox.write(&format!("{folder}/{name}"), content);
        }
        let before = sandbox.sh(&format!("cd {folder} && stat -c '%n %i %s %Y' * && cat *")).ok();
        let mut keys = json!({"subnet": "10.9.0.0/24"});
        if let Some(data_dir) = data_dir {
            keys["dataDir"] = json!(data_dir);
        }
        let call = sandbox.plugin("osvc-ipam").netns(&pod).config(ipam(keys));
        let unchanged = |what: &str| {
            let after = sandbox.sh(&format!("cd {folder} && stat -c '%n %i %s %Y' * && cat *")).ok();
            assert_eq!(after, before, "host-local's files after {what}, dataDir {data_dir:?}");
        };
        call.add();
        unchanged("ADD");
        for valid in [json!([]), json!(null), json!([{"containerID": "c1", "ifname": "eth0"}])] {
            call.clone().with(VALID, valid.clone()).call("GC").done();
            unchanged(&format!("GC with {valid}"));
        }
        call.del();
        unchanged("DEL");
        // The legacy one is found by its id, whatever the interface.
        call.clone().container("legacy").del();
        assert!(!sandbox.exists(&format!("{folder}/10.9.0.20")), "DEL of a container by its legacy record");
        assert!(sandbox.exists(&format!("{folder}/10.9.0.21")), "and of nobody else's");
        assert!(sandbox.exists(&format!("{folder}/lock")), "the lock stays");
        assert_eq!(sandbox.read(&format!("{folder}/last_reserved_ip.0")), "10.9.0.7", "the last address stays");
    }
}

#[test]
fn c102_a_network_that_was_never_set_up_has_nothing_to_collect() {
    let sandbox = Sandbox::new();
    let before = sandbox.leftovers();
    for valid in [json!([]), json!(null)] {
        sandbox.plugin("osvc-bridge").config(one_line("1.1.0")).with(VALID, valid).call("GC").done();
        sandbox.leftovers().assert_same_as(&before, "a GC of nothing");
    }
}
