//! Setting a network up on this host, once in a boot: bridge, gateway addresses, forwarding, record.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use ipnet::IpNet;
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

use super::config::overlap;
use super::names::is_ours;
use super::record::FORMAT;
pub use super::wanted::Wanted;
use super::wanted::{add_new, families};
use super::{Error, NetworkRecord, forwarding, overlap as overlaps};
use crate::lock::{LockError, exclusively};
use crate::netlink::{Link, NetnsId, RouteSocket};
use crate::{Host, NetworkName};

/// A network that is set up.
#[derive(Debug)]
pub struct Setup {
    /// Its bridge.
    pub bridge: Link,
    /// Its record.
    pub record: NetworkRecord,
    steps: Vec<Step>,
}

/// Something that a setup did, for the way back.
#[derive(Debug)]
pub(super) enum Step {
    MadeBridge(String),
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
            Some(record) => self.verified(record),
            None => Ok(None),
        }
    }

    fn verified(&mut self, record: NetworkRecord) -> Result<Option<Setup>, Error> {
        let bridge = self.socket.link_by_name(&record.bridge)?;
        let Some(bridge) = bridge.filter(|bridge| bridge.is_a("bridge") && bridge.up) else { return Ok(None) };
        if !record.gateways.is_empty() {
            let there: BTreeSet<IpNet> = self.socket.addresses(&bridge)?.into_iter().map(|have| have.address).collect();
            if !record.gateways.iter().all(|gateway| there.contains(gateway)) {
                return Ok(None);
            }
        }
        for v6 in families(&record.gateways) {
            if !forwarding::is_on(v6)? {
                return Ok(None);
            }
        }
        Ok(Some(Setup { bridge, record, steps: Vec::new() }))
    }

    /// Says why the network could not be set up, before anything is changed.
    ///
    /// # Errors
    /// The name is another kind of device's, the subnets or the gateways are somebody else's.
    pub fn refuse(&mut self, wanted: &Wanted) -> Result<(), Error> {
        let bridge = self.bridge(&wanted.bridge.name)?;
        let others = self.others(&wanted.name)?;
        self.refuse_overlaps(wanted, &others)?;
        match &bridge {
            Some(bridge) => self.clashes(wanted, bridge, &others).map(drop),
            None => Ok(()),
        }
    }

    fn refuse_overlaps(&mut self, wanted: &Wanted, others: &[NetworkRecord]) -> Result<(), Error> {
        // Without a gateway here the host has no route to these addresses, and no part in them.
        if wanted.gateways.is_empty() {
            return Ok(());
        }
        overlaps::with_networks(self.socket, &wanted.name, &wanted.subnets, others)?;
        overlaps::with_routes(self.socket, &wanted.name, &wanted.subnets, &wanted.bridge.name)
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
                Ok((bridge, record)) => Ok(Setup { bridge, record, steps }),
                Err(error) => {
                    for undo in self.undo_steps(steps) {
                        tracing::error!("not undone: {undo}");
                    }
                    Err(error)
                }
            }
        })
    }

    fn make(&mut self, wanted: &Wanted, steps: &mut Vec<Step>) -> Result<(Link, NetworkRecord), Error> {
        let found = self.bridge(&wanted.bridge.name)?;
        let others = self.others(&wanted.name)?;
        self.refuse_overlaps(wanted, &others)?;
        let bridge = match found {
            Some(bridge) => bridge,
            None => self.make_bridge(wanted, steps)?,
        };
        let record = self.record(wanted, &bridge)?;
        if !bridge.up {
            self.socket.set_up(&bridge, true)?;
        }
        self.put_gateways(wanted, &bridge, &others, steps)?;
        for v6 in families(&wanted.gateways) {
            forwarding::switch_on(self.socket, v6)?;
        }
        let before = NetworkRecord::load(self.host, &wanted.name)?.map(Box::new);
        record.save(self.host)?;
        steps.push(Step::WroteRecord(wanted.name.clone(), before));
        Ok((bridge, record))
    }

    /// The networks of this boot and namespace, but for one.
    fn others(&mut self, name: &NetworkName) -> Result<Vec<NetworkRecord>, Error> {
        let mut records = NetworkRecord::all(self.host)?;
        records.retain(|record| record.name != *name && record.is_of(self.host, self.netns));
        Ok(records)
    }

    fn record(&mut self, wanted: &Wanted, bridge: &Link) -> Result<NetworkRecord, Error> {
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
            (Some(before), _) => before.mtu,
            (None, Some(mtu)) => mtu,
            (None, None) => bridge.mtu,
        };
        Ok(NetworkRecord {
            v: FORMAT,
            name: wanted.name.clone(),
            bridge: wanted.bridge.name.clone(),
            owned: is_ours(bridge),
            gateways,
            subnets,
            masquerade_v4: wanted.masquerade_v4,
            masquerade_v6: wanted.masquerade_v6,
            forward_accept: wanted.forward_accept,
            mtu,
            ipam: wanted.ipam.clone(),
            boot: self.host.boot.clone(),
            netns: self.netns.clone(),
        })
    }

    /// Takes a setup back, if nobody has joined the network since. True if the network has no record
    /// any more.
    ///
    /// # Errors
    /// What could not be undone; the rest was.
    pub fn undo(&mut self, setup: Setup) -> Result<bool, Error> {
        if setup.steps.is_empty() {
            return Ok(false);
        }
        locked(self.host, || {
            if self.socket.links_with_master(setup.bridge.index)?.iter().any(is_ours) {
                return Ok(false);
            }
            match self.undo_steps(setup.steps).into_iter().next() {
                Some(error) => Err(error),
                None => Ok(NetworkRecord::load(self.host, &setup.record.name)?.is_none()),
            }
        })
    }

    /// Deletes a bridge of ours that has no ports.
    fn delete_bridge(&mut self, name: &str) -> Result<(), Error> {
        let Some(bridge) = self.socket.link_by_name(name)?.filter(|link| link.is_a("bridge") && is_ours(link)) else {
            return Ok(());
        };
        if self.socket.links_with_master(bridge.index)?.is_empty() {
            self.socket.delete_link(&bridge)?;
        }
        Ok(())
    }

    /// Undoes in reverse, and goes on after errors.
    fn undo_steps(&mut self, steps: Vec<Step>) -> Vec<Error> {
        let undo = |step: Step| match step {
            Step::MadeBridge(name) => self.delete_bridge(&name),
            Step::AddedAddress(bridge, address) => Ok(self.socket.remove_address(&bridge, address)?),
            Step::RemovedAddress(bridge, address) => Ok(self.socket.add_address(&bridge, address, false)?),
            Step::WroteRecord(_, Some(before)) => before.save(self.host),
            Step::WroteRecord(name, None) => NetworkRecord::remove(self.host, &name),
        };
        steps.into_iter().rev().map(undo).filter_map(Result::err).collect()
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

/// STATUS: could a record be written?
///
/// # Errors
/// [`Error::NotWritable`].
pub fn writable(host: &Host) -> Result<(), Error> {
    let folder = NetworkRecord::folder(host);
    let failed = |path: &Path, errno: Errno| Error::NotWritable { path: path.to_owned(), source: errno.into() };
    for path in folder.ancestors() {
        match access(path, AccessFlags::W_OK | AccessFlags::X_OK) {
            Err(Errno::ENOENT) => {}
            outcome => return outcome.map_err(|errno| failed(path, errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod tests;
