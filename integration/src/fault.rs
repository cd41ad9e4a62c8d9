//! Death and errors at every system call of ADD and DEL, and what must be true afterwards.

use std::collections::BTreeSet;

use crate::trace::{self, SystemCall};
use crate::{Leftovers, Netns, Plugin, Reply, Sandbox, addresses_of, report};

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

/// Something done for each run, told which one it is.
type Hook<'a> = Box<dyn Fn(&str) + 'a>;

/// A machine in some state, a call for one container, and what may be left.
pub struct Bench<'a> {
    sandbox: &'a Sandbox,
    call: Plugin<'a>,
    netns: Netns,
    address: Vec<String>,
    before: (Leftovers, BTreeSet<String>),
    inherits: bool,
    prepare: Hook<'a>,
    right_after: Hook<'a>,
    afterwards: Hook<'a>,
}

impl<'a> Bench<'a> {
    /// The call has to work on this machine: it is tried once.
    #[track_caller]
    pub fn new(sandbox: &'a Sandbox, call: Plugin<'a>, netns: &Netns) -> Self {
        let address = addresses_of(&call.add());
        call.del();
        let before = (sandbox.leftovers(), sandbox.links_in(netns));
        let nothing = || -> Hook<'a> { Box::new(|_| ()) };
        let (prepare, right_after, afterwards) = (nothing(), nothing(), nothing());
        Self { sandbox, call, netns: netns.clone(), address, before, inherits: false, prepare, right_after, afterwards }
    }

    /// Done before each run.
    #[must_use]
    pub fn prepare(mut self, hook: impl Fn(&str) + 'a) -> Self {
        self.prepare = Box::new(hook);
        self
    }

    /// What [`Self::prepare`] does leaves something that only a whole ADD clears away.
    #[must_use]
    pub fn inherits(mut self) -> Self {
        self.inherits = true;
        self
    }

    /// Must be true when a run has been cut off, before anything else is done.
    #[must_use]
    pub fn right_after(mut self, hook: impl Fn(&str) + 'a) -> Self {
        self.right_after = Box::new(hook);
        self
    }

    /// Done when the container has been added again, before its end.
    #[must_use]
    pub fn afterwards(mut self, hook: impl Fn(&str) + 'a) -> Self {
        self.afterwards = Box::new(hook);
        self
    }

    #[track_caller]
    fn nothing_left(&self, what: &str) {
        self.sandbox.leftovers().assert_same_as(&self.before.0, what);
        assert_eq!(self.sandbox.links_in(&self.netns), self.before.1, "devices in the container after {what}");
    }

    /// The runtime's next step: DEL, then ADD, then the container's end.
    fn next_steps(&self, what: &str) {
        self.call.del();
        let deleted = format!("{what}, then DEL");
        (self.right_after)(&deleted);
        if !self.inherits {
            self.nothing_left(&deleted);
        }
        assert_eq!(addresses_of(&self.call.add()), self.address, "the same address after {what}");
        (self.afterwards)(what);
        self.call.del();
        self.nothing_left(&format!("{what}, then DEL, ADD, DEL"));
    }

    fn faulty(&self, verb: &str, call: &SystemCall, fault: &str) -> Reply {
        let words = trace::inject(call, fault);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.call.clone().through(&words).call(verb)
    }

    fn before_run(&self, verb: &str, what: &str) {
        (self.prepare)(what);
        if verb == "DEL" {
            self.call.add();
        }
    }

    fn trace(&self, verb: &str) -> Vec<SystemCall> {
        self.before_run(verb, "a traced run");
        let calls = trace::system_calls(self.sandbox, &self.call, verb);
        self.call.del();
        calls
    }

    /// SIGKILL at each system call.
    pub fn killed_everywhere(&self, verb: &str, name: &str) {
        self.killed_at(verb, name, &self.trace(verb));
    }

    /// SIGKILL at each second system call from the first one that tells a word (a path) to so many after the last one.
    #[track_caller]
    pub fn killed_from_to(&self, verb: &str, name: &str, word: &str, beyond: usize) {
        let calls = self.trace(verb);
        let with_word = |call: &SystemCall| call.line.contains(word);
        let first = calls.iter().position(with_word).unwrap_or_else(|| panic!("no system call of {verb} tells {word}"));
        let end = calls.iter().rposition(with_word).map_or(first, |last| (last + beyond).min(calls.len()));
        let calls: Vec<_> = calls[first..end].iter().step_by(2).cloned().collect();
        self.killed_at(verb, name, &calls);
    }

    fn killed_at(&self, verb: &str, name: &str, calls: &[SystemCall]) {
        let mut killed = 0;
        for call in calls {
            let what = format!("{verb} of {name} killed at {call}");
            self.before_run(verb, &what);
            killed += usize::from(self.faulty(verb, call, "signal=SIGKILL").output.rc != 0);
            (self.right_after)(&what);
            self.next_steps(&what);
        }
        // A run or two may need a call less than the traced one: a queue file that is there by then.
        assert!(killed * 20 >= calls.len() * 19, "only {killed} of {} runs were killed", calls.len());
        report::ran("strace --inject", &format!("SIGKILL at each of {killed} system calls of {name} {verb}"));
    }

    /// ENOSPC, EIO and EACCES at each system call that can fail.
    pub fn errors_everywhere(&self, verb: &str, name: &str) {
        let mut calls = self.trace(verb);
        calls.retain(|call| FALLIBLE.contains(&call.name.as_str()));
        for call in &calls {
            for error in ["ENOSPC", "EIO", "EACCES"] {
                let what = format!("{verb} of {name} with {error} at {call}");
                self.before_run(verb, &what);
                let reply = self.faulty(verb, call, &format!("error={error}"));
                // What cannot be printed cannot be checked; what is left can.
                if !call.writes_to(1) {
                    let answer = reply.success_or_error();
                    if let Err((code, message)) = &answer {
                        assert!(*code != 999 && !message.contains("panic"), "{what}: {code} {message}");
                        if verb == "ADD" && !self.inherits {
                            self.nothing_left(&what);
                        }
                    }
                }
                (self.right_after)(&what);
                self.next_steps(&what);
            }
        }
        report::ran(
            "strace --inject",
            &format!("ENOSPC, EIO and EACCES at each of {} system calls of {name} {verb}", calls.len()),
        );
    }
}
