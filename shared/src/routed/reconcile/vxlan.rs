//! Who is where in a VXLAN.

use std::net::IpAddr;

use super::{Kernel, Verb};
use crate::netlink::{Error, Link, Mac, Neighbour, PROTOCOL};
use crate::routed::devices::{PeerLink, TunnelPeer};

impl Kernel<'_> {
    /// Has the neighbours and forwarding entries of a VXLAN of ours, and no others. What the kernel refuses is told by
    /// the peer's name.
    pub fn vxlan(&mut self, link: &Link, peers: &[TunnelPeer]) -> Result<Vec<(String, Error)>, Error> {
        let is_there = link.index != 0;
        let neighbours = if is_there { self.socket.neighbours(link)? } else { Vec::new() };
        let entries = if is_there { self.socket.forwarding_entries(link)? } else { Vec::new() };
        let mut faults = Vec::new();
        let (mut macs, mut addresses): (Vec<Mac>, Vec<IpAddr>) = (Vec::new(), Vec::new());
        for peer in peers {
            let PeerLink::Vxlan { mac, hops } = &peer.link else { continue };
            let (mac, remote) = (*mac, peer.remote);
            macs.push(mac);
            addresses.extend(hops);
            let mut told = |result: Result<bool, Error>| {
                faults.extend(result.err().map(|error| (peer.name.clone(), error)));
            };
            if !entries.iter().any(|found| found.permanent && (found.mac, found.peer) == (mac, remote)) {
                let verb = verb(entries.iter().any(|found| found.mac == mac));
                let what = format_args!("forwarding of {} to {remote} on {}", peer.name, link.name);
                told(self.step(verb, what, |socket| socket.set_forwarding(link, mac, remote)));
            }
            for &hop in hops {
                let is_it = |found: &Neighbour| found.permanent && (found.address, found.mac) == (hop, Some(mac));
                if !neighbours.iter().any(is_it) {
                    let verb = verb(neighbours.iter().any(|found| found.address == hop));
                    let what = format_args!("neighbour {hop} of {} on {}", peer.name, link.name);
                    told(self.step(verb, what, |socket| socket.set_neighbour(link, hop, mac)));
                }
            }
        }
        let stale = |what: String, result: Result<bool, Error>| {
            if let Err(error) = result {
                tracing::warn!("{what} stays: {error}");
            }
        };
        // Nobody else has a say in a device of ours. What the kernel makes for multicast is not permanent.
        for found in entries.iter().filter(|found| !macs.contains(&found.mac)) {
            let what = format!("forwarding of {} to {} on {}", found.mac, found.peer, link.name);
            stale(what.clone(), self.step(Verb::Remove, what, |socket| socket.remove_forwarding(link, found.mac)));
        }
        let ours = neighbours.iter().filter(|found| found.permanent && found.protocol.is_none_or(|it| it == PROTOCOL));
        for found in ours.filter(|found| !addresses.contains(&found.address)) {
            let what = format!("neighbour {} on {}", found.address, link.name);
            stale(what.clone(), self.step(Verb::Remove, what, |socket| socket.remove_neighbour(link, found.address)));
        }
        Ok(faults)
    }
}

fn verb(is_there: bool) -> Verb {
    if is_there { Verb::Change } else { Verb::Make }
}
