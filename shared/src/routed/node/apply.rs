//! Setting up: what is wanted, made so.

use std::collections::{BTreeMap, BTreeSet};

use super::own::Own;
use super::unmakeable::nothing_received;
use crate::Host;
use crate::netlink::{HostRoute, Link, PROTOCOL, RouteEntry, RouteFilter, RouteSocket, TunnelDevice};
use crate::routed::config::{Mode, key};
use crate::routed::devices::{Kind, Tunnel};
use crate::routed::reconcile::{Device, Kernel, Refusal};
use crate::routed::record::TunnelRecord;
use crate::routed::wanted::{Devices, Wanted};
use crate::routed::{Error, RoutedConfig, RoutedRecord};

/// What is to be made, and where.
pub(super) struct Site<'a> {
    pub host: &'a Host,
    pub config: &'a RoutedConfig,
    pub wanted: &'a Wanted<'a>,
    /// All tunnels of this host, as they were.
    pub there: &'a [TunnelDevice],
    /// The records of the other networks.
    pub others: &'a [RoutedRecord],
    /// What this node has of the network itself.
    pub own: &'a Own,
    /// What was set up before.
    pub before: Option<&'a RoutedRecord>,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Done {
    pub tunnels: Vec<TunnelRecord>,
    /// The devices of the tunnels, by the names that they have in the plan: foreign ones have others.
    pub links: BTreeMap<String, Link>,
    pub routes: Vec<HostRoute>,
    pub faults: Vec<(String, String)>,
    pub warnings: Vec<String>,
    /// Something that packets need was refused, or is not there yet: it is to be tried again.
    pub refused: bool,
    /// The peers to whom the way that is wanted could not be had.
    pub lost: BTreeSet<String>,
}

impl Done {
    /// The kernel refused something for a peer, or for this node.
    fn fault(&mut self, node: String, error: &dyn std::fmt::Display) {
        self.faults.push((node.clone(), error.to_string()));
        self.refused = true;
        self.lost.insert(node);
    }
}

/// All routes of our protocol.
pub(super) fn our_routes(socket: &mut RouteSocket) -> Result<Vec<RouteEntry>, Error> {
    Ok(socket.routes(&RouteFilter { protocol: Some(PROTOCOL), ..RouteFilter::default() })?)
}

impl Site<'_> {
    /// Tunnels and routes, in this order.
    pub fn apply(&self, kernel: &mut Kernel<'_>) -> Result<Done, Error> {
        let mut done = Done { refused: !self.own.settled, ..Done::default() };
        for tunnel in &self.wanted.peers.tunnels {
            if let Err(refusal) = self.tunnel(kernel, tunnel, &mut done) {
                self.tell(tunnel, &refusal, &mut done);
            }
        }
        let underlay = self.underlay(kernel.socket)?;
        let Own { bridge, gateways, .. } = self.own;
        let devices = Devices { tunnels: &done.links, underlay: &underlay, bridge: bridge.as_ref(), gateways };
        let ours = our_routes(kernel.socket)?;
        for wanted in self.wanted.routes(&devices) {
            match kernel.route(&wanted, &ours) {
                Ok(()) => done.routes.push(wanted.route),
                Err(error) => {
                    let node = wanted.peer.unwrap_or_else(|| self.config.this_node().name.clone());
                    done.fault(node, &error);
                }
            }
        }
        Ok(done)
    }

    fn tunnel(&self, kernel: &mut Kernel<'_>, wanted: &Tunnel, done: &mut Done) -> Result<(), Refusal> {
        // Networks that share a device have routes that say what each of them can.
        let shared = self.others.iter().flat_map(|other| &other.tunnels).filter(|other| other.name == wanted.name);
        let mtu = shared.map(|other| other.wanted_mtu).chain([wanted.mtu]).max().unwrap_or(wanted.mtu);
        let address = self.own.v4().filter(|_| wanted.carries_v4());
        let Some(Device { link, owned }) = kernel.tunnel(wanted, mtu, address, self.there, self.others)? else {
            return Ok(());
        };
        let address = address.filter(|_| owned);
        let peers = self.peers(kernel, wanted, &link, done);
        let refused = peers.is_err();
        done.tunnels.push(TunnelRecord { owned, refused, ..TunnelRecord::new(wanted, Some(&link), address) });
        // Without its peers it is none of the devices by which routes lead.
        peers?;
        done.links.insert(wanted.name.clone(), link);
        Ok(())
    }

    /// Tells the device of its peers.
    fn peers(&self, kernel: &mut Kernel<'_>, wanted: &Tunnel, link: &Link, done: &mut Done) -> Result<(), Refusal> {
        match &wanted.kind {
            Kind::Vxlan { .. } => {
                for (peer, error) in kernel.vxlan(link, &wanted.peers)? {
                    done.fault(peer, &error);
                }
            }
            Kind::Wireguard { port } => {
                let known = self.before.iter().flat_map(|before| &before.tunnels).find(|known| known.name == link.name);
                let known = known.map_or(&[][..], |known| &known.peers);
                let public = kernel.wireguard(link, self.host, &self.config.name, *port, &wanted.peers, known)?;
                done.faults.extend(public.and_then(|public| self.other_key(public)));
            }
            _ => {}
        }
        Ok(())
    }

    /// What is wrong with the key that the peers are told of this node.
    pub(super) fn other_key(&self, public: [u8; 32]) -> Option<(String, String)> {
        let node = self.config.this_node();
        let public_text = key::text(&public);
        let text = match node.public_key {
            Some(told) if told == public => return None,
            // What is told is not repeated: it may be a private key that was pasted there.
            Some(_) => format!("its publicKey is {public_text}, and `nodes` has another one: correct it on every node"),
            None => format!("its publicKey {public_text} is missing in `nodes`: add it on every node"),
        };
        Some((node.name.clone(), text))
    }

    /// A tunnel that could not be had is the fault of those to whom it leads.
    fn tell(&self, tunnel: &Tunnel, refusal: &Refusal, done: &mut Done) {
        let senders = self.wanted.senders(&tunnel.name);
        if senders.is_empty() && refusal.is_missing_kind() {
            let module = tunnel.kind.kind().module();
            let warning = nothing_received(tunnel.kind.name(), module);
            if !done.warnings.contains(&warning) {
                done.warnings.push(warning);
            }
            return;
        }
        if senders.is_empty() {
            done.warnings.push(format!("nothing can be received by tunnel {tunnel}: {refusal}"));
        }
        done.refused = true;
        senders.into_iter().for_each(|peer| done.fault(peer, refusal));
    }

    fn underlay(&self, socket: &mut RouteSocket) -> Result<BTreeMap<u32, Link>, Error> {
        let mut links = BTreeMap::new();
        for index in self.wanted.underlay() {
            if !links.contains_key(&index)
                && let Some(link) = socket.link_by_index(index)?
            {
                links.insert(index, link);
            }
        }
        Ok(links)
    }

    /// Removes what is stale. Tunnels that could not be removed stay in the record, and so does the former way to the
    /// peers who are lost.
    pub fn clear(&self, kernel: &mut Kernel<'_>, record: &mut RoutedRecord, done: &mut Done) -> Result<(), Error> {
        let old = self.before;
        let mut networks = record.networks.clone();
        networks.extend(old.into_iter().flat_map(|old| &old.networks));
        let ours = our_routes(kernel.socket)?;
        // What is to be encrypted goes no other way meanwhile.
        let may_hold = !done.lost.is_empty() && self.config.mode != Mode::Wireguard;
        if let Some(old) = old.filter(|_| may_hold) {
            self.hold(record, old, &done.lost, &ours);
        }
        for error in kernel.stale_routes(&networks, &record.routes, &ours, self.others) {
            done.fault(self.config.this_node().name.clone(), &error);
        }
        if let Some(old) = old {
            let needed = |name: &str| record.tunnels.iter().any(|tunnel| tunnel.name == name);
            let left = kernel.stale_tunnels(&old.tunnels, needed, self.others);
            record.tunnels.extend(left);
            kernel.stale_addresses(&old.tunnels, &record.tunnels, self.others)?;
        }
        Ok(())
    }

    /// Keeps what there is of the former way to peers, for as long as the kernel refuses the one that is wanted.
    fn hold(&self, record: &mut RoutedRecord, old: &RoutedRecord, lost: &BTreeSet<String>, ours: &[RouteEntry]) {
        let lost = || self.wanted.nodes.iter().filter(|node| lost.contains(&node.name));
        let is_theirs = |route: &HostRoute| lost().any(|node| node.segments.contains(&route.dst));
        let is_there = |route: &HostRoute| ours.iter().any(|found| route.is(found));
        let is_taken = |route: &HostRoute| record.routes.iter().any(|wanted| wanted.shares_place_with(route));
        let held = old.routes.iter().filter(|route| is_theirs(route) && is_there(route) && !is_taken(route));
        let held: Vec<HostRoute> = held.cloned().collect();
        for tunnel in &old.tunnels {
            let needed = held.iter().any(|route| route.device() == Some(tunnel.index));
            if needed && !record.tunnels.iter().any(|known| known.name == tunnel.name) {
                record.tunnels.push(TunnelRecord { kept: None, sends: true, ..tunnel.clone() });
            }
        }
        record.routes.extend(held);
    }
}
