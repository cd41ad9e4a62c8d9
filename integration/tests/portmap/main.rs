//! Published ports, by traffic and from outside: who answers, whom the server sees, who is refused, what is left.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod allow;
mod bad_input;
mod by_hand;
mod chain;
mod check;
mod conflict;
mod dead;
mod del;
mod doubt;
mod flush;
mod foreign;
mod homes;
mod host_ip;
mod input;
mod localhost;
mod looking;
mod lost;
mod many;
mod no_nft;
mod options;
mod overlap;
mod reboot;
mod route_localnet;
mod together;
mod traffic;
mod two_networks;
mod udp;

use integration::{Netns, Network, Sandbox, report};

/// Subnets of the network that most tests are about; its gateway addresses are .1 and ::1.
const DUAL: [&str; 2] = ["10.9.0.0/24", "fd09::/64"];
/// The machine's addresses towards [`Sandbox::outside`].
const HOST4: &str = "192.0.2.2";
const HOST6: &str = "[2001:db8:ffff::2]";
/// The store of host ports.
const STORE: &str = "/var/lib/cni/osvc/ports";

/// A machine that has `talk`.
fn machine() -> Sandbox {
    Sandbox::with_tools(&[env!("CARGO_BIN_EXE_talk")])
}

/// A machine and the world outside of it.
fn machine_and_outside() -> (Sandbox, Netns) {
    let sandbox = machine();
    let outside = sandbox.outside();
    (sandbox, outside)
}

/// The network that most tests are about.
fn net1(sandbox: &Sandbox) -> Network<'_> {
    sandbox.network("net1", &DUAL)
}

fn set_bridge_netfilter(sandbox: &Sandbox, value: u8) {
    sandbox
        .sh(&format!("cd /proc/sys/net/bridge; echo {value} | tee bridge-nf-call-iptables bridge-nf-call-ip6tables"))
        .ok();
}

/// The store of host ports, byte for byte, but for `index`: that holds the times at which its folders were changed.
fn store(sandbox: &Sandbox) -> String {
    let list = "find . -printf '%p %y %l\\n' | sort; find . -type f ! -name index | sort | xargs cat";
    sandbox.sh(&format!("cd {STORE} 2>/dev/null || exit 0; {list}")).ok()
}

/// The ruleset and the store of host ports, byte for byte.
fn everything(sandbox: &Sandbox) -> String {
    format!("{}\n{}", sandbox.ruleset(), store(sandbox))
}

/// The ruleset with its tables, and the elements of every set and map, in order: the kernel lists tables as they were
/// made, and elements by their hashes.
fn ruleset_in_order(sandbox: &Sandbox) -> String {
    let text = sandbox.ruleset();
    let mut tables: Vec<_> = text.split("\n}\n").map(elements_in_order).collect();
    tables.sort();
    tables.join("\n}\n")
}

fn elements_in_order(text: &str) -> String {
    let mut ordered = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("elements = {") {
        let (elements, after) = after.split_once(" }").unwrap();
        let mut elements: Vec<_> = elements.split(',').map(str::trim).collect();
        elements.sort_unstable();
        ordered += &format!("{before}elements = {}", elements.join("\n"));
        rest = after;
    }
    ordered + rest
}

/// The kernel parameter that lets packets for 127.0.0.0/8 out of net1's bridge: `1` or `0`.
fn route_localnet(sandbox: &Sandbox) -> String {
    sandbox.sh("cat /proc/sys/net/ipv4/conf/obr_net1/route_localnet").ok().trim().to_owned()
}

/// True if the tables of published ports mention a text (`. 8080 `, an address…).
fn tables_mention(sandbox: &Sandbox, text: &str) -> bool {
    let tables = sandbox.sh("nft -n list table ip osvc-cni-portmap; nft -n list table ip6 osvc-cni-portmap");
    tables.stdout.contains(text)
}

/// What the map `any` of IPv4 (or IPv6) holds for a port of TCP: `10.9.0.2 . 80`.
fn leads_to(sandbox: &Sandbox, family: &str, port: u16) -> Option<String> {
    let map = sandbox.sh(&format!("nft -n list map {family} osvc-cni-portmap any"));
    let text = map.stdout.replace("tcp", "6");
    let (_, after) = text.split_once(&format!(" 6 . {port} "))?;
    // A comment may come between key and data.
    let data = after.split(" : ").nth(1)?.split([',', '}', '\n']).next()?;
    Some(data.trim().to_owned())
}

/// Takes a container's namespace away without a word, and waits until its devices are gone as well.
#[track_caller]
fn kill(sandbox: &Sandbox, netns: &Netns) {
    let pairs = || sandbox.links().iter().filter(|name| name.starts_with("ov")).count();
    let before = pairs();
    sandbox.delete_netns(netns);
    sandbox.wait_for("the pair is gone", &format!("[ $(ip -o link | grep -c ': ov') -lt {before} ]"));
}

/// `osvc-net` with these words, which must succeed: what it prints.
#[track_caller]
fn osvc_net(sandbox: &Sandbox, words: &str) -> String {
    sandbox.sh(&format!("/opt/cni/bin/osvc-net {words}")).ok()
}

/// Takes nft away until [`show_nft`].
fn hide_nft(sandbox: &Sandbox) {
    sandbox.sh("mount --bind /dev/null /usr/sbin/nft").ok();
}

fn show_nft(sandbox: &Sandbox) {
    sandbox.sh("umount /usr/sbin/nft").ok();
}

/// The words that run a plugin which is killed at a system call.
fn killed_at(call: &str, occurrence: u32) -> [String; 5] {
    ["strace", "-qq", "-o", "/dev/null"]
        .map(str::to_owned)
        .into_iter()
        .chain([format!("--inject={call}:signal=SIGKILL:when={occurrence}")])
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

fn noted(what: &str) {
    report::ran(&report::kernel(), what);
}
