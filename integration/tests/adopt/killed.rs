//! SIGKILL in the middle of a run, and a second run, or a DEL.

use std::collections::BTreeSet;

use integration::trace::{self, SystemCall};
use integration::{Family, Sandbox, report};
use serde_json::json;

use super::{add, both, cnitool, conflist, files, held, osvc_net, records, start, switch};

/// What is in the two stores.
fn ends(sandbox: &Sandbox) -> String {
    let names: Vec<String> = sandbox.list(super::FILES).into_iter().filter(|name| !name.starts_with("last_")).collect();
    format!("{names:?} {:?} {:?}", files(sandbox), records(sandbox))
}

/// Calls that change what others see; of those that only look, every so many are tried.
const CHANGING: [&str; 13] = [
    "write",
    "writev",
    "pwrite64",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "rmdir",
];
/// As above: they make the next ones last, or see others.
const SETTLING: [&str; 6] = ["fsync", "fdatasync", "flock", "mkdir", "mkdirat", "utimensat"];
/// See above.
const SAMPLE: usize = 25;

fn changes(call: &SystemCall) -> bool {
    let name = call.name.as_str();
    CHANGING.contains(&name) || SETTLING.contains(&name) || call.line.contains("O_CREAT")
}

/// A run that is killed at many places. Nothing of the kernel's is changed: only the disk has to be put back for each.
struct Runs<'a> {
    sandbox: &'a Sandbox,
    words: &'a [&'a str],
    argv: Vec<&'a str>,
    calls: Vec<SystemCall>,
    undisturbed: String,
}

impl<'a> Runs<'a> {
    fn new(sandbox: &'a Sandbox, words: &'a [&'a str]) -> Self {
        sandbox.sh("cp -a /var/lib/cni /opt/saved").ok();
        let argv: Vec<&str> = std::iter::once("/opt/cni/bin/osvc-net").chain(words.iter().copied()).collect();
        let calls = trace::system_calls_of(sandbox, &argv);
        Self { sandbox, words, argv, calls, undisturbed: ends(sandbox) }
    }

    /// At each call that changes something, just before it and, with the next one, just after it; at some others.
    fn chosen(&self) -> Vec<&SystemCall> {
        let after = |number: usize| number > 0 && changes(&self.calls[number - 1]);
        let is_chosen =
            |number: usize, call: &SystemCall| number.is_multiple_of(SAMPLE) || changes(call) || after(number);
        self.calls.iter().enumerate().filter(|(number, call)| is_chosen(*number, call)).map(|(_, call)| call).collect()
    }

    /// True if it was killed.
    fn killed_at(&self, call: &SystemCall) -> bool {
        self.sandbox.sh("rm -rf /var/lib/cni/* && cp -a /opt/saved/. /var/lib/cni/").ok();
        let run = trace::inject(call, "signal=SIGKILL");
        let run: Vec<&str> = run.iter().map(String::as_str).chain(self.argv.iter().copied()).collect();
        self.sandbox.run(&run).rc != 0
    }

    /// The addresses that are in one of the stores.
    fn there(&self) -> BTreeSet<String> {
        files(self.sandbox).into_keys().chain(held(self.sandbox)).collect()
    }

    fn killed_everywhere(&self, all: &BTreeSet<String>) {
        let (sandbox, words, chosen) = (self.sandbox, self.words, self.chosen());
        let mut killed = 0;
        for call in &chosen {
            killed += usize::from(self.killed_at(call));
            assert_eq!(&self.there(), all, "addresses in one of the stores, {words:?} killed at {call}");
            osvc_net(sandbox, words).ok();
            assert_eq!(ends(sandbox), self.undisturbed, "{words:?} killed at {call}, and a second run");
        }
        assert!(killed * 20 >= chosen.len() * 19, "only {killed} of {} runs were killed", chosen.len());
        let what = format!(
            "SIGKILL at {killed} of {} system calls of osvc-net {}: at each that changes something",
            self.calls.len(),
            words.join(" ")
        );
        report::ran("strace --inject", &what);
    }

    /// The runtime ends a container whose records were being moved: nothing of it is left anywhere, then or later.
    fn then_del(&self, container: &str, its: &BTreeSet<String>, all: &BTreeSet<String>) {
        let mut config = conflist(Family::Osvc, &both())["plugins"][0].clone();
        (config["cniVersion"], config["name"]) = (json!("1.0.0"), json!("net1"));
        let del = self.sandbox.plugin("osvc-ipam").config(config).container(container).no_netns();
        let others: BTreeSet<String> = all.difference(its).cloned().collect();
        // Before and after each of the records that come, and of those that go.
        let of_addresses = |call: &&SystemCall| {
            let names = ["rename", "renameat", "link", "linkat", "unlink", "unlinkat"];
            names.contains(&call.name.as_str())
        };
        let chosen: Vec<_> = self.calls.iter().filter(of_addresses).collect();
        assert!(chosen.len() > 2 * all.len(), "{chosen:?}");
        for call in chosen {
            self.killed_at(call);
            del.del();
            assert_eq!(self.there(), others, "{:?} killed at {call}, then DEL", self.words);
            osvc_net(self.sandbox, self.words).ok();
            assert_eq!(self.there(), others, "{:?} killed at {call}, then DEL and a second run", self.words);
        }
    }
}

/// Two containers of one name, each with two addresses, and a memory of that name at another address.
fn machine() -> (Sandbox, BTreeSet<String>) {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Osvc, &both());
    let pod = start(&sandbox, "before", "web");
    cnitool(&sandbox, "del", "before", "web").ok();
    sandbox.delete_netns(&pod.netns);
    switch(&sandbox, Family::Reference, &both());
    let mut all = BTreeSet::new();
    for netns in ["a", "b"] {
        sandbox.netns(netns);
        all.extend(add(&sandbox, netns, "web"));
    }
    switch(&sandbox, Family::Osvc, &both());
    (sandbox, all)
}

/// The id and the addresses of the first of the two.
fn first(sandbox: &Sandbox) -> (String, BTreeSet<String>) {
    let of = |text: &str| text.split("\r\n").next().unwrap().to_owned();
    let files = files(sandbox);
    let id = of(files.values().next().unwrap());
    let its = files.iter().filter(|(_, text)| of(text) == id).map(|(address, _)| address.clone());
    (id.clone(), its.collect())
}

/// One run for each of more than a hundred system calls.
#[test]
fn adopt() {
    let (sandbox, all) = machine();
    Runs::new(&sandbox, &["adopt"]).killed_everywhere(&all);
    assert_eq!(held(&sandbox), all);
    assert!(files(&sandbox).is_empty());
}

#[test]
fn adopt_and_then_del() {
    let (sandbox, all) = machine();
    let (id, its) = first(&sandbox);
    assert_eq!(its.len(), 2);
    Runs::new(&sandbox, &["adopt"]).then_del(&id, &its, &all);
}

/// As above.
#[test]
fn undo() {
    let (sandbox, all) = machine();
    osvc_net(&sandbox, &["adopt"]).ok();
    Runs::new(&sandbox, &["adopt", "--undo"]).killed_everywhere(&all);
    assert!(held(&sandbox).is_empty());
    assert_eq!(files(&sandbox).into_keys().collect::<BTreeSet<_>>(), all);
}

#[test]
fn undo_and_then_del() {
    let (sandbox, all) = machine();
    let (id, its) = first(&sandbox);
    osvc_net(&sandbox, &["adopt"]).ok();
    Runs::new(&sandbox, &["adopt", "--undo"]).then_del(&id, &its, &all);
}
