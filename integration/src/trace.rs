//! Faults at system calls, by strace: `when=N` counts per name, so each name has its own occurrences.

use std::collections::BTreeMap;

use crate::Plugin;

/// A system call of a traced run: its name and the how-manieth of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemCall {
    /// As strace prints it.
    pub name: String,
    /// From 1.
    pub occurrence: usize,
    /// The whole line of the trace.
    pub line: String,
}

impl SystemCall {
    /// True if the call writes to a descriptor, as far as the trace shows.
    pub fn writes_to(&self, descriptor: u32) -> bool {
        self.line.starts_with(&format!("write({descriptor},"))
            || self.line.starts_with(&format!("writev({descriptor},"))
    }
}

impl std::fmt::Display for SystemCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} number {}: {}", self.name, self.occurrence, self.line)
    }
}

/// The system calls of the plugin's own process in one ADD or DEL, in order. Children are not followed.
#[track_caller]
pub fn system_calls(sandbox: &crate::Sandbox, plugin: &Plugin<'_>, verb: &str) -> Vec<SystemCall> {
    traced(sandbox, plugin, verb, 0)
}

/// The same of one that is refused.
#[track_caller]
pub fn system_calls_of_refused(sandbox: &crate::Sandbox, plugin: &Plugin<'_>, verb: &str) -> Vec<SystemCall> {
    traced(sandbox, plugin, verb, 1)
}

#[track_caller]
fn traced(sandbox: &crate::Sandbox, plugin: &Plugin<'_>, verb: &str, status: i32) -> Vec<SystemCall> {
    let traced = plugin.clone().through(&["strace", "-qq", "-s", "80", "-o", "/run/trace"]).call(verb);
    assert!(traced.output.rc == status, "the traced {verb} ends with {status}: {}", traced.output);
    read(sandbox)
}

/// The same of a program that is no plugin.
#[track_caller]
pub fn system_calls_of(sandbox: &crate::Sandbox, argv: &[&str]) -> Vec<SystemCall> {
    let words = ["strace", "-qq", "-s", "80", "-o", "/run/trace"];
    let words: Vec<&str> = words.iter().chain(argv).copied().collect();
    sandbox.run(&words).ok();
    read(sandbox)
}

/// A trace, but for its first and its last call.
#[track_caller]
fn read(sandbox: &crate::Sandbox) -> Vec<SystemCall> {
    let mut counts = BTreeMap::<String, usize>::new();
    let mut calls = Vec::new();
    for line in sandbox.read("/run/trace").lines() {
        let Some((name, _)) = line.split_once('(') else { continue };
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            continue;
        }
        let count = counts.entry(name.to_owned()).or_default();
        *count += 1;
        // The process is not ours before its first call, and its last one cannot fail.
        if !matches!(name, "execve" | "exit_group") {
            calls.push(SystemCall { name: name.to_owned(), occurrence: *count, line: line.to_owned() });
        }
    }
    assert!(calls.len() > 10, "a run of a plugin is more than {} system calls", calls.len());
    calls
}

/// The words that run a plugin with one fault: `signal=SIGKILL`, `error=ENOSPC`…
pub fn inject(call: &SystemCall, fault: &str) -> Vec<String> {
    let SystemCall { name, occurrence, .. } = call;
    let words = ["timeout", "-s", "KILL", "60", "strace", "-qq", "-o", "/dev/null"];
    // To put each of the other calls into words takes most of the time of a run.
    let only = format!("--trace={name}");
    let inject = format!("--inject={name}:{fault}:when={occurrence}");
    words.iter().map(|&word| word.to_owned()).chain([only, inject]).collect()
}
