//! Ports published by podman 4 with its CNI backend: osvc-bridge and osvc-portmap chained.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::podman::{self, address, podman};
use integration::{Netns, Sandbox, report};
use serde_json::{Value, json};

/// What the container serves: a page with its name, on three ports. It is there again after a restart.
const PAGE: &str = "mkdir -p /www; echo page-of-$0 > /www/index.html
    for port in 80 9000 9100; do httpd -p $port -h /www; done; sleep 1000";

/// What the repository ships for podman.
fn example() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../conf-examples/podman.conflist");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Another network, with both families.
fn other_network() -> Value {
    json!({"cniVersion": "1.0.0", "name": "back", "plugins": [
        {"type": "osvc-bridge", "network": ["10.33.0.0/24", "fd33::/64"]},
        {"type": "osvc-portmap", "capabilities": {"portMappings": true}},
    ]})
}

/// What `podman network create` writes, with the types of ours where there are any.
fn as_podman_writes() -> Value {
    json!({"cniVersion": "0.4.0", "name": "net1", "plugins": [
        {
            "type": "osvc-bridge", "bridge": "cni-podman1", "isGateway": true, "ipMasq": true, "hairpinMode": true,
            "ipam": {"type": "osvc-ipam", "routes": [{"dst": "0.0.0.0/0"}],
                "ranges": [[{"subnet": "10.77.0.0/24", "gateway": "10.77.0.1"}]]},
            "capabilities": {"ips": true},
        },
        {"type": "osvc-portmap", "capabilities": {"portMappings": true}},
        {"type": "firewall", "backend": ""},
        {"type": "tuning"},
    ]})
}

fn write_network(sandbox: &Sandbox, conflist: &Value) {
    let name = conflist["name"].as_str().unwrap();
    sandbox.write(&format!("{}/{name}.conflist", podman::CONF), &conflist.to_string());
}

/// A machine with these networks, and the world outside of it.
fn machine(conflists: &[Value]) -> (Sandbox, Netns) {
    let mut sandbox = Sandbox::new();
    podman::install(&mut sandbox);
    for conflist in conflists {
        write_network(&sandbox, conflist);
    }
    let outside = sandbox.outside();
    (sandbox, outside)
}

/// Starts a container that serves pages.
#[track_caller]
fn run(sandbox: &Sandbox, name: &str, network: &str, more: &[&str]) {
    try_run(sandbox, name, network, more).ok();
}

fn try_run(sandbox: &Sandbox, name: &str, network: &str, more: &[&str]) -> integration::Output {
    let parent = format!("/{}", sandbox.id);
    let mut words = vec!["run", "-d", "--name", name, "--network", network, "--cgroup-parent", &parent];
    words.extend(more);
    words.extend(["bb", "sh", "-c", PAGE, name]);
    podman(sandbox, &words)
}

fn remove(sandbox: &Sandbox, name: &str) {
    podman(sandbox, &["rm", "-f", "-t", "0", name]).ok();
}

/// The path of a container's network namespace.
fn netns_of(sandbox: &Sandbox, name: &str) -> String {
    let words = ["inspect", "-f", "{{.NetworkSettings.SandboxKey}}", name];
    podman(sandbox, &words).ok().trim().to_owned()
}

/// The page of this container comes from this address, asked from outside.
#[track_caller]
fn served(sandbox: &Sandbox, outside: &Netns, name: &str, port: u16) {
    answers(sandbox, outside, name, &format!("192.0.2.2:{port}"));
}

#[track_caller]
fn answers(sandbox: &Sandbox, outside: &Netns, name: &str, to: &str) {
    let word = format!("page-of-{name}");
    // The container's server starts when it will.
    let answered = (0..10).any(|_| {
        let got = page(sandbox, Some(&outside.path), to).contains(&word);
        if !got {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        got
    });
    assert!(answered, "{to} is not answered by {name}: {}", sandbox.ruleset());
}

fn page(sandbox: &Sandbox, from: Option<&str>, to: &str) -> String {
    sandbox.page(from, to).unwrap_or_default()
}

/// No port is published any more, and no record says so.
#[track_caller]
fn nothing_published(sandbox: &Sandbox) {
    assert!(sandbox.port_records().is_empty(), "{:?}", sandbox.port_records());
    let ruleset = sandbox.ruleset();
    assert!(!ruleset.contains("comment \"osvc:") || !ruleset.contains(". 80"), "{ruleset}");
}

/// Where a wildcard port leads, by the map.
fn leads_to(sandbox: &Sandbox, port: u16) -> String {
    let listed = sandbox.sh("nft list map ip osvc-cni-portmap any").ok();
    let entry = listed.split([',', '{']).find(|part| part.contains(&format!("tcp . {port} ")));
    let entry = entry.unwrap_or_else(|| panic!("no entry for {port} in {listed}"));
    entry.split(" : ").nth(1).unwrap().split(" . ").next().unwrap().trim().to_owned()
}

fn noted(sandbox: &Sandbox, what: &str) {
    report::ran(&podman::version(sandbox), what);
}

#[test]
fn published_ports_answer_outside_the_host_its_containers_and_themselves() {
    let (sandbox, outside) = machine(&[example()]);
    let published = ["-p", "8080:80", "-p", "127.0.0.1:8081:80/udp", "-p", "9000-9100:9000-9100"];
    run(&sandbox, "web", "osvc", &published);
    run(&sandbox, "db", "osvc", &[]);
    let web = |port: u16| served(&sandbox, &outside, "web", port);
    for port in [8080, 9000, 9100] {
        web(port);
    }
    assert_eq!(sandbox.page(Some(&outside.path), "192.0.2.2:9101"), None, "the range ends there");
    let inside = [None, Some(netns_of(&sandbox, "db")), Some(netns_of(&sandbox, "web"))];
    for from in &inside {
        let got = page(&sandbox, from.as_deref(), "192.0.2.2:8080");
        assert!(got.contains("page-of-web"), "by the host's address, from {from:?}: {got}");
    }
    assert!(page(&sandbox, None, "127.0.0.1:8080").contains("page-of-web"), "by localhost");
    // TCP 80 is busybox's; UDP 80 is ours.
    let udp = sandbox.answer_udp(&netns_of(&sandbox, "web"), 80, "web");
    assert_eq!(sandbox.datagrams(None, "127.0.0.1:8081").ask().expect("udp by localhost").server, "web");
    assert_eq!(sandbox.datagrams(Some(&outside.path), "192.0.2.2:8081").ask(), None, "published on localhost only");
    drop(udp);

    podman(&sandbox, &["restart", "-t", "0", "web"]).ok();
    web(8080);
    podman(&sandbox, &["stop", "-t", "0", "web"]).ok();
    nothing_published(&sandbox);
    assert_eq!(sandbox.page(Some(&outside.path), "192.0.2.2:8080"), None, "a stopped container publishes nothing");
    podman(&sandbox, &["start", "web"]).ok();
    web(9100);
    for _ in 0..2 {
        remove(&sandbox, "web");
        nothing_published(&sandbox);
        run(&sandbox, "web", "osvc", &published);
        web(8080);
    }
    remove(&sandbox, "web");
    nothing_published(&sandbox);
    assert_eq!(sandbox.page(Some(&outside.path), "192.0.2.2:8080"), None, "a removed container publishes nothing");
    noted(&sandbox, "-p 8080:80, -p 127.0.0.1:8081:80/udp, -p 9000-9100:9000-9100, restart, stop, start, recreate, rm");
}

/// podman sends the same list to both networks.
#[test]
fn a_container_on_two_networks_is_published_on_both_and_the_younger_takes_over() {
    let (sandbox, outside) = machine(&[example(), other_network()]);
    run(&sandbox, "web", "osvc,back", &["-p", "8080:80"]);
    served(&sandbox, &outside, "web", 8080);
    let first = leads_to(&sandbox, 8080);
    let (older, younger) = if first.starts_with("10.22.") { ("osvc", "back") } else { ("back", "osvc") };
    podman(&sandbox, &["network", "disconnect", older, "web"]).ok();
    let second = leads_to(&sandbox, 8080);
    assert_ne!(first, second, "the port leads to the address on {younger}");
    // Its default route went with the older network: clients are those that the bridge stands for.
    assert!(page(&sandbox, None, "127.0.0.1:8080").contains("page-of-web"), "by way of {younger}");
    podman(&sandbox, &["network", "connect", older, "web"]).ok();
    assert_eq!(leads_to(&sandbox, 8080), second, "{younger} is the older one now");
    podman(&sandbox, &["network", "disconnect", younger, "web"]).ok();
    assert!(page(&sandbox, None, "127.0.0.1:8080").contains("page-of-web"), "by way of {older} again");
    remove(&sandbox, "web");
    nothing_published(&sandbox);
    noted(&sandbox, "a published container on two networks, network disconnect and connect");
}

/// The other network has IPv6 as well.
#[test]
fn ports_are_published_in_each_family_that_the_container_has() {
    let (sandbox, outside) = machine(&[other_network()]);
    run(&sandbox, "web", "back", &["-p", "8080:80", "-p", "[2001:db8:ffff::2]:8082:80", "-p", "192.0.2.2:8083:80"]);
    for to in ["192.0.2.2:8080", "[2001:db8:ffff::2]:8080", "[2001:db8:ffff::2]:8082", "192.0.2.2:8083"] {
        answers(&sandbox, &outside, "web", to);
    }
    for to in ["192.0.2.2:8082", "[2001:db8:ffff::2]:8083"] {
        assert_eq!(sandbox.page(Some(&outside.path), to), None, "{to} is not published");
    }
    remove(&sandbox, "web");
    nothing_published(&sandbox);
    noted(&sandbox, "ports of a dual-stack container, by both families");
}

#[test]
fn network_reload_brings_ports_back_that_somebody_flushed() {
    let (sandbox, outside) = machine(&[example()]);
    run(&sandbox, "web", "osvc", &["-p", "8080:80"]);
    run(&sandbox, "db", "osvc", &["-p", "8082:80"]);
    podman(&sandbox, &["network", "reload", "web"]).ok();
    served(&sandbox, &outside, "web", 8080);
    sandbox.sh("nft flush ruleset").ok();
    assert_eq!(sandbox.page(Some(&outside.path), "192.0.2.2:8080"), None, "the rules are gone");
    podman(&sandbox, &["network", "reload", "web"]).ok();
    served(&sandbox, &outside, "web", 8080);
    served(&sandbox, &outside, "db", 8082);
    podman(&sandbox, &["rm", "-f", "-a", "-t", "0"]).ok();
    nothing_published(&sandbox);
    noted(&sandbox, "network reload after a flush: the ports of all containers are back");
}

#[test]
fn a_reboot_without_any_del_publishes_what_starts_and_nothing_else() {
    let (mut sandbox, _) = machine(&[example()]);
    for (name, port) in [("a", "8081:80"), ("b", "8082:80"), ("c", "8083:80")] {
        run(&sandbox, name, "osvc", &["-p", port]);
    }
    for turn in 1..=2 {
        sandbox.reboot();
        let outside = sandbox.outside();
        podman(&sandbox, &["start", "b"]).ok();
        served(&sandbox, &outside, "b", 8082);
        for (name, port) in [("a", 8081), ("c", 8083)] {
            let to = format!("192.0.2.2:{port}");
            assert_eq!(sandbox.page(Some(&outside.path), &to), None, "{name} does not run, reboot {turn}");
        }
        // The port of one that died goes to whoever asks for it.
        run(&sandbox, &format!("new{turn}"), "osvc", &["-p", "8081:80"]);
        served(&sandbox, &outside, &format!("new{turn}"), 8081);
        remove(&sandbox, &format!("new{turn}"));
        podman(&sandbox, &["start", "a"]).ok();
        served(&sandbox, &outside, "a", 8081);
        served(&sandbox, &outside, "b", 8082);
    }
    podman(&sandbox, &["rm", "-f", "-a", "-t", "0"]).ok();
    noted(&sandbox, "reboots with three published containers: closed until started, then served");
}

/// podman holds its host ports itself and refuses before any plugin is asked; another runtime's it does not know.
#[test]
fn a_taken_port_is_refused_and_the_holder_is_named() {
    let (sandbox, outside) = machine(&[example()]);
    run(&sandbox, "web", "osvc", &["-p", "8080:80"]);
    let message = try_run(&sandbox, "thief", "osvc", &["-p", "8080:80"]).failed();
    assert!(message.contains("8080"), "{message}");
    remove(&sandbox, "thief");
    served(&sandbox, &outside, "web", 8080);

    let netns = sandbox.netns("foreign");
    let call = |name: &str, config: Value| {
        sandbox.plugin(name).config(config).container("containerd-1").netns(&netns).named("foreign")
    };
    let config = |index: usize| {
        let mut config = example()["plugins"][index].clone();
        (config["cniVersion"], config["name"]) = (json!("1.0.0"), json!("osvc"));
        config
    };
    let result = call("osvc-bridge", config(0)).add();
    let portmap = call("osvc-portmap", config(1))
        .with("runtimeConfig", json!({"portMappings": [{"hostPort": 8090, "containerPort": 80, "protocol": "tcp"}]}))
        .with("prevResult", result);
    portmap.add();
    let before = sandbox.leftovers();
    let message = try_run(&sandbox, "late", "osvc", &["-p", "8090:80"]).failed();
    for word in ["8090", "foreign", "containerd-1", "osvc", "since"] {
        assert!(message.contains(word), "`{word}` is not named: {message}");
    }
    remove(&sandbox, "late");
    let after = sandbox.leftovers();
    assert_eq!((after.ports, after.ruleset), (before.ports, before.ruleset), "a refusal changes nothing");
    portmap.del();
    run(&sandbox, "late", "osvc", &["-p", "8090:80"]);
    served(&sandbox, &outside, "late", 8090);
    noted(&sandbox, "a port held by another runtime's container: refused, with its name and since when");
}

#[test]
fn the_chain_that_podman_writes_works_with_our_types() {
    let (sandbox, outside) = machine(&[as_podman_writes()]);
    run(&sandbox, "web", "net1", &["-p", "8080:80", "-p", "127.0.0.1:8081:80"]);
    served(&sandbox, &outside, "web", 8080);
    assert!(page(&sandbox, None, "127.0.0.1:8081").contains("page-of-web"));
    let before = address(&sandbox, "web");
    podman(&sandbox, &["restart", "-t", "0", "web"]).ok();
    assert_eq!(address(&sandbox, "web"), before);
    served(&sandbox, &outside, "web", 8080);
    podman(&sandbox, &["network", "reload", "web"]).ok();
    served(&sandbox, &outside, "web", 8080);
    remove(&sandbox, "web");
    nothing_published(&sandbox);
    let rules = sandbox.sh("iptables-save").ok();
    assert!(!rules.contains(&before), "the chained plugins cleaned up: {rules}");
    noted(&sandbox, "the chain that podman writes: bridge, portmap, firewall, tuning");
}
