//! Addresses as integers.

use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address after this one; `None` after the last of its family.
pub fn next(ip: IpAddr) -> Option<IpAddr> {
    match ip {
        IpAddr::V4(ip) => ip.to_bits().checked_add(1).map(|bits| Ipv4Addr::from_bits(bits).into()),
        IpAddr::V6(ip) => ip.to_bits().checked_add(1).map(|bits| Ipv6Addr::from_bits(bits).into()),
    }
}

/// The address before this one; `None` before the first of its family.
pub fn previous(ip: IpAddr) -> Option<IpAddr> {
    match ip {
        IpAddr::V4(ip) => ip.to_bits().checked_sub(1).map(|bits| Ipv4Addr::from_bits(bits).into()),
        IpAddr::V6(ip) => ip.to_bits().checked_sub(1).map(|bits| Ipv6Addr::from_bits(bits).into()),
    }
}

/// The order of two addresses of one family, an IPv4-mapped one counting as IPv4; `None` if they differ in it.
pub fn compare(a: IpAddr, b: IpAddr) -> Option<Ordering> {
    let (a, b) = (a.to_canonical(), b.to_canonical());
    (a.is_ipv4() == b.is_ipv4()).then(|| number(a).cmp(&number(b)))
}

/// The address as an integer.
pub fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// The integer as an address; of IPv4, its lower 32 bits.
pub fn address(v6: bool, number: u128) -> IpAddr {
    if v6 { Ipv6Addr::from_bits(number).into() } else { Ipv4Addr::from_bits(number as u32).into() }
}
