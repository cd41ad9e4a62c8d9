//! The VM itself: what is done in it is reported as it is outside, and nothing of it is left.

use std::panic::catch_unwind;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use integration::{Vm, report};

use crate::TALK;

/// What a test says that fails.
fn complaint(act: impl Fn() + std::panic::UnwindSafe) -> String {
    *catch_unwind(act).unwrap_err().downcast::<String>().unwrap()
}

/// How many VMs of a process run.
fn running(pid: u32) -> usize {
    let found = Command::new("pgrep").args(["-f", &format!("qemu.* /proc/{pid}/f[d]/")]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().count()
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited 30 s in vain until {what}");
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_script_s_output_and_status_come_back() {
    let vm = Vm::new().program(TALK).file("/etc/osvc-cni/node", "n1");
    let passed = vm.run(
        "set -e
        uname -r; cat /etc/osvc-cni/node; echo; ls /opt/cni/bin
        talk has sctp; nft list ruleset; wg show
        ip link add br0 type bridge vlan_filtering 1 && bridge vlan show dev br0
        local4='local 192.0.2.1 remote 192.0.2.2' local6='local fd00::1 remote fd00::2'
        for kind in dummy \"ipip $local4\" \"sit $local4\" \"gre $local4\" \"ip6gre $local6\" \"ip6tnl $local6\" \\
            wireguard 'vrf table 7' 'vxlan id 7 dstport 4789'; do
            ip link add name t0 type $kind; ip link del t0
        done
        echo to the other one >&2",
    );
    assert!(passed.rc == 0 && passed.stderr == "to the other one\n", "{passed}");
    assert!(passed.stdout.starts_with(&format!("{}\nn1\n", Vm::release())), "{passed}");
    assert!(passed.stdout.contains("osvc-bridge\n"), "the plugins under test are there: {passed}");
    report::ran(
        &format!("kernel {}", Vm::release()),
        &format!("a script in a VM, in {:.1} s", passed.elapsed.as_secs_f32()),
    );

    assert_eq!(Vm::new().run("echo before; false; echo after >&2; exit 3").failed(), "before\nafter\n");
}

#[test]
fn a_test_is_run_inside_and_its_report_comes_back() {
    Vm::new().test(|| {
        assert!(std::fs::read_to_string("/proc/cmdline").unwrap().contains("console=ttyS0"), "this is not the VM");
        report::ran(&report::kernel(), "a test of Rust in a VM");
    });
}

#[test]
#[should_panic(expected = "(exit status 7)")]
fn a_test_that_fails_inside_fails() {
    Vm::new().test(|| std::process::exit(7));
}

#[test]
fn a_script_that_hangs_is_ended_and_what_it_said_is_told() {
    let hang = || drop(Vm::new().limit(Duration::from_secs(1)).run("echo waiting; sleep 1000"));
    let complaint = complaint(hang);
    assert!(complaint.contains("did not end within 1s") && complaint.contains("stdout: waiting\n"), "{complaint}");
}

#[test]
fn a_kernel_that_goes_down_is_told_with_its_last_words() {
    let complaint = complaint(|| drop(Vm::new().run("echo c > /proc/sysrq-trigger; sleep 1000")));
    assert!(complaint.contains("the VM ended before") && complaint.contains("Kernel panic"), "{complaint}");
}

/// Run by the next test in a process of its own, and killed by it.
#[test]
fn victim() {
    if std::env::var_os("OSVC_VICTIM").is_some() {
        Vm::new().run("sleep 1000");
    }
}

#[test]
fn the_vm_dies_with_the_test_process() {
    let mut test = Command::new(std::env::current_exe().unwrap());
    let test = test.args(["--exact", "harness::victim"]).env("OSVC_VICTIM", "1").stdout(Stdio::null());
    let mut process = test.spawn().unwrap();
    wait("the VM runs", || running(process.id()) == 1);
    process.kill().unwrap();
    process.wait().unwrap();
    wait("the VM is gone", || running(process.id()) == 0);
}
