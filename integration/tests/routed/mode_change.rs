//! Another way between the nodes, on a network in service: nodes are changed one after the other.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use integration::cluster::{Cluster, Pod, Underlay, all_talk};
use serde_json::{Value, json};

use crate::{V4, V6, contains, noted, vm};

/// How often a packet is sent.
const BEAT: Duration = Duration::from_millis(5);

/// Questions and answers without end, from one container to another.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Watch {
    fn start(from: &Pod<'_>, to: IpAddr) -> Self {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = from.node.sandbox.within(Some(&from.netns.path), || UdpSocket::bind(any).unwrap());
        socket.set_read_timeout(Some(BEAT)).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
            let mut buffer = [0; 64];
            while !flag.load(Ordering::Relaxed) {
                let sent = Instant::now();
                let _ = socket.send_to(b"?", SocketAddr::new(to, 80));
                if socket.recv(&mut buffer).is_ok() {
                    longest = longest.max(last.elapsed());
                    last = Instant::now();
                }
                thread::sleep(BEAT.saturating_sub(sent.elapsed()));
            }
            longest.max(last.elapsed())
        });
        Self { stop, thread }
    }

    /// The longest time without an answer.
    fn end(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// From a container to another one, in each family.
fn watch<'a>(from: &'a Pod<'_>, to: &'a Pod<'_>) -> Vec<Watch> {
    to.addresses.iter().map(|to| Watch::start(from, *to)).collect()
}

fn longest(watches: Vec<Watch>) -> Duration {
    watches.into_iter().map(Watch::end).max().unwrap()
}

/// How long they may take to reach each other once all nodes have changed.
const HEARD: Duration = Duration::from_secs(15);

/// Applies a configuration node by node, and tells the longest gap in what goes between containers.
#[track_caller]
fn change(cluster: &Cluster, pods: &[Pod<'_>], config: &Value) -> Duration {
    let watches: Vec<Watch> = watch(&pods[0], &pods[1]).into_iter().chain(watch(&pods[2], &pods[0])).collect();
    for node in &cluster.nodes {
        node.install(config);
        node.osvc_net(&["setup", "net"]).ok();
    }
    // Until they have heard of each other once. WireGuard repeats a handshake that came too early after 5 s.
    let all_reach =
        || pods.iter().all(|from| pods.iter().all(|to| from.netns.name == to.netns.name || from.reaches(to)));
    let deadline = Instant::now() + HEARD;
    while !all_reach() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(300));
    }
    let gap = longest(watches);
    all_talk_again(pods);
    gap
}

/// MTUs are those of the containers' start: what does not fit any more is told to the sender, once.
#[track_caller]
fn all_talk_again(pods: &[Pod<'_>]) {
    for from in pods {
        for to in pods.iter().filter(|to| to.netns.name != from.netns.name) {
            assert!(from.reaches(to), "{from} reaches {to}");
        }
    }
}

#[track_caller]
fn pruned(cluster: &Cluster, config: &Value, kinds: &[&str]) {
    for node in &cluster.nodes {
        node.osvc_net(&["setup", "--prune", "net"]).ok();
        let left: Vec<String> = node.kinds().into_iter().filter(|kind| !kinds.contains(&kind.as_str())).collect();
        assert!(left.is_empty(), "{} has {left:?} after {}", node.name, config["tunnelMode"]);
        let devices = node.sandbox.links();
        for route in node.routes() {
            let device = route.split(" dev ").nth(1).and_then(|rest| rest.split(' ').next());
            assert!(device.is_none_or(|device| devices.contains(device)), "{route}");
        }
    }
}

#[track_caller]
fn through(cluster: &Cluster, steps: &[(&str, &str, &[&str])]) {
    let mut config = cluster.network("net", Underlay::V4, &[V4, V6]);
    if steps.iter().any(|(_, mode, _)| *mode == "wireguard") {
        config["tunnelMode"] = json!("wireguard");
        cluster.exchange_keys(&mut config);
    }
    let mut pods = Vec::new();
    let mut told = Vec::new();
    for (policy, mode, kinds) in steps {
        config["tunnel"] = json!(policy);
        config["tunnelMode"] = json!(mode);
        if pods.is_empty() {
            pods = cluster.start_everywhere(&config);
            all_talk(&pods);
            continue;
        }
        let gap = change(cluster, &pods, &config);
        told.push(format!("to {mode} ({policy}): {} ms", gap.as_millis()));
        pruned(cluster, &config, kinds);
        all_talk_again(&pods);
        // By the configuration of now: that of its ADD asks for the way of then.
        for pod in &pods {
            pod.call.clone().config(config.clone()).check(&pod.result);
        }
        for (pod, name) in pods.iter().zip(["a", "b", "c"]) {
            let again = pod.node.sandbox.addresses_in(&pod.netns, "eth0");
            let wanted = integration::addresses_of(&pod.result);
            assert!(wanted.iter().all(|address| again.contains(address)), "{name} has {again:?}, had {wanted:?}");
        }
    }
    noted(&format!("change of mode on three nodes in service, longest gap {}", told.join(", ")));
}

#[test]
fn vxlan_to_plain_routes_and_back() {
    let cluster = Cluster::new(&[0, 0, 0], &[]);
    let kinds: &[&str] = &["vxlan"];
    through(&cluster, &[("always", "vxlan", kinds), ("auto", "vxlan", kinds), ("always", "vxlan", kinds)]);
}

#[test]
fn all_modes_one_after_the_other() {
    vm().test(|| {
        let cluster = Cluster::new(&[0, 0, 0], &[]);
        through(
            &cluster,
            &[
                ("always", "ipip", &["ipip", "sit"]),
                ("always", "gre", &["gre"]),
                ("always", "wireguard", &["wireguard"]),
                ("auto", "ipip", &["ipip", "sit"]),
                ("auto", "vxlan", &["vxlan"]),
            ],
        );
    });
}

#[test]
fn to_a_kind_that_the_kernel_has_not_changes_nothing() {
    vm().test(|| {
        let hidden = Command::new("sh").args(["-c", "rm -rf /lib/modules/*/kernel/net/ipv4/ip_gre.ko*"]).status();
        assert!(hidden.unwrap().success());
        let cluster = Cluster::new(&[0, 1], &[]);
        let mut config = cluster.network("net", Underlay::V4, &[V4, V6]);
        config["tunnelMode"] = json!("vxlan");
        let pods = cluster.start_everywhere(&config);
        config["tunnelMode"] = json!("gre");
        cluster.install(&config);
        let node = &cluster.nodes[0];
        let netns = node.sandbox.netns("more");
        let before = node.everything();
        let (code, message) = node.call(&config, &netns, "eth0").add_fails();
        assert_eq!(code, 50, "{message}");
        contains(&message, &["ip_gre"]);
        let told = node.osvc_net(&["setup", "--prune", "net"]);
        assert!(told.rc != 0, "{told}");
        contains(&told.stderr, &["ip_gre"]);
        assert_eq!(node.everything(), before);
        all_talk(&pods);
        noted("a network in service changed to a kind that the kernel has not: code 50, and nothing changes");
    });
}

#[test]
fn a_setup_that_changes_nothing_is_not_noticed() {
    let cluster = Cluster::three();
    let config = crate::vxlan(&cluster);
    let pods = cluster.start_everywhere(&config);
    cluster.install(&config);
    for node in &cluster.nodes {
        node.osvc_net(&["setup"]).ok();
    }
    let before: Vec<String> = cluster.nodes.iter().map(|node| node.everything()).collect();
    let watches = watch(&pods[0], &pods[2]);
    for _ in 0..3 {
        for node in &cluster.nodes {
            let told = node.osvc_net(&["setup"]).ok();
            assert!(told.contains("in place") && !told.contains("made"), "{told}");
        }
    }
    let gap = longest(watches);
    assert!(gap < Duration::from_millis(150), "{gap:?} without an answer");
    for (node, before) in cluster.nodes.iter().zip(before) {
        assert_eq!(node.everything(), before, "{}", node.name);
    }
    noted(&format!("setup that changes nothing, longest time between two answers {} ms", gap.as_millis()));
}
