//! What comes out of a tunnel has a source in the segment of the peer at its other end, or goes no further.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use integration::cluster::{Cluster, Pod, Underlay};

use crate::{OTHERS, address, network, noted, vm, vxlan};

const PORT: u16 = 99;

/// Whether a packet from an address that a node claims to have arrives at a container.
#[track_caller]
fn arrives(cluster: &Cluster, from: usize, source: IpAddr, to: &Pod<'_>, spoofed: bool) -> bool {
    let target = to.address_like(source).unwrap();
    let receiver = to.node.sandbox.within(Some(&to.netns.path), || UdpSocket::bind(("::", PORT)).unwrap());
    receiver.set_read_timeout(Some(Duration::from_millis(600))).unwrap();
    let machine = &cluster.nodes[from].sandbox;
    let length = if source.is_ipv4() { 32 } else { 128 };
    if spoofed {
        machine.sh(&format!("ip addr add {source}/{length} dev lo nodad || ip addr add {source}/{length} dev lo")).ok();
    }
    let sender = machine.within(None, || UdpSocket::bind((source, 0)).unwrap());
    sender.send_to(b"who am I", (target, PORT)).unwrap();
    let mut buffer = [0; 16];
    let seen = receiver.recv_from(&mut buffer).map(|(_, peer): (usize, SocketAddr)| peer.ip().to_canonical());
    if spoofed {
        machine.sh(&format!("ip addr del {source}/{length} dev lo")).ok();
    }
    match seen {
        Ok(seen) => {
            assert_eq!(seen, source, "the address that it came from");
            true
        }
        Err(_) => false,
    }
}

#[track_caller]
fn spoofed_sources_are_dropped(cluster: &Cluster, mode: &str, config: &serde_json::Value) {
    let pods = cluster.start_everywhere(config);
    let to = &pods[0];
    for own in ["10.11.8.1", "fd11:0:0:2::1"] {
        assert!(arrives(cluster, 2, address(own), to, false), "{own} is the peer's own, {mode}");
    }
    // In a free segment, in this node's, in the other peer's, and outside of the network.
    for source in [
        "10.11.200.1",
        "10.11.0.200",
        "10.11.4.200",
        "203.0.113.77",
        "fd11:0:0:77::1",
        "fd11:0:0:1::77",
        "2001:db8:5::1",
    ] {
        assert!(!arrives(cluster, 2, address(source), to, true), "{source} is not the peer's, {mode}");
    }
    assert!(arrives(cluster, 2, address("10.11.8.1"), to, false), "the peer's own still, {mode}");
    noted(&format!("spoofed sources from a peer are dropped: {mode}"));
}

#[test]
fn vxlan_with_spoofed_sources() {
    let cluster = Cluster::three();
    spoofed_sources_are_dropped(&cluster, "vxlan", &vxlan(&cluster));
    let cluster = Cluster::three();
    spoofed_sources_are_dropped(&cluster, "vxlan", &network(&cluster, "net", "vxlan", Underlay::V6));
}

#[test]
fn other_tunnels_with_spoofed_sources() {
    vm().test(|| {
        for (mode, underlay) in OTHERS {
            let cluster = Cluster::three();
            spoofed_sources_are_dropped(&cluster, mode, &network(&cluster, "net", mode, underlay));
        }
    });
}

/// Somebody who is no peer sends VXLAN packets of the right network.
#[test]
fn vxlan_from_who_is_no_peer_is_dropped() {
    let cluster = Cluster::new(&[0, 0, 1, 0], &[]);
    let mut config = vxlan(&cluster);
    config["nodes"].as_array_mut().unwrap().truncate(3);
    let pods: Vec<_> =
        cluster.nodes[..3].iter().zip(["a", "b", "c"]).map(|(node, name)| node.start(&config, name)).collect();
    let one = &cluster.nodes[0];
    let device = one.tunnels().remove(0).name;
    let link = one.sandbox.link(&device);
    let data = &link["linkinfo"]["info_data"];
    let (id, port, mac) =
        (data["id"].as_u64().unwrap(), data["port"].as_u64().unwrap(), link["address"].as_str().unwrap());
    let stranger = &cluster.nodes[3];
    stranger
        .sandbox
        .sh(&format!(
            "set -e
            ip link add vx type vxlan id {id} dstport {port} local {} nolearning
            ip addr add 10.11.8.1/16 dev vx; ip link set vx up
            bridge fdb append {mac} dev vx dst {}
            ip neigh add {} lladdr {mac} dev vx",
            stranger.v4, one.v4, pods[0].addresses[0]
        ))
        .ok();
    assert!(!arrives(&cluster, 3, address("10.11.8.1"), &pods[0], false), "it is no peer, whatever address it has");
    assert!(pods[0].reaches(&pods[2]), "the peers reach each other as before");
    noted("VXLAN packets from a stranger are dropped");
}
