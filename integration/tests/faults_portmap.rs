//! Death and errors at every system call of osvc-portmap: no port ever leads to somebody else's container, and after the
//! runtime's next step nothing is left. The network has both families; another container's ports live on all the time.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;

use integration::fault::Bench;
use integration::{Netns, Plugin, Sandbox, Server, addresses_of};
use serde_json::{Value, json};

const NAME: &str = "osvc-portmap";

fn bridge<'a>(sandbox: &'a Sandbox, netns: &Netns) -> Plugin<'a> {
    let config =
        json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "network": ["10.9.0.0/24", "fd09::/64"]});
    sandbox.plugin("osvc-bridge").config(config).container(&netns.name).netns(netns).named(&netns.name)
}

/// A container on the network, and the call that publishes these ports of it.
fn container<'a>(sandbox: &'a Sandbox, name: &str, ports: Value) -> (Netns, Value, Plugin<'a>) {
    let netns = sandbox.netns(name);
    let result = bridge(sandbox, &netns).add();
    let portmap = sandbox.plugin(NAME).container(name).netns(&netns).named(name).config(json!({
        "cniVersion": "1.0.0", "name": "net1", "type": NAME, "capabilities": {"portMappings": true},
        "runtimeConfig": {"portMappings": ports}, "prevResult": result,
    }));
    (netns, result, portmap)
}

/// TCP in both families, and UDP.
fn two_ports() -> Value {
    json!([
        {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
        {"hostPort": 5353, "containerPort": 53, "protocol": "udp"},
    ])
}

/// The first 13 digits that mark an attachment's elements.
fn tag(sandbox: &Sandbox, container: &str) -> String {
    sandbox.sh(&format!(r"printf 'net1\0{container}\0eth0' | sha256sum | cut -c1-13")).ok().trim().to_owned()
}

/// Which mark belongs to which address.
fn owners(sandbox: &Sandbox, containers: &[(&str, &Value)]) -> BTreeMap<String, String> {
    let mut owners = BTreeMap::new();
    for (name, result) in containers {
        for address in addresses_of(result) {
            let address = address.split('/').next().unwrap().to_owned();
            owners.insert(address, format!("osvc:{}", tag(sandbox, name)));
        }
    }
    owners
}

/// The elements of the maps, as `nft` writes them: where they lead, and their comment.
fn elements(ruleset: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut in_map = false;
    for line in ruleset.lines().map(str::trim) {
        in_map = (in_map && line != "}") || line.starts_with("map ");
        if !in_map || line.starts_with("type ") {
            continue;
        }
        for part in line.trim_start_matches("elements = {").split(',').filter(|part| part.contains(" : ")) {
            let (key, target) = part.split_once(" : ").unwrap();
            let address = target.split(" . ").next().unwrap().trim().to_owned();
            let comment = key.split('"').nth(1).unwrap_or_default().to_owned();
            found.push((address, comment));
        }
    }
    found
}

/// Each element leads to an address of the container whose mark it has.
#[track_caller]
fn nothing_misleads(sandbox: &Sandbox, owners: &BTreeMap<String, String>, what: &str) {
    let ruleset = sandbox.ruleset();
    for (address, comment) in elements(&ruleset) {
        // The element that tells whether a map was flushed.
        if matches!(address.as_str(), "0.0.0.0" | "::") {
            continue;
        }
        assert_eq!(owners.get(&address), Some(&comment), "{address} after {what}: {ruleset}");
    }
}

/// The machine: the containers `other`, which serves, and `id-1`.
struct Machine {
    sandbox: Sandbox,
    _server: Server,
    other: Value,
}

impl Machine {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let ports = json!([
            {"hostPort": 9090, "containerPort": 90, "protocol": "tcp"},
            {"hostPort": 9090, "containerPort": 90, "protocol": "udp"},
        ]);
        let (netns, other, portmap) = container(&sandbox, "other", ports);
        portmap.add();
        let server = sandbox.answer(&netns.path, 90, "other");
        Self { sandbox, _server: server, other }
    }

    #[track_caller]
    fn other_answers(&self, what: &str) {
        let answer = self.sandbox.connect_to(None, "127.0.0.1:9090");
        assert_eq!(answer.expect(what).server, "other", "{what}");
        let answer = self.sandbox.datagrams(None, "127.0.0.1:9090").ask();
        assert_eq!(answer.expect(what).server, "other", "{what}");
    }

    fn bench(&self, run: impl FnOnce(&Bench<'_>)) {
        let sandbox = &self.sandbox;
        let (netns, result, portmap) = container(sandbox, "id-1", two_ports());
        let owners = owners(sandbox, &[("other", &self.other), ("id-1", &result)]);
        let bench = Bench::new(sandbox, portmap, &netns).right_after(|what| {
            nothing_misleads(sandbox, &owners, what);
            self.other_answers(what);
        });
        run(&bench);
    }
}

#[test]
fn killed_at_every_system_call_of_add() {
    Machine::new().bench(|bench| bench.killed_everywhere("ADD", NAME));
}

#[test]
fn killed_at_every_system_call_of_del() {
    Machine::new().bench(|bench| bench.killed_everywhere("DEL", NAME));
}

#[test]
fn an_error_at_every_system_call_of_add() {
    Machine::new().bench(|bench| bench.errors_everywhere("ADD", NAME));
}

#[test]
fn an_error_at_every_system_call_of_del() {
    Machine::new().bench(|bench| bench.errors_everywhere("DEL", NAME));
}

/// The first ADD makes the tables and the store: more calls, and a child (nft).
#[test]
fn killed_at_every_system_call_of_the_first_add() {
    let sandbox = Sandbox::new();
    let (netns, result, portmap) = container(&sandbox, "id-1", two_ports());
    let owners = owners(&sandbox, &[("id-1", &result)]);
    let server = sandbox.answer(&netns.path, 80, "id-1");
    let bench = Bench::new(&sandbox, portmap, &netns)
        .prepare(|_| {
            sandbox.sh(
                "nft delete table ip osvc-cni-portmap; nft delete table ip6 osvc-cni-portmap; rm -rf /var/lib/cni/osvc/ports",
            );
        })
        .inherits()
        .right_after(|what| nothing_misleads(&sandbox, &owners, what))
        .afterwards(|what| {
            let answer = sandbox.connect_to(None, "127.0.0.1:8080");
            assert_eq!(answer.expect(what).server, "id-1", "{what}");
        });
    bench.killed_everywhere("ADD", "first osvc-portmap");
    drop(server);
}

/// The ports are those of a container that died without DEL; its DEL comes when they have another holder.
#[test]
fn killed_at_every_system_call_of_an_add_that_takes_over_from_the_dead() {
    let machine = Machine::new();
    let sandbox = &machine.sandbox;
    let (netns, result, portmap) = container(sandbox, "id-1", two_ports());
    // Its addresses are the same each time.
    let (dead_netns, dead_result, dead_portmap) = container(sandbox, "dead", two_ports());
    let dead_bridge = bridge(sandbox, &dead_netns);
    dead_bridge.del();
    let owners = owners(sandbox, &[("other", &machine.other), ("id-1", &result), ("dead", &dead_result)]);
    sandbox.delete_netns(&dead_netns);
    let bench = Bench::new(sandbox, portmap, &netns)
        .prepare(|what| {
            let netns = sandbox.netns("dead");
            dead_bridge.add();
            dead_portmap.add();
            sandbox.delete_netns(&netns);
            let host_end = format!("ov{}", tag(sandbox, "dead"));
            sandbox.wait_for(&format!("the pair is gone before {what}"), &format!("! ip link show {host_end}"));
        })
        .inherits()
        .right_after(|what| {
            nothing_misleads(sandbox, &owners, what);
            machine.other_answers(what);
        })
        .afterwards(|what| {
            // The dead one's DEL comes late, and takes nothing from its successor.
            let before = sandbox.ruleset();
            dead_portmap.clone().no_netns().del();
            assert_eq!(sandbox.ruleset(), before, "a late DEL after {what}");
            dead_bridge.clone().no_netns().del();
        });
    bench.killed_everywhere("ADD", "osvc-portmap in place of a dead container");
}
