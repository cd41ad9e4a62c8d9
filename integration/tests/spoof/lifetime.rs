//! What is made for a container that is checked, put back, and taken away.

use super::*;

#[test]
fn del_needs_the_id_only_and_takes_everything_out() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let other = Pod::start(&sandbox, &both, "other");
    let before = (sandbox.ruleset(), sandbox.list(RECORDS));
    let pod = Pod::start(&sandbox, &both, "pod");
    assert_eq!(elements(&sandbox, &pod.port()), 8, "MAC address, IPv4, 2 of IPv6 twice, and the port twice");
    assert_eq!(sandbox.list(RECORDS).len(), 2);
    // Whatever the configuration says by now.
    call(&sandbox, &config(false, false), &pod.netns).no_netns().no_args().del();
    assert_eq!((sandbox.ruleset(), sandbox.list(RECORDS)), before);
    pod.call.del();
    other.call.del();
    assert_eq!(elements(&sandbox, "\"ov"), 0);
    assert!(!sandbox.exists(RECORDS));
}

/// Sixteen at once, each with its own elements, and then none.
#[test]
fn many_at_once() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let script = "for i in $(seq 16); do ip netns add n$i; done
        all() { for i in $(seq 16); do cni $1 c$i /run/netns/n$i w$i >/run/out$i || touch /run/failed & done; wait; }
        all ADD; ! [ -e /run/failed ]";
    sandbox.bulk("osvc-bridge", &both, script).ok();
    assert_eq!((elements(&sandbox, "\"ov"), sandbox.list(RECORDS).len()), (16 * 8, 16));
    for i in 1..=16 {
        let netns = Netns { name: format!("n{i}"), path: format!("/run/netns/n{i}") };
        assert!(sandbox.ping(&netns, "10.9.0.1"), "n{i}");
    }
    let script =
        "for i in $(seq 16); do cni DEL c$i /run/netns/n$i w$i || touch /run/failed & done; wait; ! [ -e /run/failed ]";
    sandbox.bulk("osvc-bridge", &both, script).ok();
    assert_eq!(elements(&sandbox, "\"ov"), 0);
    assert!(!sandbox.exists(RECORDS));
}

/// `rm -rf` of the store is common advice: those that run stay checked, and the next one as well.
#[test]
fn a_lost_store_unchecks_nobody() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let (one, two) = (Pod::start(&sandbox, &both, "one"), Pod::start(&sandbox, &both, "two"));
    sandbox.sh("rm -rf /var/lib/cni/osvc").ok();
    let three = Pod::start(&sandbox, &both, "three");
    let script = format!("ip addr add {OTHER4}/32 dev eth0; ping -n -c 1 -W 1 -I {OTHER4} {}", three.address(0));
    for pod in [&one, &two] {
        assert_eq!(elements(&sandbox, &pod.port()), 8, "{}", pod.netns.name);
        assert!(sandbox.ping(&pod.netns, &three.address(0)), "{}", pod.netns.name);
        assert!(!arrives(&sandbox, pod, &three, &script, OTHER4), "{}", pod.netns.name);
    }
    three.call.check(&three.result);
    for pod in [one, two, three] {
        pod.call.del();
        sandbox.sh(&format!("ip netns del {}", pod.netns.name)).ok();
    }
    sandbox.wait_for("the pairs are gone", "! ip -o link | grep -q ': ov'");
    let last = Pod::start(&sandbox, &both, "last");
    assert_eq!(elements(&sandbox, "\"ov"), 8, "whose port is gone is forgotten");
    last.call.del();
    assert_eq!(elements(&sandbox, "\"ov"), 0);
}

/// With the last container that is checked everything goes, and nobody pays any more.
#[test]
fn nothing_is_left_when_nobody_is_checked_any_more() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let table = || sandbox.sh("nft list tables").ok().contains("bridge osvc-cni");
    for end in ["DEL", "gc"] {
        let pod = Pod::start(&sandbox, &both, "pod");
        assert!(table() && sandbox.exists("/var/lib/cni/osvc/spoof"));
        match end {
            "DEL" => pod.call.del(),
            _ => {
                sandbox.write(
                    "/etc/cni/net.d/net1.conflist",
                    &json!({"cniVersion": "1.1.0", "name": "net1", "plugins": [both]}).to_string(),
                );
                sandbox.delete_netns(&pod.netns);
                sandbox.wait_for("the pair is gone", "! ip -o link | grep -q ': ov'");
                sandbox.sh("/opt/cni/bin/osvc-net gc").ok();
            }
        }
        assert!(!table(), "after {end}");
        assert!(
            !sandbox.exists("/var/lib/cni/osvc/spoof"),
            "after {end}: {:?}",
            sandbox.list("/var/lib/cni/osvc/spoof")
        );
        sandbox.sh("ip netns del pod 2>/dev/null || true").ok();
    }
}

/// What is left of the boot before is no matter of an ADD without the keys, which waits for nobody.
#[test]
fn an_unchecked_add_waits_for_no_lock_and_an_earlier_boot_is_forgotten() {
    let mut sandbox = Sandbox::new();
    Pod::start(&sandbox, &config(true, true), "pod");
    sandbox.reboot();
    sandbox.background("exec flock /var/lib/cni/osvc/spoof/lock sleep 20", "/run/flock.log");
    sandbox.wait_for("the lock is held", "! flock -n /var/lib/cni/osvc/spoof/lock true");
    let started = std::time::Instant::now();
    Pod::start(&sandbox, &config(false, false), "plain");
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    sandbox.sh("pkill sleep").ok();
    let checked = Pod::start(&sandbox, &config(true, true), "checked");
    assert_eq!(sandbox.list(RECORDS).len(), 1);
    checked.call.del();
    assert!(!sandbox.exists("/var/lib/cni/osvc/spoof"));
}

#[test]
fn an_earlier_attachment_of_the_same_name_leaves_nothing() {
    let sandbox = Sandbox::new();
    let pod = Pod::start(&sandbox, &config(true, true), "pod");
    let other = Pod::start(&sandbox, &config(true, true), "other");
    // A runtime that died: the port is gone, and no DEL came.
    sandbox.ip(&format!("link del {}", pod.port()));
    let again = call(&sandbox, &config(true, true), &pod.netns).args("MAC=02:00:00:00:00:99");
    let result = again.add();
    again.check(&result);
    let table = sandbox.sh("nft list table bridge osvc-cni").ok();
    assert!(table.contains("02:00:00:00:00:99") && !table.contains(pod.mac()), "{table}");
    sandbox.ip(&format!("link del {}", pod.port()));
    call(&sandbox, &config(false, false), &pod.netns).add();
    assert_eq!(elements(&sandbox, &pod.port()), 0);
    assert!(elements(&sandbox, &other.port()) > 0);
}

#[test]
fn check_tells_what_is_missing_and_the_next_add_or_setup_puts_it_back() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let pod = Pod::start(&sandbox, &both, "pod");
    pod.call.check(&pod.result);
    let (port, mac) = (pod.port(), pod.mac());
    let mut conflist = both.clone();
    conflist.as_object_mut().unwrap().retain(|key, _| key != "cniVersion" && key != "name");
    let conflist = json!({"cniVersion": "1.1.0", "name": "net1", "plugins": [conflist]});
    sandbox.write("/etc/cni/net.d/net1.conflist", &conflist.to_string());
    for (fault, word, by_add) in [
        ("flush ruleset".to_owned(), "table bridge osvc-cni", true),
        ("flush chain bridge osvc-cni prerouting".to_owned(), "table bridge osvc-cni", true),
        ("flush set bridge osvc-cni mac_checked".to_owned(), "mac_checked lacks the port", false),
        (format!("delete element bridge osvc-cni macs {{ \"{port}\" . {mac} }}"), mac, false),
        (format!("delete element bridge osvc-cni addresses4 {{ \"{port}\" . {} }}", pod.address(0)), "10.9.0", false),
    ] {
        sandbox.nft(&fault);
        let (code, message) = pod.call.check_fails(&pod.result);
        assert!(code == 100 && message.contains(word), "{fault}: {code} {message}");
        if by_add {
            // Of another network, without the keys.
            let other =
                json!({"cniVersion": "1.1.0", "name": "plain", "type": "osvc-bridge", "network": "10.88.0.0/24"});
            let netns = sandbox.netns("plain");
            let other = call(&sandbox, &other, &netns);
            other.add();
            other.del();
            sandbox.delete_netns(&netns);
            assert_eq!(elements(&sandbox, &port), 8, "{fault}");
        }
        let told = sandbox.run(&["/opt/cni/bin/osvc-net", "setup"]).ok();
        assert!(told.contains("source checks: "), "{told}");
        pod.call.check(&pod.result);
    }
    assert_eq!(
        sandbox.run(&["/opt/cni/bin/osvc-net", "setup"]).ok().matches("source checks: in place, 1 containers").count(),
        1
    );
    // The keys came after the container.
    let bare = Pod::start(&sandbox, &config(false, false), "bare");
    let (code, message) = call(&sandbox, &both, &bare.netns).check_fails(&bare.result);
    assert!(code == 100 && message.contains("macspoofchk was not set"), "{code} {message}");
}

#[test]
fn gc_ends_the_checks_of_the_dead_only() {
    for by_command in [false, true] {
        let sandbox = Sandbox::new();
        let both = config(true, true);
        let (dead, live) = (Pod::start(&sandbox, &both, "dead"), Pod::start(&sandbox, &both, "live"));
        sandbox.delete_netns(&dead.netns);
        sandbox.wait_for("the pair is gone", &format!("! ip link show {}", dead.port()));
        if by_command {
            let told = sandbox.run(&["/opt/cni/bin/osvc-net", "gc", "net1"]).ok();
            assert!(told.contains("source checks of container dead"), "{told}");
        } else {
            let valid = json!([{"containerID": "live", "ifname": "eth0"}]);
            let gc = sandbox.plugin("osvc-bridge").config(both.clone()).with("cni.dev/valid-attachments", valid);
            gc.call("GC").done();
        }
        assert_eq!(elements(&sandbox, &dead.port()), 0);
        assert_eq!(elements(&sandbox, &live.port()), 8);
        live.call.check(&live.result);
    }
}

#[test]
fn an_add_that_fails_leaves_nothing() {
    let sandbox = Sandbox::new();
    let both = config(true, true);
    let _other = Pod::start(&sandbox, &both, "other");
    let before = (sandbox.ruleset(), sandbox.list(RECORDS));
    let netns = sandbox.netns("pod");
    // A route that no gateway leads to: refused when the pair is there already.
    let mut bad = both.clone();
    bad["ipam"] = json!({"routes": [{"dst": "192.0.2.0/24", "gw": "203.0.113.1"}]});
    call(&sandbox, &bad, &netns).add_fails();
    assert_eq!((sandbox.ruleset(), sandbox.list(RECORDS)), before);
    assert_eq!(sandbox.links_in(&netns).len(), 1);
}
