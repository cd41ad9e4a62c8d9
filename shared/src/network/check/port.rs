//! CHECK of what the keys of the link side ask for: VLANs and isolation of ports, the host's device in a VLAN.

use std::collections::BTreeMap;

use super::Fault;
use crate::Attachment;
use crate::netlink::{Link, PortVlan};
use crate::network::names::is_ours;
use crate::network::setup::Site;
use crate::network::{BridgeConfig, Error, NetworkRecord, vlan};

/// The device by which the host is in the network's VLAN, if it is there.
pub(super) fn check_vlan_device(
    site: &mut Site<'_>,
    name: &str,
    bridge: &Link,
    faults: &mut Vec<Fault>,
) -> Result<Option<Link>, Error> {
    let device = site.socket.link_by_name(name)?.filter(|link| link.is_a("veth"));
    let port = device.as_ref().and_then(|device| device.peer);
    let port = port.map(|port| site.socket.link_by_index(port)).transpose()?.flatten();
    let (Some(device), Some(port)) = (device, port.filter(|port| port.master == Some(bridge.index))) else {
        faults.push(Fault::NoVlanDevice(name.to_owned()));
        return Ok(None);
    };
    for end in [&device, &port].into_iter().filter(|end| !end.up) {
        faults.push(Fault::VlanDeviceDown(end.name.clone()));
    }
    // Every name ends with the number.
    if let Some(vlan) = name.rsplit_once('.').and_then(|(_, vlan)| vlan.parse().ok()) {
        let have = site.socket.port_vlans()?.remove(&port.index).unwrap_or_default();
        let want = vlan::of_host(vlan);
        if is_ours(&port) {
            compare_vlans(&port, &have, &want, faults);
        } else if have.get(&vlan) != want.get(&vlan) {
            // As ADD: somebody else's may be in more.
            faults.push(Fault::OtherVlans(port.name, vec![vlan], Vec::new()));
        }
    }
    Ok(Some(device))
}

/// The host end of an attachment: ours, or the listed one of the reference plugin, of which only the address was taken over.
pub(super) fn host_end(
    site: &mut Site<'_>,
    attachment: &Attachment,
    listed: Option<&str>,
) -> Result<Option<Link>, Error> {
    let ours = site.socket.link_by_name(&attachment.host_end())?.filter(is_ours);
    if let (None, Some(name)) = (&ours, listed) {
        return Ok(site.socket.link_by_name(name)?.filter(|link| link.is_a("veth") && !is_ours(link)));
    }
    Ok(ours)
}

/// What the configuration says of a port, beyond being one.
pub(super) fn check_port(
    site: &mut Site<'_>,
    record: &NetworkRecord,
    config: &BridgeConfig,
    host_end: Option<&Link>,
    faults: &mut Vec<Fault>,
) -> Result<(), Error> {
    let Some(host_end) = host_end.filter(|port| port.master.is_some()) else { return Ok(()) };
    if host_end.isolated.is_some_and(|isolated| isolated != config.port_isolation) {
        faults.push(Fault::Isolation(host_end.name.clone(), config.port_isolation));
    }
    if !config.vlans.filter() && !record.has_vlans() {
        return Ok(());
    }
    let Some(bridge) = site.socket.link_by_name(&record.bridge)? else { return Ok(()) };
    if config.vlans.filter() && !bridge.filters_vlans() {
        faults.push(Fault::NoFiltering(bridge.name.clone()));
    }
    if let Some(want) = vlan::of_port(&config.vlans, record.has_vlans(), &bridge) {
        let have = site.socket.port_vlans()?.remove(&host_end.index).unwrap_or_default();
        compare_vlans(host_end, &have, &want, faults);
    }
    Ok(())
}

fn compare_vlans(port: &Link, have: &BTreeMap<u16, PortVlan>, want: &BTreeMap<u16, PortVlan>, faults: &mut Vec<Fault>) {
    let missing: Vec<u16> = want.iter().filter(|(id, how)| have.get(id) != Some(how)).map(|(&id, _)| id).collect();
    let wrong: Vec<u16> = have.keys().filter(|id| !want.contains_key(id)).copied().collect();
    if !(missing.is_empty() && wrong.is_empty()) {
        faults.push(Fault::OtherVlans(port.name.clone(), missing, wrong));
    }
}
