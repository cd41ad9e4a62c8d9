//! The shipped configurations of routed networks, each as it is on a cluster like its own: the nodes have the names and
//! addresses of the example. Keys of WireGuard alone are the nodes' own.

use std::net::IpAddr;

use integration::cluster::{Cluster, OUTSIDE, all_talk};
use integration::{Family, Vm, addresses_of};
use serde_json::{Value, json};

use crate::{contains, noted, vm};

/// A host port, and what is behind it.
const PORT: u16 = 8080;

macro_rules! example {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../conf-examples/routed/", $name, ".conflist")))
    };
}

/// Those that are tried below: name and text.
const ALL: [(&str, &str); 5] = [
    example!("dual-stack-gre"),
    example!("ipv6"),
    example!("one-subnet"),
    example!("two-sites-ipip"),
    example!("wireguard"),
];

/// A VM that has cnitool.
fn vm_with_cnitool() -> Vm {
    let tools = std::env::var_os("OSVC_TOOLS").map(std::path::PathBuf::from);
    let tools = tools.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools").into());
    vm().program(&tools.join("cnitool").display().to_string())
}

fn nodes(conflist: &Value) -> &Vec<Value> {
    conflist["plugins"][0]["nodes"].as_array().unwrap()
}

/// The address of each node, by the configuration.
fn addresses(conflist: &Value) -> Vec<IpAddr> {
    nodes(conflist).iter().map(|node| node["addr"].as_str().unwrap().parse().unwrap()).collect()
}

/// The nodes that the example speaks of: the third number of an address is that of its link, from 1.
#[track_caller]
fn cluster(name: &str, conflist: &Value) -> Cluster {
    let link = |address: &IpAddr| match address {
        IpAddr::V4(address) => usize::from(address.octets()[2]) - 1,
        IpAddr::V6(address) => usize::from(address.segments()[2]) - 1,
    };
    let addresses = addresses(conflist);
    let links: Vec<usize> = addresses.iter().map(link).collect();
    let cluster = Cluster::new(&links, &[]);
    for ((node, address), entry) in cluster.nodes.iter().zip(&addresses).zip(nodes(conflist)) {
        assert_eq!(entry["name"], json!(node.name), "{name}");
        if address.is_ipv6() {
            let lan = link(address);
            cluster.world.sh(&format!("ip addr replace 2001:db8:{}::fe/64 dev lan{lan} nodad", lan + 1)).ok();
            node.sandbox.sh(&format!("ip addr add {address}/64 dev eth0 nodad")).ok();
        } else {
            assert_eq!(*address, node.v4, "{name}");
        }
    }
    cluster
}

#[track_caller]
fn works(name: &str) {
    let (_, text) = ALL.iter().find(|(known, _)| *known == name).unwrap();
    let mut conflist: Value = serde_json::from_str(text).unwrap();
    let network = conflist["name"].as_str().unwrap().to_owned();
    let cluster = cluster(name, &conflist);
    let file = format!("/etc/cni/net.d/{name}.conflist");
    let install = |text: &str| cluster.nodes.iter().for_each(|node| node.sandbox.write(&file, text));
    install(text);
    if conflist["plugins"][0]["tunnelMode"] == json!("wireguard") {
        for (index, node) in cluster.nodes.iter().enumerate() {
            let key = node.osvc_net(&["wireguard", "pubkey", &network]).ok();
            conflist["plugins"][0]["nodes"][index]["publicKey"] = json!(key.trim());
        }
        install(&conflist.to_string());
    }
    for node in &cluster.nodes {
        contains(&node.osvc_net(&["setup"]).ok(), &[&format!("{network}: set up"), "firewall rules made"]);
    }
    let mut config = conflist["plugins"][0].clone();
    (config["cniVersion"], config["name"]) = (conflist["cniVersion"].clone(), conflist["name"].clone());
    let pods = cluster.start_everywhere(&config);
    all_talk(&pods);
    for (node, pod) in cluster.nodes.iter().zip(&pods) {
        pod.check();
        node.osvc_net(&["peers"]).ok();
    }
    if conflist["plugins"].as_array().is_some_and(|all| all.iter().any(|plugin| plugin["type"] == "osvc-portmap")) {
        publishes(&cluster, &network, &pods[0].netns.path, addresses(&conflist)[2]);
    }
    noted(&format!("conf-examples/routed/{name}.conflist, as it is, on {} nodes", cluster.nodes.len()));
}

/// The whole list, as a runtime calls it: a port of a container on the third node is reached from everywhere.
#[track_caller]
fn publishes(cluster: &Cluster, network: &str, pod: &str, host: IpAddr) {
    let node = &cluster.nodes[2];
    let web = node.sandbox.netns("web");
    let ports = json!({"portMappings": [{"hostPort": PORT, "containerPort": 80, "protocol": "tcp"}]});
    let cnitool = |verb: &str| {
        let words = format!("CNI_PATH=/opt/cni/bin CAP_ARGS='{ports}' cnitool {verb} {network} /run/netns/web");
        node.sandbox.sh(&words).ok()
    };
    let result: Value = serde_json::from_str(&cnitool("add")).unwrap();
    let address: IpAddr = addresses_of(&result)[0].split('/').next().unwrap().parse().unwrap();
    let server = node.sandbox.answer(&web.path, 80, "web");
    cnitool("check");
    let first = &cluster.nodes[0];
    let at = |sandbox: &integration::Sandbox, from: Option<&str>, to: IpAddr, port: u16| {
        let to = std::net::SocketAddr::new(to, port).to_string();
        sandbox.connect_to(from, &to).unwrap_or_else(|| panic!("{to} does not answer {from:?}"))
    };
    assert_eq!(at(&first.sandbox, None, host, PORT).client, first.v4, "another node, with its own address");
    assert_eq!(at(&first.sandbox, Some(pod), host, PORT).server, "web", "a container of another node");
    let outside = at(&cluster.world, Some("/run/netns/outside"), host, PORT);
    assert_eq!(outside.client.to_string(), OUTSIDE[0], "a client from outside");
    assert_eq!(at(&node.sandbox, None, host, PORT).server, "web", "its own host");
    assert_eq!(at(&first.sandbox, Some(pod), address, 80).server, "web", "without the port");
    drop(server);
    cnitool("del");
    assert!(!node.sandbox.held(Family::Osvc, network).contains(&address));
    assert!(!node.osvc_net(&["port", "ls"]).ok().contains(&PORT.to_string()));
}

#[test]
fn one_subnet() {
    works("one-subnet");
}

#[test]
fn two_sites() {
    vm_with_cnitool().test(|| works("two-sites-ipip"));
}

#[test]
fn ipv6() {
    vm_with_cnitool().test(|| works("ipv6"));
}

#[test]
fn dual_stack() {
    vm_with_cnitool().test(|| works("dual-stack-gre"));
}

#[test]
fn wireguard() {
    vm_with_cnitool().test(|| works("wireguard"));
}

#[test]
fn no_example_is_left_out() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../conf-examples/routed");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files.map(|name| name.trim_end_matches(".conflist").to_owned()).collect();
    names.sort();
    assert_eq!(names, ALL.map(|(name, _)| name));
}
