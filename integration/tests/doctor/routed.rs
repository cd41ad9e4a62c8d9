//! Faults on the way to other nodes.

use integration::cluster::{Cluster, Node, Underlay};
use serde_json::{Value, json};

use crate::{fake, findings, help, names, one_of, only, quiet, silent};

/// Nodes 1 and 2 on one link, node 3 behind a router: direct and by VXLAN.
fn cluster() -> (Cluster, Value) {
    let cluster = Cluster::three();
    let config = crate::by_vxlan(&cluster);
    (cluster, config)
}

fn node(cluster: &Cluster, number: usize) -> &Node {
    &cluster.nodes[number - 1]
}

#[test]
fn tunnels_that_are_blocked_and_nodes_that_are_silent() {
    let (cluster, _) = cluster();
    let first = &node(&cluster, 1).sandbox;
    silent(first);
    let third = &node(&cluster, 3).sandbox;
    let port = one_port(first);
    third.nft(&format!(
        "table inet wall {{ chain in {{ type filter hook input priority -10; udp dport {port} drop; }}; }}"
    ));
    let found = only(first, "tunnel-blocked", &["node3", "192.168.2.3", &format!("UDP port {port}")]);
    assert!(found["help"].as_str().unwrap().contains("on node3"), "{found}");
    third.sh("nft delete table inet wall").ok();
    silent(first);
    // Not set up there: the second node answers, and its segment does not.
    let second = &node(&cluster, 2).sandbox;
    node(&cluster, 2).osvc_net(&["teardown", "net"]).ok();
    only(first, "peer-silent", &["node2", "192.168.1.2", "10.11.1.1", "10.11.1.0/24"]);
    help(second, &only(second, "not-set-up", &["routed network net is not set up on this node"]));
    silent(first);
    second.ip("link set eth0 down");
    let found = only(first, "peer-down", &["node2", "192.168.1.2", "eth0"]);
    assert!(found["help"].as_str().unwrap().contains("ping 192.168.1.2"), "{found}");
}

fn one_port(sandbox: &integration::Sandbox) -> String {
    let found = sandbox.ip_json("-d link show type vxlan");
    found[0]["linkinfo"]["info_data"]["port"].to_string()
}

#[test]
fn paths_that_let_less_through_than_the_routes_say() {
    let (cluster, _) = cluster();
    let first = &node(&cluster, 1).sandbox;
    silent(first);
    // A narrow link on the way, of which the router says so.
    cluster.world.ip("link set lan1 mtu 1400");
    let found = only(first, "path-mtu", &["node3", "1500 bytes", "192.168.2.3", "1400 bytes do"]);
    assert!(
        found["help"].as_str().unwrap().contains("ip route replace 192.168.2.3 via 192.168.1.254 dev eth0 mtu 1400")
    );
    help(first, &found);
    silent(first);
    // A direct neighbour whose side is narrower: nobody tells.
    node(&cluster, 2).sandbox.ip("link set eth0 mtu 1300");
    cluster.world.ip("link set node2 mtu 1300");
    // A bridge lets 4 bytes more through, for a VLAN's tag. Sizes are tried for some tenths of a second: others may
    // have the processor then.
    let mut found = Vec::new();
    while found.len() < 5 && !found.last().is_some_and(|most| (1300..=1304).contains(most)) {
        let finding = one_of(first, "path-mtu", &["node2", "192.168.1.2", "1500 bytes"]);
        let words: Vec<&str> = finding["what"].as_str().unwrap().rsplit(' ').collect();
        assert_eq!(words[..2], ["do", "bytes"], "{finding}");
        found.push(words[2].parse::<u32>().unwrap());
    }
    assert!(found.len() < 5, "{found:?}");
}

#[test]
fn strict_devices_and_a_networkd_that_tidies_up() {
    let (cluster, _) = cluster();
    let first = &node(&cluster, 1).sandbox;
    silent(first);
    first.sh("echo 1 > /proc/sys/net/ipv4/conf/eth0/rp_filter").ok();
    let found = only(first, "rp-filter", &["net.ipv4.conf.eth0.rp_filter is 1", "direct way"]);
    help(first, &found);
    silent(first);
    fake(first, "systemctl", "[ $1 = is-active ] && echo active; [ $1 = restart ]");
    first.write("/etc/systemd/networkd.conf.d/zz-test.conf", "[Network]\nManageForeignRoutes=yes\n");
    only(first, "networkd-foreign-routes", &["/etc/systemd/networkd.conf.d/zz-test.conf"]);
    first.sh("rm /etc/systemd/networkd.conf.d/*.conf /etc/systemd/networkd.conf; true").ok();
    // Unless the machine that runs the test has the drop-in of the package.
    if let [found] = &findings(first)[..] {
        names(found, &["as by default"]);
        help(first, found);
    }
    silent(first);
    assert!(first.read("/etc/systemd/networkd.conf.d/osvc-cni.conf").contains("ManageForeignRoutes=no"));
}

#[test]
fn what_was_taken_away_and_nodes_without_an_address() {
    let (cluster, mut config) = cluster();
    let first = node(&cluster, 1);
    first.sandbox.ip("route del 10.11.1.0/24");
    help(&first.sandbox, &only(&first.sandbox, "not-set-up", &["10.11.1.0/24"]));
    silent(&first.sandbox);
    config["nodes"][2]["addr"] = json!("nowhere.invalid");
    first.install(&config);
    first.osvc_net(&["setup"]);
    only(&first.sandbox, "peer-fault", &["node3", "nowhere.invalid"]);
}

#[test]
fn a_kernel_without_the_tunnels_of_the_mode() {
    let cluster = Cluster::new(&[0, 1], &[]);
    let first = node(&cluster, 1);
    if first.sandbox.sh("ip link add try type gre local 192.0.2.1 remote 192.0.2.2 && ip link del try").rc == 0 {
        // Nothing is missing here: see `vm` for what such a kernel says.
        return;
    }
    let mut config = cluster.network("net", Underlay::V4, &[("10.11.0.0/16", 24)]);
    config["cniVersion"] = json!("1.0.0");
    config["tunnelMode"] = json!("gre");
    cluster.install(&config);
    quiet(&first.sandbox);
    let found = one_of(&first.sandbox, "kernel-module", &["gre", "module ip_gre"]);
    assert!(found["help"].as_str().unwrap().starts_with("modprobe ip_gre"), "{found}");
    first.osvc_net(&["setup"]);
    one_of(&first.sandbox, "kernel-module", &["gre"]);
}
