//! Thousands of ports: one transaction, and then as cheap as with none.

use std::collections::BTreeMap;
use std::time::Duration;

use integration::trace::system_calls;
use integration::{Container, Sandbox, port, report};
use serde_json::{Value, json};

use crate::{HOST4, HOST6, machine_and_outside, net1, noted};

const COUNT: u16 = 5000;

fn thousands() -> Value {
    (0..COUNT).map(|n| port(10_000 + n, 80, if n % 2 == 0 { "tcp" } else { "udp" })).collect()
}

/// How many transactions the ruleset had when this returns: the kernel counts them, and tells it to who listens.
fn generation(sandbox: &Sandbox) -> u64 {
    sandbox.background("echo $$ > /run/monitor.pid; exec nft monitor", "/run/monitor");
    // A netlink socket of netfilter (12) that listens to a group.
    sandbox.wait_for("nft monitor listens", "awk '$2 == 12 && $4 !~ /^0*$/' /proc/net/netlink | grep -q .");
    sandbox.nft("add table ip probe");
    sandbox.wait_for("its transaction is told", "tail -n 1 /run/monitor | grep -q generation");
    let told = sandbox.read("/run/monitor");
    sandbox.nft("delete table ip probe");
    sandbox.sh("kill $(cat /run/monitor.pid)").ok();
    sandbox.wait_for("nft monitor has ended", "! kill -0 $(cat /run/monitor.pid)");
    let number = told.split("# new generation ").nth(1).and_then(|text| text.split_whitespace().next());
    number.and_then(|text| text.parse::<u64>().ok()).unwrap_or_else(|| panic!("no generation in {told}")) + 1
}

/// How many transactions something makes.
fn transactions(sandbox: &Sandbox, action: impl FnOnce()) -> u64 {
    let before = generation(sandbox);
    action();
    // One more is the probe's, one its end.
    generation(sandbox) - before - 2
}

/// The quickest of three ADDs of thousands of ports: a busy machine says nothing about one of them.
fn quickest(container: &Container<'_>) -> Duration {
    let add = || {
        container.withdraw();
        let reply = container.ports(thousands()).call("ADD");
        let elapsed = reply.elapsed();
        reply.result();
        elapsed
    };
    (0..3).map(|_| add()).min().unwrap()
}

/// Milliseconds of ADD and of DEL of one port, medians of some.
fn one_port(container: &Container<'_>) -> [f64; 2] {
    let call = container.ports(json!([port(9999, 80, "tcp")]));
    let rows: Vec<[Duration; 2]> = (0..9)
        .map(|_| {
            let (add, del) = (call.call("ADD"), container.bare().call("DEL"));
            let times = [add.elapsed(), del.elapsed()];
            add.result();
            del.done();
            times
        })
        .collect();
    [0, 1].map(|column| {
        let mut times: Vec<_> = rows.iter().map(|row| row[column]).collect();
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e3
    })
}

/// The system calls of an ADD of one port, by name; those for memory follow the size of what is read.
fn questions(sandbox: &Sandbox, container: &Container<'_>) -> BTreeMap<String, usize> {
    let call = container.ports(json!([port(9997, 80, "tcp")]));
    // Once before, so that nothing is the first time.
    call.add();
    container.withdraw();
    let mut counts = BTreeMap::new();
    for call in system_calls(sandbox, &call, "ADD") {
        if !["brk", "mmap", "munmap", "mremap", "madvise"].contains(&call.name.as_str()) {
            *counts.entry(call.name).or_default() += 1;
        }
    }
    container.withdraw();
    counts
}

#[test]
fn five_thousand_ports_are_one_transaction_and_one_look_up() {
    let (sandbox, outside) = machine_and_outside();
    let network = net1(&sandbox);
    let (many, one) = (network.container("many"), network.container("one"));
    // Makes the tables.
    one.publish(json!([port(9998, 80, "tcp")]));
    let empty = one_port(&network.container("first"));
    let few = questions(&sandbox, &network.container("probe"));
    let made = transactions(&sandbox, || many.publish(thousands()));
    assert_eq!(made, 1);
    let elapsed = quickest(&many);
    sandbox.serve(Some(&many.netns), "tcp,udp", "[::]:80", "many");
    for host in [HOST4, HOST6] {
        for (protocol, number) in [("tcp", 10_000), ("udp", 10_001), ("tcp", 14_998), ("udp", 14_999)] {
            let answer = sandbox.ask(Some(&outside), protocol, &format!("{host}:{number}"));
            assert!(answer.starts_with("many "), "{answer}");
        }
    }
    for family in ["ip", "ip6"] {
        let rules = sandbox.sh(&format!("nft list chain {family} osvc-cni-portmap mapped")).ok();
        let maps: Vec<_> = rules.lines().filter(|line| line.contains("dnat")).collect();
        assert_eq!(maps.len(), 2, "{rules}");
        assert!(maps[0].contains("@host") && maps[1].contains("@any"), "{rules}");
        let all = sandbox.sh(&format!("nft list table {family} osvc-cni-portmap | grep -c 'dnat {family} to'")).ok();
        assert_eq!(all.trim(), "2", "and there are no others");
    }
    let full = one_port(&network.container("next"));
    assert_eq!(questions(&sandbox, &network.container("last")), few, "one more port asks as much as beside none");
    let made = transactions(&sandbox, || many.withdraw());
    assert_eq!(made, 1);
    report::ran(
        &report::kernel(),
        &format!(
            "5000 ports in one ADD, one transaction: {:.0} ms; one port beside none {:.1} ms (DEL {:.1}), beside 5000 {:.1} ms (DEL {:.1})",
            elapsed.as_secs_f64() * 1e3,
            empty[0],
            empty[1],
            full[0],
            full[1]
        ),
    );
    assert!(!crate::tables_mention(&sandbox, ". 14999 "), "all of them are gone");
}

/// Nothing is in place yet: tables and elements come together.
#[test]
fn the_first_add_of_all_is_one_transaction_too() {
    let sandbox = crate::machine();
    let a = net1(&sandbox).container("a");
    let made = transactions(&sandbox, || a.publish(thousands()));
    assert_eq!(made, 1);
    a.ports(thousands()).check(&a.result);
}

/// Other programs change the ruleset at the same time, and containers come and go.
#[test]
fn many_at_once_beside_foreign_transactions() {
    let sandbox = crate::machine();
    let network = net1(&sandbox);
    let first = network.container("first");
    first.publish(json!([port(80, 80, "tcp")]));
    let before = (crate::ruleset_in_order(&sandbox), crate::store(&sandbox));
    sandbox.background("while :; do nft 'add table ip foreign; delete table ip foreign'; done", "/run/foreign.log");
    let containers: Vec<_> = (0..8_u16).map(|n| (n, network.container(&format!("c{n}")))).collect();
    let ports = |n: u16| json!([port(1000 + n, 80, "tcp"), port(1000 + n, 80, "udp"), port(2000 + n, 80, "tcp")]);
    std::thread::scope(|scope| {
        for (n, container) in &containers {
            scope.spawn(move || {
                for _ in 0..5 {
                    container.publish(ports(*n));
                    container.ports(ports(*n)).check(&container.result);
                    container.withdraw();
                }
                container.publish(ports(*n));
            });
        }
    });
    for (n, container) in &containers {
        for number in [1000 + n, 2000 + n] {
            assert_eq!(crate::leads_to(&sandbox, "ip", number), Some(format!("{} . 80", container.v4)));
            assert_eq!(crate::leads_to(&sandbox, "ip6", number), Some(format!("{} . 80", container.v6)));
        }
        container.withdraw();
    }
    let store = crate::store(&sandbox);
    assert_eq!(store, before.1);
    noted("eight containers publish and withdraw at once beside foreign nft transactions");
}

#[test]
fn the_same_add_again_and_no_ports_are_no_transaction() {
    let (sandbox, _) = machine_and_outside();
    let network = net1(&sandbox);
    let (a, b) = (network.container("a"), network.container("b"));
    a.publish(json!([port(8080, 80, "tcp")]));
    let made = transactions(&sandbox, || {
        b.publish(json!([]));
        b.withdraw();
        a.publish(json!([port(8080, 80, "tcp")]));
    });
    assert_eq!(made, 0);
    noted("no ports: no transaction");
}
