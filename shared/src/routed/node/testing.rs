//! Nodes with nothing but the kernel: each a network namespace on one of two links that a router joins, with the
//! network's bridge and its address on it.

use std::process::Command;

use serde_json::{Value, json};

use super::{Looked, Order, Outcome, Which, in_place, look, setup};
use crate::Host;
use crate::netlink::testing::{in_new_netns, pinned_netns};
use crate::netlink::{Link, Mac, Netns, NetnsId, NewBridge, NewPair, RouteSocket};
use crate::network::sysctl::Sysctl;
use crate::protocol::json as read;
use crate::routed::config::Places;
use crate::routed::{Plan, RoutedConfig, RoutedRecord};

/// MTU of the links, in bytes.
pub const UNDERLAY: u32 = 1500;

/// A node.
pub struct Node {
    pub number: u8,
    pub netns: Netns,
    pub id: NetnsId,
    pub socket: RouteSocket,
    pub host: Host,
    _folder: tempfile::TempDir,
}

/// The link that a node is on.
fn link_of(number: u8) -> u8 {
    if number < 3 { 0 } else { 1 }
}

/// The node's addresses in the underlay: those of 1 and 2 are on one link, those of the others on another one.
pub fn underlay(number: u8) -> [String; 2] {
    let link = link_of(number);
    [format!("192.0.{link}.{number}"), format!("2001:db8:{link}::{number}")]
}

/// The node's gateway addresses in a network whose number this is: of the segments that it gets as the `number`th.
pub fn gateways(net: u8, number: u8) -> [String; 2] {
    let slot = number - 1;
    [format!("10.{net}.{}.1", 4 * slot), format!("fd{net}:0:0:{slot}::1")]
}

/// The configuration of a dual-stack network of so many nodes, as node `number` has it, with these keys as well.
pub fn value(net: u8, number: u8, nodes: u8, keys: &Value) -> Value {
    let list: Vec<Value> = (1..=nodes).map(|n| json!({"name": format!("node{n}"), "addr": underlay(n)})).collect();
    let mut value = json!({
        "type": "osvc-routed", "network": [format!("10.{net}.0.0/16"), format!("fd{net}::/48")],
        "maskPerNode": [22, 64], "node": format!("node{number}"), "nodes": list});
    if let (Some(value), Some(keys)) = (value.as_object_mut(), keys.as_object()) {
        value.extend(keys.clone());
    }
    value
}

pub fn config(net: u8, value: &Value) -> RoutedConfig {
    let nowhere = std::path::PathBuf::from("/nonexistent");
    let places = Places { node: nowhere.clone(), host_name: nowhere.clone(), tables: vec![nowhere] };
    let name = format!("net{net}").parse().unwrap();
    RoutedConfig::new(&name, &read::from_value(value).unwrap(), &read::from_value(value).unwrap(), &places).unwrap()
}

/// Does something with so many nodes, in namespaces that are gone at its end.
pub fn with_nodes(count: u8, act: impl FnOnce(&mut [Node]) + Send) {
    in_new_netns(|| {
        let mut middle = RouteSocket::open().unwrap();
        let links = [0, 1].map(|link| {
            let name = format!("br{link}");
            middle.create_bridge(&NewBridge { name: &name, mac: Mac([2, 0, 0, 0, 9, link]), mtu: UNDERLAY }).unwrap();
            let bridge = middle.link_by_name(&name).unwrap().unwrap();
            Sysctl::V6(&name, "accept_dad").set("0").unwrap();
            middle.set_up(&bridge, true).unwrap();
            for address in [format!("192.0.{link}.254/24"), format!("2001:db8:{link}::fe/64")] {
                middle.add_address(&bridge, address.parse().unwrap(), false).unwrap();
            }
            bridge
        });
        Sysctl::ForwardV4.set("1").unwrap();
        Sysctl::ForwardV6.set("1").unwrap();
        let mut nodes: Vec<Node> = (1..=count).map(|number| Node::new(number, &mut middle, &links)).collect();
        act(&mut nodes);
    });
}

impl Node {
    fn new(number: u8, middle: &mut RouteSocket, links: &[Link; 2]) -> Self {
        let netns = pinned_netns();
        let link = link_of(number);
        let pair = NewPair {
            host: &format!("n{number}"),
            host_mac: Mac([2, 0, 0, 0, 1, number]),
            master: links[usize::from(link)].index,
            peer: "eth0",
            peer_mac: Mac([2, 0, 0, 0, 0, number]),
            netns: &netns,
            mtu: UNDERLAY,
        };
        middle.create_pair(&pair).unwrap();
        let socket = netns.enter(RouteSocket::open).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let host = crate::network::record::tests::host(&folder);
        let id = netns.id().unwrap();
        let mut node = Self { number, netns, id, socket, host, _folder: folder };
        for strict in ["all", "default"] {
            node.sysctl(Sysctl::V4(strict, "rp_filter"), "1");
        }
        // Neighbours are asked for from the link-local address, which would have to wait.
        node.sysctl(Sysctl::V6("eth0", "accept_dad"), "0");
        node.underlay_up();
        node.ip("link set lo up");
        node
    }

    /// Addresses and routes of `eth0`, as they are when it has come up.
    pub fn underlay_up(&mut self) {
        let link = link_of(self.number);
        let [v4, v6] = underlay(self.number);
        self.ip("link set eth0 up");
        self.ip(&format!("address replace {v4}/24 dev eth0"));
        self.ip(&format!("address replace {v6}/64 dev eth0 nodad"));
        self.ip(&format!("route replace default via 192.0.{link}.254"));
        self.ip(&format!("route replace default via 2001:db8:{link}::fe"));
        // The kernel makes an IPv6 address its own a moment later.
        for _ in 0..100 {
            if self.ip(&format!("-6 route get {v6}")).starts_with("local") {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{v6} is not this node's own");
    }

    /// The network's bridge, with the node's addresses.
    pub fn bridge(&mut self, net: u8) {
        let name = format!("obr_net{net}");
        self.ip(&format!("link add {name} type bridge"));
        self.ip(&format!("link set {name} up"));
        let [v4, v6] = gateways(net, self.number);
        self.ip(&format!("address add {v4}/22 dev {name}"));
        self.ip(&format!("address add {v6}/64 dev {name} nodad"));
    }

    pub fn sysctl(&self, sysctl: Sysctl<'_>, value: &str) {
        self.netns.enter(|| sysctl.set(value)).unwrap();
    }

    /// What `ip` says, which must succeed.
    pub fn ip(&self, arguments: &str) -> String {
        let mut ip = Command::new("ip");
        let output = self.netns.enter(|| Ok(ip.args(arguments.split(' ')).output().unwrap())).unwrap();
        assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn setup_with(&mut self, config: &RoutedConfig, which: Which, prune: bool) -> Outcome {
        let plan = Plan::new(config, None).unwrap();
        let Self { netns, id, socket, host, .. } = self;
        netns
            .enter(|| Ok(setup(host, id, socket, config, &plan, &Order { which, prune, guard: &|_| Ok(()) }).unwrap()))
            .unwrap()
    }

    pub fn setup(&mut self, config: &RoutedConfig) -> Outcome {
        self.setup_with(config, Which::All, false)
    }

    pub fn in_place(&mut self, config: &RoutedConfig) -> bool {
        let plan = Plan::new(config, None).unwrap();
        let Self { netns, id, socket, host, .. } = self;
        netns.enter(|| Ok(in_place(host, id, socket, config, &plan).unwrap())).unwrap()
    }

    pub fn missing(&mut self, config: &RoutedConfig) -> Vec<String> {
        self.look(config).missing
    }

    pub fn look(&mut self, config: &RoutedConfig) -> Looked {
        let plan = Plan::new(config, None).unwrap();
        let Self { netns, id, socket, host, .. } = self;
        netns.enter(|| Ok(look(host, id, socket, config, &plan).unwrap())).unwrap()
    }

    pub fn record(&self, config: &RoutedConfig) -> RoutedRecord {
        RoutedRecord::load(&self.host, &config.name).unwrap().unwrap()
    }

    /// Whether one packet of that size, headers included and not to be fragmented, gets an answer.
    pub fn reaches(&self, to: &str, size: u32) -> bool {
        let headers = if to.contains(':') { 48 } else { 28 };
        let mut ping = Command::new("ping");
        ping.args(["-n", "-q", "-c", "1", "-W", "2", "-M", "do", "-s", &(size - headers).to_string(), to]);
        self.netns.enter(|| Ok(ping.output().unwrap().status.success())).unwrap()
    }
}
