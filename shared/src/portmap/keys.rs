//! Names and bytes of what is in our tables: keys of maps and sets as nf_tables has them, each field of a
//! concatenation padded to four bytes (linux/netfilter/nf_tables.h, libnftnl).

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::mapping::Protocol;
use super::record::Slot;
use crate::firewall::element::Element;
use crate::firewall::family::Family;

/// Our table of each family.
pub const TABLE: &str = "osvc-cni-portmap";
/// The map of ports of all addresses of the host.
pub const ANY: &str = "any";
/// The map of ports of one address of the host.
pub const HOST: &str = "host";
/// The set of sources and targets between which connections are masqueraded.
pub const HAIRPIN: &str = "hairpin";
/// The set of targets, with any source, that only some clients may connect to.
pub const RESTRICTED: &str = "restricted";
/// The set of clients and targets that may connect all the same.
pub const ALLOWED: &str = "allowed";
/// The sets of [`pairs`](super::area::Pair).
pub const SETS: [&str; 3] = [HAIRPIN, RESTRICTED, ALLOWED];

/// What the comments of our elements begin with.
const OWNER: &str = "osvc:";
/// The comment of the element that tells that a map was not emptied: port 0 of protocol 0, which no packet has.
pub const SENTINEL: &str = "osvc:in place";

/// The family of an address.
pub fn family(address: IpAddr) -> Family {
    if address.is_ipv4() { Family::Ip } else { Family::Ip6 }
}

/// The address that stands for all of a family.
pub fn unspecified(family: Family) -> IpAddr {
    match family {
        Family::Ip => IpAddr::from([0; 4]),
        Family::Ip6 => IpAddr::from([0; 16]),
    }
}

/// The bytes of an address.
pub fn bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn port(port: u16) -> [u8; 4] {
    let [high, low] = port.to_be_bytes();
    [high, low, 0, 0]
}

/// The map that a slot is looked up in.
pub fn map_of(slot: &Slot) -> &'static str {
    if slot.is_any() { ANY } else { HOST }
}

/// A slot's key in its map.
pub fn slot_key(slot: &Slot) -> Vec<u8> {
    let mut key = if slot.is_any() { Vec::new() } else { bytes(slot.address) };
    key.extend([slot.protocol.number(), 0, 0, 0]);
    key.extend(port(slot.port));
    key
}

/// Where a slot leads, as the data of its element.
pub fn target_data(target: SocketAddr) -> Vec<u8> {
    let mut data = bytes(target.ip());
    data.extend(port(target.port()));
    data
}

/// The element of a slot.
pub fn slot_element(slot: &Slot, target: SocketAddr, tag: &str) -> Element {
    Element { key: slot_key(slot), data: Some(target_data(target)), comment: Some(comment(tag)), ..Element::default() }
}

/// The comment of an attachment's elements.
pub fn comment(tag: &str) -> String {
    format!("{OWNER}{tag}")
}

/// The tag of the attachment that an element of a map is of; `None` for the sentinel and for what is not ours.
pub fn owner(element: &Element) -> Option<&str> {
    let tag = element.comment.as_deref()?.strip_prefix(OWNER)?;
    (tag.len() == 13 && tag.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(tag)
}

/// The slot that an element of a map stands for, and where it leads; `None` if it is none of ours.
pub fn read_slot(family: Family, element: &Element) -> Option<(Slot, SocketAddr)> {
    let (rest, port) = element.key.split_last_chunk::<4>()?;
    let (address, protocol) = rest.split_last_chunk::<4>()?;
    let address = if address.is_empty() { unspecified(family) } else { address_of(address)? };
    let protocol = Protocol::ALL.into_iter().find(|known| known.number() == protocol[0])?;
    let (to, to_port) = element.data.as_deref()?.split_last_chunk::<4>()?;
    let number = |[high, low, ..]: [u8; 4]| u16::from_be_bytes([high, low]);
    let slot = Slot { address, protocol, port: number(*port) };
    Some((slot, SocketAddr::new(address_of(to)?, number(*to_port))))
}

fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => None,
    }
}

/// The key of the sentinel of a map.
pub fn sentinel_key(map: &str, family: Family) -> Vec<u8> {
    let mut key = if map == HOST { bytes(unspecified(family)) } else { Vec::new() };
    key.extend([0; 8]);
    key
}

/// The sentinel of a set of pairs: no packet goes from nowhere to nowhere.
pub fn sentinel_pair(family: Family) -> Element {
    let key = [bytes(unspecified(family)), bytes(unspecified(family))].concat();
    Element { key_end: Some(key.clone()), key, comment: Some(SENTINEL.to_owned()), ..Element::default() }
}

/// First and last key of all pairs of an address of one subnet and an address of another.
pub fn pair_key(source: &IpNet, target: &IpNet) -> (Vec<u8>, Vec<u8>) {
    let join = |a: IpAddr, b: IpAddr| [bytes(a), bytes(b)].concat();
    (join(source.network(), target.network()), join(source.broadcast(), target.broadcast()))
}

/// The two subnets of an element of pairs; `None` if it is none of ours.
pub fn read_pair(element: &Element) -> Option<(IpNet, IpNet)> {
    let last = element.key_end.as_ref().unwrap_or(&element.key);
    let middle = element.key.len() / 2;
    let half = |range: std::ops::Range<usize>| subnet(element.key.get(range.clone())?, last.get(range)?);
    Some((half(0..middle)?, half(middle..element.key.len())?))
}

/// The subnet from a first to a last address.
fn subnet(first: &[u8], last: &[u8]) -> Option<IpNet> {
    let same = first.iter().zip(last).map(|(a, b)| (a ^ b).leading_zeros());
    // Bits in common: all of the equal bytes, and those before the first that differs.
    let mut prefix = 0;
    for bits in same {
        prefix += bits;
        if bits < 8 {
            break;
        }
    }
    let net = IpNet::new(address_of(first)?, u8::try_from(prefix).ok()?).ok()?;
    (net.network() == address_of(first)? && net.broadcast() == address_of(last)?).then_some(net)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_padded_fields() {
        let slot = Slot { address: "0.0.0.0".parse().unwrap(), protocol: Protocol::Tcp, port: 8080 };
        assert_eq!((map_of(&slot), slot_key(&slot)), (ANY, vec![6, 0, 0, 0, 0x1f, 0x90, 0, 0]));
        let slot = Slot { address: "192.0.2.1".parse().unwrap(), protocol: Protocol::Udp, port: 53 };
        assert_eq!((map_of(&slot), slot_key(&slot)), (HOST, vec![192, 0, 2, 1, 17, 0, 0, 0, 0, 53, 0, 0]));
        assert_eq!(target_data("10.9.0.2:80".parse().unwrap()), [10, 9, 0, 2, 0, 80, 0, 0]);
        assert_eq!(sentinel_key(HOST, Family::Ip6).len(), 24);
        for (address, target) in [("192.0.2.1", "10.9.0.2:80"), ("0.0.0.0", "10.9.0.2:80"), ("::", "[fd09::2]:80")] {
            let slot = Slot { address: address.parse().unwrap(), protocol: Protocol::Sctp, port: 258 };
            let target: SocketAddr = target.parse().unwrap();
            let element = slot_element(&slot, target, "0123456789abc");
            assert_eq!(read_slot(family(slot.address), &element), Some((slot, target)));
            assert_eq!(owner(&element), Some("0123456789abc"));
        }
        assert_eq!(owner(&Element { comment: Some(SENTINEL.into()), ..Element::default() }), None);
    }

    #[test]
    fn pairs_come_back_as_they_were_written() {
        for (source, target) in [
            ("10.9.0.0/24", "10.9.0.0/24"),
            ("0.0.0.0/0", "10.9.0.5/32"),
            ("127.0.0.0/8", "10.9.0.0/17"),
            ("::/0", "fd09::/64"),
            ("fd09::5/128", "fd09::5/128"),
        ] {
            let (source, target): (IpNet, IpNet) = (source.parse().unwrap(), target.parse().unwrap());
            let (key, last) = pair_key(&source, &target);
            let element = Element { key, key_end: Some(last), ..Element::default() };
            assert_eq!(read_pair(&element), Some((source, target)));
        }
        let odd = Element {
            key: vec![10, 0, 0, 1, 1, 1, 1, 1],
            key_end: Some(vec![10, 0, 0, 4, 1, 1, 1, 1]),
            ..Element::default()
        };
        assert_eq!(read_pair(&odd), None);
    }
}
