//! Refusing a network that cannot be set up, before anything is changed.

use super::leaving::Leaving;
use super::setup::Site;
use super::wanted::families;
use super::{Error, NetworkRecord, Wanted, mtu, overlap};
use crate::netlink::{Link, PROTOCOL, RouteEntry};
use crate::routed::RoutedRecord;

impl Site<'_> {
    /// Says why the network could not be set up, before anything is changed.
    ///
    /// # Errors
    /// The name is another kind of device's, the subnets or the gateways are somebody else's.
    pub fn refuse(&mut self, wanted: &Wanted) -> Result<(), Error> {
        self.refuse_beside(wanted, None)
    }

    pub(super) fn refuse_beside(&mut self, wanted: &Wanted, leaving: Option<&Leaving>) -> Result<(), Error> {
        let bridge = self.bridge(&wanted.bridge.name)?;
        let others = self.others(&wanted.name)?;
        self.refuse_overlaps(wanted, &others, leaving)?;
        let Some(bridge) = bridge else { return Ok(()) };
        refuse_mtu(wanted, &bridge)?;
        self.refuse_filtering(wanted, &bridge)?;
        let device = match wanted.vlan_names() {
            Some(names) => self.vlan_pair(&names, &bridge)?.map(|(device, _)| device),
            None => Some(bridge),
        };
        device.map_or(Ok(()), |device| self.clashes(wanted, &device, &others).map(drop))
    }

    pub(super) fn refuse_overlaps(
        &mut self,
        wanted: &Wanted,
        others: &[NetworkRecord],
        leaving: Option<&Leaving>,
    ) -> Result<(), Error> {
        // Without a gateway here the host has no route to these addresses, and no part in them.
        if wanted.gateways.is_empty() {
            return Ok(());
        }
        overlap::with_networks(self.socket, &wanted.name, &wanted.subnets, others)?;
        // What it had as a routed network goes before it is set up.
        let was_routed = (!wanted.routed || leaving.is_some()) && RoutedRecord::path(self.host, &wanted.name).exists();
        let leaves = |route: &RouteEntry| {
            (was_routed && route.protocol == PROTOCOL) || leaving.is_some_and(|leaving| leaving.takes(route))
        };
        // Its own are no objection, also where an older configuration had the addresses.
        let before = NetworkRecord::load(self.host, &wanted.name)?.filter(|record| record.is_of(self.host, self.netns));
        let now = wanted.vlan_names().map_or_else(|| wanted.bridge.name.clone(), |names| names.device);
        let same = before.as_ref().filter(|record| record.bridge == wanted.bridge.name);
        let is_own = |device: &str| device == now || same.is_some_and(|record| record.device() == device);
        let overlap = overlap::with_routes(self.socket, &wanted.name, &wanted.subnets, is_own, leaves);
        overlap.map_err(|error| self.explained(error, &wanted.bridge.name, leaving))
    }
}

pub(super) fn refuse_mtu(wanted: &Wanted, bridge: &Link) -> Result<(), Error> {
    match bridge.mtu < mtu::LEAST_V6 && families(&wanted.gateways).contains(&true) {
        true => Err(Error::MtuTooSmall { bridge: bridge.name.clone(), mtu: bridge.mtu }),
        false => Ok(()),
    }
}
