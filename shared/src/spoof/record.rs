//! What one attachment may send: a line of JSON in `<state>/spoof/attachments/<network>/<tag>.json`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::document::{ADDRESS_CHECKED, ADDRESSES4, ADDRESSES6, MAC_CHECKED, MACS, TARGETS};
use crate::NetworkName;
use crate::attachment::tag;
use crate::firewall::element::Element;
use crate::ipam::liveness::Traces;
use crate::ipam::record::{HostEnd, NetnsRef};
use crate::netlink::Mac;

/// Format of the records that this version writes.
pub const FORMAT: u32 = 1;

/// Which sources are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// The MAC address (`macspoofchk`).
    pub mac: bool,
    /// The addresses (`spoofcheck`).
    pub addresses: bool,
}

impl Checks {
    /// True if nothing is checked.
    pub fn is_empty(self) -> bool {
        !(self.mac || self.addresses)
    }
}

/// What one attachment may send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub v: u32,
    /// Name of the network.
    pub network: NetworkName,
    /// CNI_CONTAINERID.
    pub container: String,
    /// CNI_IFNAME.
    pub ifname: String,
    /// The host end: the port that is checked, and the namespace where it is.
    pub host: HostEnd,
    /// The container's network namespace.
    pub netns: NetnsRef,
    /// Kernel boot id at ADD.
    pub boot: String,
    /// Time of the ADD (RFC 3339, microseconds).
    pub since: String,
    /// What is checked.
    pub checks: Checks,
    /// The container's MAC address.
    pub mac: Mac,
    /// The container's addresses.
    pub addresses: Vec<IpAddr>,
}

/// An element of one of our sets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The set.
    pub set: &'static str,
    /// Its key.
    pub key: Vec<u8>,
    /// The address in it, for people.
    pub address: Option<String>,
}

impl Entry {
    /// A port's element, with an address in it or none.
    pub fn new(set: &'static str, port: &[u8], address: &[u8]) -> Self {
        // Each field of a key fills words of 4 bytes.
        let padding = vec![0; address.len().next_multiple_of(4) - address.len()];
        Self { set, key: [&port_key(port), address, &padding].concat(), address: None }
    }

    /// As netlink has it.
    pub fn element(&self) -> Element {
        Element { key: self.key.clone(), ..Element::default() }
    }

    /// The port that it is of.
    pub fn port(&self) -> String {
        let name = self.key.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(&name[..name.len().min(16)]).into_owned()
    }

    /// As nft has it.
    pub fn text(&self) -> String {
        let address = self.key.get(16..).unwrap_or_default();
        let address = match (self.set, address) {
            (MACS, [a, b, c, d, e, f, ..]) => Some(Mac([*a, *b, *c, *d, *e, *f]).to_string()),
            (ADDRESSES4, address) => address.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets).to_string()),
            (ADDRESSES6, address) => address.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets).to_string()),
            (TARGETS, address) => {
                address.first_chunk::<16>().map(|octets| format!("0x{:032x}", u128::from_be_bytes(*octets)))
            }
            _ => None,
        };
        match address {
            Some(address) => format!("\"{}\" . {address}", self.port()),
            None => format!("\"{}\"", self.port()),
        }
    }
}

impl Record {
    /// The attachment's tag: the name of the record's file.
    pub fn tag(&self) -> String {
        tag(self.network.as_str(), &self.container, &self.ifname)
    }

    /// What tells whether its holder lives.
    pub fn traces(&self) -> Traces<'_> {
        let Self { boot, netns, host, since, .. } = self;
        Traces { boot, netns: Some(netns), host: Some(host), since }
    }

    /// What the sets should hold for it, in the order in which it is to be added: what may pass comes first.
    pub fn entries(&self) -> Vec<Entry> {
        let entry = |set, address: &[u8], text: Option<String>| Entry {
            address: text,
            ..Entry::new(set, self.host.ifname.as_bytes(), address)
        };
        let mut entries = Vec::new();
        if self.checks.mac {
            entries.push(entry(MACS, &self.mac.0, Some(self.mac.to_string())));
            entries.push(entry(MAC_CHECKED, &[], None));
        }
        if self.checks.addresses {
            let link_local = IpAddr::V6(link_local(self.mac));
            for address in self.addresses.iter().chain([&link_local]) {
                let text = Some(address.to_string());
                match address {
                    IpAddr::V4(v4) => entries.push(entry(ADDRESSES4, &v4.octets(), text)),
                    IpAddr::V6(v6) => {
                        entries.push(entry(ADDRESSES6, &v6.octets(), text.clone()));
                        entries.push(entry(TARGETS, &v6.octets(), text));
                    }
                }
            }
            entries.push(entry(ADDRESS_CHECKED, &[], None));
        }
        entries
    }
}

/// A device's name as a key: 16 bytes (IFNAMSIZ).
fn port_key(name: &[u8]) -> [u8; 16] {
    let mut key = [0; 16];
    key.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
    key
}

/// The link-local address that the kernel makes of a MAC address (RFC 4291, appendix A).
fn link_local(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_local_address_of_a_mac_address() {
        assert_eq!(link_local("0a:58:0a:09:00:02".parse().unwrap()).to_string(), "fe80::858:aff:fe09:2");
    }

    #[test]
    fn keys_are_padded_field_by_field() {
        let key = port_key(b"ov0123456789abc");
        assert_eq!(key.len(), 16);
        assert_eq!(key[15], 0);
    }
}
