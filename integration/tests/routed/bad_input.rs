//! Configuration that cannot work: one JSON error with the right code that names key and value, nothing changed; and a
//! correct call works afterwards.

use integration::Vm;
use integration::cluster::{Cluster, Underlay};
use serde_json::{Value, json};

use crate::{V4, V6, contains, noted, vm, vxlan};

/// Each is refused with a code and these words, and changes nothing.
#[track_caller]
fn refused(cluster: &Cluster, cases: &[(&str, Value, u64, &[&str])]) {
    let node = &cluster.nodes[0];
    let netns = node.sandbox.netns("pod");
    let good = vxlan(cluster);
    let before =
        (node.everything(), node.sandbox.sh("find /var/lib/cni /run/osvc-cni -type f 2>/dev/null | sort").stdout);
    for (pointer, value, code, words) in cases {
        let mut config = good.clone();
        let at = pointer.rsplit_once('/').map(|(parent, key)| (parent.to_owned(), key.to_owned())).unwrap();
        let parent = config.pointer_mut(&at.0).unwrap_or_else(|| panic!("{pointer}"));
        match parent {
            Value::Array(list) => list[at.1.parse::<usize>().unwrap()] = value.clone(),
            Value::Object(map) => drop(map.insert(at.1, value.clone())),
            other => panic!("{pointer} is in {other}"),
        }
        let (found, message) = node.call(&config, &netns, "eth0").add_fails();
        assert_eq!(found, *code, "{pointer} {value}: {message}");
        contains(&message, words);
        let after =
            (node.everything(), node.sandbox.sh("find /var/lib/cni /run/osvc-cni -type f 2>/dev/null | sort").stdout);
        assert_eq!(after, before, "after {pointer} {value}");
        // A container of this kind may have been there once: its DEL does not mind.
        node.call(&config, &netns, "eth0").del();
    }
    node.sandbox.delete_netns(&netns);
    node.start(&good, "good").end();
}

#[test]
fn nodes_that_cannot_be() {
    let cluster = Cluster::three();
    let nodes = |names: &[(&str, &str)]| -> Value {
        names.iter().map(|(name, addr)| json!({"name": name, "addr": addr})).collect()
    };
    let far = "192.168.2.3";
    refused(
        &cluster,
        &[
            ("/nodes", nodes(&[("node2", "192.168.1.2")]), 7, &["node1", "node2", "nodes"]),
            ("/node", json!("node9"), 7, &["node9", "node1"]),
            ("/nodes", json!([]), 7, &["nodes"]),
            ("/nodes", nodes(&[("node1", "192.168.1.1"), ("node1", far)]), 7, &["node1", "nodes[0]", "nodes[1]"]),
            ("/nodes/2/addr", json!("192.168.1.2"), 7, &["192.168.1.2", "node2", "node3"]),
            ("/nodes/2/addr", json!("10.11.9.9"), 2, &["10.11.9.9", "10.11.0.0/16"]),
            ("/nodes/2/addr", json!("127.0.0.1"), 2, &["127.0.0.1", "nodes[2].addr"]),
            ("/nodes/2/addr", json!("192.168.2"), 2, &["192.168.2"]),
            ("/nodes/1/subnet", json!("10.11.4.1/22"), 2, &["10.11.4.1/22", "host bits", "10.11.4.0/22"]),
            ("/nodes/1/subnet", json!("10.12.4.0/22"), 2, &["10.12.4.0/22", "10.11.0.0/16"]),
            ("/nodes/0/retired", json!(true), 7, &["node1", "retired"]),
            ("/nodes/1/publicKey", json!("short"), 2, &["nodes[1].publicKey", "osvc-net wireguard pubkey"]),
        ],
    );
    let mut overlap = vxlan(&cluster)["nodes"].clone();
    overlap[0]["subnet"] = json!("10.11.4.0/22");
    overlap[1]["subnet"] = json!("10.11.4.0/23");
    refused(&cluster, &[("/nodes", overlap, 7, &["10.11.4.0/22", "10.11.4.0/23", "node1", "node2"])]);
    noted("bad input: nodes");
}

#[test]
fn networks_and_ways_that_cannot_be() {
    let cluster = Cluster::three();
    refused(
        &cluster,
        &[
            ("/maskPerNode", json!([12, 64]), 2, &["maskPerNode", "12", "10.11.0.0/16"]),
            ("/maskPerNode", json!([31, 64]), 2, &["maskPerNode", "31"]),
            ("/maskPerNode", json!(22), 7, &["maskPerNode"]),
            ("/network", json!(["10.11.3.0/16", V6.0]), 2, &["10.11.3.0/16", "10.11.0.0/16"]),
            ("/network", json!([V4.0, "10.12.0.0/16"]), 7, &["10.12.0.0/16"]),
            ("/tunnel", json!("maybe"), 2, &["tunnel", "maybe", "auto"]),
            ("/tunnelMode", json!("pigeon"), 2, &["tunnelMode", "pigeon", "vxlan"]),
            ("/tables", json!(["nosuchtable"]), 2, &["tables", "nosuchtable"]),
            ("/tables", json!([255]), 2, &["tables", "255"]),
            ("/port", json!(70000), 2, &["port", "70000"]),
            ("/port", json!(4789), 2, &["port", "4789"]),
        ],
    );
    let mut never = vxlan(&cluster);
    never["tunnelMode"] = json!("wireguard");
    never["tunnel"] = json!("never");
    let node = &cluster.nodes[0];
    let netns = node.sandbox.netns("never");
    let (code, message) = node.call(&never, &netns, "eth0").add_fails();
    assert_eq!(code, 7, "{message}");
    contains(&message, &["never", "wireguard"]);
    let mut long = vxlan(&cluster);
    long["network"] = json!(["10.12.0.0/16", "fd12::/48"]);
    long["name"] = json!("n".repeat(60));
    // The name is a name like any other: devices and files have it, shortened where need be.
    let pods = cluster.start_everywhere(&long);
    assert!(pods[0].reaches(&pods[2]), "a name of 60 characters");
    noted("bad input: networks, tunnels, modes, tables, ports; a name of 60 characters works");
}

/// Devices, files and keys have the name, shortened where need be.
#[test]
fn a_name_of_60_characters_in_the_other_modes() {
    vm().test(|| {
        let cluster = Cluster::new(&[0, 1], &[]);
        for (letter, mode, subnet) in [("i", "ipip", 21), ("g", "gre", 22), ("w", "wireguard", 23)] {
            let mut config = cluster.network(&letter.repeat(60), Underlay::V4, &[(&format!("10.{subnet}.0.0/16"), 24)]);
            config["tunnelMode"] = json!(mode);
            if mode == "wireguard" {
                cluster.exchange_keys(&mut config);
            }
            let pods = cluster.start_everywhere(&config);
            assert!(pods[0].reaches(&pods[1]), "{mode}");
            pods.into_iter().for_each(|pod| pod.end());
        }
        noted("a name of 60 characters in each mode");
    });
}

/// What this kernel does not have, told by its name: nothing of the network is left behind.
#[test]
fn a_kernel_without_the_tunnel_kind() {
    // A VM whose modules are hidden lacks each of them, whatever the running kernel has.
    Vm::new().test(|| {
        let modules = "/lib/modules/*/kernel";
        let hidden = std::process::Command::new("sh").args(["-c", &format!(
            "modprobe -a veth bridge nf_tables nft_chain_nat nft_masq nft_ct nft_fib_ipv4 nft_fib_ipv6 2>/dev/null; \
             rm -rf {modules}/drivers/net/wireguard {modules}/drivers/net/vxlan {modules}/net/ipv4/ipip.ko* \
             {modules}/net/ipv4/ip_gre.ko* {modules}/net/ipv6/sit.ko* {modules}/net/ipv6/ip6_gre.ko* \
             {modules}/net/ipv6/ip6_tunnel.ko*"
        )]).status();
        assert!(hidden.unwrap().success());
        let cluster = Cluster::new(&[0, 1], &[]);
        let node = &cluster.nodes[0];
        for (mode, underlay, networks, module) in [
            ("ipip", Underlay::V4, &[V4][..], "ipip"),
            ("ipip", Underlay::V4, &[V6], "sit"),
            ("ipip", Underlay::V6, &[V4, V6], "ip6_tunnel"),
            ("gre", Underlay::V4, &[V4, V6], "ip_gre"),
            ("gre", Underlay::V6, &[V4, V6], "ip6_gre"),
            ("vxlan", Underlay::V4, &[V4, V6], "vxlan"),
            ("wireguard", Underlay::V4, &[V4, V6], "wireguard"),
        ] {
            let mut config = cluster.network("net", underlay, networks);
            config["tunnelMode"] = json!(mode);
            for (index, key) in
                ["hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=", "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="]
                    .iter()
                    .enumerate()
            {
                config["nodes"][index]["publicKey"] = json!(key);
            }
            let (code, message) = node.sandbox.plugin("osvc-routed").config(config.clone()).call("STATUS").error();
            assert_eq!(code, 50, "STATUS with {mode} over {underlay:?}: {message}");
            contains(&message, &[module]);
            let before = node.everything();
            let netns = node.sandbox.netns("pod");
            let (code, message) = node.call(&config, &netns, "eth0").add_fails();
            assert_eq!(code, 50, "ADD with {mode} over {underlay:?}: {message}");
            contains(&message, &[module]);
            assert_eq!(node.everything(), before, "nothing changed with {mode} over {underlay:?}");
            node.sandbox.delete_netns(&netns);
        }
        noted("a kernel without the tunnel kind: code 50, naming the module");
    });
}
