//! Rulesets of others on the same host, loaded before ours and after, and anew: neither breaks the other, and what is
//! theirs is as it was when our network has gone. One that drops what is forwarded and comes later does cut ours off:
//! CHECK says so, and `osvc-net setup` or the next ADD mends it.
//!
//! The rulesets have the chains, hooks, priorities and policies that the programs are known to make, in our words.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod kube_proxy;

use integration::{Container, Netns, Network, Sandbox, port, report};
use serde_json::json;

/// The machine's address towards the world outside.
const HOST: &str = "192.0.2.2";

macro_rules! both_orders {
    ($($case:ident: $neighbour:expr,)*) => { $(
        mod $case {
            #[test]
            fn first() {
                super::side_by_side(&$neighbour, true);
            }

            #[test]
            fn last() {
                super::side_by_side(&$neighbour, false);
            }
        }
    )* };
}

both_orders! {
    docker: super::Neighbour { bridge: Some(("docker0", "172.17.0")), v6: super::DOCKER_V6, drops: true, ..super::iptables("docker", include_str!("rulesets/docker.rules")) },
    docker_28: super::Neighbour { bridge: Some(("docker0", "172.17.0")), v6: super::DOCKER_V6, drops: true, ..super::iptables("docker 28", include_str!("rulesets/docker-28.rules")) },
    ufw: super::Neighbour { guards_host: true, v6: super::UFW_V6, drops: true, ..super::iptables("ufw", include_str!("rulesets/ufw.rules")) },
    firewalld: super::Neighbour { guards_host: true, ..super::nft("firewalld", "inet firewalld", include_str!("rulesets/firewalld.nft")) },
    netavark: super::Neighbour { bridge: Some(("podman1", "10.88.0")), ..super::nft("netavark", "inet netavark", include_str!("rulesets/netavark.nft")) },
}

/// What docker has for IPv6 at least, while none of its networks has it.
const DOCKER_V6: &str = "*filter
:FORWARD DROP [0:0]
:DOCKER-USER - [0:0]
-A FORWARD -j DOCKER-USER
-A DOCKER-USER -j RETURN
COMMIT
";
/// As its IPv4 part, and in short.
const UFW_V6: &str = "*filter
:FORWARD DROP [0:0]
:ufw6-before-forward - [0:0]
-A FORWARD -j ufw6-before-forward
-A ufw6-before-forward -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
COMMIT
";

/// Somebody else's firewall.
pub struct Neighbour {
    name: &'static str,
    rules: &'static str,
    /// The table, of nftables; none for the tables of iptables.
    table: Option<&'static str>,
    /// A bridge of theirs, and the first three numbers of its /24. A container there is .2, with port 80 published as 8081.
    bridge: Option<(&'static str, &'static str)>,
    /// What comes in to the host itself is dropped, but for port 22.
    guards_host: bool,
    /// The rules of IPv6, for ip6tables-restore.
    v6: &'static str,
    /// What is forwarded is dropped by a policy.
    drops: bool,
}

/// Rules for iptables-restore.
pub fn iptables(name: &'static str, rules: &'static str) -> Neighbour {
    Neighbour { name, rules, table: None, bridge: None, guards_host: false, v6: "", drops: false }
}

/// A table of nftables.
pub fn nft(name: &'static str, table: &'static str, rules: &'static str) -> Neighbour {
    Neighbour { table: Some(table), ..iptables(name, rules) }
}

impl Neighbour {
    /// Loads the rules as they are at a start of the program.
    pub fn load(&self, sandbox: &Sandbox) {
        match self.table {
            Some(table) => {
                sandbox.sh(&format!("nft delete table {table} 2>/dev/null || true")).ok();
                sandbox.nft(self.rules);
            }
            None => {
                sandbox.write("/run/theirs.rules", self.rules);
                sandbox.write("/run/theirs6.rules", self.v6);
                sandbox.sh("iptables-restore < /run/theirs.rules; ip6tables-restore < /run/theirs6.rules").ok();
            }
        }
    }

    /// Their rules as they are, without what is marked as ours.
    fn shown(&self, sandbox: &Sandbox) -> Vec<String> {
        let text = match self.table {
            Some(table) => sandbox.sh(&format!("nft -s list table {table}")).ok(),
            None => sandbox.sh("iptables-save; ip6tables-save").ok(),
        };
        let is_theirs = |line: &&str| !line.contains("osvc") && !line.starts_with('#');
        text.lines().filter(is_theirs).map(|line| line.split(" [").next().unwrap().to_owned()).collect()
    }

    /// Their bridge and a container on it, which the rules speak of.
    fn container(&self, sandbox: &Sandbox) -> Option<Netns> {
        let (bridge, subnet) = self.bridge?;
        let theirs = sandbox.netns("theirs");
        sandbox
            .sh(&format!(
                "set -e
                ip link add {bridge} type bridge
                ip addr add {subnet}.1/24 dev {bridge}
                ip link set {bridge} up
                ip link add th0 type veth peer name eth0 netns theirs
                ip link set th0 master {bridge} up
                ip -n theirs addr add {subnet}.2/24 dev eth0
                ip -n theirs link set eth0 up
                ip -n theirs route add default via {subnet}.1"
            ))
            .ok();
        sandbox.serve(Some(&theirs), "tcp", "[::]:80", "theirs");
        Some(theirs)
    }
}

/// Our network, with an address that does not change.
pub fn ours(sandbox: &Sandbox) -> Network<'_> {
    sandbox.network("net1", &["10.9.0.0/24", "fd09::/64"])
}

/// A machine with docker's kernel parameters: bridged packets pass the rules of forwarded ones.
pub fn machine() -> (Sandbox, Netns) {
    let sandbox = Sandbox::with_tools(&[env!("CARGO_BIN_EXE_talk")]);
    let outside = sandbox.outside();
    sandbox.sh("cd /proc/sys/net/bridge; echo 1 | tee bridge-nf-call-iptables bridge-nf-call-ip6tables").ok();
    // A folder of this machine's mount namespace, where the plugins look for it.
    sandbox.sh("mount -t tmpfs tmpfs /usr/local/sbin").ok();
    sandbox.write("/usr/local/sbin/firewall-cmd", include_str!("rulesets/firewall-cmd"));
    sandbox.sh("chmod +x /usr/local/sbin/firewall-cmd").ok();
    sandbox.serve(Some(&outside), "tcp", "[::]:9000", "world");
    (sandbox, outside)
}

fn side_by_side(neighbour: &Neighbour, theirs_first: bool) {
    let (sandbox, outside) = machine();
    let theirs = neighbour.container(&sandbox);
    sandbox.serve(None, "tcp", "[::]:9999", "host");
    sandbox.serve(None, "tcp", "[::]:22", "ssh");
    if theirs_first {
        neighbour.load(&sandbox);
    }
    let network = ours(&sandbox);
    let a = network.container("a");
    a.publish(json!([port(8080, 80, "tcp")]));
    sandbox.serve(Some(&a.netns), "tcp", "[::]:80", "a");
    let b = network.container("b");
    sandbox.write("/etc/cni/net.d/10-net1.conflist", &network.conflist().to_string());
    if !theirs_first {
        neighbour.load(&sandbox);
        if neighbour.drops {
            sandbox.ask_in_vain(Some(&b.netns), "tcp", "192.0.2.1:9000");
            let (code, message) = a.bridge.check_fails(&a.result);
            assert!(code == 100 && message.contains("accept"), "{}: {code} {message}", neighbour.name);
        }
        sandbox.sh("/opt/cni/bin/osvc-net setup net1").ok();
    }
    let works = |when: &str| {
        let what = format!("{}, theirs first: {theirs_first}, {when}", neighbour.name);
        ours_works(&sandbox, &outside, &a, &b, &what);
        theirs_works(neighbour, &sandbox, &outside, theirs.as_ref(), &what);
    };
    works("at first");

    neighbour.load(&sandbox);
    network.container("d");
    works("after theirs was loaded anew");

    for name in ["a", "b", "c", "d"] {
        sandbox.sh(&format!("ip netns del {name} 2>/dev/null || true")).ok();
    }
    sandbox.sh("/opt/cni/bin/osvc-net teardown --force net1").ok();
    theirs_works(neighbour, &sandbox, &outside, theirs.as_ref(), &format!("{} alone again", neighbour.name));
    let left = neighbour.shown(&sandbox);
    neighbour.load(&sandbox);
    assert_eq!(
        left,
        neighbour.shown(&sandbox),
        "{}: nothing of ours is left in it, and nothing of it is gone",
        neighbour.name
    );
    let order = if theirs_first { "before ours" } else { "after ours" };
    report::ran(&report::kernel(), &format!("rules of {} loaded {order}", neighbour.name));
}

#[track_caller]
fn ours_works(sandbox: &Sandbox, outside: &Netns, a: &Container<'_>, b: &Container<'_>, what: &str) {
    assert_eq!(
        sandbox.ask(Some(&b.netns), "tcp", &format!("{}:80", a.v4)),
        format!("a {}", b.v4),
        "neighbours, {what}"
    );
    assert_eq!(sandbox.ask(Some(&b.netns), "tcp", "192.0.2.1:9000"), format!("world {HOST}"), "outside, {what}");
    for to in [a.v6.as_str(), "2001:db8:ffff::1"] {
        assert!(sandbox.ping(&b.netns, to), "{to}, {what}");
    }
    assert_eq!(sandbox.ask(Some(outside), "tcp", &format!("{HOST}:8080")), "a 192.0.2.1", "from outside, {what}");
    assert_eq!(sandbox.ask(None, "tcp", "127.0.0.1:8080"), "a 10.9.0.1", "from the host, {what}");
    assert_eq!(sandbox.ask(Some(&a.netns), "tcp", &format!("{HOST}:8080")), "a 10.9.0.1", "itself, {what}");
}

#[track_caller]
fn theirs_works(neighbour: &Neighbour, sandbox: &Sandbox, outside: &Netns, theirs: Option<&Netns>, what: &str) {
    if let Some(theirs) = theirs {
        assert_eq!(
            sandbox.ask(Some(outside), "tcp", &format!("{HOST}:8081")),
            "theirs 192.0.2.1",
            "their port, {what}"
        );
        assert_eq!(
            sandbox.ask(Some(theirs), "tcp", "192.0.2.1:9000"),
            format!("world {HOST}"),
            "their way out, {what}"
        );
    }
    if neighbour.guards_host {
        assert_eq!(sandbox.ask(Some(outside), "tcp", &format!("{HOST}:22")), "ssh 192.0.2.1", "{what}");
        sandbox.ask_in_vain(Some(outside), "tcp", &format!("{HOST}:9999"));
    }
}
