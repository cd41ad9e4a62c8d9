//! Writing requests: a header and plain attributes.

use std::net::IpAddr;

use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED};

/// A request of any kind.
#[derive(Debug)]
pub(super) struct Request {
    header: Vec<u8>,
    attributes: Vec<DefaultNla>,
}

impl Request {
    /// A request that begins with these bytes: the `struct` of its kind.
    pub fn new(header: &[u8]) -> Self {
        Self { header: header.to_vec(), attributes: Vec::new() }
    }

    /// With another attribute.
    pub fn with(mut self, attribute: DefaultNla) -> Self {
        self.attributes.push(attribute);
        self
    }
}

impl Emitable for Request {
    fn buffer_len(&self) -> usize {
        self.header.len() + self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        let (header, attributes) = buffer.split_at_mut(self.header.len());
        header.copy_from_slice(&self.header);
        self.attributes.as_slice().emit(attributes);
    }
}

/// An attribute of one byte.
pub(super) fn byte(kind: u16, value: u8) -> DefaultNla {
    bytes(kind, &[value])
}

/// An attribute of an address: 4 or 16 bytes.
pub(super) fn address(kind: u16, value: IpAddr) -> DefaultNla {
    match value {
        IpAddr::V4(v4) => bytes(kind, &v4.octets()),
        IpAddr::V6(v6) => bytes(kind, &v6.octets()),
    }
}

/// An attribute of text, which the kernel wants closed by NUL.
pub(super) fn text(kind: u16, value: &str) -> DefaultNla {
    DefaultNla::new(kind, [value.as_bytes(), &[0]].concat())
}

/// An attribute of 32 bits.
pub(super) fn number(kind: u16, value: u32) -> DefaultNla {
    DefaultNla::new(kind, value.to_ne_bytes().to_vec())
}

/// An attribute of bytes.
pub(super) fn bytes(kind: u16, value: &[u8]) -> DefaultNla {
    DefaultNla::new(kind, value.to_vec())
}

/// An attribute of attributes.
pub(super) fn nested(kind: u16, inner: &[DefaultNla]) -> DefaultNla {
    let mut value = vec![0; inner.buffer_len()];
    inner.emit(&mut value);
    DefaultNla::new(kind | NLA_F_NESTED, value)
}
