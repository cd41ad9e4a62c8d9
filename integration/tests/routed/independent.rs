//! One peer that cannot be set up is that peer's error: the others work, and no container waits for it.

use std::time::Duration;

use integration::Output;
use integration::cluster::{Cluster, Node, Underlay, all_talk};
use serde_json::{Value, json};

use crate::{V4, contains, noted, vm, vxlan};

fn both(output: &Output) -> String {
    format!("{}{}", output.stdout, output.stderr)
}

/// The other two talk, and setup and CHECK of a node tell of the third one with these words.
#[track_caller]
fn only_the_third_is_faulty(cluster: &Cluster, config: &Value, words: &[&str]) {
    let pods = [cluster.nodes[0].start(config, "a"), cluster.nodes[1].start(config, "b")];
    all_talk(&pods);
    cluster.install(config);
    for pod in &pods {
        let told = pod.node.osvc_net(&["setup", "net"]);
        assert!(told.rc != 0, "setup does not say that all is well: {told}");
        contains(&both(&told), words);
        contains(&pod.check_fails(), words);
    }
    // Nothing for it leaves by the default route.
    let route = cluster.nodes[0].sandbox.run(&["ip", "route", "get", "10.11.8.9"]);
    assert!(route.rc != 0, "packets for an absent peer are refused: {route}");
}

#[test]
fn a_name_that_does_not_resolve() {
    let cluster = Cluster::three();
    let mut config = vxlan(&cluster);
    config["nodes"][2]["addr"] = json!("nowhere.invalid");
    only_the_third_is_faulty(&cluster, &config, &["node3", "nowhere.invalid"]);
    // It is somewhere now.
    for node in &cluster.nodes {
        node.sandbox.sh(&format!("echo {} nowhere.invalid >> /etc/hosts", cluster.nodes[2].v4)).ok();
        node.osvc_net(&["setup", "net"]).ok();
    }
    let pods = [
        cluster.nodes[0].start(&config, "a2"),
        cluster.nodes[1].start(&config, "b2"),
        cluster.nodes[2].start(&config, "c"),
    ];
    all_talk(&pods);
    noted("a peer whose name does not resolve, and later does");
}

#[test]
fn an_address_off_the_link_under_never() {
    let cluster = Cluster::three();
    let mut config = cluster.network("net", Underlay::V4, &[V4]);
    config["tunnel"] = json!("never");
    only_the_third_is_faulty(&cluster, &config, &["node3", "192.168.2.3", "never"]);
    noted("an off-link peer under `never`");
}

#[test]
fn a_peer_without_a_key() {
    vm().test(|| {
        let cluster = Cluster::three();
        let mut config = crate::network(&cluster, "net", "wireguard", Underlay::V4);
        config["nodes"][2].as_object_mut().unwrap().shift_remove("publicKey");
        only_the_third_is_faulty(&cluster, &config, &["node3", "publicKey"]);
        noted("a WireGuard peer without a key");
    });
}

/// Of seven ADDs.
fn median(node: &Node, config: &Value, names: &str) -> Duration {
    let mut times: Vec<Duration> = (0..7)
        .map(|number| {
            let netns = node.sandbox.netns(&format!("{names}{number}"));
            let reply = node.call(config, &netns, "eth0").call("ADD");
            let elapsed = reply.elapsed();
            reply.result();
            elapsed
        })
        .collect();
    times.sort();
    times[3]
}

/// The name server does not answer at all: each question to it would take seconds.
#[test]
fn a_name_server_that_is_down_makes_no_add_slower() {
    let cluster = Cluster::new(&[0, 0], &[]);
    let mut config = vxlan(&cluster);
    for (index, node) in cluster.nodes.iter().enumerate() {
        config["nodes"][index]["addr"] = json!(format!("{}.cluster.example", node.name));
    }
    let hosts: String =
        cluster.nodes.iter().map(|node| format!("{} {}.cluster.example\n", node.v4, node.name)).collect();
    for node in &cluster.nodes {
        node.sandbox.sh(&format!("printf '{}' >> /etc/hosts", hosts.replace('\n', "\\n"))).ok();
    }
    let first = [cluster.nodes[0].start(&config, "a"), cluster.nodes[1].start(&config, "b")];
    all_talk(&first);
    let node = &cluster.nodes[0];
    let up = median(node, &config, "u");
    for node in &cluster.nodes {
        node.sandbox
            .sh("sed -i /cluster.example/d /etc/hosts; echo nameserver 192.168.1.77 > /etc/resolv.conf
                nft add table ip down; nft add chain ip down out '{ type filter hook output priority 0; }'
                nft add rule ip down out udp dport 53 drop")
            .ok();
    }
    let down = median(node, &config, "d");
    let netns = node.sandbox.netns("traced");
    let follow = ["strace", "-f", "-e", "trace=execve,connect,sendto", "-o", "/run/trace"];
    node.call(&config, &netns, "eth0").through(&follow).add();
    let trace = node.sandbox.read("/run/trace");
    assert_eq!(trace.matches("execve(").count(), 1, "nobody is asked for names: {trace}");
    assert!(!trace.contains("htons(53)") && !trace.contains("nscd"), "nor a server: {trace}");
    // What was known stays known.
    node.install(&config);
    node.osvc_net(&["setup", "net"]);
    assert!(first[0].reaches(&first[1]), "the recorded address is kept");
    noted(&format!(
        "ADD in {:.1} ms with the names' server, {:.1} ms with one that is down",
        up.as_secs_f64() * 1e3,
        down.as_secs_f64() * 1e3
    ));
}
