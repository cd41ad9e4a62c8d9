//! Requests about devices: `struct ifinfomsg` and plain attributes.
//!
//! `LinkAttribute` of `netlink-packet-route` knows every kind of device that there is, which is a twentieth of
//! the size of a plugin; we make a few of them.

use netlink_packet_core::{DefaultNla, Emitable};
use nix::libc;

/// Bytes of `struct ifinfomsg`.
pub(super) const HEADER: usize = 16;

/// A request about a device.
#[derive(Debug, Default)]
pub(super) struct LinkRequest {
    family: u8,
    index: u32,
    flags: u32,
    change: u32,
    attributes: Vec<DefaultNla>,
}

impl LinkRequest {
    /// About a device that is there; 0 for a new one, or one that an attribute names.
    pub fn about(index: u32) -> Self {
        Self { index, ..Self::default() }
    }

    /// About a device in its quality as a port of a bridge.
    pub fn port(index: u32) -> Self {
        Self { family: libc::AF_BRIDGE as u8, index, ..Self::default() }
    }

    /// The device goes up or down.
    pub fn up(self, up: bool) -> Self {
        self.flag(libc::IFF_UP, up)
    }

    /// A flag of the device is set or cleared.
    pub fn flag(mut self, flag: libc::c_int, on: bool) -> Self {
        let flag = flag as u32;
        self.change |= flag;
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
        self
    }

    /// With another attribute.
    pub fn with(mut self, attribute: DefaultNla) -> Self {
        self.attributes.push(attribute);
        self
    }

    /// The request as bytes: one end of a pair is an attribute of the other.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.buffer_len()];
        self.emit(&mut bytes);
        bytes
    }
}

impl Emitable for LinkRequest {
    fn buffer_len(&self) -> usize {
        HEADER + self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        buffer[0] = self.family;
        for (at, word) in [(4, self.index), (8, self.flags), (12, self.change)] {
            buffer[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        self.attributes.as_slice().emit(&mut buffer[HEADER..]);
    }
}
