//! The harness itself: a machine contains what is done in it, and nothing of it is left.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use integration::Sandbox;

#[test]
fn what_is_done_inside_is_not_seen_outside() {
    let sandbox = Sandbox::new();
    sandbox.ip("link add name inside0 type bridge");
    sandbox.netns("c1");
    sandbox.write("/var/lib/cni/x", "1");
    sandbox.write("/etc/cni/net.d/x.conflist", "1");
    sandbox.write("/etc/osvc-cni/node", "n1");
    assert!(sandbox.links().contains("inside0"));
    assert!(!Path::new("/sys/class/net/inside0").exists(), "a device of the machine is not the host's");
    for path in ["/run/netns/c1", "/var/lib/cni/x", "/etc/cni/net.d/x.conflist", "/etc/osvc-cni/node"] {
        assert!(sandbox.exists(path) && !Path::new(path).exists(), "{path} exists inside only");
    }
}

#[test]
fn a_reboot_changes_the_boot_id_and_the_host_network_and_wipes_run_but_not_the_disk() {
    let mut sandbox = Sandbox::new();
    let boot_id = sandbox.read("/proc/sys/kernel/random/boot_id");
    sandbox.ip("link add name br0 type bridge");
    sandbox.netns("c1");
    sandbox.write("/var/lib/cni/kept", "1");
    sandbox.write("/etc/cni/net.d/kept", "1");
    sandbox.background("sleep 4711", "/run/log");
    sandbox.reboot();
    assert_ne!(sandbox.read("/proc/sys/kernel/random/boot_id"), boot_id);
    assert_eq!(sandbox.links().into_iter().collect::<Vec<_>>(), ["lo"]);
    assert!(!sandbox.exists("/run/netns/c1"), "/run is empty after a reboot");
    assert!(sandbox.exists("/var/lib/cni/kept") && sandbox.exists("/etc/cni/net.d/kept"), "the disk is kept");
    assert_ne!(sandbox.sh("pgrep -f 'sleep 471[1]'").rc, 0, "no process survives a reboot");
}

/// Run by the next test in a process of its own: makes a machine with a process in it, says so, and waits to be killed.
#[test]
fn victim() {
    let Some(ready) = std::env::var_os("OSVC_VICTIM") else { return };
    let sandbox = Sandbox::new();
    sandbox.background("exec -a osvc-victim-process sleep 600", "/run/log");
    std::fs::write(ready, "ready").unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn the_machine_dies_with_the_test_process() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim"])
        .env("OSVC_VICTIM", &ready)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait("the machine is up", || ready.exists());
    assert!(victims() > 0, "the process in the machine runs");
    child.kill().unwrap();
    child.wait().unwrap();
    wait("nothing of the machine runs any more", || victims() == 0);
}

fn victims() -> usize {
    let found = Command::new("pgrep").args(["-f", "osvc-victim-proces[s]"]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().count()
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited 20 s in vain until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
