//! VLANs of bridges and their ports (linux/if_bridge.h).

use std::collections::BTreeMap;

use netlink_packet_core::DefaultNla;
use nix::libc;

use super::attributes::{attributes, number as read_number};
use super::link::BR_VLAN_FILTERING;
use super::link_request::{HEADER, LinkRequest};
use super::request::{byte, bytes, nested, number, text};
use super::{Error, Link, RouteSocket};

/// IFLA_BRIDGE_VLAN_INFO: `struct bridge_vlan_info`, flags and id of 16 bits each.
const VLAN_INFO: u16 = 2;
/// BRIDGE_VLAN_INFO_PVID: untagged frames that come in are in this VLAN.
const PVID: u16 = 1 << 1;
/// BRIDGE_VLAN_INFO_UNTAGGED: frames of this VLAN leave untagged.
const UNTAGGED: u16 = 1 << 2;
/// BRIDGE_VLAN_INFO_RANGE_BEGIN, and _END.
const BEGIN: u16 = 1 << 3;
/// See above.
const END: u16 = 1 << 4;
/// RTEXT_FILTER_BRVLAN.
const WITH_VLANS: u32 = 1 << 1;

/// How a port is in a VLAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortVlan {
    /// Frames are tagged.
    Tagged,
    /// Frames leave untagged; untagged ones that come in are in another VLAN.
    Untagged,
    /// Untagged frames are in this one (PVID), in both directions.
    Native,
}

impl PortVlan {
    fn flags(self) -> u16 {
        match self {
            Self::Tagged => 0,
            Self::Untagged => UNTAGGED,
            Self::Native => PVID | UNTAGGED,
        }
    }
}

/// The attribute that tells of these VLANs; neighbours that are alike are one span.
fn spec(vlans: &BTreeMap<u16, PortVlan>) -> DefaultNla {
    let info = |id: u16, flags: u16| bytes(VLAN_INFO, &[flags.to_ne_bytes(), id.to_ne_bytes()].concat());
    let mut infos = Vec::new();
    let mut rest = vlans.iter().map(|(&id, &how)| (id, how)).peekable();
    while let Some((first, how)) = rest.next() {
        let mut last = first;
        while let Some((id, _)) = rest.next_if(|&(id, next)| id == last + 1 && next == how) {
            last = id;
        }
        if last == first {
            infos.push(info(first, how.flags()));
        } else {
            infos.extend([info(first, how.flags() | BEGIN), info(last, how.flags() | END)]);
        }
    }
    nested(libc::IFLA_AF_SPEC, &infos)
}

/// The index of a port and its VLANs.
fn read(message: &[u8]) -> Option<(u32, BTreeMap<u16, PortVlan>)> {
    let index = read_number(message.get(4..)?)?;
    let mut vlans = BTreeMap::new();
    for (_, spec) in attributes(message, HEADER).filter(|(kind, _)| *kind == libc::IFLA_AF_SPEC) {
        for (_, info) in attributes(spec, 0).filter(|(kind, _)| *kind == VLAN_INFO) {
            let half = |at: usize| Some(u16::from_ne_bytes(info.get(at..at + 2)?.try_into().ok()?));
            let (flags, id) = (half(0)?, half(2)?);
            let how = match (flags & PVID != 0, flags & UNTAGGED != 0) {
                (true, true) => PortVlan::Native,
                (false, true) => PortVlan::Untagged,
                // One that takes in untagged and sends tagged frames is nobody's wish here: it is not right as it is.
                (_, false) => PortVlan::Tagged,
            };
            vlans.insert(id, how);
        }
    }
    Some((index, vlans))
}

impl RouteSocket {
    /// Has a bridge forward by VLANs, or no longer.
    ///
    /// # Errors
    /// EOPNOTSUPP: the kernel's bridges know no VLANs; see [`Link::vlans`]. ENODEV: it is gone.
    pub fn set_vlan_filtering(&mut self, bridge: &Link, on: bool) -> Result<(), Error> {
        let data = nested(libc::IFLA_INFO_DATA, &[byte(BR_VLAN_FILTERING, u8::from(on))]);
        let request = LinkRequest::about(bridge.index)
            .with(nested(libc::IFLA_LINKINFO, &[text(libc::IFLA_INFO_KIND, "bridge"), data]));
        let what = format_args!("switch VLAN filtering of {} {}", bridge.name, if on { "on" } else { "off" });
        self.change(libc::RTM_NEWLINK, 0, &request, what)
    }

    /// Puts a port into VLANs, or changes how it is in them.
    ///
    /// # Errors
    /// EOPNOTSUPP: the kernel's bridges know no VLANs.
    pub fn add_port_vlans(&mut self, port: &Link, vlans: &BTreeMap<u16, PortVlan>) -> Result<(), Error> {
        let what = format_args!("put {} into its VLANs", port.name);
        self.change(libc::RTM_SETLINK, 0, &LinkRequest::port(port.index).with(spec(vlans)), what)
    }

    /// Takes a port out of VLANs.
    ///
    /// # Errors
    /// EOPNOTSUPP: the kernel's bridges know no VLANs.
    pub fn remove_port_vlans(&mut self, port: &Link, vlans: &BTreeMap<u16, PortVlan>) -> Result<(), Error> {
        let what = format_args!("take {} out of VLANs", port.name);
        self.change(libc::RTM_DELLINK, 0, &LinkRequest::port(port.index).with(spec(vlans)), what)
    }

    /// The VLANs of all ports, by their numbers. (The kernel tells of one port alone since 5.6 only.)
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn port_vlans(&mut self) -> Result<BTreeMap<u32, BTreeMap<u16, PortVlan>>, Error> {
        let request = LinkRequest::port(0).with(number(libc::IFLA_EXT_MASK, WITH_VLANS));
        let found = self.list(libc::RTM_GETLINK, &request, format_args!("list the VLANs of bridge ports"), read)?;
        Ok(found.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::Emitable;

    use super::*;

    #[test]
    fn spans_are_told_by_their_ends_and_a_native_vlan_for_itself() {
        let mut vlans: BTreeMap<u16, PortVlan> = (200..=210).map(|id| (id, PortVlan::Tagged)).collect();
        vlans.extend([(199, PortVlan::Native), (100, PortVlan::Untagged), (212, PortVlan::Tagged)]);
        let spec = spec(&vlans);
        let mut message = vec![0; HEADER + spec.buffer_len()];
        message[4..8].copy_from_slice(&7_u32.to_ne_bytes());
        spec.emit(&mut message[HEADER..]);
        let infos: Vec<(u16, u16)> = attributes(&message[HEADER + 4..], 0)
            .map(|(_, info)| (u16::from_ne_bytes([info[0], info[1]]), u16::from_ne_bytes([info[2], info[3]])))
            .collect();
        assert_eq!(infos, [(4, 100), (6, 199), (8, 200), (16, 210), (0, 212)]);
        let (index, read) = read(&message).unwrap();
        assert_eq!(
            (index, read[&199], read[&100], read[&212]),
            (7, PortVlan::Native, PortVlan::Untagged, PortVlan::Tagged)
        );
    }

    #[test]
    fn all_vlans_at_once_fit_into_an_attribute() {
        let vlans =
            (1..=4094).map(|id| (id, if id % 2 == 0 { PortVlan::Tagged } else { PortVlan::Untagged })).collect();
        assert!(spec(&vlans).buffer_len() < usize::from(u16::MAX));
    }
}
