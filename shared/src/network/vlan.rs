//! VLANs of a bridge: filtering, the VLANs of its ports, and the pair by which the host is in one of them.
//!
//! The bridge itself stays in its default VLAN. A network whose containers are in another one has its gateway addresses
//! on `<bridge>.<vlan>`, whose other end is a port in that VLAN, untagged, as the reference plugin has it: so no device of
//! kind `vlan` is needed, and several networks share a bridge.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::mac::{Machine, of_addresses};
use super::names::{VlanNames, is_ours, is_vlan_port};
use super::setup::{Site, Step};
use super::sysctl::Sysctl;
use super::wanted::Wanted;
use super::{Error, NetworkRecord, Vlans, port};
use crate::NetworkName;
use crate::netlink::{Link, NewLocalPair, PortVlan, RouteSocket};

/// Puts a port into exactly the VLANs that it should be in; true if that was to be done. It leaves the wrong ones first:
/// for a moment it forwards less, and never more.
///
/// # Errors
/// The kernel refuses.
pub fn settle(
    socket: &mut RouteSocket,
    port: &Link,
    have: &BTreeMap<u16, PortVlan>,
    want: &BTreeMap<u16, PortVlan>,
) -> Result<bool, Error> {
    let wrong: BTreeMap<_, _> =
        have.iter().filter(|(id, _)| !want.contains_key(id)).map(|(&id, &how)| (id, how)).collect();
    let missing: BTreeMap<_, _> =
        want.iter().filter(|(id, how)| have.get(id) != Some(how)).map(|(&id, &how)| (id, how)).collect();
    if !wrong.is_empty() {
        socket.remove_port_vlans(port, &wrong)?;
    }
    if !missing.is_empty() {
        socket.add_port_vlans(port, &missing)?;
    }
    Ok(!(wrong.is_empty() && missing.is_empty()))
}

/// The VLANs that a port of a bridge should be in; `None` if they are no matter of ours: the network has none and had none
/// before, and the bridge filters nothing, or is not ours.
pub fn of_port(vlans: &Vlans, had_vlans: bool, bridge: &Link) -> Option<BTreeMap<u16, PortVlan>> {
    let default = bridge.vlans?.default;
    let is_matter = || bridge.filters_vlans() && (had_vlans || is_ours(bridge));
    (vlans.filter() || is_matter()).then(|| vlans.of_port(default))
}

/// Those of a new port, until somebody changes them.
pub fn of_new_port(bridge: &Link) -> BTreeMap<u16, PortVlan> {
    bridge.vlans.map(|vlans| Vlans::default().of_port(vlans.default)).unwrap_or_default()
}

/// Those of the port by which the host is in a VLAN.
pub fn of_host(vlan: u16) -> BTreeMap<u16, PortVlan> {
    BTreeMap::from([(vlan, PortVlan::Native)])
}

impl Site<'_> {
    /// Says why a bridge cannot filter VLANs, if it should.
    ///
    /// # Errors
    /// [`Error::NoVlans`]; [`Error::NoVlanFiltering`] for a bridge that is not ours.
    pub(super) fn refuse_filtering(&self, wanted: &Wanted, bridge: &Link) -> Result<(), Error> {
        let name = || bridge.name.clone();
        match bridge.vlans {
            _ if !wanted.vlans.filter() => Ok(()),
            None => Err(Error::NoVlans(name())),
            Some(vlans) if !vlans.filtering && !is_ours(bridge) => Err(Error::NoVlanFiltering(name())),
            Some(_) => Ok(()),
        }
    }

    /// Has the bridge filter VLANs, if it should and does not. Its ports are in its default VLAN, and go on as before.
    ///
    /// # Errors
    /// As [`refuse_filtering`](Self::refuse_filtering); the kernel refuses.
    pub(super) fn filter(&mut self, wanted: &Wanted, bridge: &mut Link, steps: &mut Vec<Step>) -> Result<(), Error> {
        self.refuse_filtering(wanted, bridge)?;
        if !wanted.vlans.filter() || bridge.filters_vlans() {
            return Ok(());
        }
        self.socket.set_vlan_filtering(bridge, true)?;
        steps.push(Step::Filtered(bridge.clone()));
        bridge.vlans.iter_mut().for_each(|vlans| vlans.filtering = true);
        Ok(())
    }

    /// Has the bridge filter no more, unless another network has been set up on it that needs that: without it all VLANs
    /// are one.
    ///
    /// # Errors
    /// The kernel refuses, or the records cannot be read.
    pub(super) fn filter_no_more(&mut self, network: &NetworkName, bridge: &Link) -> Result<(), Error> {
        if self.others(network)?.iter().any(|other| other.bridge == bridge.name && other.has_vlans()) {
            return Ok(());
        }
        Ok(self.socket.set_vlan_filtering(bridge, false)?)
    }

    /// The pair by which the host is in a VLAN of the bridge, the device first; whoever made it.
    ///
    /// # Errors
    /// [`Error::VlanDeviceTaken`]: the name is that of something else. The kernel does not answer.
    pub fn vlan_pair(&mut self, names: &VlanNames, bridge: &Link) -> Result<Option<(Link, Link)>, Error> {
        let Some(device) = self.socket.link_by_name(&names.device)? else { return Ok(None) };
        let is_pair = device.is_a("veth") && device.peer_netns.is_none();
        let port = match device.peer.filter(|_| is_pair) {
            Some(port) => self.socket.link_by_index(port)?.filter(|port| port.peer == Some(device.index)),
            None => None,
        };
        match port {
            Some(port) if port.master == Some(bridge.index) => Ok(Some((device, port))),
            // Its bridge is gone.
            Some(port) if port.master.is_none() && is_ours(&device) && is_ours(&port) => Ok(None),
            _ => Err(Error::VlanDeviceTaken { device: names.device.clone(), bridge: bridge.name.clone() }),
        }
    }

    /// Makes the pair, or puts right what somebody changed of it; gives the device.
    ///
    /// # Errors
    /// As [`vlan_pair`](Self::vlan_pair); the kernel refuses.
    pub(super) fn make_vlan_pair(
        &mut self,
        wanted: &Wanted,
        record: &NetworkRecord,
        bridge: &Link,
        steps: &mut Vec<Step>,
    ) -> Result<Option<Link>, Error> {
        let (Some(vlan), Some(names)) = (wanted.vlan, wanted.vlan_names()) else { return Ok(None) };
        let (device, port, have) = match self.vlan_pair(&names, bridge)? {
            Some((device, port)) => {
                let have = self.socket.port_vlans()?.remove(&port.index).unwrap_or_default();
                if !is_ours(&port) && have.get(&vlan) != Some(&PortVlan::Native) {
                    return Err(Error::VlanDeviceTaken { device: device.name, bridge: bridge.name.clone() });
                }
                (device, port, have)
            }
            None => {
                let (device, port) = self.new_vlan_pair(wanted, record, &names, bridge, steps)?;
                (device, port, of_new_port(bridge))
            }
        };
        if is_ours(&port) {
            settle(self.socket, &port, &have, &of_host(vlan))?;
        }
        for end in [&port, &device] {
            if !end.up {
                self.socket.set_up(end, true)?;
            }
        }
        if !device.up {
            port::await_forwarding(self.socket, &port)?;
        }
        Ok(Some(device))
    }

    fn new_vlan_pair(
        &mut self,
        wanted: &Wanted,
        record: &NetworkRecord,
        names: &VlanNames,
        bridge: &Link,
        steps: &mut Vec<Step>,
    ) -> Result<(Link, Link), Error> {
        // What is left of one whose bridge is gone.
        for name in [&names.device, &names.port] {
            if let Some(left) = self.socket.link_by_name(name)?.filter(|link| is_ours(link) && link.is_a("veth")) {
                self.socket.delete_link(&left)?;
            }
        }
        let machine = Machine::read();
        let mac = of_addresses(record.gateways.iter().map(IpNet::addr));
        let pair = NewLocalPair {
            port: &names.port,
            port_mac: machine.vlan_port(&names.port),
            master: bridge.index,
            device: &names.device,
            device_mac: mac.unwrap_or_else(|| machine.bridge(&wanted.name)),
            mtu: record.mtu,
        };
        // Also when it fails: a lost answer says nothing of what the kernel did.
        steps.push(Step::MadeVlanPair(names.clone()));
        self.socket.create_local_pair(&pair)?;
        let mut made = |name: &String| self.socket.link_by_name(name)?.ok_or_else(|| Error::Vanished(name.clone()));
        let (device, port) = (made(&names.device)?, made(&names.port)?);
        for end in [&device, &port] {
            Sysctl::V6(&end.name, "accept_ra").prefer("0");
            if !wanted.detect_duplicates {
                Sysctl::V6(&end.name, "accept_dad").prefer("0");
            }
            // No second colon: it is no container's.
            if let Err(error) =
                self.socket.set_alias(end, &format!("osvc:{}.{}", bridge.name, wanted.vlan.unwrap_or(0)))
            {
                tracing::debug!("{error}");
            }
        }
        Ok((device, port))
    }

    /// Deletes the device by which a network is in its VLAN, if it is ours and no other network has it; gives its name.
    ///
    /// # Errors
    /// The kernel refuses, or the records cannot be read.
    pub fn delete_vlan_device(&mut self, network: &NetworkName, device: &str) -> Result<Option<String>, Error> {
        match self.lone_vlan_device(network, device, &[])? {
            Some(link) => {
                self.socket.delete_link(&link)?;
                Ok(Some(link.name))
            }
            None => Ok(None),
        }
    }

    /// Deletes the pairs of ours on a bridge by which no network is in its VLAN any more: the configuration has left it,
    /// now or when somebody was killed before this.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn delete_lone_pairs(
        &mut self,
        bridge: &Link,
        record: &NetworkRecord,
        others: &[NetworkRecord],
    ) -> Result<(), Error> {
        for port in self.socket.links_with_master(bridge.index)? {
            let Some(device) = port.peer.filter(|_| is_vlan_port(&port, &bridge.name)) else { continue };
            let Some(device) = self.socket.link_by_index(device)? else { continue };
            let has = |record: &NetworkRecord| record.vlan_device.as_deref() == Some(device.name.as_str());
            if !has(record) && !others.iter().any(has) {
                self.socket.delete_link(&port)?;
            }
        }
        Ok(())
    }

    /// The device of that name, if it is ours and no other network has it, once those that are `gone` are.
    ///
    /// # Errors
    /// The kernel does not answer, or the records cannot be read.
    pub fn lone_vlan_device(
        &mut self,
        network: &NetworkName,
        device: &str,
        gone: &[NetworkName],
    ) -> Result<Option<Link>, Error> {
        let has = |other: &NetworkRecord| other.vlan_device.as_deref() == Some(device) && !gone.contains(&other.name);
        if self.others(network)?.iter().any(has) {
            return Ok(None);
        }
        Ok(self.socket.link_by_name(device)?.filter(|link| link.is_a("veth") && is_ours(link)))
    }

    /// The ports of a bridge by which no host is in a VLAN: those of containers, and whoever else's.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn ports(&mut self, bridge: &Link) -> Result<Vec<Link>, Error> {
        let mut ports = self.socket.links_with_master(bridge.index)?;
        ports.retain(|port| !is_vlan_port(port, &bridge.name));
        Ok(ports)
    }

    /// Deletes a bridge with what is left of our own pairs on it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn delete_bridge_and_pairs(&mut self, bridge: &Link) -> Result<(), Error> {
        for port in self.socket.links_with_master(bridge.index)? {
            if is_vlan_port(&port, &bridge.name) {
                self.socket.delete_link(&port)?;
            }
        }
        Ok(self.socket.delete_link(bridge)?)
    }
}
