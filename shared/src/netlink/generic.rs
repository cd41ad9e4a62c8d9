//! Generic netlink: families of requests that are known by name (linux/genetlink.h).

use netlink_sys::protocols::NETLINK_GENERIC;
use nix::errno::Errno;

use super::attributes::attributes;
use super::request::{Request, text};
use super::{Error, RouteSocket};

/// Bytes of `struct genlmsghdr`.
const HEADER: usize = 4;
/// GENL_ID_CTRL: the family that tells of families.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// Opens a socket in the network namespace of this thread, and tells the number of a family; none if the kernel does
/// not have it. The kernel loads the module that it needs.
pub(super) fn open(name: &str) -> Result<(RouteSocket, Option<u16>), Error> {
    let mut socket = RouteSocket::open_for(NETLINK_GENERIC)?;
    let request = Request::new(&[GET_FAMILY, 1, 0, 0]).with(text(FAMILY_NAME, name));
    let what = format_args!("look up the netlink family {name}");
    let family = socket.one(CONTROL, &request, what, &[Errno::ENOENT], |message| {
        let (_, value) = attributes(message, HEADER).find(|(kind, _)| *kind == FAMILY_ID)?;
        value.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
    })?;
    Ok((socket, family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_by_name() {
        assert_eq!(open("nlctrl").unwrap().1, Some(CONTROL));
        assert_eq!(open("no-such-family").unwrap().1, None);
    }
}
