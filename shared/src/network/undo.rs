//! Taking a setup back, when the ADD that made it has failed.

use super::names::is_ours;
use super::setup::{Setup, Site, Step, locked};
use super::{Error, NetworkRecord, alias};
use crate::NetworkName;
use crate::netlink::Link;

/// What became of a setup that was to be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone {
    /// It stays: nothing was done, or others have joined.
    Nothing,
    /// The network is as an older configuration wants it.
    Restored,
    /// There is no such network any more.
    Gone,
}

impl Site<'_> {
    /// Takes a setup back, if nobody has joined the network since.
    ///
    /// # Errors
    /// What could not be undone; the rest was.
    pub fn undo(&mut self, mut setup: Setup) -> Result<Undone, Error> {
        if setup.steps.is_empty() {
            return Ok(Undone::Nothing);
        }
        let name = setup.record.name.clone();
        locked(self.host, || {
            if self.is_joined(&setup)? {
                return Ok(Undone::Nothing);
            }
            let mut errors = self.undo_steps(&name, setup.steps.pop());
            if self.is_joined(&setup)? {
                setup.record.save(self.host)?;
                return Ok(Undone::Nothing);
            }
            errors.extend(self.undo_steps(&name, setup.steps));
            match errors.into_iter().next() {
                Some(error) => Err(error),
                None if NetworkRecord::load(self.host, &name)?.is_some() => Ok(Undone::Restored),
                None => Ok(Undone::Gone),
            }
        })
    }

    /// True if the bridge has a port of this network. One without an alias is being made.
    fn is_joined(&mut self, setup: &Setup) -> Result<bool, Error> {
        let name = setup.record.name.as_str();
        let is_of_network = |port: &Link| port.alias.as_deref().is_none_or(|text| alias::network(text) == Some(name));
        let ports = self.ports(&setup.bridge)?;
        Ok(ports.iter().any(|port| is_ours(port) && is_of_network(port)))
    }

    /// Deletes a bridge of ours that has no ports, unless another network has been set up on it.
    fn delete_bridge(&mut self, network: &NetworkName, name: &str) -> Result<(), Error> {
        if self.others(network)?.iter().any(|other| other.bridge == name) {
            return Ok(());
        }
        let Some(bridge) = self.socket.link_by_name(name)?.filter(|link| link.is_a("bridge") && is_ours(link)) else {
            return Ok(());
        };
        if self.ports(&bridge)?.is_empty() { self.delete_bridge_and_pairs(&bridge) } else { Ok(()) }
    }

    /// Undoes in reverse, and goes on after errors.
    pub(super) fn undo_steps(&mut self, network: &NetworkName, steps: impl IntoIterator<Item = Step>) -> Vec<Error> {
        let undo = |step: Step| match step {
            Step::MadeBridge(name) => self.delete_bridge(network, &name),
            Step::MadeVlanPair(names) => self.delete_vlan_device(network, &names.device).map(drop),
            Step::Filtered(bridge) => self.filter_no_more(network, &bridge),
            Step::Promiscuous(bridge) if bridge.promiscuous => Ok(self.socket.set_promiscuous(&bridge, true)?),
            Step::Promiscuous(bridge) => self.leave_promiscuous(network, &bridge.name).map(drop),
            Step::AddedAddress(bridge, address) => Ok(self.socket.remove_address(&bridge, address)?),
            Step::RemovedAddress(device, address) => match self.socket.link_by_index(device.index) {
                Ok(None) => Ok(()),
                _ => Ok(self.socket.add_address(&device, address, false)?),
            },
            Step::WroteRecord(_, Some(before)) => before.save(self.host),
            Step::WroteRecord(name, None) => NetworkRecord::remove(self.host, &name),
        };
        let mut steps: Vec<Step> = steps.into_iter().collect();
        steps.reverse();
        steps.into_iter().map(undo).filter_map(Result::err).collect()
    }
}
