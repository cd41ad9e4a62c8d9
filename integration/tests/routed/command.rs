//! `osvc-net` on routed networks: what it says, how it ends, and what it leaves alone.

use integration::Family;
use integration::cluster::{Cluster, Node, Underlay};
use serde_json::{Value, json};

use crate::{contains, network, noted, vm, vxlan};

#[track_caller]
fn told(node: &Node, words: &[&str]) -> Value {
    let output = node.osvc_net(words);
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"))
}

#[track_caller]
fn refused(node: &Node, words: &[&str], status: i32, said: &[&str]) {
    let output = node.osvc_net(words);
    assert_eq!(output.rc, status, "{output}");
    contains(&output.stderr, said);
}

#[test]
fn a_setup_ends_as_the_worst_of_its_networks_and_the_others_work() {
    let cluster = Cluster::three();
    let node = &cluster.nodes[0];
    cluster.install(&vxlan(&cluster));
    let mut lost = cluster.network("lost", Underlay::V4, &[("10.12.0.0/16", 24)]);
    lost["tunnelMode"] = json!("vxlan");
    lost["nodes"][2]["addr"] = json!("nowhere.invalid");
    cluster.install(&lost);
    let output = node.osvc_net(&["setup"]);
    assert_eq!(output.rc, 1, "{output}");
    contains(&output.stdout, &["lost: set up", "net: set up"]);
    contains(&output.stderr, &["network lost: node3: no address is known (nowhere.invalid did not resolve)"]);
    assert_eq!(node.osvc_net(&["setup", "net"]).rc, 0);
    let again = node.osvc_net(&["setup"]);
    assert_eq!(again.rc, 1, "a fault that stays is said again: {again}");
    contains(&again.stdout, &["lost: in place", "net: in place"]);
    // The list of the other nodes is whole, with the fault in its place.
    let peers = node.osvc_net(&["peers"]);
    let rows: Vec<Vec<&str>> = peers.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NETWORK", "NODE", "SEGMENT", "BY", "DEVICE", "ADDRESS", "MTU", "FAULT"]);
    assert_eq!(rows[1][..2], ["lost", "node2"], "{peers}");
    assert_eq!(rows[1][2..], ["10.12.1.0/24", "direct", "eth0", "192.168.1.2", "1500", "-"], "{peers}");
    assert_eq!(rows[2][..4], ["lost", "node3", "10.12.2.0/24", "-"], "{peers}");
    contains(&peers.stdout, &["(nowhere.invalid did not resolve)"]);
    let far: Vec<_> = rows.iter().filter(|row| row[..2] == ["net", "node3"]).collect();
    assert_eq!((far.len(), far[0][3], far[0][6]), (2, "tunnel", "1450"), "a row for each segment: {peers}");
    // What is lost in the kernel is a reason to fail, and named.
    node.sandbox.sh("ip route del 10.11.8.0/22").ok();
    refused(node, &["peers", "net"], 1, &["network net: ", "10.11.8.0/22"]);
    node.osvc_net(&["setup", "net"]).ok();
    node.osvc_net(&["peers", "net"]).ok();
    noted("exit statuses of osvc-net setup and peers");
}

#[test]
fn what_cannot_be_is_said_with_the_place_and_changes_nothing() {
    let cluster = Cluster::three();
    let node = &cluster.nodes[0];
    let config = vxlan(&cluster);
    cluster.install(&config);
    node.osvc_net(&["setup"]).ok();
    let state = |node: &Node| {
        let files = "find /var/lib/cni /run/osvc-cni /etc/cni -type f -printf '%p %T@ %s\n' | sort";
        (node.everything(), node.sandbox.sh(files).ok())
    };
    let before = state(node);
    for verb in ["setup", "peers", "gc", "teardown"] {
        refused(node, &[verb, "nte"], 1, &["no network \"nte\": did you mean \"net\"?"]);
        refused(node, &[verb, "elsewhere"], 1, &["no network \"elsewhere\": there are net"]);
        refused(node, &[verb, "--no-such-option"], 2, &["--no-such-option"]);
    }
    refused(node, &["teardown"], 2, &["NETWORK"]);
    refused(node, &["wireguard", "pubkey", "nte"], 1, &["did you mean \"net\"?", "wireguard pubkey nte --new"]);
    refused(node, &["wireguard", "pubkey", "../../etc"], 1, &["../../etc"]);
    refused(node, &["conf", "add-node", "net", "node2", "192.168.1.9"], 1, &["network net has a node node2 already"]);
    refused(node, &["conf", "add-node", "net", "node4", "192.168.1.2"], 1, &["192.168.1.2", "node2", "node4"]);
    refused(node, &["conf", "add-node", "net", "node4", "10.11.4.9"], 1, &["10.11.4.9", "10.11.0.0/16"]);
    let taken = ["conf", "add-node", "net", "node4", "192.168.1.4", "--subnet", "10.11.4.0/22"];
    refused(node, &taken, 1, &["10.11.4.0/22", "node2"]);
    refused(node, &["conf", "remove-node", "net", "node9"], 1, &["has no node node9", "node1, node2, node3"]);
    assert_eq!(state(node), before);
    let plan = node.sandbox.read("/var/lib/cni/osvc/segments/net.json");
    let bad = |keys: &[(&str, Value)]| {
        let mut bad = config.clone();
        for (pointer, value) in keys {
            bad["node"] = json!("node1");
            *bad.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value.clone();
        }
        node.install(&bad);
    };
    for (keys, said) in [
        (&[("/maskPerNode", json!([12, 64]))][..], "cannot honour maskPerNode 12"),
        (&[("/nodes/1/addr", json!("192.168.2.3"))], "have one address, 192.168.2.3"),
        (&[("/network/0", json!("10.11.0.1/16"))], "10.11.0.1/16"),
        (&[("/node", json!("node9"))], "this node, node9 (`node`), is not one of `nodes`"),
    ] {
        bad(keys);
        let before = node.everything();
        for words in [&["setup"][..], &["setup", "--dry-run"]] {
            refused(node, words, 1, &["/etc/cni/net.d/net.conflist:1:", said]);
        }
        assert_eq!(
            (node.everything(), node.sandbox.read("/var/lib/cni/osvc/segments/net.json")),
            (before, plan.clone())
        );
    }
    node.sandbox.write("/etc/cni/net.d/net.conflist", "{\n  \"name\": \"net\",\n  \"plugins\": [,]\n}");
    refused(node, &["setup"], 1, &["/etc/cni/net.d/net.conflist:3:15: "]);
    node.install(&config);
    assert_eq!(node.osvc_net(&["setup"]).ok().lines().count(), 1, "all is in place");
    noted("bad input of osvc-net for routed networks");
}

#[test]
fn a_list_is_edited_and_all_nodes_take_it_over() {
    let mut cluster = Cluster::three();
    let config = vxlan(&cluster);
    let pods = cluster.start_everywhere(&config);
    let addresses: Vec<_> = pods.iter().map(|pod| pod.addresses.clone()).collect();
    pods.into_iter().for_each(|pod| pod.end());
    cluster.add(1, &[]);
    let file = "/etc/cni/net.d/net.conflist";
    let first = &cluster.nodes[0];
    first.install(&config);
    let written = first.sandbox.read(file);
    let add = ["conf", "add-node", "net", "node4", "192.168.2.4"];
    let shown = first.osvc_net(&[&add[..], &["--dry-run"]].concat()).ok();
    assert_eq!(first.sandbox.read(file), written, "a dry run writes nothing");
    contains(&first.osvc_net(&add).ok(), &["net: node4 has 10.11.12.0/22 and fd11:0:0:3::/64", "osvc-net setup net"]);
    assert_eq!(first.sandbox.read(file), shown, "what was shown is what is written");
    let everywhere = |text: &str| {
        for node in &cluster.nodes {
            node.sandbox.write(file, text);
            node.osvc_net(&["setup"]).ok();
        }
    };
    everywhere(&shown);
    let with = |text: &str| {
        let conflist: Value = serde_json::from_str(text).unwrap();
        let mut config = conflist["plugins"][0].clone();
        (config["cniVersion"], config["name"]) = (conflist["cniVersion"].clone(), conflist["name"].clone());
        config
    };
    let pods = cluster.start_everywhere(&with(&shown));
    assert!(pods.iter().zip(&addresses).all(|(pod, known)| pod.addresses == *known), "nobody has moved");
    assert!(pods[0].reaches(&pods[3]) && pods[3].reaches(&pods[1]));
    let mut pods = pods;
    pods.remove(1).end();
    contains(&first.osvc_net(&["conf", "remove-node", "net", "node2"]).ok(), &["node2 is retired"]);
    everywhere(&first.sandbox.read(file));
    contains(&first.osvc_net(&["conf", "remove-node", "net", "node2"]).ok(), &["node2 is not in the list any more"]);
    let last = first.sandbox.read(file);
    for node in [0, 2, 3].map(|index| &cluster.nodes[index]) {
        node.sandbox.write(file, &last);
        node.osvc_net(&["setup"]).ok();
    }
    assert!(pods[0].reaches(&pods[2]) && pods[2].reaches(&pods[1]));
    assert_eq!(told(first, &["peers", "-o", "json"])[0]["peers"].as_array().map(Vec::len), Some(2));
    noted("osvc-net conf add-node and remove-node on a network in service");
}

#[test]
fn gc_gives_back_what_the_dead_held_on_a_segment() {
    let cluster = Cluster::three();
    let config = vxlan(&cluster);
    let node = &cluster.nodes[0];
    node.install(&config);
    let pod = node.start(&config, "lives");
    let mut dead = node.start(&config, "dead");
    dead.silence();
    node.sandbox.delete_netns(&dead.netns);
    node.sandbox.wait_for("the pair is gone", "[ $(ip -o link show type veth | grep -c ' ov') -eq 1 ]");
    let network = node.everything();
    let planned = node.osvc_net(&["gc", "--dry-run"]).ok();
    let done = node.osvc_net(&["gc", "net"]).ok();
    for address in &dead.addresses {
        contains(&planned, &[&format!("net: {address} of dead"), "would be given back"]);
        contains(&done, &[&format!("net: {address} of dead")]);
    }
    assert!(!pod.addresses.iter().any(|address| done.contains(&format!("{address} "))), "{done}");
    assert_eq!(node.sandbox.held(Family::Osvc, "net").len(), 2);
    assert_eq!(node.everything(), network, "the network itself is in service");
    assert_eq!(node.osvc_net(&["gc"]).ok(), "net: nothing to give back\n");
    noted("osvc-net gc on a routed network");
}

#[test]
fn peers_tell_keys_and_handshakes() {
    vm().test(|| {
        let cluster = Cluster::new(&[0, 0, 1], &[]);
        let config = network(&cluster, "net", "wireguard", Underlay::V4);
        let pods = [cluster.nodes[0].start(&config, "a"), cluster.nodes[1].start(&config, "b")];
        let node = &cluster.nodes[0];
        node.install(&config);
        assert!(pods[0].reaches(&pods[1]));
        // The third one is not there yet: that hides nothing of the second one.
        let value = told(node, &["peers", "-o", "json"]);
        let peers = &value[0]["peers"];
        for (index, name) in ["node2", "node3"].iter().enumerate() {
            assert_eq!(peers[index]["name"], json!(name));
            assert_eq!(peers[index]["publicKey"], config["nodes"][index + 1]["publicKey"], "{value:#}");
        }
        assert!(peers[0]["lastHandshake"].as_u64().is_some_and(|since| since > 1_000_000), "{value:#}");
        assert_eq!(peers[1]["lastHandshake"], Value::Null, "{value:#}");
        assert_eq!((&value[0]["tunnelMode"], &peers[0]["faults"]), (&json!("wireguard"), &json!([])));
        // What the others are told of this node's key, and is not so.
        let own = config["nodes"][0]["publicKey"].as_str().unwrap().to_owned();
        let mut wrong = config.clone();
        wrong["nodes"][0]["publicKey"] = json!("hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=");
        node.install(&wrong);
        // Not what it says: somebody may have pasted the private key.
        let refusal = node.osvc_net(&["setup"]);
        contains(&refusal.stderr, &["network net: node1: its publicKey is", &own]);
        assert!(refusal.rc == 1 && !refusal.stderr.contains("hSDwCYkwp1R0"), "{refusal}");
        wrong["nodes"][0].as_object_mut().unwrap().remove("publicKey");
        node.install(&wrong);
        refused(node, &["setup"], 1, &["network net: node1: its publicKey", &own, "is missing in `nodes`"]);
        assert!(pods[0].reaches(&pods[1]), "the others know the right one");
        node.install(&config);
        node.osvc_net(&["setup"]).ok();
        // A key is made for a network that is there, or that is said to be new, and for no other.
        let keys = "cd /var/lib/cni/osvc/wireguard; ls *.key";
        assert_ne!(node.osvc_net(&["wireguard", "pubkey", "nte"]).rc, 0);
        assert_eq!(node.sandbox.sh(keys).ok(), "net.key\n");
        let made = node.osvc_net(&["wireguard", "pubkey", "new", "--new"]).ok();
        assert_eq!(node.osvc_net(&["wireguard", "pubkey", "new"]).ok(), made);
        assert_eq!((made.trim().len(), node.sandbox.sh(keys).ok().as_str()), (44, "net.key\nnew.key\n"));
        noted("osvc-net peers with keys and handshakes");
    });
}
