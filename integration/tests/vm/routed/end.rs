//! A node of a routed network: the network's bridge and gateways on a node of [`crate::nodes`], and the library at work.

use std::process::Command;

use osvc_cni::netlink::NetnsId;
use osvc_cni::netlink::wireguard::public_key;
use osvc_cni::protocol::json as read;
use osvc_cni::routed::config::{Places, key};
use osvc_cni::routed::node::{Order, in_place, missing, remove, setup};
use osvc_cni::routed::resolution::Which;
use osvc_cni::routed::{Outcome, Plan, RoutedConfig, RoutedRecord, private_key};
use osvc_cni::{Host, NetworkName};
use serde_json::{Value, json};

use crate::nodes::Node;

/// One of two nodes.
pub struct End<'a> {
    pub node: &'a mut Node,
    number: usize,
    id: NetnsId,
    host: Host,
    _folder: tempfile::TempDir,
}

impl<'a> End<'a> {
    pub fn new(node: &'a mut Node, number: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::new(folder.path().join("state"), folder.path().join("run")).unwrap();
        let id = node.netns.id().unwrap();
        let end = Self { node, number, id, host, _folder: folder };
        for device in ["all", "default"] {
            end.write(&format!("/proc/sys/net/ipv4/conf/{device}/rp_filter"), "1");
        }
        end
    }

    pub fn write(&self, path: &str, text: &str) {
        let write = || {
            std::fs::write(path, text).unwrap();
            Ok(())
        };
        self.node.netns.enter(write).unwrap();
    }

    pub fn ip(&self, arguments: &str) -> String {
        let mut ip = Command::new("ip");
        let output = self.node.netns.enter(|| Ok(ip.args(arguments.split(' ')).output().unwrap())).unwrap();
        assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The gateways of network `net`: 11 has the addresses of [`Node::own`].
    pub fn gateways(net: u8, number: usize) -> [String; 2] {
        let third = 4 * number;
        [format!("10.{net}.{third}.1"), format!("fd{net}:{third}::1")]
    }

    pub fn bridge(&self, net: u8) {
        let name = format!("obr_net{net}");
        self.ip(&format!("link add {name} type bridge"));
        self.ip(&format!("link set {name} up"));
        let [v4, v6] = Self::gateways(net, self.number);
        self.ip(&format!("address add {v4}/22 dev {name}"));
        self.ip(&format!("address add {v6}/64 dev {name} nodad"));
    }

    /// The public key of this node, made when it is asked for.
    fn public(&self, network: &NetworkName) -> String {
        let key = private_key::load_or_make(&self.host, network).unwrap();
        self.node.netns.enter(|| public_key(&key)).map(|public| key::text(&public)).unwrap()
    }

    pub fn setup(&mut self, config: &RoutedConfig, prune: bool) -> Outcome {
        let plan = Plan::new(config, None).unwrap();
        let Self { node, id, host, .. } = self;
        let Node { netns, socket, .. } = &mut **node;
        let order = Order { which: Which::All, prune, guard: &|_| Ok(()) };
        netns.enter(|| Ok(setup(host, id, socket, config, &plan, &order).unwrap())).unwrap()
    }

    pub fn missing(&mut self, config: &RoutedConfig) -> Vec<String> {
        let plan = Plan::new(config, None).unwrap();
        let Self { node, id, host, .. } = self;
        let Node { netns, socket, .. } = &mut **node;
        netns.enter(|| Ok(missing(host, id, socket, config, &plan).unwrap())).unwrap()
    }

    pub fn in_place(&mut self, config: &RoutedConfig) -> bool {
        let plan = Plan::new(config, None).unwrap();
        let Self { node, id, host, .. } = self;
        let Node { netns, socket, .. } = &mut **node;
        netns.enter(|| Ok(in_place(host, id, socket, config, &plan).unwrap())).unwrap()
    }

    pub fn remove(&mut self, config: &RoutedConfig) -> Vec<String> {
        let Self { node, id, host, .. } = self;
        let Node { netns, socket, .. } = &mut **node;
        netns.enter(|| Ok(remove(host, id, socket, &config.name).unwrap())).unwrap()
    }

    pub fn record(&self, config: &RoutedConfig) -> RoutedRecord {
        RoutedRecord::load(&self.host, &config.name).unwrap().unwrap()
    }

    /// The names of our tunnels, and of which kinds they are.
    pub fn tunnels(&mut self) -> Vec<(String, &'static str)> {
        let ours = self.node.socket.tunnels().unwrap().into_iter().filter(|found| found.is_ours());
        ours.map(|found| (found.link.name, found.tunnel.kind.name())).collect()
    }
}

/// The configurations of a dual-stack network on both nodes, over the underlays of these families.
pub fn configs(ends: &[End<'_>; 2], net: u8, over: &[usize], keys: &Value) -> [RoutedConfig; 2] {
    let network: NetworkName = format!("net{net}").parse().unwrap();
    let list: Vec<Value> = ends
        .iter()
        .map(|end| {
            let third = 4 * end.number;
            let addresses: Vec<String> = over.iter().map(|&family| end.node.underlay[family].to_string()).collect();
            let mut node = json!({
                "name": format!("node{}", end.number), "addr": addresses,
                "subnet": [format!("10.{net}.{third}.0/22"), format!("fd{net}:{third}::/64")]});
            if keys["tunnelMode"] == "wireguard" {
                node["publicKey"] = end.public(&network).into();
            }
            node
        })
        .collect();
    [1, 2].map(|number| {
        let mut value = json!({
            "type": "osvc-routed", "network": [format!("10.{net}.0.0/16"), format!("fd{net}::/16")],
            "maskPerNode": [22, 64], "node": format!("node{number}"), "nodes": list});
        value.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        let nowhere = std::path::PathBuf::from("/nonexistent");
        let places = Places { node: nowhere.clone(), host_name: nowhere.clone(), tables: vec![nowhere] };
        let (low, bridge) = (read::from_value(&value).unwrap(), read::from_value(&value).unwrap());
        RoutedConfig::new(&network, &low, &bridge, &places).unwrap()
    })
}
