//! Death and errors at every system call of ADD and DEL: the runtime's next step works, and then nothing is left.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::trace::{self, SystemCall};
use integration::{Leftovers, Netns, Plugin, Sandbox, addresses_of, report};
use serde_json::{Value, json};

/// Calls that can fail for a reason outside the plugin.
const FALLIBLE: [&str; 32] = [
    "open",
    "openat",
    "read",
    "pread64",
    "write",
    "writev",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "fsync",
    "fdatasync",
    "flock",
    "fcntl",
    "getdents64",
    "socket",
    "bind",
    "sendto",
    "sendmsg",
    "recvfrom",
    "recvmsg",
    "setns",
    "ioctl",
    "ftruncate",
    "newfstatat",
];

fn bridge() -> (&'static str, Value) {
    (
        "osvc-bridge",
        json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "network": ["10.9.0.0/24", "fd09::/64"]}),
    )
}

fn ipam() -> (&'static str, Value) {
    let keys = json!({"type": "osvc-ipam", "ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]]});
    ("osvc-ipam", json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "ipam": keys}))
}

/// A machine on which the network is in place, a call for one container, and what may be left.
struct Bench<'a> {
    sandbox: &'a Sandbox,
    call: Plugin<'a>,
    netns: Netns,
    address: Vec<String>,
    before: Leftovers,
}

impl<'a> Bench<'a> {
    fn new(sandbox: &'a Sandbox, (name, config): (&str, Value)) -> Self {
        let netns = sandbox.netns("pod");
        let call = sandbox.plugin(name).config(config).container("id-1").netns(&netns).named("web");
        // Another container lives on the network all the time.
        let other = sandbox.netns("other");
        call.clone().container("other").netns(&other).named("other").add();
        let address = addresses_of(&call.add());
        call.del();
        Self { sandbox, before: sandbox.leftovers(), call, netns, address }
    }

    #[track_caller]
    fn nothing_left(&self, what: &str) {
        self.sandbox.leftovers().assert_same_as(&self.before, what);
        assert!(!self.sandbox.links_in(&self.netns).contains("eth0"), "eth0 is in the container after {what}");
    }

    /// The runtime's next step: DEL, then ADD, then the container's end.
    fn next_steps(&self, what: &str) {
        self.call.del();
        self.nothing_left(&format!("{what}, then DEL"));
        assert_eq!(addresses_of(&self.call.add()), self.address, "the same address after {what}");
        self.call.del();
        self.nothing_left(&format!("{what}, then DEL, ADD, DEL"));
    }

    fn faulty(&self, verb: &str, call: &SystemCall, fault: &str) -> integration::Reply {
        let words = trace::inject(call, fault);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.call.clone().through(&words).call(verb)
    }

    fn trace(&self, verb: &str) -> Vec<SystemCall> {
        if verb == "DEL" {
            self.call.add();
        }
        let calls = trace::system_calls(self.sandbox, &self.call, verb);
        self.call.del();
        calls
    }
}

fn killed_everywhere(verb: &str, (name, config): (&str, Value)) {
    let sandbox = Sandbox::new();
    let bench = Bench::new(&sandbox, (name, config));
    let calls = bench.trace(verb);
    let mut killed = 0;
    for call in &calls {
        if verb == "DEL" {
            bench.call.add();
        }
        killed += usize::from(bench.faulty(verb, call, "signal=SIGKILL").output.rc != 0);
        bench.next_steps(&format!("{verb} of {name} killed at {call}"));
    }
    // A run or two may need a call less than the traced one: a queue file that is there by then.
    assert!(killed * 20 >= calls.len() * 19, "only {killed} of {} runs were killed", calls.len());
    report::ran("strace --inject", &format!("SIGKILL at each of {killed} system calls of {name} {verb}"));
}

fn errors_everywhere(verb: &str, (name, config): (&str, Value)) {
    let sandbox = Sandbox::new();
    let bench = Bench::new(&sandbox, (name, config));
    let mut calls = bench.trace(verb);
    calls.retain(|call| FALLIBLE.contains(&call.name.as_str()));
    for call in &calls {
        for error in ["ENOSPC", "EIO", "EACCES"] {
            if verb == "DEL" {
                bench.call.add();
            }
            let what = format!("{verb} of {name} with {error} at {call}");
            let reply = bench.faulty(verb, call, &format!("error={error}"));
            // What cannot be printed cannot be checked; what is left can.
            if !call.writes_to(1) {
                let answer = reply.success_or_error();
                if let Err((code, message)) = &answer {
                    assert!(*code != 999 && !message.contains("panic"), "{what}: {code} {message}");
                    if verb == "ADD" {
                        bench.nothing_left(&what);
                    }
                }
            }
            bench.next_steps(&what);
        }
    }
    report::ran(
        "strace --inject",
        &format!("ENOSPC, EIO and EACCES at each of {} system calls of {name} {verb}", calls.len()),
    );
}

#[test]
fn osvc_ipam_killed_at_every_system_call_of_add() {
    killed_everywhere("ADD", ipam());
}

#[test]
fn osvc_ipam_killed_at_every_system_call_of_del() {
    killed_everywhere("DEL", ipam());
}

#[test]
fn osvc_bridge_killed_at_every_system_call_of_add() {
    killed_everywhere("ADD", bridge());
}

#[test]
fn osvc_bridge_killed_at_every_system_call_of_del() {
    killed_everywhere("DEL", bridge());
}

#[test]
fn osvc_ipam_with_an_error_at_every_system_call_of_add() {
    errors_everywhere("ADD", ipam());
}

#[test]
fn osvc_ipam_with_an_error_at_every_system_call_of_del() {
    errors_everywhere("DEL", ipam());
}

#[test]
fn osvc_bridge_with_an_error_at_every_system_call_of_add() {
    errors_everywhere("ADD", bridge());
}

#[test]
fn osvc_bridge_with_an_error_at_every_system_call_of_del() {
    errors_everywhere("DEL", bridge());
}

/// The first ADD sets the network up: more calls, and a child (nft).
#[test]
fn osvc_bridge_killed_at_every_system_call_of_a_networks_first_add() {
    let sandbox = Sandbox::new();
    let netns = sandbox.netns("pod");
    let (name, config) = bridge();
    let call = sandbox.plugin(name).config(config).container("id-1").netns(&netns).named("web");
    let blank = || sandbox.sh("ip link del obr_net1; nft flush ruleset; rm -rf /var/lib/cni/* /run/osvc-cni").rc;
    let calls = trace::system_calls(&sandbox, &call, "ADD");
    let address = addresses_of(&call.clone().call("ADD").json.unwrap_or(Value::Null));
    call.del();
    let before = sandbox.leftovers();
    for fault in &calls {
        blank();
        let words = trace::inject(fault, "signal=SIGKILL");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        call.clone().through(&words).call("ADD");
        call.del();
        let again = addresses_of(&call.add());
        assert!(address.is_empty() || again == address, "the first ADD killed at {fault}");
        assert!(sandbox.ping(&netns, "10.9.0.1"), "the gateway answers after a first ADD killed at {fault}");
        call.del();
        sandbox.leftovers().assert_same_as(&before, &format!("a first ADD killed at {fault}, then DEL, ADD, DEL"));
    }
    report::ran(
        "strace --inject",
        &format!("SIGKILL at each of the {} system calls of a network's first ADD", calls.len()),
    );
}
