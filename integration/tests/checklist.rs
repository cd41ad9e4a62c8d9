//! What runtimes rely on without any of them: points of the runtimes' checklist that a plain call shows (pN).
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::{Family, Sandbox, addresses_of};
use serde_json::{Value, json};

fn bridge() -> Value {
    json!({"cniVersion": "1.1.0", "name": "net1", "type": "osvc-bridge", "network": "10.9.0.0/24"})
}

#[test]
fn p1_version_answers_with_dummy_environment_and_touches_nothing() {
    let sandbox = Sandbox::new();
    sandbox.sh("mount -o remount,ro /var/lib").ok();
    for plugin in ["osvc-ipam", "osvc-bridge", "osvc-routed", "osvc-portmap"] {
        let reply = sandbox
            .plugin(plugin)
            .config(json!({"cniVersion": "0.3.0"}))
            .env("CNI_CONTAINERID", "dummy")
            .env("CNI_NETNS", "dummy")
            .env("CNI_IFNAME", "dummy")
            .call("VERSION");
        let versions = reply.result()["supportedVersions"].clone();
        for version in integration::VERSIONS {
            assert!(versions.as_array().unwrap().contains(&json!(version)), "{plugin}: {versions}");
        }
    }
    assert!(!sandbox.exists("/var/lib/cni/osvc"), "no state was made");
}

#[test]
fn p2_without_a_command_it_says_what_it_is() {
    let sandbox = Sandbox::new();
    for plugin in ["osvc-ipam", "osvc-bridge", "osvc-routed", "osvc-portmap"] {
        let output = sandbox.run(&[&format!("/opt/cni/bin/{plugin}")]);
        assert!(output.rc == 0 && output.stdout.is_empty(), "{output}");
        assert!(output.stderr.starts_with(&format!("CNI {plugin} plugin v")), "{output}");
        assert!(output.stderr.contains("1.1.0"), "{output}");
    }
}

#[test]
fn p4_the_subnet_shorthand_and_host_local_s_ranges_are_both_taken() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for ipam in [
        json!({"type": "osvc-ipam", "subnet": "10.1.2.0/24"}),
        json!({"type": "osvc-ipam", "ranges": [[{"subnet": "10.1.2.0/24"}]]}),
    ] {
        let config =
            json!({"cniVersion": "0.3.0", "name": "net1", "type": "osvc-bridge", "isGateway": true, "ipam": ipam});
        let call = sandbox.plugin("osvc-bridge").netns(&pod).config(config);
        assert!(addresses_of(&call.add())[0].starts_with("10.1.2."));
        call.del();
    }
}

#[test]
fn p5_nulls_empty_strings_and_other_capitals_are_tolerated() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let config = json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "Network": "10.9.0.0/24", "MTU": 1400,
        "bridge": "", "dns": {"Nameservers": ["192.0.2.53"]}, "runtimeConfig": null, "args": null, "ipam": null});
    let call = sandbox.plugin("osvc-bridge").netns(&pod).config(config);
    let result = call.add();
    assert_eq!(sandbox.link_in(&pod, "eth0")["mtu"], 1400);
    assert_eq!(result["dns"]["nameservers"], json!(["192.0.2.53"]));
    call.del();
}

#[test]
fn p7_odd_arguments_are_accepted() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for args in
        ["", ";", ";;A=B;;", "A=B=C;D=;=E", "IP=10.9.0.9;IP=10.9.0.10", "K8S_POD_NAME=x;IgnoreUnknown=1;UNKNOWN=é;X"]
    {
        let call = sandbox.plugin("osvc-bridge").netns(&pod).config(bridge()).args(args);
        let addresses = addresses_of(&call.add());
        if args.contains("IP=") {
            assert_eq!(addresses, ["10.9.0.10/24"], "the last of a repeated key wins");
        }
        call.del();
    }
}

#[test]
fn p10_an_add_in_a_live_container_that_has_the_interface_is_a_clear_error() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = sandbox.plugin("osvc-bridge").netns(&pod).config(bridge()).named("web");
    let first = addresses_of(&call.add());
    match call.call("ADD").success_or_error() {
        Err((code, message)) => assert!(code != 999 && message.contains("eth0"), "{code} {message}"),
        Ok(again) => assert_eq!(addresses_of(&again.unwrap()), first, "or it is idempotent"),
    }
    assert_eq!(sandbox.addresses_in(&pod, "eth0"), first, "the running container keeps what it has");
    assert_eq!(sandbox.held(Family::Osvc, "net1").len(), 1);
    let elsewhere = sandbox.netns("elsewhere");
    let (_, message) = call.netns(&elsewhere).add_fails();
    assert!(message.contains("/run/netns/pod"), "alive in another netns, which is named: {message}");
}

#[test]
fn p14_gc_frees_what_is_not_listed_in_its_own_network_only() {
    let key = "cni.dev/valid-attachments";
    for (valid, left) in [
        (json!({key: [{"containerID": "a", "ifname": "eth0"}]}), 1),
        (json!({key: []}), 0),
        (json!({key: null}), 0),
        (json!({}), 0),
    ] {
        let sandbox = Sandbox::new();
        let networks = [("net1", "10.9.0.0/24"), ("net2", "10.10.0.0/24")].map(
            |(name, subnet)| json!({"cniVersion": "1.1.0", "name": name, "type": "osvc-bridge", "network": subnet}),
        );
        for (index, config) in networks.iter().enumerate() {
            for id in ["a", "b"] {
                let netns = sandbox.netns(&format!("{id}{index}"));
                sandbox.plugin("osvc-bridge").container(id).netns(&netns).config(config.clone()).add();
                sandbox.delete_netns(&netns);
            }
        }
        let mut config = networks[0].clone();
        for (name, value) in valid.as_object().unwrap() {
            config[name] = value.clone();
        }
        // The host ends of a deleted namespace go some milliseconds later.
        sandbox.wait_for("the pairs are gone", "! ip -o link | grep -q ' ov'");
        sandbox.plugin("osvc-bridge").config(config).call("GC").done();
        assert_eq!(sandbox.held(Family::Osvc, "net1").len(), left, "{valid}");
        assert_eq!(sandbox.held(Family::Osvc, "net2").len(), 2, "another network's are not touched: {valid}");
    }
}

#[test]
fn p14_gc_keeps_an_unlisted_attachment_that_is_alive() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = sandbox.plugin("osvc-bridge").netns(&pod).config(bridge());
    let address = addresses_of(&call.add());
    for valid in [json!([]), json!(null)] {
        call.clone().with("cni.dev/valid-attachments", valid).call("GC").done();
        assert_eq!(sandbox.held(Family::Osvc, "net1").len(), 1, "it belongs to another runtime");
        assert_eq!(sandbox.addresses_in(&pod, "eth0"), address);
    }
}

#[test]
fn p16_a_second_default_route_is_left_out() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = sandbox.plugin("osvc-bridge").netns(&pod).config(bridge());
    call.add();
    let mut other = bridge();
    other["name"] = json!("net2");
    other["network"] = json!("10.10.0.0/24");
    let result = call.clone().config(other).ifname("eth1").add();
    assert!(
        result["routes"].as_array().is_none_or(|routes| routes.iter().all(|r| r["dst"] != "0.0.0.0/0")),
        "{result}"
    );
    let defaults = sandbox.ip_json("-n pod route show default");
    assert_eq!(defaults.len(), 1, "{defaults:?}");
    assert_eq!(defaults[0]["gateway"], "10.9.0.1", "the first one stays");
}

#[test]
fn p16_a_lock_that_is_never_released_ends_in_an_error_that_names_the_holder() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let ipam = json!({"type": "osvc-ipam", "subnet": "10.9.0.0/24"});
    let config = json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "ipam": ipam});
    let call = sandbox.plugin("osvc-ipam").netns(&pod).config(config);
    call.add();
    sandbox.background("exec flock /var/lib/cni/osvc/ipam/net1/lock sleep 300", "/run/log");
    sandbox.wait_for("the lock is held", "pgrep -x flock || pgrep -x sleep");
    let reply = call.clone().container("c2").call("ADD");
    let took = reply.elapsed().as_secs();
    let (code, message) = reply.error();
    assert!((25..50).contains(&took), "CRI-O gives up after a minute: {took} s");
    assert!(matches!(code, 5 | 11), "{code} {message}");
    let pids = sandbox.sh("pgrep -x 'flock|sleep'").ok();
    assert!(pids.split_whitespace().any(|pid| message.contains(pid)), "the holder ({pids}) is named: {message}");
}

#[test]
fn p18_shipped_conflists_say_1_0_0_unless_their_name_says_otherwise() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../conf-examples");
    let routed = concat!(env!("CARGO_MANIFEST_DIR"), "/../conf-examples/routed");
    let ipam = concat!(env!("CARGO_MANIFEST_DIR"), "/../conf-examples/ipam");
    let mut seen = 0;
    for entry in [folder, routed, ipam].iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "conflist") {
            let conflist: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let version = conflist["cniVersion"].as_str().unwrap();
            assert!(version == "1.0.0" || version == "0.4.0", "podman 4 cannot read {version}: {}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen} examples");
}
