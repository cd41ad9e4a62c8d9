//! `osvc-net setup` after everything was flushed and deleted.

use std::collections::BTreeSet;

use integration::{Sandbox, report};
use serde_json::json;

use super::osvc_net;

#[test]
fn all_networks_work_again_after_a_flush_and_deleted_bridges() {
    let sandbox = Sandbox::with_tools(&[env!("CARGO_BIN_EXE_talk")]);
    let outside = sandbox.outside();
    let of = |name: &str, subnets: &[&str]| sandbox.network(name, subnets);
    let networks = [
        of("plain", &["10.1.0.0/24"]),
        of("dual", &["10.2.0.0/24", "fd02::/64"]),
        of("checked", &["10.3.0.0/24"]).with_bridge("spoofcheck", json!(true)).with_bridge("isolate", json!(true)),
    ];
    let names = ["plain", "dual", "checked"];
    for (name, network) in names.iter().zip(&networks) {
        sandbox.write(&format!("/etc/cni/net.d/{name}.conflist"), &network.conflist().to_string());
    }
    let containers: Vec<_> =
        names.iter().zip(&networks).map(|(name, network)| network.container(&format!("web-{name}"))).collect();
    for (index, container) in containers.iter().enumerate() {
        container.publish(json!([{"hostPort": 8000 + index, "containerPort": 80}]));
        sandbox.serve(Some(&container.netns), "tcp", "0.0.0.0:80", &container.netns.name);
    }
    let works = || {
        for (index, container) in containers.iter().enumerate() {
            sandbox.wait_for(
                "the container reaches outside",
                &format!("ip netns exec {} ping -n -c 1 -W 1 198.51.100.1", container.netns.name),
            );
            let answer = sandbox.ask(Some(&outside), "tcp", &format!("192.0.2.2:{}", 8000 + index));
            assert!(answer.starts_with(&container.netns.name), "{answer}");
        }
    };
    works();
    let before = (rules(&sandbox), osvc_net(&sandbox, &["ip", "ls"]).ok());
    sandbox.sh("nft flush ruleset; ip link del obr_plain; ip link del obr_dual; ip link del obr_checked").ok();
    assert!(!sandbox.ping(&containers[0].netns, "10.1.0.1"), "all of it is gone");
    let planned = osvc_net(&sandbox, &["setup", "--dry-run"]).ok();
    assert!(planned.contains("plain: would be set up") && sandbox.ruleset().is_empty(), "{planned}");
    let told = osvc_net(&sandbox, &["setup"]).ok();
    for name in names {
        assert!(told.contains(&format!("{name}: set up, bridge obr_{name}")), "{told}");
        assert!(told.contains(&format!("{name}: firewall rules made")), "{told}");
    }
    works();
    assert_eq!((rules(&sandbox), osvc_net(&sandbox, &["ip", "ls"]).ok()), before, "as it was");

    // The second changes nothing, and says so; or nothing, when that was asked for.
    let state = (sandbox.ruleset(), sandbox.ip("-o addr"), sandbox.ip("route"));
    let told = osvc_net(&sandbox, &["setup"]).ok();
    for name in names {
        assert!(told.contains(&format!("{name}: in place")), "{told}");
    }
    assert!(told.contains("host ports: in place, 4 published"), "{told}");
    assert!(told.contains("source checks: in place, 1 containers"), "{told}");
    assert_eq!(osvc_net(&sandbox, &["setup", "--quiet"]).ok(), "");
    assert_eq!((sandbox.ruleset(), sandbox.ip("-o addr"), sandbox.ip("route")), state);
    report::ran(&report::kernel(), "osvc-net setup after nft flush ruleset and ip link del of every bridge");
}

/// What the ruleset is made of, in whatever order nft tells it.
fn rules(sandbox: &Sandbox) -> BTreeSet<String> {
    sandbox.ruleset().split(['{', '}', ',', '\n']).map(|part| part.trim().to_owned()).collect()
}

#[test]
fn a_container_that_lost_its_host_end_is_named() {
    let sandbox = Sandbox::new();
    let network = sandbox.network("net1", &["10.9.0.0/24"]);
    sandbox.write("/etc/cni/net.d/net1.conflist", &network.conflist().to_string());
    let (web, db) = (network.container("web"), network.container("db"));
    let end = sandbox.ip_json("link show group 79 type veth");
    let of_web = end.iter().find(|link| link["ifalias"].as_str().unwrap().contains(" web ")).unwrap();
    sandbox.ip(&format!("link del {}", of_web["ifname"].as_str().unwrap()));
    let record = format!("/var/lib/cni/osvc/ipam/net1/{}", web.v4);
    let since = |time: &str| {
        let mut value: serde_json::Value = serde_json::from_str(&sandbox.read(&record)).unwrap();
        value["since"] = json!(time);
        sandbox.write(&record, &format!("{value}\n"));
    };
    // A young one may be on its way.
    since("2999-01-01T00:00:00.000000Z");
    osvc_net(&sandbox, &["setup"]).ok();
    since("2026-01-01T00:00:00.000000Z");
    let told = osvc_net(&sandbox, &["setup"]);
    assert!(told.rc == 1 && told.stdout.contains("net1: in place"), "{told}");
    assert!(told.stderr.contains("\"web\"") && told.stderr.contains("restart the container"), "{told}");
    assert!(!told.stderr.contains("\"db\""), "{told}");
    assert!(sandbox.ping(&db.netns, "10.9.0.1"));
    let found = osvc_net(&sandbox, &["doctor"]).failed();
    assert!(found.starts_with("detached: network net1: 10.9.0.") && found.matches("why:").count() == 1, "{found}");
    // As it says.
    web.bridge.del();
    web.bridge.add();
    assert!(sandbox.ping(&web.netns, "10.9.0.1"));
    osvc_net(&sandbox, &["setup"]).ok();
    assert_eq!(osvc_net(&sandbox, &["doctor"]).ok(), "");
    report::ran(&report::kernel(), "osvc-net setup names a container without host end");
}

#[test]
fn a_network_is_moved_to_another_bridge_once_nobody_uses_it() {
    let sandbox = Sandbox::new();
    let on = |bridge: &str| sandbox.network("net1", &["10.9.0.0/24"]).with_bridge("bridge", json!(bridge));
    let install = |bridge: &str| sandbox.write("/etc/cni/net.d/net1.conflist", &on(bridge).conflist().to_string());
    install("br-a");
    let web = on("br-a").container("web");
    install("br-b");
    let before = sandbox.ip("-o addr");
    let told = osvc_net(&sandbox, &["setup"]).failed();
    for word in ["net1 is on bridge br-a", "\"web\"", "moves it to br-b"] {
        assert!(told.contains(word), "{told}");
    }
    let config = json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "network": "10.9.0.0/24", "bridge": "br-b"});
    let other = sandbox.netns("other");
    let (code, refused) = sandbox.plugin("osvc-bridge").config(config).container("other").netns(&other).add_fails();
    assert!(code == 7 && refused.contains("`osvc-net setup net1` moves it to br-b"), "{code}: {refused}");
    assert_eq!(sandbox.ip("-o addr"), before);
    assert!(sandbox.ping(&web.netns, "10.9.0.1"), "an edit is no outage");
    web.bridge.del();
    sandbox.delete_netns(&web.netns);
    let planned = osvc_net(&sandbox, &["setup", "--dry-run"]).ok();
    assert!(
        planned.contains("net1: would remove bridge br-a\n") && planned.contains("would be set up, bridge br-b"),
        "{planned}"
    );
    sandbox.ip("link show br-a");
    let told = osvc_net(&sandbox, &["setup"]).ok();
    assert!(
        told.contains("net1: removed bridge br-a") && told.contains("net1: set up, bridge br-b with 10.9.0.1/24"),
        "{told}"
    );
    let again = on("br-b").container("web");
    assert_eq!(again.v4, web.v4, "the same workload has the same address");
    assert!(sandbox.ping(&again.netns, "10.9.0.1"));
    report::ran(&report::kernel(), "osvc-net setup moves a network to another bridge");
}
