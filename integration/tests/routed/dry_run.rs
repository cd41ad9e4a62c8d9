//! `osvc-net setup --dry-run`: nothing is changed, and what it says is what the setup says and does.

use integration::cluster::{Cluster, Node, Underlay};
use serde_json::json;

use crate::{contains, network, noted, vm, vxlan};

/// Every file of ours, with its content's time, and all that the kernel has.
#[track_caller]
fn state(node: &Node) -> (String, String) {
    let files = "find /var/lib/cni /run/osvc-cni /etc/osvc-cni -mindepth 1 -printf '%p %T@ %s\n' 2>/dev/null | sort";
    (node.everything(), node.sandbox.sh(files).stdout)
}

/// What a dry run says is what the setup after it says, and both end alike. The lines of the setup.
#[track_caller]
fn as_told(node: &Node, options: &[&str]) -> String {
    let before = state(node);
    let words: Vec<&str> = ["setup", "--dry-run"].iter().chain(options).copied().collect();
    let told = node.osvc_net(&words);
    assert_eq!(state(node), before, "after {told}");
    let words: Vec<&str> = ["setup"].iter().chain(options).copied().collect();
    let done = node.osvc_net(&words);
    assert_eq!((told.rc, &told.stderr), (done.rc, &done.stderr), "{told}\n{done}");
    let as_done = told.stdout.replace("would make ", "made ").replace("would change ", "changed ");
    let as_done =
        as_done.replace("would remove ", "removed ").replace("would be made", "made").replace("would put ", "put ");
    let as_done = as_done.replace("would be set up", "set up");
    let lines = |text: &str| -> Vec<String> {
        // The MTU of a network that is not there yet is not known to be that.
        let line = |line: &str| line.split(", MTU ").next().unwrap_or_default().to_owned();
        text.lines().map(line).collect()
    };
    let (said, did) = (lines(&as_done), lines(&done.stdout));
    for line in &said {
        assert!(did.contains(line), "said and not done: {line}\n{told}\n{done}");
    }
    // What belongs to a device that is made is not told apart.
    let made: Vec<&str> = did.iter().filter_map(|line| line.split(" made ").nth(1)?.split(' ').next()).collect();
    for line in did.iter().filter(|line| !said.contains(line)) {
        assert!(made.iter().any(|device| line.contains(device)), "done and not said: {line}\n{told}\n{done}");
    }
    done.stdout
}

#[test]
fn of_a_new_network_nothing_is_written_and_its_faults_are_told() {
    let cluster = Cluster::three();
    let mut config = vxlan(&cluster);
    config["nodes"][1]["addr"] = json!("node2.lan");
    config["nodes"][2]["addr"] = json!("nowhere.invalid");
    let node = &cluster.nodes[0];
    node.install(&config);
    let before = state(node);
    assert_eq!(before.1, "", "nothing of ours is there");
    let told = node.osvc_net(&["setup", "--dry-run"]);
    assert_eq!(state(node), before);
    assert_eq!(told.rc, 1, "{told}");
    contains(&told.stdout, &["net: would be set up", "would make bridge obr_net", "firewall rules would be made"]);
    contains(&told.stderr, &["network net: node2: no address is known", "network net: node3: ", "nowhere.invalid"]);
    // A name that did not resolve then is asked for by the first ADD.
    node.sandbox.write("/etc/hosts", &format!("127.0.0.1 localhost\n{} node2.lan\n", cluster.nodes[1].v4));
    let pod = node.start(&config, "a");
    let mut other = config.clone();
    other["nodes"][1]["addr"] = json!(cluster.nodes[1].v4);
    let peer = cluster.nodes[1].start(&other, "b");
    assert!(pod.reaches(&peer));
    noted("setup --dry-run of a new network");
}

#[test]
fn what_it_says_is_what_setup_does() {
    let cluster = Cluster::three();
    let mut config = vxlan(&cluster);
    let node = &cluster.nodes[0];
    node.install(&config);
    contains(&as_told(node, &[]), &["made bridge obr_net", "made ot", "made route 10.11.8.0/22"]);
    contains(&as_told(node, &[]), &["net: in place"]);
    node.sandbox.sh("ip route del 10.11.8.0/22; ip link set eth0 mtu 1400; nft flush ruleset").ok();
    contains(
        &as_told(node, &[]),
        &["made route 10.11.8.0/22", "changed the MTU of bridge obr_net to 13", "firewall rules made"],
    );
    config["tunnel"] = json!("always");
    node.install(&config);
    contains(&as_told(node, &[]), &["changed route 10.11.4.0/22"]);
    config["nodes"].as_array_mut().unwrap().remove(1);
    node.install(&config);
    // The list disagrees with what is recorded: said by both.
    contains(&as_told(node, &[]), &["removed route 10.11.4.0/22", "firewall rules made"]);
    let mut off = vxlan(&cluster);
    off["tunnel"] = json!("never");
    node.install(&off);
    contains(&as_told(node, &[]), &["made route 10.11.4.0/22 via 192.168.1.2", "removed route 10.11.8.0/22"]);
    let pod = node.start(&off, "a");
    node.sandbox.sh("ip link del obr_net").ok();
    contains(&as_told(node, &[]), &["made bridge obr_net", "put 1 containers back"]);
    assert!(pod.pings("10.11.0.1".parse().unwrap(), 100), "it is on the bridge again");
    assert_eq!(as_told(node, &["--prune", "net"]).lines().count(), 1);
    noted("setup --dry-run says what setup does");
}

#[test]
fn of_a_change_of_mode_too() {
    vm().test(|| {
        let cluster = Cluster::new(&[0, 1], &[]);
        let node = &cluster.nodes[0];
        let mut config = network(&cluster, "net", "ipip", Underlay::V4);
        node.install(&config);
        as_told(node, &[]);
        for mode in ["gre", "vxlan"] {
            config["tunnelMode"] = json!(mode);
            node.install(&config);
            contains(&as_told(node, &[]), &["made ot", "changed route 10.11.4.0/22"]);
            contains(&as_told(node, &["--prune"]), &["removed tunnel ot"]);
        }
        let config = network(&cluster, "net", "wireguard", Underlay::V4);
        node.install(&config);
        // A key that is not there yet is none that the others know.
        node.sandbox.sh("mv /var/lib/cni/osvc/wireguard/net.key /tmp/key").ok();
        let before = state(node);
        let told = node.osvc_net(&["setup", "--dry-run"]);
        assert_eq!((told.rc, state(node)), (1, before), "{told}");
        contains(&told.stdout, &["would make the private key of network net"]);
        contains(&told.stderr, &["network net: node1: it has no private key yet"]);
        node.sandbox.sh("mv /tmp/key /var/lib/cni/osvc/wireguard/net.key").ok();
        let mut wrong = config.clone();
        wrong["nodes"][0]["publicKey"] = json!("hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=");
        node.install(&wrong);
        as_told(node, &["--prune"]);
        node.install(&config);
        contains(&as_told(node, &[]), &["net: in place"]);
        noted("setup --dry-run of a change of mode");
    });
}

#[test]
fn of_what_this_kernel_has_not_got() {
    let cluster = Cluster::three();
    let mut config = vxlan(&cluster);
    let node = &cluster.nodes[0];
    node.install(&config);
    node.osvc_net(&["setup"]).ok();
    config["tunnelMode"] = json!("gre");
    node.install(&config);
    let before = state(node);
    for words in [&["setup", "--dry-run"][..], &["setup"]] {
        let refused = node.osvc_net(words);
        if node.sandbox.sh("modprobe -n ip_gre").rc == 0 {
            noted("setup without a kind of tunnel was NOT run: this kernel has gre");
            return;
        }
        assert_eq!((refused.rc, state(node)), (1, before.clone()), "{refused}");
        contains(&refused.stderr, &["no devices of kind gre", "ip_gre"]);
    }
    noted("setup of a network in service with a mode that the kernel has not got");
}
