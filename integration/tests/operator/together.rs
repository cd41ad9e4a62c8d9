//! Several setups at a time, and one that is told to stop.

use std::thread;

use integration::{Sandbox, report};

use super::{install, osvc_net};

#[test]
fn of_two_setups_at_once_one_waits_for_the_other() {
    let sandbox = Sandbox::new();
    for index in 0..6 {
        install(&sandbox, "/etc/cni/net.d", &format!("net{index}"), &format!("10.{index}.0.0/24"));
    }
    let told: Vec<_> = thread::scope(|scope| {
        let setups: Vec<_> = (0..4).map(|_| scope.spawn(|| osvc_net(&sandbox, &["setup"]).ok())).collect();
        setups.into_iter().map(|setup| setup.join().unwrap()).collect()
    });
    for told in &told {
        assert_eq!(told.matches(", bridge obr_net").count(), 6, "{told}");
    }
    assert_eq!(sandbox.ip_json("link show type bridge").len(), 6);
    // Whoever holds the lock is waited for.
    sandbox.background(
        "exec 9> /var/lib/cni/osvc/lock; flock 9; echo locked; sleep 1; ip link del obr_net3; echo done",
        "/tmp/holder",
    );
    sandbox.wait_for("the lock is held", "grep locked /tmp/holder");
    sandbox.sh("ip link del obr_net2").ok();
    let told = osvc_net(&sandbox, &["setup"]).ok();
    assert!(sandbox.read("/tmp/holder").contains("done"), "it did not wait: {told}");
    assert!(told.contains("net2: set up"), "{told}");
    let again = osvc_net(&sandbox, &["setup"]).ok();
    assert!(!again.contains("net2: set up"), "{again}");
    report::ran(&report::kernel(), "osvc-net setup, four at once");
}

/// The networks before the signal are whole, those after it are not begun.
#[test]
fn sigint_ends_it_between_two_networks() {
    let sandbox = Sandbox::new();
    for index in 0..4 {
        install(&sandbox, "/etc/cni/net.d", &format!("net{index}"), &format!("10.{index}.0.0/24"));
    }
    // Stopped while it waits for the lock of the first one.
    let script = "mkdir -p /var/lib/cni/osvc; exec 9> /var/lib/cni/osvc/lock; flock 9
        /opt/cni/bin/osvc-net setup 9>&- > /tmp/out 2> /tmp/err & setup=$!
        for i in $(seq 100); do grep -q '^ *[0-9]*: -> FLOCK' /proc/locks && break; sleep 0.02; done
        kill -INT $setup
        for i in $(seq 100); do [ -s /tmp/err ] && break; sleep 0.02; done
        exec 9>&-
        wait $setup; echo $?";
    let status = sandbox.sh(script).ok();
    let (out, err) = (sandbox.read("/tmp/out"), sandbox.read("/tmp/err"));
    assert_eq!(status.trim(), "1", "{out}{err}");
    assert!(out.contains("net0: set up") && !out.contains("net1"), "{out}{err}");
    assert!(err.contains("stops after what was begun") && err.contains("interrupted"), "{err}");
    let bridges = sandbox.ip_json("link show type bridge");
    assert_eq!(bridges.len(), 1, "{bridges:?}");
    assert!(sandbox.ruleset().contains("10.0.0.0/24"), "the first one is whole");
    let told = osvc_net(&sandbox, &["setup"]).ok();
    assert!(told.contains("net0: in place") && told.contains("net3: set up"), "{told}");
    report::ran(&report::kernel(), "osvc-net setup and SIGINT");
}
