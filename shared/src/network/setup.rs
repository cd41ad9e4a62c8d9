//! Setting a network up on this host, once in a boot: bridge, gateway addresses, forwarding, record.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;

use ipnet::IpNet;

use super::config::overlap;
use super::names::{VlanNames, is_ours};
use super::record::FORMAT;
use super::refuse::refuse_mtu;
pub use super::undo::Undone;
pub use super::wanted::Wanted;
use super::wanted::{add_new, families};
use super::{Error, NetworkRecord, cluster, forwarding};
use crate::lock::{LockError, exclusively};
use crate::netlink::{Link, NetnsId, RouteSocket};
use crate::{Host, NetworkName};

/// A network that is set up.
#[derive(Debug)]
pub struct Setup {
    /// Its bridge.
    pub bridge: Link,
    /// The device by which the host is in the network's VLAN, if that is not the bridge.
    pub vlan: Option<Link>,
    /// Its record.
    pub record: NetworkRecord,
    pub(super) steps: Vec<Step>,
}

impl Setup {
    /// True if something was done: it was not in place before.
    pub fn is_new(&self) -> bool {
        !self.steps.is_empty()
    }
}

/// Something that a setup did, for the way back.
#[derive(Debug)]
pub(super) enum Step {
    MadeBridge(String),
    MadeVlanPair(VlanNames),
    Filtered(Link),
    /// The bridge as it was.
    Promiscuous(Link),
    AddedAddress(Link, IpNet),
    RemovedAddress(Link, IpNet),
    WroteRecord(NetworkName, Option<Box<NetworkRecord>>),
}

/// Where networks are set up: this host, by this socket.
#[derive(Debug)]
pub struct Site<'a> {
    /// The machine.
    pub host: &'a Host,
    /// Its network namespace.
    pub netns: &'a NetnsId,
    /// A socket there.
    pub socket: &'a mut RouteSocket,
}

impl Site<'_> {
    /// The network as it is, if nothing has to be done for it: asked by a few netlink requests.
    ///
    /// # Errors
    /// The record cannot be read, or the kernel does not answer.
    pub fn in_place(&mut self, wanted: &Wanted) -> Result<Option<Setup>, Error> {
        let record = NetworkRecord::load(self.host, &wanted.name)?;
        match record.filter(|record| record.is_of(self.host, self.netns) && wanted.is_met_by(record)) {
            Some(record) => self.verified(wanted, record),
            None => Ok(None),
        }
    }

    fn verified(&mut self, wanted: &Wanted, record: NetworkRecord) -> Result<Option<Setup>, Error> {
        let bridge = self.socket.link_by_name(&record.bridge)?;
        let is_it = |bridge: &Link| {
            bridge.is_a("bridge") && (&bridge.name, is_ours(bridge), bridge.up) == (&record.bridge, record.owned, true)
        };
        let does = |bridge: &Link| {
            (!wanted.vlans.filter() || bridge.filters_vlans()) && (!wanted.promiscuous || bridge.promiscuous)
        };
        let Some(bridge) = bridge.filter(is_it).filter(does) else { return Ok(None) };
        let vlan = match wanted.vlan_names() {
            Some(names) => match self.vlan_pair(&names, &bridge)? {
                Some((device, port)) if device.up && port.up => Some(device),
                _ => return Ok(None),
            },
            None => None,
        };
        if !record.gateways.is_empty() {
            let device = vlan.as_ref().unwrap_or(&bridge);
            let there: BTreeSet<IpNet> = self.socket.addresses(device)?.into_iter().map(|have| have.address).collect();
            if !record.gateways.iter().all(|gateway| there.contains(gateway)) {
                return Ok(None);
            }
        }
        for v6 in families(&record.gateways) {
            if !forwarding::is_on(v6)? {
                return Ok(None);
            }
        }
        Ok(Some(Setup { bridge, vlan, record, steps: Vec::new() }))
    }

    /// Sets the network up, or finds that it is.
    ///
    /// # Errors
    /// As [`refuse`](Self::refuse); the kernel refuses; the record cannot be written. What was done is
    /// undone.
    pub fn establish(&mut self, wanted: &Wanted) -> Result<Setup, Error> {
        locked(self.host, || {
            if let Some(setup) = self.in_place(wanted)? {
                return Ok(setup);
            }
            let mut steps = Vec::new();
            match self.make(wanted, &mut steps) {
                Ok((bridge, vlan, record)) => Ok(Setup { bridge, vlan, record, steps }),
                Err(error) => {
                    for undo in self.undo_steps(&wanted.name, steps) {
                        tracing::error!("not undone: {undo}");
                    }
                    Err(error)
                }
            }
        })
    }

    fn make(&mut self, wanted: &Wanted, steps: &mut Vec<Step>) -> Result<(Link, Option<Link>, NetworkRecord), Error> {
        let found = self.bridge(&wanted.bridge.name)?;
        let others = self.others(&wanted.name)?;
        self.refuse_overlaps(wanted, &others, None)?;
        let is_new = found.is_none();
        let mut bridge = match found {
            Some(bridge) => bridge,
            None => self.make_bridge(wanted, steps)?,
        };
        self.filter(wanted, &mut bridge, steps)?;
        let before = NetworkRecord::load(self.host, &wanted.name)?;
        let here = before.as_ref().filter(|before| before.is_of(self.host, self.netns));
        let promiscuous_by_us = self.settle_promiscuous(wanted, &mut bridge, here, &others, steps)?;
        let mut record = NetworkRecord { promiscuous_by_us, ..self.record(wanted, &bridge, is_new)? };
        refuse_mtu(wanted, &bridge)?;
        self.keep_mac(&bridge)?;
        if !bridge.up {
            self.socket.set_up(&bridge, true)?;
        }
        let same = here.filter(|before| before.bridge == record.bridge);
        let moved = same.filter(|before| before.device() != record.device());
        if let Some(before) = moved {
            self.take_gateways(before, steps)?;
        }
        let vlan = self.make_vlan_pair(wanted, &record, &bridge, steps)?;
        let device = vlan.as_ref().unwrap_or(&bridge);
        let new = self.put_gateways(wanted, &record.gateways, device, &others, steps)?;
        if !is_ours(device) {
            let known = same.filter(|before| before.device() == record.device()).map(|before| before.added.as_slice());
            add_new(&mut record.added, known.unwrap_or_default().iter().copied().chain(new));
            record.added.retain(|address| record.gateways.contains(address));
        }
        for v6 in families(&wanted.gateways) {
            forwarding::switch_on(self.socket, v6)?;
        }
        let is_edited = same.is_some_and(|before| before.port_isolation != wanted.port_isolation);
        if is_new || is_edited || bridge.filters_vlans() {
            self.rejoin(wanted, &bridge)?;
        }
        if let Some(backend) = &wanted.masquerade_backend {
            tracing::info!(
                "network {}: ipMasqBackend {backend}: masquerading is by nftables, in tables of our own, whatever is named",
                wanted.name
            );
        }
        let left = here.filter(|before| before.promiscuous_by_us && same.is_none()).map(|before| before.bridge.clone());
        record.save(self.host)?;
        steps.push(Step::WroteRecord(wanted.name.clone(), before.map(Box::new)));
        self.enter_promiscuous(wanted, &mut bridge)?;
        // The last thing, for there is no way back.
        self.delete_lone_pairs(&bridge, &record, &others)?;
        if let Some(left) = left {
            self.leave_promiscuous(&wanted.name, &left)?;
        }
        Ok((bridge, vlan, record))
    }

    /// The networks of this boot and namespace, but for one, with what of them is on other nodes.
    pub(super) fn others(&mut self, name: &NetworkName) -> Result<Vec<NetworkRecord>, Error> {
        let mut records = NetworkRecord::all(self.host)?;
        records.retain(|record| record.name != *name && record.is_of(self.host, self.netns));
        for record in &mut records {
            if let Err(error) = cluster::join(self.host, self.netns, record) {
                tracing::warn!("network {}: its part on other nodes is left out: {error}", record.name);
            }
        }
        Ok(records)
    }

    fn record(&mut self, wanted: &Wanted, bridge: &Link, is_new: bool) -> Result<NetworkRecord, Error> {
        let before = NetworkRecord::load(self.host, &wanted.name)?;
        let before = before.filter(|record| record.is_of(self.host, self.netns) && record.bridge == wanted.bridge.name);
        let (mut gateways, mut subnets) = (wanted.gateways.clone(), wanted.subnets.clone());
        // Addresses that were handed out by an older configuration stay in use until their containers end.
        if let Some(before) = &before {
            let apart = |net: &IpNet| !wanted.subnets.iter().any(|subnet| overlap(subnet, net));
            add_new(&mut gateways, before.gateways.iter().copied().filter(apart));
            add_new(&mut subnets, before.subnets.iter().copied().filter(apart));
        }
        let mtu = match (before, wanted.mtu) {
            (Some(before), _) if !is_new => before.mtu,
            (_, Some(mtu)) => mtu,
            (_, None) => bridge.mtu,
        };
        Ok(NetworkRecord {
            v: FORMAT,
            name: wanted.name.clone(),
            bridge: wanted.bridge.name.clone(),
            owned: is_ours(bridge),
            gateways,
            added: Vec::new(),
            subnets,
            masquerade_v4: wanted.masquerade_v4,
            masquerade_v6: wanted.masquerade_v6,
            forward_accept: wanted.forward_accept,
            vlan_device: wanted.vlan_names().map(|names| names.device),
            vlans: wanted.vlans.clone(),
            port_isolation: wanted.port_isolation,
            promiscuous: wanted.promiscuous,
            promiscuous_by_us: false,
            isolate: wanted.isolate,
            guarded: wanted.guarded,
            mtu,
            ipam: wanted.ipam.clone(),
            cluster: None,
            boot: self.host.boot.clone(),
            netns: self.netns.clone(),
        })
    }

    /// True if the network's record is still what is wanted. Asked by an ADD that has joined: whoever takes a network
    /// back removes the record first and looks for ports then, so that one of the two sees the other.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn is_recorded(&mut self, wanted: &Wanted) -> Result<bool, Error> {
        let record = NetworkRecord::load(self.host, &wanted.name)?;
        Ok(record.is_some_and(|record| record.is_of(self.host, self.netns) && wanted.is_met_by(&record)))
    }
}

/// Runs `act` as the only one on this host that sets up or removes networks.
///
/// # Errors
/// The lock cannot be had, or what `act` reports.
pub fn locked<T>(host: &Host, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let path = host.state.join("lock");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&host.state);
    made.map_err(|source| LockError::Io { path: path.clone(), source })?;
    exclusively(&path, act)
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "setup_keys_tests.rs"]
mod keys_tests;

#[cfg(test)]
#[path = "setup_sharing_tests.rs"]
mod sharing_tests;
