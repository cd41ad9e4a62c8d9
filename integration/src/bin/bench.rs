//! `make bench`: medians of whole processes, ours beside the reference plugins, in one run on one machine.
//!
//! All are started by the same shell function in the same namespaces, so that what the starting costs is the same. The
//! floors are a static C program that does nothing, and the same kernel operations from `ip`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::process::Command;

use integration::{Family, Sandbox};
use serde_json::{Value, json};

/// Rounds per figure.
const ROUNDS: usize = 101;
/// As many addresses are held in the row that says so.
const HELD: usize = 60_000;

fn ipam(family: Family) -> Value {
    json!({"cniVersion": "1.0.0", "name": "bench", "type": family.bridge(), "ipam": {"type": family.ipam(), "subnet": "10.0.0.0/8"}})
}

fn bridge(family: Family) -> Value {
    if family.is_ours() {
        return json!({"cniVersion": "1.0.0", "name": "bench", "type": "osvc-bridge", "network": "10.9.0.0/16"});
    }
    json!({"cniVersion": "1.0.0", "name": "bench", "type": "bridge", "bridge": "cni9", "isDefaultGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "subnet": "10.9.0.0/16"}})
}

/// The medians of columns of microseconds, in milliseconds.
fn medians(text: &str) -> Vec<f64> {
    let rows: Vec<Vec<f64>> =
        text.lines().map(|line| line.split(' ').map(|word| word.parse::<f64>().unwrap() / 1e3).collect()).collect();
    (0..rows[0].len())
        .map(|column| {
            let mut times: Vec<f64> = rows.iter().map(|row| row[column]).collect();
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        })
        .collect()
}

/// Medians of ADD and DEL, after `prepare` has run in the sandbox.
fn measure(plugin: &str, config: &Value, rounds: usize, prepare: &str) -> Vec<f64> {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    let script = format!(
        "{prepare}
        cni ADD warm /run/netns/pod warm > /dev/null; cni DEL warm /run/netns/pod warm
        for n in $(seq {rounds}); do
            a=${{EPOCHREALTIME/./}}; cni ADD id-$n /run/netns/pod name-$n > /dev/null || exit 1
            b=${{EPOCHREALTIME/./}}; cni DEL id-$n /run/netns/pod name-$n || exit 1
            c=${{EPOCHREALTIME/./}}; echo $((b-a)) $((c-b))
        done"
    );
    medians(&sandbox.bulk(plugin, config, &script).ok())
}

/// Medians of two commands in turn.
fn floor(prepare: &str, first: &str, second: &str) -> Vec<f64> {
    let sandbox = Sandbox::new();
    let script = format!(
        "{prepare}
        for n in $(seq {ROUNDS}); do
            a=${{EPOCHREALTIME/./}}; {first}
            b=${{EPOCHREALTIME/./}}; {second}
            c=${{EPOCHREALTIME/./}}; echo $((b-a)) $((c-b))
        done"
    );
    medians(&sandbox.bulk("osvc-ipam", &json!({}), &script).ok())
}

/// A static C program that does nothing, where the sandbox can see it.
fn nothing() -> String {
    let folder = std::env::temp_dir().join(format!("bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("nothing.c"), folder.join("nothing"));
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let built = Command::new("cc").args(["-O2", "-static", "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(built.success(), "a C compiler is needed");
    program.display().to_string()
}

fn row(what: &str, reference: f64, ours: f64, floor: f64) {
    println!("| {what} | {reference:.2} | {ours:.2} | {:.1}× | {floor:.2} | {:.2}× |", reference / ours, ours / floor);
}

fn main() {
    let nothing = nothing();
    println!("| median of whole processes, ms | reference | osvc | faster | floor | osvc / floor |");
    println!("|---|---|---|---|---|---|");
    // Started as the plugins are: with their environment and stdin.
    let call = |verb: &str| {
        format!(
            "CNI_COMMAND={verb} CNI_CONTAINERID=id-$n CNI_NETNS=/run/netns/pod CNI_IFNAME=eth0 CNI_PATH=/opt/cni/bin \
             CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAME=n' {nothing} < /run/config > /dev/null"
        )
    };
    let idle = floor("", &call("ADD"), &call("DEL"));
    let (theirs, ours) = (Family::Reference, Family::Osvc);
    let (reference, osvc) =
        (measure(theirs.ipam(), &ipam(theirs), ROUNDS, ""), measure(ours.ipam(), &ipam(ours), ROUNDS, ""));
    row("IPAM ADD, empty store (floor: a C program that does nothing)", reference[0], osvc[0], idle[0]);
    row("IPAM DEL, empty store (floor: the same)", reference[1], osvc[1], idle[1]);

    let files = format!(
        "mkdir -p /var/lib/cni/networks/bench; cd /var/lib/cni/networks/bench
        for n in $(seq {HELD}); do printf 'id%d\\r\\neth0' $n > 10.200.$((n / 250)).$((n % 250 + 1)); done"
    );
    let records = format!(
        "boot=$(cat /proc/sys/kernel/random/boot_id); mkdir -p -m 700 /var/lib/cni/osvc/ipam/bench; cd /var/lib/cni/osvc/ipam/bench
        for n in $(seq {HELD}); do
            printf '{{\"v\":1,\"key\":{{\"source\":\"podman\",\"text\":\"k%d\"}},\"instance\":0,\"container\":\"id%d\",\"ifname\":\"eth0\",\"boot\":\"%s\",\"state\":\"held\",\"uses\":1,\"since\":\"2026-01-01T00:00:00.000000Z\"}}\\n' $n $n $boot > 10.200.$((n / 250)).$((n % 250 + 1))
        done"
    );
    let (reference, full) =
        (measure(theirs.ipam(), &ipam(theirs), 11, &files), measure(ours.ipam(), &ipam(ours), ROUNDS, &records));
    row("IPAM ADD, 60 000 held (floor: ours with none)", reference[0], full[0], osvc[0]);
    row("IPAM DEL, 60 000 held (floor: ours with none)", reference[1], full[1], osvc[1]);

    let kernel = floor(
        "ip link add br9 type bridge; ip addr add 10.9.0.1/16 dev br9; ip link set br9 up; ip netns add pod
        host='link add ovx mtu 1500 master br9 type veth peer name eth0 mtu 1500 netns pod\nlink set ovx up alias osvc\nlink set ovx type bridge_slave hairpin on'
        pod='link set eth0 up\naddr add 10.9.0.2/16 dev eth0\nroute add default via 10.9.0.1'",
        "echo -e \"$host\" | ip -batch -; echo -e \"$pod\" | ip -n pod -batch -",
        "ip link del ovx",
    );
    let (reference, osvc) =
        (measure(theirs.bridge(), &bridge(theirs), ROUNDS, ""), measure(ours.bridge(), &bridge(ours), ROUNDS, ""));
    row("bridge ADD, masqueraded (floor: the same from `ip -batch`)", reference[0], osvc[0], kernel[0]);
    row("bridge DEL, masqueraded (floor: `ip link del`)", reference[1], osvc[1], kernel[1]);
}
