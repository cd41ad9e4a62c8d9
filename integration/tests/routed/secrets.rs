//! Private keys: whose they are to read, and where they never appear.

use integration::cluster::{Cluster, Node, Underlay, all_talk};
use serde_json::{Value, json};

use crate::{network, noted, vm};

const KEY: &str = "/var/lib/cni/osvc/wireguard/net.key";

/// The private key of a node, as the kernel's device tells it.
#[track_caller]
fn private_key(node: &Node) -> String {
    let device = node.tunnels().remove(0).name;
    node.sandbox.sh(&format!("wg show {device} private-key")).ok().trim().to_owned()
}

#[test]
fn a_private_key_is_in_its_file_and_nowhere_else() {
    vm().program("/usr/bin/strace").test(|| {
        let cluster = Cluster::new(&[0, 1], &[]);
        let config = network(&cluster, "net", "wireguard", Underlay::V4);
        let node = &cluster.nodes[0];
        let loud = node.call(&config, &node.sandbox.netns("loud"), "eth0").env("OSVC_LOG", "trace");
        let mut said = vec![
            loud.through(&["strace", "-f", "-s", "200", "-e", "trace=execve", "-o", "/run/trace"]).call("ADD").output,
        ];
        said[0].stderr += &node.sandbox.read("/run/trace");
        assert_eq!(node.sandbox.sh(&format!("stat -c '%a %u' {KEY}")).ok().trim(), "600 0");
        assert_eq!(node.sandbox.sh(&format!("stat -c %a $(dirname {KEY})")).ok().trim(), "700");
        let key = private_key(node);
        assert_eq!(key.len(), 44, "a key: {key}");
        for words in [&["setup"][..], &["peers"], &["peers", "-o", "json"], &["wireguard", "pubkey", "net"]] {
            said.push(node.osvc_net(words));
            said.push(node.sandbox.sh(&format!("OSVC_LOG=trace /opt/cni/bin/osvc-net {}", words.join(" "))));
        }
        // Errors too: a private key in the place of a public one, and a damaged file.
        let mut wrong = config.clone();
        wrong["nodes"][1]["publicKey"] = json!(format!("{key}x"));
        said.push(node.call(&wrong, &node.sandbox.netns("wrong"), "eth0").call("ADD").output);
        node.sandbox.sh(&format!("cp {KEY} /tmp/key; echo x >> {KEY}")).ok();
        said.push(node.osvc_net(&["setup"]));
        node.sandbox.sh(&format!("cp /tmp/key {KEY}; rm /tmp/key")).ok();
        said.push(node.osvc_net(&["setup"]));
        let halves = [&key[..20], &key[20..43]];
        for output in &said {
            let text = output.to_string();
            assert!(!halves.iter().any(|half| text.contains(half)), "a private key was said: {text}");
        }
        let files =
            node.sandbox.sh(&format!("grep -rlF -e '{}' /run /etc/cni /etc/osvc-cni /var/lib 2>/dev/null", halves[0]));
        assert!(files.stdout.lines().all(|path| path == KEY), "{files}");
        noted("a private key is 0600 and appears nowhere");
    });
}

#[test]
fn a_peers_new_key_is_taken_over_by_the_next_setup() {
    vm().test(|| {
        let cluster = Cluster::three();
        let mut config: Value = network(&cluster, "net", "wireguard", Underlay::V4);
        let pods = cluster.start_everywhere(&config);
        all_talk(&pods);
        let third = &cluster.nodes[2];
        let old = third.osvc_net(&["wireguard", "pubkey", "net"]).ok();
        third.sandbox.sh(&format!("rm {KEY}")).ok();
        let new = third.osvc_net(&["wireguard", "pubkey", "net"]).ok();
        assert_ne!(old, new);
        config["nodes"][2]["publicKey"] = json!(new.trim());
        cluster.install(&config);
        for node in &cluster.nodes {
            node.osvc_net(&["setup"]).ok();
        }
        all_talk(&pods);
        let peers = cluster.nodes[0].sandbox.sh("wg show all peers").ok();
        assert!(!peers.contains(old.trim()) && peers.contains(new.trim()), "{peers}");
        noted("a new key of a WireGuard peer");
    });
}
