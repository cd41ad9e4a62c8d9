//! What a setup may make, recorded before it does.

use std::net::Ipv4Addr;

use crate::netlink::Link;
use crate::routed::devices::Tunnel;
use crate::routed::record::TunnelRecord;
use crate::routed::wanted::Wanted;
use crate::routed::{Error, RoutedRecord};
use crate::{Host, firewall};

/// Lets in by a tunnel what its peers may send, and nothing else, by the records as they are. Asked before a tunnel of
/// ours comes into service: rules name devices, and may be there first.
pub type Guard<'a> = &'a dyn Fn(&Host) -> Result<(), firewall::Error>;

impl TunnelRecord {
    /// A tunnel as it should be; `link` is its device, once that is there.
    pub(super) fn new(wanted: &Tunnel, link: Option<&Link>, address: Option<Ipv4Addr>) -> Self {
        Self {
            name: link.map_or(&wanted.name, |link| &link.name).clone(),
            index: link.map_or(0, |link| link.index),
            kind: wanted.kind.clone(),
            mtu: link.map_or(wanted.mtu, |link| link.mtu),
            wanted_mtu: wanted.mtu,
            address,
            owned: true,
            sends: wanted.sends,
            refused: false,
            kept: None,
            peers: wanted.peers.clone(),
        }
    }
}

/// What is about to be done to a network.
pub(super) struct Ahead<'a> {
    /// What it will be, without what is made for it.
    pub record: &'a RoutedRecord,
    /// What it is.
    pub old: Option<&'a RoutedRecord>,
    /// Somebody is elsewhere than before.
    pub renamed: bool,
}

impl Ahead<'_> {
    /// Records what may come to be, before it does, and has it guarded: whatever happens then, an ADD knows that there is
    /// something to be done, and whose the devices are. Nothing if the record says so already.
    pub fn write(
        &self,
        host: &Host,
        wanted: &Wanted<'_>,
        address: Option<Ipv4Addr>,
        guard: Guard<'_>,
    ) -> Result<(), Error> {
        let mut ahead = self.record.clone();
        if let Some(old) = self.old {
            ahead.tunnels.clone_from(&old.tunnels);
            ahead.routes.clone_from(&old.routes);
            ahead.peers.clone_from(&old.peers);
            let more = old.networks.iter().filter(|network| !self.record.networks.contains(network));
            ahead.networks.extend(more);
        }
        let mut is_other = self.renamed;
        for tunnel in &wanted.peers.tunnels {
            let is_it = |known: &&TunnelRecord| {
                // Somebody else's with the same ends has another name.
                known.name == tunnel.name || (!known.owned && known.kind == tunnel.kind)
            };
            match ahead.tunnels.iter().find(is_it) {
                Some(known) => is_other |= (&known.kind, &known.peers) != (&tunnel.kind, &tunnel.peers),
                None => {
                    ahead.tunnels.push(TunnelRecord::new(tunnel, None, address.filter(|_| tunnel.carries_v4())));
                    is_other = true;
                }
            }
        }
        let says_so = |old: &RoutedRecord| {
            let is_it = (&old.basis, &old.networks) == (&ahead.basis, &ahead.networks);
            // One that is to be tried again in a while says that until then there is nothing to do.
            let is_pending = !old.complete && old.refused.is_none();
            is_it && (!is_other || (is_pending && old.tunnels == ahead.tunnels))
        };
        if !self.old.is_some_and(says_so) {
            ahead.save(host)?;
        }
        // Those too that were recorded by a setup which came no further.
        if ahead.tunnels.iter().any(|tunnel| tunnel.index == 0) { Ok(guard(host).map_err(Box::new)?) } else { Ok(()) }
    }
}
