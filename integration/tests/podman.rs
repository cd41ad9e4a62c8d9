//! The plugins under podman 4 with its CNI backend: names are workloads, and a workload keeps its address.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::podman::{self, address, identity, podman, podman_with};
use integration::{Family, Sandbox, report};
use serde_json::{Value, json};

/// What the repository ships for podman.
fn example() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../conf-examples/podman.conflist");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn write_network(sandbox: &Sandbox, conflist: &Value) {
    let name = conflist["name"].as_str().unwrap();
    sandbox.write(&format!("{}/{name}.conflist", podman::CONF), &conflist.to_string());
}

fn network(name: &str, plugins: Value) -> Value {
    json!({"cniVersion": "1.0.0", "name": name, "plugins": plugins})
}

/// What podman itself writes, with the types of a family.
fn as_podman_writes(family: Family, subnet: &str, chain: &[Value]) -> Value {
    let mut plugins = vec![json!({
        "type": family.bridge(), "bridge": "cni-podman1", "isGateway": true, "ipMasq": true, "hairpinMode": true,
        "ipam": {"type": family.ipam(), "ranges": [[{"subnet": subnet}]], "routes": [{"dst": "0.0.0.0/0"}]},
        "capabilities": {"ips": true}
    })];
    plugins.extend_from_slice(chain);
    let mut conflist = network("net1", Value::from(plugins));
    conflist["cniVersion"] = json!("0.4.0");
    conflist
}

fn machine(conflist: &Value) -> Sandbox {
    let mut sandbox = Sandbox::new();
    podman::install(&mut sandbox);
    write_network(&sandbox, conflist);
    sandbox
}

fn noted(sandbox: &Sandbox, what: &str) {
    report::ran(&podman::version(sandbox), what);
}

/// Proves that the simulated reboot is one: this is what the reference does after a real one.
#[test]
fn the_reference_plugins_refuse_to_start_a_container_after_a_reboot() {
    let mut sandbox = machine(&as_podman_writes(Family::Reference, "10.77.0.0/24", &[]));
    podman::run(&sandbox, "a", "net1", &[]);
    sandbox.reboot();
    let message = podman(&sandbox, &["start", "a"]).failed();
    assert!(message.contains("duplicate allocation is not allowed"), "{message}");
    noted(&sandbox, "reference plugins, reboot: duplicate allocation, as users report");
}

#[test]
fn containers_reach_each_other_and_outside_and_keep_address_and_mac_when_recreated() {
    let sandbox = machine(&example());
    sandbox.outside();
    podman::run(&sandbox, "web", "osvc", &[]);
    podman::run(&sandbox, "db", "osvc", &[]);
    let (web, db) = (identity(&sandbox, "web"), identity(&sandbox, "db"));
    assert!(web.0[0].starts_with("10.22.") && web.0[0].ends_with("/16"), "{web:?}");
    assert_ne!(web.0, db.0);
    assert!(web.1.starts_with("0a:58:0a:16:"), "the MAC is the address's: {web:?}");
    podman(&sandbox, &["exec", "web", "ping", "-c", "1", "-W", "2", &address(&sandbox, "db")]).ok();
    podman(&sandbox, &["exec", "db", "ping", "-c", "1", "-W", "2", &address(&sandbox, "web")]).ok();
    podman(&sandbox, &["exec", "web", "ping", "-c", "1", "-W", "2", "198.51.100.1"]).ok();
    for turn in 1..=3 {
        podman(&sandbox, &["rm", "-f", "-t", "0", "web"]).ok();
        podman::run(&sandbox, &format!("other{turn}"), "osvc", &[]);
        podman::run(&sandbox, "web", "osvc", &[]);
        assert_eq!(identity(&sandbox, "web"), web, "recreated, turn {turn}");
        podman(&sandbox, &["exec", "db", "ping", "-c", "1", "-W", "2", &address(&sandbox, "web")]).ok();
    }
    podman(&sandbox, &["restart", "-t", "0", "db"]).ok();
    assert_eq!(identity(&sandbox, "db"), db, "restarted");
    podman(&sandbox, &["stop", "-t", "0", "db"]).ok();
    assert!(sandbox.held(Family::Osvc, "osvc").len() == 4, "a stopped container holds nothing");
    podman(&sandbox, &["start", "db"]).ok();
    assert_eq!(identity(&sandbox, "db"), db, "stopped and started");
    podman(&sandbox, &["rm", "-f", "-a", "-t", "0"]).ok();
    assert!(sandbox.held(Family::Osvc, "osvc").is_empty(), "removed containers hold nothing");
    let left: Vec<_> = sandbox.links().into_iter().collect();
    assert_eq!(left, ["lo", "obr_osvc", "up0"], "nothing is left but the network's bridge");
    noted(&sandbox, "two containers, masquerading, recreate, restart, stop and start: same address and MAC");
}

#[test]
fn p10_p11_a_reboot_without_any_del_keeps_every_address() {
    let mut sandbox = machine(&example());
    for name in ["a", "b", "c"] {
        podman::run(&sandbox, name, "osvc", &[]);
    }
    let before: Vec<_> = ["a", "b", "c"].iter().map(|name| identity(&sandbox, name)).collect();
    for turn in 1..=3 {
        sandbox.reboot();
        // Others first, in another order, so that order cannot explain the result.
        podman::run(&sandbox, &format!("new{turn}"), "osvc", &[]);
        for (index, name) in [(2, "c"), (0, "a")] {
            podman(&sandbox, &["start", name]).ok();
            assert_eq!(identity(&sandbox, name), before[index], "{name}, same container id, reboot {turn}");
        }
        podman(&sandbox, &["rm", "-f", "-t", "0", "b"]).ok();
        podman::run(&sandbox, "b", "osvc", &[]);
        assert_eq!(identity(&sandbox, "b"), before[1], "b, a new container of the same name, reboot {turn}");
        podman(&sandbox, &["exec", "b", "ping", "-c", "1", "-W", "2", &address(&sandbox, "a")]).ok();
    }
    noted(&sandbox, "three reboots, everything killed without DEL and /run wiped: same addresses and MACs");
}

/// A network that podman does not use is one that it removes. Somebody else may: here a container of another runtime.
#[test]
fn podman_network_prune_under_another_runtimes_container_tears_nothing_down() {
    let sandbox = machine(&example());
    sandbox.outside();
    let mut config = example()["plugins"][0].clone();
    config["name"] = json!("osvc");
    config["cniVersion"] = json!("1.0.0");
    let netns = sandbox.netns("other");
    let other = sandbox.plugin("osvc-bridge").config(config).container("other").netns(&netns).named("other");
    let result = other.add();
    let told = podman(&sandbox, &["network", "prune", "-f"]).ok();
    assert!(told.contains("osvc"), "podman took it away: {told}");
    assert!(!sandbox.exists(&format!("{}/osvc.conflist", podman::CONF)), "podman took it away");
    let state = || (sandbox.ip("-o link"), sandbox.ruleset());
    let before = state();
    let words = ["/opt/cni/bin/osvc-net", "--conf-dir", podman::CONF];
    let osvc_net = |command: &str| sandbox.run(&[words.as_slice(), &[command]].concat());
    let told = osvc_net("setup").ok();
    assert!(told.contains("osvc: set up here, but it has no configuration any more: left alone"), "{told}");
    osvc_net("gc").ok();
    assert_eq!(state(), before);
    other.check(&result);
    assert!(sandbox.ping(&netns, "198.51.100.1"), "the container reaches outside");
    assert!(osvc_net("ls").ok().contains("osvc"), "it is listed as long as there is something of it");
    other.del();
    noted(&sandbox, "podman network prune under another runtime's container: nothing is torn down");
}

#[test]
fn a_small_range_survives_reboots_without_ever_being_full() {
    let mut sandbox = machine(&network(
        "net1",
        json!([{"type": "osvc-bridge", "isGateway": true,
            "ipam": {"type": "osvc-ipam", "subnet": "10.9.0.0/24", "rangeStart": "10.9.0.10", "rangeEnd": "10.9.0.14"}}]),
    ));
    for turn in 0..3 {
        for name in 0..4 {
            podman::run(&sandbox, &format!("n{turn}-{name}"), "net1", &[]);
        }
        sandbox.reboot();
    }
    noted(&sandbox, "12 names in a range of 5 addresses over three reboots: never full");
}

/// The types in the conflist change while the reference's containers run.
#[test]
fn p9_the_conflist_switched_under_running_reference_containers() {
    let subnet = "10.77.0.0/29";
    let mut sandbox = machine(&as_podman_writes(Family::Reference, subnet, &[]));
    podman::run(&sandbox, "old1", "net1", &[]);
    podman::run(&sandbox, "old2", "net1", &[]);
    let (old1, old2) = (address(&sandbox, "old1"), address(&sandbox, "old2"));
    write_network(&sandbox, &as_podman_writes(Family::Osvc, subnet, &[]));
    // Five addresses, two of them with running containers: the other three are for ours.
    for name in ["new1", "new2", "new3"] {
        podman::run(&sandbox, name, "net1", &[]);
        let new = address(&sandbox, name);
        assert!(new != old1 && new != old2, "{name} got {new}, which a running container has");
        podman(&sandbox, &["exec", name, "ping", "-c", "1", "-W", "2", &old1]).ok();
    }
    podman(&sandbox, &["rm", "-f", "-t", "0", "old1"]).ok();
    assert!(!sandbox.exists(&format!("/var/lib/cni/networks/net1/{old1}")), "host-local's file is cleaned up");
    let veths = sandbox.links().into_iter().filter(|name| name.starts_with("veth")).count();
    assert_eq!(veths, 1, "and its veth, old2's stays: {:?}", sandbox.links());
    podman::run(&sandbox, "new4", "net1", &[]);
    assert_eq!(address(&sandbox, "new4"), old1, "its address can be used again");
    sandbox.reboot();
    podman(&sandbox, &["start", "old2"]).ok();
    noted(&sandbox, "conflist switched under running reference containers");
}

#[test]
fn host_local_leaked_full_is_not_full_for_ours() {
    let subnet = "10.77.0.0/29";
    let mut sandbox = machine(&as_podman_writes(Family::Reference, subnet, &[]));
    for name in ["a", "b", "c", "d", "e"] {
        podman::run(&sandbox, name, "net1", &[]);
    }
    sandbox.reboot();
    podman(&sandbox, &["rm", "-f", "-a", "-t", "0"]).ok();
    // podman's own removal finds no netns and calls no DEL: host-local's five files are still there.
    podman(&sandbox, &["run", "-d", "--name", "f", "--network", "net1", "bb", "sleep", "9"]).failed();
    write_network(&sandbox, &as_podman_writes(Family::Osvc, subnet, &[]));
    for name in ["a", "b", "c", "d", "e"] {
        podman::run(&sandbox, name, "net1", &[]);
    }
    noted(&sandbox, "a range that host-local had leaked full serves five containers");
}

#[test]
fn p12_network_reload_keeps_address_and_mac() {
    let sandbox = machine(&example());
    podman::run(&sandbox, "a", "osvc", &[]);
    let before = identity(&sandbox, "a");
    for _ in 0..3 {
        podman(&sandbox, &["network", "reload", "a"]).ok();
        assert_eq!(identity(&sandbox, "a"), before);
    }
    sandbox.sh("nft flush ruleset").ok();
    podman(&sandbox, &["network", "reload", "a"]).ok();
    assert!(sandbox.ruleset().contains("masquerade"), "the rules are back");
    noted(&sandbox, "network reload");
}

#[test]
fn p6_requested_addresses_and_macs() {
    let sandbox = machine(&as_podman_writes(Family::Osvc, "10.77.0.0/24", &[]));
    podman::run(&sandbox, "a", "net1", &["--ip", "10.77.0.99", "--mac-address", "02:11:22:33:44:55"]);
    assert_eq!(identity(&sandbox, "a"), (vec!["10.77.0.99/24".to_owned()], "02:11:22:33:44:55".to_owned()));
    let words = ["run", "-d", "--name", "b", "--network", "net1", "--ip", "10.77.0.99", "bb", "sleep", "9"];
    let message = podman(&sandbox, &words).failed();
    assert!(message.contains("10.77.0.99") && message.contains('a'), "the holder is named: {message}");
    podman(&sandbox, &["network", "reload", "a"]).ok();
    assert_eq!(identity(&sandbox, "a").0, ["10.77.0.99/24"], "a reload sends the same address twice");
    podman(&sandbox, &["rm", "-f", "-t", "0", "a"]).ok();
    podman::run(&sandbox, "a", "net1", &[]);
    assert_eq!(identity(&sandbox, "a").0, ["10.77.0.99/24"], "a name keeps what it asked for once");
    noted(&sandbox, "--ip, --mac-address, reload");
}

#[test]
fn p7_pairs_of_the_user_s_cni_args_reach_the_plugin() {
    let sandbox = machine(&example());
    let parent = format!("/{}", sandbox.id);
    let run = |name: &str, args: &str| {
        let words =
            ["run", "-d", "--name", name, "--network", "osvc", "--cgroup-parent", &parent, "bb", "sleep", "1000"];
        podman_with(&sandbox, &[("CNI_ARGS", args)], &words).ok();
        address(&sandbox, name)
    };
    let first = run("x1", "OSVC_KEY=prod/svc1!container#1");
    podman(&sandbox, &["rm", "-f", "-t", "0", "x1"]).ok();
    assert_eq!(run("x2", "OSVC_KEY=prod/svc1!container#1"), first, "the key decides, not the name");
    noted(&sandbox, "OSVC_KEY in CNI_ARGS");
}

#[test]
fn a_pod_and_a_second_network() {
    let sandbox = machine(&example());
    write_network(&sandbox, &network("back", json!([{"type": "osvc-bridge", "network": "10.33.0.0/24"}])));
    podman::run(&sandbox, "a", "osvc", &[]);
    podman(&sandbox, &["network", "connect", "back", "a"]).ok();
    let text = podman(&sandbox, &["exec", "a", "ip", "-4", "addr"]).ok();
    assert!(text.contains("10.22.") && text.contains("10.33.0."), "p16: a second default route is no error: {text}");
    podman(&sandbox, &["network", "disconnect", "back", "a"]).ok();
    let text = podman(&sandbox, &["exec", "a", "ip", "-4", "addr"]).ok();
    assert!(text.contains("10.22.") && !text.contains("10.33.0."), "{text}");
    podman::run(&sandbox, "both", "osvc,back", &[]);
    let text = podman(&sandbox, &["exec", "both", "ip", "-4", "addr"]).ok();
    assert!(text.contains("10.22.") && text.contains("10.33.0."), "{text}");
    let listed = podman(&sandbox, &["network", "ls"]).ok();
    assert!(listed.contains("osvc-bridge"), "{listed}");
    noted(&sandbox, "network connect and disconnect, two networks at once");
}

#[test]
fn chained_reference_portmap_and_firewall_work_on_our_bridge() {
    let chain = [json!({"type": "portmap", "capabilities": {"portMappings": true}}), json!({"type": "firewall"})];
    let sandbox = machine(&as_podman_writes(Family::Osvc, "10.77.0.0/24", &chain));
    let outside = sandbox.outside();
    podman::run(&sandbox, "a", "net1", &["-p", "8080:80"]);
    podman(&sandbox, &["exec", "a", "sh", "-c", "mkdir /www; echo hello > /www/index.html; httpd -h /www"]).ok();
    sandbox.wait_for_page(&outside, "192.0.2.2", 8080, "hello");
    let before = address(&sandbox, "a");
    podman(&sandbox, &["restart", "-t", "0", "a"]).ok();
    assert_eq!(address(&sandbox, "a"), before);
    podman(&sandbox, &["rm", "-f", "-t", "0", "a"]).ok();
    let rules = sandbox.sh("iptables-save").ok();
    assert!(!rules.contains(&before), "the chained plugins cleaned up: {rules}");
    noted(&sandbox, "chained with the reference portmap and firewall");
}
