//! osvc-net as an operator uses it: repairs, what it refuses, and how it is stopped.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::{Output, Sandbox};

mod folders;
mod input;
mod manual;
mod moves;
mod quiet;
mod rehearsals;
mod repair;
mod teardown;
mod together;
mod waiting;

/// The command in a machine.
fn osvc_net(sandbox: &Sandbox, words: &[&str]) -> Output {
    sandbox.osvc_net(words)
}

/// Writes the conflist of a network into a folder.
fn install(sandbox: &Sandbox, folder: &str, name: &str, subnet: &str) {
    let told = osvc_net(sandbox, &["conf", "new", "bridge", name, "--network", subnet]).ok();
    sandbox.write(&format!("{folder}/{name}.conflist"), &told);
}
