//! What the checks cost, and what is left when somebody is killed.

use super::*;

#[test]
fn who_asks_for_no_checks_pays_one_look() {
    let sandbox = Sandbox::new();
    let netns = sandbox.netns("pod");
    let plain = call(&sandbox, &config(false, false), &netns);
    for verb in ["ADD", "DEL"] {
        let calls = trace::system_calls(&sandbox, &plain, verb);
        let looks: Vec<_> = calls.iter().filter(|call| call.line.contains("osvc/spoof")).collect();
        assert!(looks.len() == 1 && looks[0].name == "statx", "{verb}: {looks:?}");
    }
}

/// Sets, and not rules: what an ADD does is the same.
#[test]
fn an_add_costs_the_same_with_10_and_with_500_checked_containers() {
    let sandbox = Sandbox::new();
    let mut both = config(true, true);
    both["network"] = json!(["10.9.0.0/16", "fd09::/64"]);
    let netns = sandbox.netns("pod");
    let pod = call(&sandbox, &both, &netns);
    let count = |containers: usize| {
        let calls = trace::system_calls(&sandbox, &pod, "ADD").len();
        let del = trace::system_calls(&sandbox, &pod, "DEL").len();
        noted(&format!("ADD with {containers} checked containers: {calls} system calls, DEL {del}"));
        (calls, del)
    };
    let script = "for i in $(seq 10); do ip netns add n$i; cni ADD c$i /run/netns/n$i w$i >/dev/null || exit 1; done";
    sandbox.bulk("osvc-bridge", &both, script).ok();
    // Once before: what osvc-ipam keeps of a released address is there by then.
    pod.add();
    pod.del();
    let few = count(10);
    // The others' elements and records without their pairs: 490 of these would take ten seconds.
    sandbox
        .sh(&format!("cd {RECORDS} && one=$(ls | head -n 1) && for i in $(seq 490); do cp $one no$i.json; done"))
        .ok();
    fill(&sandbox, 490);
    let many = count(500);
    for (few, many) in [(few.0, many.0), (few.1, many.1)] {
        assert!(few.abs_diff(many) * 20 <= few, "{few} and {many} system calls");
    }
    let rules = sandbox.sh("nft list table bridge osvc-cni | grep -c ' drop$'").ok();
    assert_eq!(rules.trim(), "7", "whatever the number of containers");
}

/// Elements of that many more ports, as ADDs put them in.
fn fill(sandbox: &Sandbox, count: usize) {
    let mut text = String::new();
    for i in 0..count {
        let port = format!("ov{i:013x}");
        text += &format!(
            "add element bridge osvc-cni macs {{ \"{port}\" . 02:00:00:01:{:02x}:{:02x} }}
            add element bridge osvc-cni addresses4 {{ \"{port}\" . 10.9.{}.{} }}
            add element bridge osvc-cni mac_checked {{ \"{port}\" }}
            add element bridge osvc-cni address_checked {{ \"{port}\" }}\n",
            i / 256,
            i % 256,
            100 + i / 256,
            i % 256
        );
    }
    sandbox.nft(&text);
}

#[test]
fn killed_at_every_second_system_call_that_the_checks_need() {
    for verb in ["ADD", "DEL"] {
        let sandbox = Sandbox::new();
        let both = config(true, true);
        let other = Pod::start(&sandbox, &both, "other");
        let netns = sandbox.netns("pod");
        let bench = Bench::new(&sandbox, call(&sandbox, &both, &netns), &netns).afterwards(|what| {
            assert!(sandbox.ping(&netns, "10.9.0.1"), "{what}");
            assert_eq!(sandbox.list(RECORDS).len(), 2, "{what}");
        });
        // From the first look for a record to the last answer of the kernel about elements.
        bench.killed_from_to(verb, "osvc-bridge with source checks", "osvc/spoof", BEYOND);
        other.call.check(&other.result);
    }
}
