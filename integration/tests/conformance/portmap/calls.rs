//! PM1–PM3, PM9, PM12, PM13, PM16, F8: the verbs.

use integration::{Family, Netns, Plugin, Sandbox, addresses_of};
use serde_json::json;

use super::{OUTSIDE, Pod, is_target, machine, reached, rules, tcp};

both! {
    pm1_pm9_the_addresses_are_those_of_the_containers_own_interface
    pm2_f8_del_needs_no_configuration
    pm3_ports_below_1_are_refused
    pm12_del_withdraws_both_families
    pm13_check_passes_after_add_only
    pm16_a_second_add_and_dels_in_parallel
}

/// PM9: addresses without an index qualify as well.
fn pm1_pm9_the_addresses_are_those_of_the_containers_own_interface(family: Family) {
    let interfaces = |pod: &Netns| {
        json!([
            {"name": "host0"},
            {"name": "eth1", "sandbox": pod.path},
            {"name": "eth0"},
            {"name": "eth0", "sandbox": pod.path},
        ])
    };
    for (what, indexes) in [("with indexes", true), ("without", false)] {
        let sandbox = Sandbox::new();
        let pod = Pod::new(&sandbox, family, "pod");
        sandbox.sh("ip addr add 10.0.0.254/24 dev cni9; ip addr add 2001:db8:1::fe/64 nodad dev cni9").ok();
        let mut ips = vec![
            json!({"address": "10.0.0.2/24", "gateway": "10.0.0.254", "interface": 3}),
            json!({"address": "2001:db8:1::2/64", "gateway": "2001:db8:1::fe", "interface": 3}),
            json!({"address": "10.0.0.3/24", "interface": 3}),
            json!({"address": "2001:db8:1::3/64", "interface": 3}),
        ];
        if indexes {
            for index in 0..3 {
                ips.insert(0, json!({"address": format!("10.0.0.25{index}/24"), "interface": index}));
            }
        } else {
            ips.iter_mut().for_each(|ip| drop(ip.as_object_mut().unwrap().remove("interface")));
        }
        let previous = json!({"cniVersion": "1.0.0", "interfaces": interfaces(&pod.netns), "ips": ips});
        let call = pod.ports(json!([tcp(8080, 80)])).with("prevResult", previous.clone());
        assert_eq!(addresses_of(&call.add()), addresses_of(&previous), "{what}: the result goes through");
        let rules = rules(&sandbox);
        for target in ["10.0.0.2", "2001:db8:1::2"] {
            assert!(is_target(family, &rules, target, 80), "{what}, {target}: {rules}");
        }
        for other in ["10.0.0.3", "10.0.0.250", "10.0.0.251", "10.0.0.252", "2001:db8:1::3"] {
            assert!(!is_target(family, &rules, other, 80), "{what}, {other}: {rules}");
        }
        call.del();
    }
}

/// F8: the reference succeeds and leaves everything. It cannot be told what to do by its own records: it has none.
fn pm2_f8_del_needs_no_configuration(family: Family) {
    let sandbox = machine();
    let pod = Pod::new(&sandbox, family, "pod");
    let server = pod.serve(80);
    let call = pod.ports(json!([tcp(8080, 80)]));
    let bare = call.clone().with("runtimeConfig", json!(null)).with("prevResult", json!(null));
    bare.del();
    call.add();
    assert_eq!(reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8080").as_deref(), Some("pod"));
    bare.no_netns().no_args().del();
    let left = reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8080");
    assert_eq!(left.is_none(), family.is_ours(), "the port after a DEL that knows the container only");
    drop(server);
}

fn pm3_ports_below_1_are_refused(family: Family) {
    let sandbox = Sandbox::new();
    let pod = Pod::new(&sandbox, family, "pod");
    let before = sandbox.leftovers();
    for (port, message) in [
        (tcp(0, 80), "Invalid host port number: 0"),
        (json!({"hostPort": -1, "containerPort": 80, "protocol": "tcp"}), "Invalid host port number: -1"),
        (json!({"hostPort": 80, "containerPort": -1, "protocol": "tcp"}), "Invalid container port number: -1"),
        (tcp(80, 0), "Invalid container port number: 0"),
    ] {
        let (_, got) = pod.ports(json!([tcp(8080, 80), port])).add_fails();
        assert!(got.contains(message), "{message}: {got}");
        if family.is_ours() {
            assert!(got.contains("portMappings[1]"), "the entry is named: {got}");
        }
        sandbox.leftovers().assert_same_as(&before, message);
    }
}

fn pm12_del_withdraws_both_families(family: Family) {
    let sandbox = machine();
    let (pod, other) = (Pod::new(&sandbox, family, "pod"), Pod::new(&sandbox, family, "other"));
    let servers = [pod.serve(80), other.serve(80)];
    let calls = [pod.ports(json!([tcp(8080, 80)])), other.ports(json!([tcp(8081, 80)]))];
    calls.iter().for_each(|call| drop(call.add()));
    calls[0].del();
    let rules = rules(&sandbox);
    for target in [pod.address(4), pod.address(6)] {
        assert!(!is_target(family, &rules, &target.to_string(), 80), "{target}: {rules}");
    }
    for to in ["192.0.2.2", "[2001:db8:ffff::2]"] {
        assert_eq!(reached(&sandbox, Some(OUTSIDE), &format!("{to}:8080")), None, "{to}");
        assert_eq!(reached(&sandbox, Some(OUTSIDE), &format!("{to}:8081")).as_deref(), Some("other"), "{to}");
    }
    drop(servers);
}

/// The CHECK of Debian's 1.1.1 looks for IPv4 rules among the IPv6 ones as well, so that it never passes.
fn pm13_check_passes_after_add_only(family: Family) {
    let sandbox = Sandbox::new();
    let pod = Pod::new(&sandbox, family, "pod");
    let call = pod.ports(json!([tcp(8080, 80)]));
    let passes = |call: &Plugin<'_>| {
        if family.is_ours() {
            call.check(&pod.result);
        } else {
            call.check_fails(&pod.result);
        }
    };
    let without = call.clone().with("snat", json!(false));
    call.check_fails(&pod.result);
    without.add();
    passes(&without);
    call.check_fails(&pod.result);
    without.del();
    call.add();
    passes(&call);
    call.del();
    call.check_fails(&pod.result);
}

fn pm16_a_second_add_and_dels_in_parallel(family: Family) {
    let sandbox = machine();
    let pod = Pod::new(&sandbox, family, "pod");
    let server = pod.serve(80);
    let call = pod.ports(json!([tcp(8080, 80), {"hostPort": 8080, "containerPort": 80, "protocol": "udp"}]));
    call.add();
    let once = without_counters(&rules(&sandbox));
    if family.is_ours() {
        call.add();
        assert_eq!(without_counters(&rules(&sandbox)), once, "nothing is there twice");
    }
    assert_eq!(reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8080").as_deref(), Some("pod"));
    std::thread::scope(|scope| {
        let dels: Vec<_> = (0..8).map(|_| scope.spawn(|| call.call("DEL"))).collect();
        for del in dels {
            let reply = del.join().unwrap();
            // Of the reference's some trip over each other's chains; a later one cleans up.
            if family.is_ours() {
                reply.done();
            }
        }
    });
    call.del();
    assert_eq!(reached(&sandbox, Some(OUTSIDE), "192.0.2.2:8080"), None);
    drop(server);
}

fn without_counters(rules: &str) -> String {
    rules.lines().filter(|line| !line.starts_with([':', '#'])).collect::<Vec<_>>().join("\n")
}
