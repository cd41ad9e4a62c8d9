//! osvc-net on a real network.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::{Family, Netns, Output, Sandbox, addresses_of, report};
use serde_json::{Value, json};

fn config() -> Value {
    json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "network": "10.9.0.0/24"})
}

/// A machine with the network's conflist and a container on it.
fn machine() -> (Sandbox, Netns, String) {
    let sandbox = Sandbox::new();
    let conflist =
        json!({"cniVersion": "1.0.0", "name": "net1", "plugins": [{"type": "osvc-bridge", "network": "10.9.0.0/24"}]});
    sandbox.write("/etc/cni/net.d/net1.conflist", &conflist.to_string());
    let netns = sandbox.netns("web");
    let address = start(&sandbox, &netns, "id-web", "web");
    (sandbox, netns, address)
}

fn start(sandbox: &Sandbox, netns: &Netns, container: &str, name: &str) -> String {
    let result = sandbox.plugin("osvc-bridge").config(config()).container(container).netns(netns).named(name).add();
    addresses_of(&result)[0].split('/').next().unwrap().to_owned()
}

fn osvc_net(sandbox: &Sandbox, words: &[&str]) -> Output {
    sandbox.osvc_net(words)
}

#[test]
fn ip_ls_shows_who_has_what() {
    let (sandbox, _, address) = machine();
    let table = osvc_net(&sandbox, &["ip", "ls"]).ok();
    let row = table.lines().find(|line| line.contains(&address)).unwrap_or_else(|| panic!("no row in {table}"));
    for word in ["net1", "held", "web", "eth0"] {
        assert!(row.contains(word), "{word} is in {row}");
    }
    let rows: Value =
        serde_json::from_str(&osvc_net(&sandbox, &["ip", "ls", "--network", "net1", "-o", "json"]).ok()).unwrap();
    assert_eq!(rows[0]["address"], json!(address), "{rows}");
    assert_eq!(rows[0]["key"], json!({"source": "podman", "text": "web"}), "{rows}");
    let told = osvc_net(&sandbox, &["ip", "ls", "--network", "nte1"]).failed();
    assert!(told.contains("net1"), "the nearest name is suggested: {told}");
    report::ran(&report::kernel(), "osvc-net ip ls");
}

#[test]
fn gc_gives_back_what_is_provably_dead_and_nothing_else() {
    let (sandbox, _, web) = machine();
    let netns = sandbox.netns("db");
    let db = start(&sandbox, &netns, "id-db", "db");
    sandbox.delete_netns(&netns);
    sandbox.wait_for("the pair is gone", "[ $(ip -o link | wc -l) -eq 3 ]");
    let before = sandbox.leftovers();
    let planned = osvc_net(&sandbox, &["gc", "--dry-run"]).ok();
    assert!(planned.contains(&db) && !planned.contains(&web), "{planned}");
    sandbox.leftovers().assert_same_as(&before, "a dry run");
    let done = osvc_net(&sandbox, &["gc", "net1"]).ok();
    assert!(done.contains(&db) && !done.contains(&web), "{done}");
    let held: Vec<String> = sandbox.held(Family::Osvc, "net1").iter().map(ToString::to_string).collect();
    assert_eq!(held, [web]);
    assert_eq!(osvc_net(&sandbox, &["gc"]).ok(), "net1: nothing to give back\n", "twice is once");
    report::ran(&report::kernel(), "osvc-net gc");
}

#[test]
fn gc_sweeps_without_a_conflist_and_a_dry_run_waits_for_nobody() {
    let sandbox = Sandbox::new();
    assert_eq!(osvc_net(&sandbox, &["gc"]).ok(), "there is no network: nothing to give back\n");
    let network = sandbox.network("net1", &["10.9.0.0/24"]).with_bridge("spoofcheck", json!(true));
    let pods = ["web", "db"].map(|name| network.container(name));
    pods[1].publish(json!([{"hostPort": 8080, "containerPort": 80}]));
    sandbox.delete_netns(&pods[1].netns);
    sandbox.wait_for("the pair is gone", "[ $(ip -o link | wc -l) -eq 3 ]");
    // Somebody writes, and goes on doing so.
    sandbox.background(
        "exec flock /var/lib/cni/osvc/ipam/net1/lock flock /var/lib/cni/osvc/spoof/lock sleep 60",
        "/dev/null",
    );
    sandbox.wait_for("the stores are locked", "! flock -n /var/lib/cni/osvc/spoof/lock true");
    let before = sandbox.leftovers();
    let planned = osvc_net(&sandbox, &["gc", "--dry-run"]);
    assert!(planned.elapsed.as_secs() < 5, "{planned}");
    let lines: Vec<String> = planned.ok().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for word in [
        format!("{} of db", pods[1].v4),
        "host ports 8080->80/tcp of db".into(),
        "source checks of container db".into(),
    ] {
        assert!(lines.iter().any(|line| line.starts_with("net1: ") && line.contains(&word)), "{word}: {lines:?}");
    }
    sandbox.leftovers().assert_same_as(&before, "a dry run");
    sandbox.sh("kill $(pgrep -x sleep)").ok();
    let done = osvc_net(&sandbox, &["gc"]).ok();
    assert_eq!(done.lines().count(), 3, "{done}");
    assert_eq!(osvc_net(&sandbox, &["gc"]).ok(), "net1: nothing to give back\n");
    pods[0].bridge.check(&pods[0].result);
    report::ran(&report::kernel(), "osvc-net gc of a network without a configuration");
}

#[test]
fn gc_names_each_host_end_that_outlived_its_container() {
    let sandbox = Sandbox::new();
    let network = sandbox.network("net1", &["10.9.0.0/24"]);
    network.container("web");
    // They outlive their namespaces for tens of milliseconds: caught there, by several tries and many at once.
    for round in 0..20 {
        let ids: Vec<String> = (0..8).map(|n| format!("gone{round}x{n}")).collect();
        let pods: Vec<_> = ids.iter().map(|id| network.container(id)).collect();
        let ends: Vec<String> = pods
            .iter()
            .map(|pod| {
                let record = sandbox.record("/var/lib/cni/osvc/ipam/net1", &pod.v4);
                record["host"]["ifname"].as_str().unwrap().to_owned()
            })
            .collect();
        let command = "/opt/cni/bin/osvc-net gc net1";
        let script = format!(
            "rm /run/netns/first; ip netns add first; for n in {}; do umount /run/netns/$n; done
             {command} --dry-run > /run/planned; {command} > /run/done",
            ids.join(" ")
        );
        sandbox.sh(&script).ok();
        let (planned, done) = (sandbox.read("/run/planned"), sandbox.read("/run/done"));
        let is_named = |text: &str, how: &str| {
            ends.iter().any(|end| text.contains(&format!("net1: host end {end} without a container {how}\n")))
        };
        for pod in &pods {
            assert!(planned.contains(&format!("{} of ", pod.v4)), "{planned}");
        }
        if is_named(&planned, "would be removed") {
            assert!(!done.contains("would"), "{done}");
            report::ran(&report::kernel(), "osvc-net gc of host ends");
            return;
        }
    }
    panic!("no host end outlived its container in 20 rounds");
}

#[test]
fn setup_puts_back_what_was_flushed_and_says_what_it_did() {
    let (sandbox, netns, _) = machine();
    sandbox.outside();
    assert!(sandbox.ping(&netns, "198.51.100.1"), "the network works");
    let rules = sandbox.ruleset();
    sandbox.sh("nft flush ruleset; ip addr del 10.9.0.1/24 dev obr_net1").ok();
    assert!(!sandbox.ping(&netns, "198.51.100.1"), "without rules and gateway it does not");
    let planned = osvc_net(&sandbox, &["setup", "--dry-run"]).ok();
    assert!(planned.contains("net1"), "{planned}");
    assert_eq!(sandbox.ruleset(), "", "a dry run makes no rules");
    osvc_net(&sandbox, &["setup"]).ok();
    assert_eq!(sandbox.ruleset(), rules);
    assert!(sandbox.ping(&netns, "198.51.100.1"), "it works again");
    let again = osvc_net(&sandbox, &["setup", "net1"]).ok();
    assert!(again.contains("in place") && !again.contains("made"), "the second changes nothing and says so: {again}");
    report::ran(&report::kernel(), "osvc-net setup");
}

#[test]
fn setup_brings_a_deleted_bridge_back_with_its_containers() {
    let (sandbox, netns, _) = machine();
    sandbox.outside();
    sandbox.ip("link del obr_net1");
    assert!(!sandbox.ping(&netns, "10.9.0.1"), "without the bridge there is no gateway");
    osvc_net(&sandbox, &["setup"]).ok();
    // The container asks for its gateway's address once a second.
    sandbox.wait_for(
        "the container that was there is on the new bridge",
        "ip netns exec web ping -n -c 1 -W 1 198.51.100.1",
    );
    // Taken out of it by hand.
    sandbox.sh("for port in $(ip -o link show master obr_net1 | grep -o 'ov[0-9a-f]*'); do ip link set $port nomaster; done").ok();
    assert!(!sandbox.ping(&netns, "10.9.0.1"), "it is out of the bridge");
    let told = osvc_net(&sandbox, &["setup"]).ok();
    assert!(told.contains("set up"), "{told}");
    sandbox.wait_for("the port is back in the bridge", "ip netns exec web ping -n -c 1 -W 1 10.9.0.1");
    assert!(osvc_net(&sandbox, &["setup"]).ok().contains("in place"));
    report::ran(&report::kernel(), "osvc-net setup with a deleted bridge");
}

#[test]
fn teardown_removes_a_network_that_nobody_uses_and_remembers_its_addresses() {
    let sandbox = Sandbox::new();
    let before = (sandbox.ip("-o link"), sandbox.ruleset());
    let network = sandbox.network("net1", &["10.9.0.0/24", "fd09::/64"]);
    sandbox.write("/etc/cni/net.d/net1.conflist", &network.conflist().to_string());
    let container = network.container("web");
    container.publish(json!([{"hostPort": 8080, "containerPort": 80}]));
    let told = osvc_net(&sandbox, &["teardown", "net1"]);
    assert_eq!(told.rc, 1, "{told}");
    for word in ["10.9.0.", "fd09::", "\"web\"", "container web", "host ports", "--force"] {
        assert!(told.stderr.contains(word), "{word}: {told}");
    }
    // The address is given back, the port is not.
    container.bridge.del();
    let told = osvc_net(&sandbox, &["teardown", "net1", "--dry-run"]).failed();
    assert!(told.contains("host ports") && !told.contains("10.9.0."), "{told}");
    container.withdraw();
    let planned = osvc_net(&sandbox, &["teardown", "net1", "--dry-run"]).ok();
    assert_eq!(planned, "net1: would remove bridge obr_net1\nnet1: would remove firewall rules\n");
    sandbox.ip("link show obr_net1");
    let done = osvc_net(&sandbox, &["teardown", "net1"]).ok();
    assert_eq!(done, "net1: removed bridge obr_net1\nnet1: removed firewall rules\n");
    assert_eq!((sandbox.ip("-o link"), sandbox.ruleset().contains("osvc-cni {")), (before.0, false), "{}", before.1);
    assert_eq!(osvc_net(&sandbox, &["teardown", "net1"]).ok(), "net1: nothing of it is set up\n");
    let told = osvc_net(&sandbox, &["teardown", "nte1"]).failed();
    assert!(told.contains("did you mean \"net1\""), "{told}");
    sandbox.delete_netns(&container.netns);
    assert_eq!(network.container("web").v4, container.v4, "the same workload has the same address");
    report::ran(&report::kernel(), "osvc-net teardown");
}

#[test]
fn teardown_leaves_what_is_not_of_that_network_alone() {
    let sandbox = Sandbox::new();
    sandbox.sh("ip link add br0 type bridge; ip addr add 192.0.2.1/24 dev br0; ip link set br0 up").ok();
    let on = |name: &str, subnet: &str, bridge: &str| {
        sandbox.network(name, &[subnet]).with_bridge("bridge", json!(bridge)).container(&format!("{name}-pod"))
    };
    let foreign = on("foreign", "10.8.0.0/24", "br0");
    let shared = [on("one", "10.9.1.0/24", "shared"), on("two", "10.9.2.0/24", "shared")];
    let gone = |name: &str, pod: &integration::Container<'_>| {
        pod.bridge.del();
        sandbox.delete_netns(&pod.netns);
        osvc_net(&sandbox, &["teardown", name]).ok()
    };
    let told = gone("foreign", &foreign);
    assert!(told.contains("bridge br0 stays: it is not ours"), "{told}");
    assert!(sandbox.ip("addr show br0").contains("192.0.2.1/24"));
    let told = gone("one", &shared[0]);
    assert!(told.contains("removed address 10.9.1.1/24 from bridge shared"), "{told}");
    assert!(told.contains("it is also that of network two"), "{told}");
    let rules = sandbox.ruleset();
    assert!(!rules.contains("10.9.1.0/24") && rules.contains("10.9.2.0/24"), "{rules}");
    shared[1].bridge.check(&shared[1].result);
    report::ran(&report::kernel(), "osvc-net teardown beside others");
}
