//! Tunnel devices: made, changed in place, or taken over.

use std::net::Ipv4Addr;

use super::{Kernel, Refusal, Verb, udp};
use crate::netlink::tunnel::Tunnel as Parameters;
use crate::netlink::{Link, NewTunnel, TunnelDevice, TunnelKind};
use crate::routed::RoutedRecord;
use crate::routed::config::is_v6;
use crate::routed::devices::Tunnel;

/// A tunnel device that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::routed) struct Device {
    pub link: Link,
    /// It is ours: it may be changed and removed.
    pub owned: bool,
}

impl Kernel<'_> {
    /// Has a tunnel; none if it is missing and only looked for. `address` is this node's in the network, for a tunnel
    /// that carries IPv4; `there` are all tunnels of this host, `others` the records of the other networks.
    pub fn tunnel(
        &mut self,
        wanted: &Tunnel,
        mtu: u32,
        address: Option<Ipv4Addr>,
        there: &[TunnelDevice],
        others: &[RoutedRecord],
    ) -> Result<Option<Device>, Refusal> {
        let parameters = wanted.kind.tunnel();
        let made = match there.iter().find(|found| found.link.name == wanted.name) {
            Some(found) if !found.is_ours() => return Err(Refusal::Name(wanted.name.clone())),
            Some(found) => self.correct(wanted, &parameters, mtu, found, there, others)?,
            None => match rival(there, wanted, &parameters) {
                Some(rival) if !rival.is_ours() => return use_foreign(wanted, rival).map(Some),
                Some(rival) => self.replace(wanted, &parameters, mtu, rival, others)?,
                None => self.make(wanted, &parameters, mtu)?,
            },
        };
        let link = match made {
            Some(link) => {
                if let Err(refusal) = self.finish(wanted, mtu, address, &link) {
                    // No record would name it.
                    let is_new = !there.iter().any(|found| found.link.index == link.index);
                    if is_new && let Err(error) = self.socket.delete_link(&link) {
                        tracing::warn!("{} stays: {error}", link.name);
                    }
                    return Err(refusal);
                }
                link
            }
            None => match self.imagined(&wanted.name) {
                Some(link) => link,
                None => return Ok(None),
            },
        };
        Ok(Some(Device { link: Link { up: true, mtu, ..link }, owned: true }))
    }

    /// A device of ours of that name.
    fn correct(
        &mut self,
        wanted: &Tunnel,
        parameters: &Parameters,
        mtu: u32,
        found: &TunnelDevice,
        there: &[TunnelDevice],
        others: &[RoutedRecord],
    ) -> Result<Option<Link>, Refusal> {
        if found.tunnel == *parameters {
            return Ok(Some(found.link.clone()));
        }
        if found.tunnel.can_become(parameters) {
            let changed =
                self.step(Verb::Change, wanted, |socket| socket.change_tunnel(&found.link, parameters, mtu))?;
            return if changed { self.made(wanted) } else { Ok(self.rehearses.then(|| found.link.clone())) };
        }
        // Not before it is likely that the other one can be had: this one works.
        match rival(there, wanted, parameters) {
            Some(rival) if !rival.is_ours() => return Err(Refusal::Foreign(rival.link.name.clone())),
            Some(rival) => refuse_clash(rival, others)?,
            None => {}
        }
        if let Some(port) = parameters.port.filter(|port| found.tunnel.port != Some(*port)) {
            let is_shared = |other: &TunnelDevice| other.tunnel.port == Some(port) && other.link.up;
            if !there.iter().any(is_shared) {
                udp::refuse_taken(parameters.is_over_v6(), port)?;
            }
        }
        let removed = self.step(Verb::Remove, wanted, |socket| socket.delete_link(&found.link))?;
        if removed { self.make(wanted, parameters, mtu) } else { Ok(None) }
    }

    fn make(&mut self, wanted: &Tunnel, parameters: &Parameters, mtu: u32) -> Result<Option<Link>, Refusal> {
        let name = &wanted.name;
        // A device of another kind is not among the tunnels.
        if self.socket.link_by_name(name)?.is_some() {
            return Err(Refusal::Name(name.clone()));
        }
        let new = NewTunnel { name, tunnel: parameters, mtu, mac: wanted.kind.mac() };
        let made = self
            .step(Verb::Make, wanted, |socket| socket.create_tunnel(&new))
            .map_err(|error| Refusal::of(error, wanted.kind.port()))?;
        if made { self.made(wanted) } else { Ok(None) }
    }

    fn made(&mut self, wanted: &Tunnel) -> Result<Option<Link>, Refusal> {
        Ok(self.socket.link_by_name(&wanted.name)?)
    }

    /// In the place of a device of ours with another name.
    fn replace(
        &mut self,
        wanted: &Tunnel,
        parameters: &Parameters,
        mtu: u32,
        rival: &TunnelDevice,
        others: &[RoutedRecord],
    ) -> Result<Option<Link>, Refusal> {
        refuse_clash(rival, others)?;
        let what = format_args!("tunnel {}", rival.link.name);
        let removed = self.step(Verb::Remove, what, |socket| socket.delete_link(&rival.link))?;
        if removed { self.make(wanted, parameters, mtu) } else { Ok(None) }
    }

    /// What is not said by the parameters: MTU, addresses, kernel parameters, up.
    fn finish(&mut self, wanted: &Tunnel, mtu: u32, address: Option<Ipv4Addr>, link: &Link) -> Result<(), Refusal> {
        if let Some(mac) = wanted.kind.mac().filter(|mac| link.mac != Some(mac.0)) {
            self.step(Verb::Change, format_args!("{wanted}"), |socket| socket.set_mac(link, mac))?;
        }
        if link.mtu != mtu {
            let what = format_args!("MTU of {wanted}");
            self.step(Verb::Change, what, |socket| socket.set_mtu(link, mtu))?;
        }
        let v6 = wanted.peers.iter().flat_map(|peer| &peer.segments).any(is_v6);
        self.sysctls(link, v6)?;
        if let Some(address) = address {
            self.own_address(link, address)?;
        }
        if !link.up {
            let up = self.step(Verb::Change, format_args!("state of {wanted}"), |socket| socket.set_up(link, true));
            up.map_err(|error| Refusal::of(error, wanted.kind.port()))?;
        }
        Ok(())
    }
}

/// The tunnel of another name that the kernel does not allow beside the wanted one.
fn rival<'a>(there: &'a [TunnelDevice], wanted: &Tunnel, parameters: &Parameters) -> Option<&'a TunnelDevice> {
    there.iter().find(|found| found.link.name != wanted.name && is_rival(found, parameters))
}

/// Refuses what a tunnel of another network is in the way of.
fn refuse_clash(rival: &TunnelDevice, others: &[RoutedRecord]) -> Result<(), Refusal> {
    let has = |other: &&RoutedRecord| other.tunnels.iter().any(|tunnel| tunnel.name == rival.link.name);
    match others.iter().find(has) {
        Some(other) => Err(Refusal::Clash { device: rival.link.name.clone(), network: other.name.clone() }),
        None => Ok(()),
    }
}

/// True if the kernel does not allow both.
fn is_rival(found: &TunnelDevice, wanted: &Parameters) -> bool {
    // VXLANs over different families have sockets of their own (`vxlan_vni_in_use`).
    let apart = wanted.kind == TunnelKind::Vxlan && found.tunnel.is_over_v6() != wanted.is_over_v6();
    !apart && found.tunnel.excludes(wanted)
}

/// A device of somebody else with the same ends carries our packets too.
fn use_foreign(wanted: &Tunnel, rival: &TunnelDevice) -> Result<Device, Refusal> {
    let name = || rival.link.name.clone();
    if wanted.kind.ends().is_none() {
        return Err(Refusal::Foreign(name()));
    }
    if !rival.link.up {
        return Err(Refusal::Unfit(name(), "is down"));
    }
    // Whatever it is, the peer's end has not got it: FoU and GUE of kube-router, checksums, sequence numbers.
    if rival.tunnel.unusual {
        return Err(Refusal::Unfit(
            name(),
            "has an encapsulation, a mark, a fixed device or other options beyond its ends",
        ));
    }
    let mut segments = wanted.peers.iter().flat_map(|peer| &peer.segments);
    // A tunnel of one family is wanted with the segments of that family.
    if !segments.all(|segment| rival.tunnel.inside.carries(is_v6(segment))) {
        return Err(Refusal::Unfit(name(), "does not carry both families"));
    }
    Ok(Device { link: rival.link.clone(), owned: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::tunnel::Inside;
    use crate::routed::devices::{Ends, Kind, PeerLink, TunnelPeer};

    #[test]
    fn a_foreign_tunnel_is_used_if_what_it_sends_is_what_the_peer_takes() {
        let (local, remote) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let kind = Kind::Ipip(Ends { local, remote });
        let segments = vec!["10.11.4.0/22".parse().unwrap()];
        let peers = vec![TunnelPeer { name: "node2".into(), remote, segments, link: PeerLink::Ends }];
        let wanted = Tunnel { name: "ot0".into(), mtu: 1480, sends: true, peers, kind };
        let link = Link { name: "theirs".into(), up: true, ..Link::default() };
        let plain = TunnelDevice { link, tunnel: wanted.kind.tunnel(), rp_filter: None };
        type Change = fn(&mut TunnelDevice);
        let tried = |change: Change| {
            let mut rival = plain.clone();
            change(&mut rival);
            use_foreign(&wanted, &rival).map(|device| device.owned).map_err(|refusal| refusal.to_string())
        };
        assert_eq!(tried(|_| {}), Ok(false));
        assert_eq!(tried(|rival| (rival.tunnel.ttl, rival.tunnel.pmtudisc) = (0, false)), Ok(false));
        let cases: [(Change, &str); 3] = [
            (|rival| rival.link.up = false, "is down"),
            (|rival| rival.tunnel.inside = Inside::V6, "does not carry both families"),
            (|rival| rival.tunnel.unusual = true, "encapsulation"),
        ];
        for (change, why) in cases {
            let refused = tried(change).unwrap_err();
            assert!(refused.starts_with("the foreign device theirs ") && refused.contains(why), "{refused}");
        }
    }
}
