//! The other end of a tunnel, in a namespace of its own.

use std::cell::Cell;
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::super::run;
use crate::netlink::Netns;
use crate::netlink::testing::pinned_netns;

/// What is at the other end of a device of this namespace, which has 10.11.0.1.
pub(super) struct Far {
    netns: Netns,
    /// Bound once: a child that another test starts at this moment has it too until it is another program, and binding
    /// it again would fail.
    socket: UdpSocket,
    asked: Cell<u8>,
    pub(super) mac: String,
}

impl Far {
    pub(super) fn new(device: &str) -> Self {
        let netns = pinned_netns();
        run("ip", &["link", "add", device, "type", "veth", "peer", "name", "far"]);
        let mac = |device: &str| {
            let link: Value = serde_json::from_str(&run("ip", &["-j", "link", "show", device])).unwrap();
            link[0]["address"].as_str().unwrap().to_owned()
        };
        let (near, far) = (mac(device), mac("far"));
        let start = || Ok(Command::new("sleep").arg("60").spawn().unwrap());
        let mut sleeper = netns.enter(start).unwrap();
        run("ip", &["link", "set", "far", "netns", &sleeper.id().to_string()]);
        run("ip", &["link", "set", device, "up"]);
        run("ip", &["addr", "add", "10.11.0.1/32", "dev", device]);
        let filters =
            format!("echo 0 | tee /proc/sys/net/ipv4/conf/{device}/rp_filter /proc/sys/net/ipv4/conf/all/rp_filter");
        run("sh", &["-c", &filters]);
        let set_up = || {
            run("ip", &["link", "set", "far", "up"]);
            // With the last address of a device its routes go.
            run("ip", &["addr", "add", "192.0.2.250/32", "dev", "far"]);
            run("ip", &["route", "add", "10.11.0.1/32", "dev", "far"]);
            run("ip", &["neigh", "add", "10.11.0.1", "lladdr", &near, "dev", "far"]);
            Ok(())
        };
        netns.enter(set_up).unwrap();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        let socket = UdpSocket::bind("10.11.0.1:5000").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        Self { netns, socket, asked: Cell::new(0), mac: far }
    }

    /// True if a packet with this source gets through to 10.11.0.1.
    pub(super) fn reaches(&self, source: &str) -> bool {
        let packet = [self.asked.get() + 1];
        self.asked.set(packet[0]);
        let send = || {
            run("ip", &["addr", "add", &format!("{source}/32"), "dev", "far"]);
            let sent = UdpSocket::bind((source, 0)).and_then(|sender| sender.send_to(&packet, "10.11.0.1:5000"));
            run("ip", &["addr", "del", &format!("{source}/32"), "dev", "far"]);
            sent.unwrap();
            Ok(())
        };
        self.netns.enter(send).unwrap();
        let mut got = [0; 1];
        self.socket.recv(&mut got).is_ok_and(|_| got == packet)
    }
}
