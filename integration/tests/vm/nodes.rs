//! Two nodes with nothing but the kernel: each a network namespace with a device `eth0` on a common link, and an address
//! of its own segment on `lo`.

use std::net::IpAddr;
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, unshare};
use osvc_cni::netlink::{
    HostRoute, Link, Mac, Netns, NewBridge, NewPair, NewTunnel, RouteSocket, RouteTarget, Tunnel, TunnelDevice, route,
};

/// MTU of the common link, in bytes.
pub const UNDERLAY: u32 = 1500;

/// A node.
pub struct Node {
    pub netns: Netns,
    pub socket: RouteSocket,
    /// On the common link, IPv4 and IPv6.
    pub underlay: [IpAddr; 2],
    /// In the node's own segment, IPv4 and IPv6.
    pub own: [IpAddr; 2],
    pub segments: [String; 2],
}

/// A network namespace that is there as long as somebody holds it.
fn netns() -> Netns {
    let make = || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        Netns::current().unwrap()
    };
    thread::spawn(make).join().unwrap()
}

/// Does something with two nodes, in namespaces that are gone at its end.
pub fn with_two_nodes(act: impl FnOnce(&mut Node, &mut Node) + Send) {
    let result = thread::scope(|scope| {
        let work = || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let mut middle = RouteSocket::open().unwrap();
            middle.create_bridge(&NewBridge { name: "br0", mac: Mac([2; 6]), mtu: UNDERLAY }).unwrap();
            let bridge = middle.link_by_name("br0").unwrap().unwrap();
            middle.set_up(&bridge, true).unwrap();
            let [mut a, mut b] = [1, 2].map(|number| Node::new(number, &mut middle, &bridge));
            act(&mut a, &mut b);
        };
        scope.spawn(work).join()
    });
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

impl Node {
    fn new(number: u8, middle: &mut RouteSocket, bridge: &Link) -> Self {
        let netns = netns();
        let pair = NewPair {
            host: &format!("n{number}"),
            host_mac: Mac([2, 0, 0, 0, 1, number]),
            master: bridge.index,
            peer: "eth0",
            peer_mac: Mac([2, 0, 0, 0, 0, number]),
            netns: &netns,
            mtu: UNDERLAY,
        };
        middle.create_pair(&pair).unwrap();
        let mut socket = netns.enter(RouteSocket::open).unwrap();
        let third = 4 * number;
        let underlay = [format!("192.0.2.{number}"), format!("2001:db8::{number}")];
        let own = [format!("10.11.{third}.1"), format!("fd11:{third}::1")];
        for (device, addresses, lengths) in [("eth0", &underlay, [24, 64]), ("lo", &own, [32, 128])] {
            let link = socket.link_by_name(device).unwrap().unwrap();
            socket.set_up(&link, true).unwrap();
            for (address, length) in addresses.iter().zip(lengths) {
                socket.add_address(&link, format!("{address}/{length}").parse().unwrap(), false).unwrap();
            }
        }
        let parsed = |texts: &[String; 2]| [texts[0].parse().unwrap(), texts[1].parse().unwrap()];
        let segments = [format!("10.11.{third}.0/22"), format!("fd11:{third}::/64")];
        Self { underlay: parsed(&underlay), own: parsed(&own), segments, netns, socket }
    }

    /// Makes a tunnel device and sets it up.
    pub fn tunnel(&mut self, name: &str, tunnel: &Tunnel, mtu: u32, mac: Option<Mac>) -> TunnelDevice {
        self.socket.create_tunnel(&NewTunnel { name, tunnel, mtu, mac }).unwrap();
        let found = self.socket.tunnel_by_name(name).unwrap().unwrap();
        assert_eq!((&found.tunnel, found.link.mtu, found.is_ours()), (tunnel, mtu, true));
        self.socket.set_up(&found.link, true).unwrap();
        found
    }

    /// Leads to the other node's segment of a family by a device.
    pub fn route(&mut self, to: &Self, family: usize, device: &Link, gateway: Option<IpAddr>) {
        let target = RouteTarget::Device {
            index: device.index,
            name: device.name.clone(),
            gateway,
            onlink: gateway.is_some(),
            source: Some(self.own[family]),
        };
        let dst = to.segments[family].parse().unwrap();
        let route = HostRoute { dst, target, table: route::MAIN, metric: 0, mtu: None };
        assert!(self.socket.put_route(&route, &[]).unwrap());
    }

    /// Whether one packet of that size, headers included and not to be fragmented, gets an answer.
    pub fn reaches(&self, to: IpAddr, size: u32) -> bool {
        let headers = if to.is_ipv4() { 28 } else { 48 };
        let mut ping = Command::new("ping");
        ping.args(["-n", "-q", "-c", "1", "-W", "3", "-M", "do", "-s", &(size - headers).to_string()]);
        ping.arg(to.to_string());
        self.netns.enter(|| Ok(ping.output().unwrap().status.success())).unwrap()
    }
}
