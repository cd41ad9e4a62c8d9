//! A network that leaves its bridge for another one: what it takes along.

use ipnet::IpNet;

use super::names::is_ours;
use super::setup::Site;
use super::{Error, NetworkRecord, Wanted};
use crate::NetworkName;
use crate::netlink::{Link, RouteEntry};

/// The device that has a network's gateway addresses, and those of them that go with the network.
#[derive(Debug)]
pub struct Leaving {
    /// The device.
    pub device: Link,
    /// Addresses that we have put there, and that no other network has.
    pub gateways: Vec<IpNet>,
    /// The device goes as well, and all routes by it.
    goes: bool,
}

impl Leaving {
    /// Each address, and where it is.
    pub fn addresses(&self) -> impl Iterator<Item = (&Link, IpNet)> {
        self.gateways.iter().map(|gateway| (&self.device, *gateway))
    }

    /// True for a route that goes with the device or with the addresses.
    pub(super) fn takes(&self, route: &RouteEntry) -> bool {
        let is_here = route.next_hops.first().and_then(|hop| hop.device) == Some(self.device.index);
        is_here && (self.goes || self.gateways.iter().any(|gateway| gateway.trunc() == route.dst))
    }
}

impl Site<'_> {
    /// What goes with a network that leaves its bridge, as it is `record`ed, once the networks that are `gone` are. From
    /// a bridge of somebody else nothing goes, unless it is a `move`: the network may be back in a moment, and routes by
    /// that address would be lost. None if the device is not there.
    ///
    /// # Errors
    /// The kernel does not answer, or the records cannot be read.
    pub fn leaving(
        &mut self,
        record: &NetworkRecord,
        moves: bool,
        gone: &[NetworkName],
    ) -> Result<Option<Leaving>, Error> {
        let Some(device) = self.socket.link_by_name(record.device())? else { return Ok(None) };
        let have: Vec<IpNet> = self.socket.addresses(&device)?.into_iter().map(|have| have.address).collect();
        let mut others = self.others(&record.name)?;
        others.retain(|other| !gone.contains(&other.name));
        let goes = is_ours(&device)
            && match device.is_a("bridge") {
                true => !others.iter().any(|other| other.bridge == device.name) && self.ports(&device)?.is_empty(),
                false => !others.iter().any(|other| other.device() == device.name),
            };
        others.retain(|other| other.device() == record.device());
        // The device of a VLAN is ours also where the bridge is not.
        let ours = match (record.owned || is_ours(&device), moves) {
            (true, _) => record.gateways.as_slice(),
            (false, true) => &record.added,
            (false, false) => &[],
        };
        // One that somebody has removed is no error.
        let mut gateways: Vec<IpNet> = ours.iter().copied().filter(|gateway| have.contains(gateway)).collect();
        gateways.retain(|gateway| !others.iter().any(|other| other.gateways.contains(gateway)));
        Ok(Some(Leaving { device, gateways, goes }))
    }

    /// As [`refuse`](Self::refuse), for a network that leaves its bridge first: what goes with that is no objection.
    /// Returns what does.
    ///
    /// # Errors
    /// As [`refuse`](Self::refuse); [`Error::Stays`] if an address of the network stays behind that is not ours.
    pub fn refuse_move(&mut self, wanted: &Wanted, record: &NetworkRecord) -> Result<Option<Leaving>, Error> {
        let leaving = self.leaving(record, true, &[])?;
        self.refuse_beside(wanted, leaving.as_ref())?;
        Ok(leaving)
    }
}
