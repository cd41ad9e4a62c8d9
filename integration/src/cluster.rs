//! A cluster: a machine for each node, joined as hosts are. Works on this kernel and, since it is made of nothing but
//! namespaces, in the [`crate::Vm`] as well.
//!
//! ```text
//!   node1 ─┐ lan0                    lan1 ┌─ node3
//!          ├──────── the world ───────────┤
//!   node2 ─┘     (router, outside)        └─ …
//! ```
//!
//! The world knows the addresses of nodes and of nothing else: what a container sends outside is answered only if it is
//! masqueraded, and what one sends to another node's container arrives only by a tunnel or by a route of the nodes.

mod node;
mod pod;

use std::net::IpAddr;
use std::process::Command;

use serde_json::{Value, json};

use crate::{Netns, Output, Sandbox};

pub use node::{Node, Tunnel};
pub use pod::{Pod, all_ping, all_talk, fragments, talk};

/// Answers at [`OUTSIDE`] and tells whom it saw, on port 80.
const OUTSIDE_NAME: &str = "outside";
/// Addresses outside of all networks.
pub const OUTSIDE: [&str; 2] = ["198.51.100.1", "2001:db8:ffff::1"];

/// The families of the addresses by which nodes know each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Underlay {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// Both.
    Both,
}

/// Nodes, and the world between them.
pub struct Cluster {
    /// The nodes: `node1`, `node2`, ….
    pub nodes: Vec<Node>,
    /// The router and the wires.
    pub world: Sandbox,
    outside: Netns,
}

/// `$1`: number of a link. The router's MAC is its own: else it is that of some port, and changes when a node comes.
const LAN: &str = r#"set -e
ip link add lan$1 address 02:00:00:00:0$1:fe type bridge
ip addr add 192.168.$(($1 + 1)).254/24 dev lan$1
ip addr add fd00:$(($1 + 1))::fe/64 dev lan$1 nodad
ip link set lan$1 up
"#;

const WORLD: &str = r#"set -e
cd /proc/sys/net
echo 0 > ipv6/conf/default/accept_dad
echo 1 > ipv4/ip_forward
echo 1 > ipv6/conf/all/forwarding
for call in bridge/bridge-nf-call-*; do [ ! -e $call ] || echo 0 > $call; done
ip netns add outside
ip -n outside link set lo up
ip link add out0 type veth peer name eth0 netns outside
ip addr add 198.51.100.254/24 dev out0
ip addr add 2001:db8:ffff::fe/64 dev out0 nodad
ip link set out0 up
ip -n outside addr add 198.51.100.1/24 dev eth0
ip -n outside addr add 2001:db8:ffff::1/64 dev eth0 nodad
ip -n outside link set eth0 up
ip -n outside route add 192.168.0.0/16 via 198.51.100.254
ip -n outside -6 route add fd00::/16 via 2001:db8:ffff::fe
"#;

impl Cluster {
    /// As many nodes as there are numbers: each is that of the link which the node is on. Nodes have these `tools` in
    /// their path.
    #[track_caller]
    pub fn new(links: &[usize], tools: &[&str]) -> Self {
        let world = Sandbox::new();
        world.sh(WORLD).ok();
        for link in 0..=links.iter().copied().max().unwrap_or_default() {
            world.run(&["bash", "-c", LAN, "lan", &link.to_string()]).ok();
        }
        let outside = Netns { name: OUTSIDE_NAME.into(), path: format!("/run/netns/{OUTSIDE_NAME}") };
        let mut cluster = Self { nodes: Vec::new(), world, outside };
        for link in links {
            cluster.add(*link, tools);
        }
        cluster
    }

    /// Two nodes on one link and a third one behind a router.
    #[track_caller]
    pub fn three() -> Self {
        Self::new(&[0, 0, 1], &[])
    }

    /// One more node on a link.
    #[track_caller]
    pub fn add(&mut self, link: usize, tools: &[&str]) {
        let number = self.nodes.len() + 1;
        let address = |text: String| -> IpAddr { text.parse().expect("an address") };
        let node = Node {
            sandbox: Sandbox::with_tools(tools),
            name: format!("node{number}"),
            v4: address(format!("192.168.{}.{number}", link + 1)),
            v6: address(format!("fd00:{}::{number}", link + 1)),
            link,
        };
        self.join(&node);
        self.nodes.push(node);
    }

    /// Plugs a node in: its device is `eth0`, its default routes lead to the router.
    #[track_caller]
    fn join(&self, node: &Node) {
        let Node { sandbox, name, v4, v6, link } = node;
        let (subnet, gateway) = (link + 1, "254");
        let world = |words: String| self.in_world(&words);
        world(format!("link del {name}"));
        world(format!("link add {name} type veth peer name eth0 netns {}", sandbox.pid())).ok();
        world(format!("link set {name} master lan{link} up")).ok();
        sandbox
            .sh(&format!(
                "set -e
                echo {name} > /proc/sys/kernel/hostname
                echo nameserver 192.168.{subnet}.{gateway} > /etc/resolv.conf
                echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
                ip addr add {v4}/24 dev eth0
                ip addr add {v6}/64 dev eth0 nodad
                ip link set eth0 up"
            ))
            .ok();
        node.default_routes();
    }

    /// `ip` in the world's network, with processes numbered as they are here.
    fn in_world(&self, words: &str) -> Output {
        let mut command = Command::new("nsenter");
        command.args(["-t", self.world.pid(), "-n", "ip"]).args(words.split(' '));
        self.world.finish(command, b"")
    }

    /// Kills a node and starts it again: see [`Sandbox::reboot`].
    #[track_caller]
    pub fn reboot(&mut self, index: usize) {
        self.nodes[index].sandbox.reboot();
        self.join(&self.nodes[index]);
    }

    /// A routed network of all nodes, as the plugin gets it: `networks`, each with the length of a node's prefix. It is the
    /// same on all nodes.
    pub fn network(&self, name: &str, underlay: Underlay, networks: &[(&str, u8)]) -> Value {
        let nodes: Vec<Value> = self.nodes.iter().map(|node| node.entry(underlay)).collect();
        let subnets: Vec<&str> = networks.iter().map(|(subnet, _)| *subnet).collect();
        let masks: Vec<u8> = networks.iter().map(|(_, mask)| *mask).collect();
        json!({"cniVersion": "1.1.0", "name": name, "type": "osvc-routed", "network": subnets, "maskPerNode": masks,
            "nodes": nodes})
    }

    /// Puts the network's conflist on all nodes, for osvc-net.
    #[track_caller]
    pub fn install(&self, config: &Value) {
        self.nodes.iter().for_each(|node| node.install(config));
    }

    /// Gives each node the public key that it tells for this network, which is put on all nodes.
    #[track_caller]
    pub fn exchange_keys(&self, config: &mut Value) {
        self.install(config);
        let name = config["name"].as_str().expect("a network has a name").to_owned();
        for (index, node) in self.nodes.iter().enumerate() {
            let key = node.osvc_net(&["wireguard", "pubkey", &name]).ok();
            config["nodes"][index]["publicKey"] = json!(key.trim());
        }
        self.install(config);
    }

    /// A container on each node, on this network, called by a letter: a, b, c….
    #[track_caller]
    pub fn start_everywhere(&self, config: &Value) -> Vec<Pod<'_>> {
        let names = ('a'..='z').map(String::from);
        self.nodes.iter().zip(names).map(|(node, name)| node.start(config, &name)).collect()
    }

    /// Whom a server outside sees when each of these is at the other end; it knows no way to a container.
    #[track_caller]
    pub fn outside_sees(&self, pod: &Pod<'_>) -> Vec<IpAddr> {
        let _server = self.world.answer(&self.outside.path, 80, OUTSIDE_NAME);
        let targets = OUTSIDE.map(|address| address.parse::<IpAddr>().expect("an address"));
        let targets = targets.iter().filter(|target| pod.address_like(**target).is_some());
        targets
            .map(|target| {
                let answer = pod.ask(*target);
                answer.unwrap_or_else(|| panic!("{target} outside does not answer {pod}")).client
            })
            .collect()
    }
}
