//! What takes over a second is told on a terminal, and nowhere else.

use integration::{Sandbox, report};

use super::{install, osvc_net};

/// Somebody holds the lock for two seconds.
fn beside_a_lock(sandbox: &Sandbox, command: &str) -> String {
    let script = format!(
        "lock=/var/lib/cni/osvc/lock; flock $lock sleep 1.8 &
         for i in $(seq 100); do flock -n $lock true || break; sleep 0.01; done
         {command}; wait"
    );
    sandbox.sh(&script).ok()
}

#[test]
fn who_has_the_lock_is_told_on_a_terminal() {
    let sandbox = Sandbox::new();
    install(&sandbox, "/etc/cni/net.d", "net1", "10.9.0.0/24");
    osvc_net(&sandbox, &["setup"]).ok();
    sandbox.sh("ip link del obr_net1").ok();
    let seen = beside_a_lock(&sandbox, "script -qec '/opt/cni/bin/osvc-net setup' /dev/null");
    assert!(seen.contains("\rsetup: net1: waiting for the lock of process "), "{seen:?}");
    let (_, after) = seen.rsplit_once("\r\u{1b}[K\r").expect("the line is gone in the end");
    assert!(after.contains("net1: set up") && !after.contains("waiting"), "{seen:?}");
    let seen = beside_a_lock(&sandbox, "script -qec '/opt/cni/bin/osvc-net teardown net1' /dev/null");
    assert!(seen.contains("\rteardown: net1: waiting for the lock of process "), "{seen:?}");
    let told = beside_a_lock(&sandbox, "/opt/cni/bin/osvc-net setup 2>&1");
    assert!(told.contains("net1: set up") && !told.contains('\r') && !told.contains("waiting"), "{told:?}");
    report::ran(&report::kernel(), "osvc-net setup and teardown tell on a terminal what they wait for");
}

#[test]
fn what_is_quick_is_not_told() {
    let sandbox = Sandbox::new();
    install(&sandbox, "/etc/cni/net.d", "net1", "10.9.0.0/24");
    for words in ["setup", "doctor", "teardown net1"] {
        let seen = sandbox.sh(&format!("script -qec '/opt/cni/bin/osvc-net {words}' /dev/null")).stdout;
        assert!(!seen.contains("\u{1b}[K"), "{words}: {seen:?}");
    }
    report::ran(&report::kernel(), "osvc-net setup, doctor and teardown on a terminal");
}

/// A machine whose every netlink request takes long.
#[test]
fn doctor_tells_what_it_looks_at() {
    let sandbox = Sandbox::new();
    install(&sandbox, "/etc/cni/net.d", "net1", "10.9.0.0/24");
    osvc_net(&sandbox, &["setup"]).ok();
    let slow = "strace -f -o /dev/null -e trace=openat -e inject=openat:delay_enter=30000 /opt/cni/bin/osvc-net doctor";
    let seen = sandbox.sh(&format!("script -qec '{slow}' /dev/null")).stdout;
    assert!(seen.contains("\rdoctor: "), "{seen:?}");
    report::ran(&report::kernel(), "osvc-net doctor tells on a terminal what it looks at");
}
