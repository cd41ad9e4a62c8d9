//! `make bench`: medians of whole processes, ours beside the reference plugins, in one run on one machine.
//!
//! Inside the sandbox a copy of this program starts what is measured, so that the starting costs little and for all the
//! same. The floors are a static C program that does nothing, and the same kernel operations from `ip`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use integration::{Family, Sandbox};
use serde_json::{Value, json};

/// Rounds per figure.
const ROUNDS: usize = 101;
/// As many addresses are held in the row that says so.
const HELD: usize = 60_000;

/// As many ports are in place in the row that says so.
const PORTS: usize = 1000;
/// As many ports are published by one ADD in the row that says so.
const AT_ONCE: usize = 5000;

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

/// As many peers has the routed network, half of them on the node's own link.
const PEERS: usize = 10;

/// The underlay of [`routed`]: nobody answers, and nobody is asked.
const UNDERLAY: &str = "ip link add eth0 type veth peer name wire; ip link set wire up; ip link set eth0 up
    ip addr add 192.168.1.1/24 dev eth0; ip route add default via 192.168.1.254";

fn routed() -> Value {
    let peers =
        (1..=PEERS).map(|n| json!({"name": format!("peer{n}"), "addr": format!("192.168.{}.{}", 1 + n % 2, 10 + n)}));
    let nodes: Vec<Value> = std::iter::once(json!({"name": "here", "addr": "192.168.1.1"})).chain(peers).collect();
    json!({"cniVersion": "1.0.0", "name": "bench", "type": "osvc-routed", "network": "10.9.0.0/16", "maskPerNode": 24,
        "tunnelMode": "vxlan", "node": "here", "nodes": nodes})
}

/// A chained plugin gets the result of the one before it: a container that nobody asks is enough.
fn portmap(family: Family, ports: &str) -> Value {
    let ports: Value = serde_json::from_str(ports).unwrap();
    json!({"cniVersion": "1.0.0", "name": "bench", "type": family.portmap(), "runtimeConfig": {"portMappings": ports},
        "prevResult": {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "sandbox": "/run/netns/pod"}],
            "ips": [{"address": "10.9.0.2/16", "interface": 0}]}})
}

fn one_port() -> &'static str {
    r#"[{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]"#
}

/// As many ports, from 10000 on.
fn many_ports(count: usize) -> String {
    let ports = (10_000..10_000 + count)
        .map(|port| json!({"hostPort": port, "containerPort": 80, "protocol": "tcp"}).to_string());
    format!("[{}]", ports.collect::<Vec<_>>().join(","))
}

/// The device that leads to the container of [`portmap`].
const LEADS_THERE: &str = "ip link add cni9 type bridge; ip addr add 10.9.0.1/16 dev cni9; ip link set cni9 up";

/// Where things lie in the sandbox.
const INSIDE: &str = "/run/bench";
const CONFIG: &str = "/run/config";

/// Copies a program into a sandbox.
fn bring(sandbox: &Sandbox, program: &Path, name: &str) -> String {
    let inside = format!("/run/{name}");
    std::fs::copy(program, sandbox.path(&inside)).unwrap();
    inside
}

/// Medians of ADD and DEL in milliseconds, after `prepare` has run in the sandbox. A `program` in place of the plugin is
/// started as the plugin would be.
fn measure(plugin: &str, program: Option<&Path>, config: &Value, rounds: usize, prepare: &str) -> [f64; 2] {
    measure_beside(plugin, program, config, rounds, prepare, None)
}

/// The same beside another container's call with `other`.
fn measure_beside(
    plugin: &str,
    program: Option<&Path>,
    config: &Value,
    rounds: usize,
    prepare: &str,
    other: Option<&Value>,
) -> [f64; 2] {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    sandbox.sh(prepare).ok();
    if let Some(config) = other {
        let netns = sandbox.netns("other");
        sandbox.plugin(plugin).container("other").netns(&netns).named("other").config(config.clone()).add();
    }
    let _ = sandbox.plugin(plugin);
    sandbox.write(CONFIG, &config.to_string());
    let path = program.map_or_else(|| format!("/opt/cni/bin/{plugin}"), |path| bring(&sandbox, path, "program"));
    bring(&sandbox, &std::env::current_exe().unwrap(), "bench");
    parse(&sandbox.run(&[INSIDE, "inside", &path, &rounds.to_string()]).ok())
}

/// Medians of two commands in turn.
fn floor(prepare: &str, first: &str, second: &str) -> [f64; 2] {
    let sandbox = Sandbox::new();
    sandbox.sh(prepare).ok();
    bring(&sandbox, &std::env::current_exe().unwrap(), "bench");
    parse(&sandbox.run(&[INSIDE, "commands", first, second]).ok())
}

fn parse(text: &str) -> [f64; 2] {
    let mut words = text.split_whitespace().map(|word| word.parse().unwrap());
    [words.next().unwrap(), words.next().unwrap()]
}

/// In the sandbox: ADD and DEL of a plugin in turn, once to warm up; prints their medians.
fn inside(program: &str, rounds: usize) {
    let call = |verb: &str, n: usize| {
        let mut command = Command::new(program);
        command.env_clear().envs([
            ("CNI_COMMAND", verb),
            ("CNI_CONTAINERID", &format!("id-{n}")),
            ("CNI_NETNS", "/run/netns/pod"),
            ("CNI_IFNAME", "eth0"),
            ("CNI_PATH", "/opt/cni/bin"),
            ("CNI_ARGS", &format!("IgnoreUnknown=1;K8S_POD_NAME=name-{n}")),
            // The reference looks for iptables and nft there.
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
        ]);
        command.stdin(std::fs::File::open(CONFIG).unwrap()).stdout(std::process::Stdio::null());
        timed(&mut command)
    };
    let rows: Vec<[f64; 2]> = (0..=rounds).map(|n| [call("ADD", n), call("DEL", n)]).skip(1).collect();
    print_medians(&rows);
}

/// In the sandbox: two commands, whose lines are separate processes, in turn.
fn commands(first: &str, second: &str) {
    let run = |script: &str| {
        script.lines().map(|line| timed(Command::new("/bin/ip").args(line.split_whitespace()))).sum::<f64>()
    };
    let rows: Vec<[f64; 2]> = (0..ROUNDS).map(|_| [run(first), run(second)]).collect();
    print_medians(&rows);
}

/// Milliseconds from start to end of a process that succeeds.
fn timed(command: &mut Command) -> f64 {
    let before = Instant::now();
    let status = command.status().unwrap();
    let took = before.elapsed().as_secs_f64() * 1e3;
    assert!(status.success(), "{command:?}: {status}");
    took
}

fn print_medians(rows: &[[f64; 2]]) {
    let median = |column: usize| {
        let mut times: Vec<f64> = rows.iter().map(|row| row[column]).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    println!("{} {}", median(0), median(1));
}

/// A static C program that does nothing.
fn nothing(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("nothing.c"), folder.join("nothing"));
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let built = Command::new("cc").args(["-O2", "-static", "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(built.success(), "a C compiler is needed");
    program
}

fn row(what: &str, reference: f64, ours: f64, floor: f64) {
    println!("| {what} | {reference:.2} | {ours:.2} | {:.1}× | {floor:.2} | {:.2}× |", reference / ours, ours / floor);
}

/// Of what the reference has not, or does in minutes.
fn own_row(what: &str, ours: f64, floor: f64) {
    println!("| {what} | – | {ours:.2} | – | {floor:.2} | {:.2}× |", ours / floor);
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["inside", program, rounds] => inside(program, rounds.parse().unwrap()),
        ["commands", first, second] => commands(first, second),
        _ => all(),
    }
}

fn all() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = nothing(folder.path());
    println!("| median of whole processes, ms | reference | osvc | faster | floor | osvc / floor |");
    println!("|---|---|---|---|---|---|");
    let (theirs, ours) = (Family::Reference, Family::Osvc);
    let of_ipam = |family: Family, rounds, prepare: &str| measure(family.ipam(), None, &ipam(family), rounds, prepare);
    let of_bridge = |family: Family| measure(family.bridge(), None, &bridge(family), ROUNDS, "true");

    let idle = measure(ours.ipam(), Some(&nothing), &json!({}), ROUNDS, "true");
    let (reference, osvc) = (of_ipam(theirs, ROUNDS, "true"), of_ipam(ours, ROUNDS, "true"));
    row("IPAM ADD, empty store (floor: a C program that does nothing)", reference[0], osvc[0], idle[0]);
    row("IPAM DEL, empty store (floor: the same)", reference[1], osvc[1], idle[1]);

    let files = format!(
        "mkdir -p /var/lib/cni/networks/bench; cd /var/lib/cni/networks/bench
        for n in $(seq {HELD}); do printf 'id%d\r\neth0' $n > 10.200.$((n / 250)).$((n % 250 + 1)); done"
    );
    let records = format!(
        "boot=$(cat /proc/sys/kernel/random/boot_id); mkdir -p -m 700 /var/lib/cni/osvc/ipam/bench; cd /var/lib/cni/osvc/ipam/bench
        for n in $(seq {HELD}); do
            printf '{{\"v\":1,\"key\":{{\"source\":\"podman\",\"text\":\"k%d\"}},\"instance\":0,\"container\":\"id%d\",\"ifname\":\"eth0\",\"boot\":\"%s\",\"state\":\"held\",\"uses\":1,\"since\":\"2026-01-01T00:00:00.000000Z\"}}\n' $n $n $boot > 10.200.$((n / 250)).$((n % 250 + 1))
        done"
    );
    let (reference, full) = (of_ipam(theirs, 11, &files), of_ipam(ours, ROUNDS, &records));
    row("IPAM ADD, 60 000 held (floor: ours with none)", reference[0], full[0], osvc[0]);
    row("IPAM DEL, 60 000 held (floor: ours with none)", reference[1], full[1], osvc[1]);

    let kernel = floor(
        "ip link add br9 type bridge; ip addr add 10.9.0.1/16 dev br9; ip link set br9 up; ip netns add pod
        printf 'link add ovx mtu 1500 master br9 type veth peer name eth0 mtu 1500 netns pod\nlink set ovx up alias osvc\nlink set ovx type bridge_slave hairpin on\n' > /run/host
        printf 'link set eth0 up\naddr add 10.9.0.2/16 dev eth0\nroute add default via 10.9.0.1\n' > /run/pod",
        "-batch /run/host\n-n pod -batch /run/pod",
        "link del ovx",
    );
    let (reference, osvc) = (of_bridge(theirs), of_bridge(ours));
    row("bridge ADD, masqueraded (floor: the same from `ip -batch`)", reference[0], osvc[0], kernel[0]);
    row("bridge DEL, masqueraded (floor: `ip link del`)", reference[1], osvc[1], kernel[1]);
    // The reference has nothing like it.
    let cluster = measure("osvc-routed", None, &routed(), ROUNDS, UNDERLAY);
    own_row(
        &format!("routed ADD, {PEERS} peers in place, half of them by vxlan (floor: ours on a bridge)"),
        cluster[0],
        osvc[0],
    );
    own_row("routed DEL, the same (floor: ours on a bridge)", cluster[1], osvc[1]);
    ports(idle);
}

/// The floor of the first rows is a program that does nothing.
fn ports(idle: [f64; 2]) {
    let (theirs, ours) = (Family::Reference, Family::Osvc);
    let held = many_ports(PORTS);
    let one = |family: Family, rounds, beside: bool| {
        let other = beside.then(|| {
            let mut config = portmap(family, &held);
            config["prevResult"]["interfaces"][0]["sandbox"] = json!("/run/netns/other");
            config["prevResult"]["ips"][0]["address"] = json!("10.9.0.3/16");
            config
        });
        let config = portmap(family, one_port());
        measure_beside(family.portmap(), None, &config, rounds, LEADS_THERE, other.as_ref())
    };
    let (reference, osvc) = (one(theirs, ROUNDS, false), one(ours, ROUNDS, false));
    row("portmap ADD, one port (floor: a C program that does nothing)", reference[0], osvc[0], idle[0]);
    row("portmap DEL, one port (floor: the same)", reference[1], osvc[1], idle[1]);
    let (reference, beside) = (one(theirs, 11, true), one(ours, ROUNDS, true));
    row("portmap ADD, 1000 ports in place (floor: ours with none)", reference[0], beside[0], osvc[0]);
    row("portmap DEL, 1000 ports in place (floor: ours with none)", reference[1], beside[1], osvc[1]);
    let all = |family: Family, rounds| {
        let config = portmap(family, &many_ports(AT_ONCE));
        measure(family.portmap(), None, &config, rounds, LEADS_THERE)
    };
    let at_once = all(ours, 11);
    // The reference starts a program for each rule: minutes, and not what anybody waits for.
    own_row("portmap ADD, 5000 ports at once (floor: ours with one)", at_once[0], osvc[0]);
    own_row("portmap DEL, 5000 ports at once (floor: ours with one)", at_once[1], osvc[1]);
}
