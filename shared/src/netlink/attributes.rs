//! Reading the attributes of an answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An attribute's type, without its flags, and its value.
pub(super) type Attribute<'a> = (u16, &'a [u8]);

/// The attributes that follow a header of `skip` bytes. Ends at the first one that does not fit.
pub(super) fn attributes(message: &[u8], skip: usize) -> impl Iterator<Item = Attribute<'_>> {
    let mut rest = message.get(skip..).unwrap_or_default();
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?) & netlink_packet_core::NLA_TYPE_MASK;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A 32-bit number in host byte order.
pub(super) fn number(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(value.get(..4)?.try_into().ok()?))
}

/// Text up to its closing NUL. The kernel allows any byte in a name or an alias.
pub(super) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// An IPv4 or IPv6 address, by its length.
pub(super) fn ip(value: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(value) {
        return Some(IpAddr::V4(Ipv4Addr::from(octets)));
    }
    <[u8; 16]>::try_from(value).ok().map(|octets| IpAddr::V6(Ipv6Addr::from(octets)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_end_where_they_do_not_fit() {
        let message = [0, 0, 5, 0, 3, 0, b'x', 0, 0, 0, 8, 0, 4, 0x80, 1, 0, 0, 0, 99, 0, 1, 0];
        let read: Vec<_> = attributes(&message, 2).collect();
        assert_eq!(read, [(3, &b"x"[..]), (4, &[1, 0, 0, 0][..])]);
        assert_eq!(attributes(&[], 16).count(), 0);
        assert_eq!(attributes(&[0, 0, 0, 0], 0).count(), 0);
    }

    #[test]
    fn values_of_any_length_are_read_or_left() {
        assert_eq!(number(&[1, 0]), None);
        assert_eq!(text(b"eth0\0"), "eth0");
        assert_eq!(text(b"eth0"), "eth0");
        assert_eq!(ip(&[10, 0, 0, 1]), Some("10.0.0.1".parse().unwrap()));
        assert_eq!(ip(&[0; 3]), None);
    }
}
