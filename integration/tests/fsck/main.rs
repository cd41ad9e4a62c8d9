//! `osvc-net fsck`: each damage is made, named, mended, and then there is silence; a healthy machine is never accused.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod busy;
mod damage;
mod kernel;
mod podman;
mod two_folders;

use integration::{Container, Network, Output, Sandbox};
use serde_json::{Value, json};

/// The folder of the network's addresses.
const FOLDER: &str = "/var/lib/cni/osvc/ipam/net1";

fn osvc_net(sandbox: &Sandbox, words: &[&str]) -> Output {
    sandbox.osvc_net(words)
}

/// Says nothing.
#[track_caller]
fn silent(sandbox: &Sandbox, when: &str) {
    let output = osvc_net(sandbox, &["fsck"]);
    assert!(output.rc == 0 && output.stdout.is_empty() && output.stderr.is_empty(), "{when}: {output}");
}

/// A dual-stack network with ports and source checks, and its conflist.
fn network(sandbox: &Sandbox) -> Network<'_> {
    let network = sandbox.network("net1", &["10.9.0.0/24", "fd09::/64"]).with_bridge("spoofcheck", json!(true));
    sandbox.write("/etc/cni/net.d/net1.conflist", &network.conflist().to_string());
    network
}

/// Two containers on it, one with a host port.
fn containers<'a>(network: &Network<'a>) -> [Container<'a>; 2] {
    let containers = ["web", "db"].map(|name| network.container(name));
    containers[0].publish(json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]));
    containers
}

/// Every file below the state, with content and links, and the folders.
fn state(sandbox: &Sandbox) -> String {
    sandbox
        .sh("cd /var/lib/cni; find . \\( -type f -printf '%p %s %T@\n' \\) -o -printf '%p %y %l\n' | sort; \
             find . -type f | sort | xargs cat | sha256sum; ip -o link | sed 's/ state .*//'; nft -s list ruleset")
        .ok()
}

/// Makes a damage: it is named, by whoever looks as often as he likes; a dry run changes nothing; it is mended; then there
/// is silence, and a second time nothing to do.
#[track_caller]
fn mended(sandbox: &Sandbox, what: &str, damage: &str, said: &[&str]) {
    sandbox.sh(damage).ok();
    let before = state(sandbox);
    let told = osvc_net(sandbox, &["fsck"]);
    assert_eq!(told.rc, 1, "{what}: {told}");
    for word in said {
        assert!(told.stdout.contains(word), "{what}: {word:?} is in {told}");
    }
    assert!(told.stderr.contains("osvc-net fsck --repair"), "{what}: {told}");
    let planned = osvc_net(sandbox, &["fsck", "--repair", "--dry-run"]);
    assert_eq!((planned.rc, planned.stdout.contains("to be ")), (1, true), "{what}: {planned}");
    assert_eq!(state(sandbox), before, "{what}: nothing is changed by looking");
    let done = osvc_net(sandbox, &["fsck", "--repair"]);
    assert_eq!((done.rc, done.stdout.lines().count()), (0, told.stdout.lines().count()), "{what}: {done}");
    silent(sandbox, what);
    assert_eq!(osvc_net(sandbox, &["fsck", "--repair"]).ok(), "nothing to repair\n", "{what}");
}

fn list(sandbox: &Sandbox) -> Vec<Value> {
    let output = osvc_net(sandbox, &["fsck", "-o", "json"]);
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"))
}
