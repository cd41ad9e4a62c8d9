//! The bridge of a network and its addresses.

use ipnet::IpNet;
use nix::errno::Errno;

use super::config::overlap;
use super::mac::{Machine, of_addresses};
use super::names::{BridgeName, is_ours};
use super::setup::{Site, Step};
use super::sysctl::Sysctl;
use super::wanted::{Wanted, families};
use super::{Error, NetworkRecord, mtu};
use crate::netlink::{Link, Mac, NewBridge};

impl Site<'_> {
    /// The device of the bridge's name, which must be a bridge.
    ///
    /// # Errors
    /// [`Error::NotABridge`], [`Error::AlternativeName`], or the kernel does not answer.
    pub(super) fn bridge(&mut self, name: &str) -> Result<Option<Link>, Error> {
        match self.socket.link_by_name(name)? {
            Some(link) if !link.is_a("bridge") => {
                let kind = link.kind.unwrap_or_else(|| "hardware".to_owned());
                Err(Error::NotABridge { name: name.to_owned(), kind })
            }
            // Firewall rules and kernel parameters know a device by its first name only.
            Some(link) if link.name != name => Err(Error::AlternativeName { name: name.to_owned(), device: link.name }),
            found => Ok(found),
        }
    }

    /// Makes the bridge, down.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn make_bridge(&mut self, wanted: &Wanted, steps: &mut Vec<Step>) -> Result<Link, Error> {
        let BridgeName { name, altname } = &wanted.bridge;
        let mtu = match wanted.mtu {
            Some(mtu) => mtu,
            None => mtu::for_families(mtu::of_host(self.socket)?, &wanted.subnets),
        };
        // The gateway's is that of the device that has its address.
        let gateways = if wanted.vlan_names().is_some() { &[][..] } else { &wanted.gateways };
        let mac = of_addresses(gateways.iter().map(IpNet::addr));
        let mac = mac.unwrap_or_else(|| Machine::read().bridge(&wanted.name));
        match self.socket.create_bridge(&NewBridge { name, mac, mtu }) {
            // Somebody else's, a moment ago: it is a foreign one then.
            Err(error) if error.is(Errno::EEXIST) => return self.bridge(name)?.ok_or(Error::Netlink(error)),
            made => {
                // Also when it failed: a lost answer says nothing of what the kernel did.
                steps.push(Step::MadeBridge(name.clone()));
                made?;
            }
        }
        let bridge = self.socket.link_by_name(name)?.ok_or_else(|| Error::Vanished(name.clone()))?;
        Sysctl::V6(name, "accept_ra").prefer("0");
        if !wanted.detect_duplicates {
            // A tentative link-local address of the bridge delays the first packets from outside by 2 s,
            // whatever its other addresses are.
            Sysctl::V6(name, "accept_dad").prefer("0");
        }
        if let Err(error) = self.socket.set_alias(&bridge, &format!("osvc:{}", wanted.name)) {
            tracing::debug!("{error}");
        }
        // Not before kernel 5.5.
        if let Some(altname) = altname
            && let Err(error) = self.socket.add_altname(&bridge, altname)
        {
            tracing::debug!("{error}");
        }
        Ok(bridge)
    }

    /// Has a bridge of somebody else keep its address: until one is set, the kernel gives it the lowest of its ports,
    /// and no more than zeros with the last of them.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn keep_mac(&mut self, bridge: &Link) -> Result<(), Error> {
        match bridge.mac.map(Mac).filter(|mac| !is_ours(bridge) && mac.0 != [0; 6]) {
            Some(mac) => Ok(self.socket.set_mac(bridge, mac)?),
            None => Ok(()),
        }
    }

    /// The addresses of the bridge that clash with a gateway.
    ///
    /// # Errors
    /// There are some, and they are not to be replaced.
    pub(super) fn clashes(
        &mut self,
        wanted: &Wanted,
        bridge: &Link,
        others: &[NetworkRecord],
    ) -> Result<Vec<IpNet>, Error> {
        let have = self.socket.addresses(bridge)?;
        let before = NetworkRecord::load(self.host, &wanted.name)?;
        let ours = before.filter(|record| record.is_of(self.host, self.netns)).map(|record| record.gateways);
        let ours = ours.unwrap_or_default();
        let mut clashes = Vec::new();
        for address in have.iter().map(|have| have.address) {
            let clash = wanted.gateways.iter().find(|gateway| address != **gateway && overlap(&address, gateway));
            let Some(gateway) = clash.filter(|_| !wanted.gateways.contains(&address)) else { continue };
            let others_gateway = others.iter().any(|other| other.gateways.contains(&address));
            if others_gateway || !(wanted.force_address || ours.contains(&address)) {
                return Err(Error::AddressClash { bridge: bridge.name.clone(), address, gateway: *gateway });
            }
            clashes.push(address);
        }
        Ok(clashes)
    }

    /// Takes the gateway addresses from a device that is not to have them any more: the configuration has moved them.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn take_gateways(&mut self, before: &NetworkRecord, steps: &mut Vec<Step>) -> Result<(), Error> {
        let Some(device) = self.socket.link_by_name(before.device())? else { return Ok(()) };
        for have in self.socket.addresses(&device)? {
            if before.gateways.contains(&have.address) {
                self.socket.remove_address(&device, have.address)?;
                steps.push(Step::RemovedAddress(device.clone(), have.address));
            }
        }
        Ok(())
    }

    /// Gives the bridge, or the device of its VLAN, the gateway addresses. Returns those that it had not.
    ///
    /// # Errors
    /// As [`clashes`](Self::clashes); the kernel refuses.
    pub(super) fn put_gateways(
        &mut self,
        wanted: &Wanted,
        gateways: &[IpNet],
        bridge: &Link,
        others: &[NetworkRecord],
        steps: &mut Vec<Step>,
    ) -> Result<Vec<IpNet>, Error> {
        let mut new = Vec::new();
        if families(gateways).contains(&true) {
            // The host may have it off by default.
            Sysctl::V6(&bridge.name, "disable_ipv6").ensure("0")?;
        }
        for address in self.clashes(wanted, bridge, others)? {
            tracing::warn!(
                "address {address} of {} clashes with a gateway of network {}: removed",
                bridge.name,
                wanted.name
            );
            self.socket.remove_address(bridge, address)?;
            steps.push(Step::RemovedAddress(bridge.clone(), address));
        }
        for gateway in gateways {
            match self.socket.add_address(bridge, *gateway, wanted.detect_duplicates) {
                Err(error) if error.is(Errno::EEXIST) => continue,
                added => added?,
            }
            steps.push(Step::AddedAddress(bridge.clone(), *gateway));
            new.push(*gateway);
        }
        Ok(new)
    }
}
