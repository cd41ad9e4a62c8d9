//! Whether a UDP port can be had.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, setsockopt, socket, sockopt::Ipv6V6Only,
};

use super::Refusal;
use crate::netlink::Error;

/// Refuses a UDP port that somebody listens on, as a VXLAN would be refused it: in one family, at all addresses
/// (`vxlan_create_sock`). A VXLAN is made whether or not it can be had, and only then cannot go up.
pub(super) fn refuse_taken(v6: bool, port: u16) -> Result<(), Refusal> {
    match listen(v6, port) {
        Err(errno @ Errno::EADDRINUSE) => {
            let request = format!("listen on UDP port {port}");
            Err(Refusal::Port { port, source: Error::Refused { request, errno, hint: None } })
        }
        // What else there is, the kernel says when it comes to it.
        _ => Ok(()),
    }
}

fn listen(v6: bool, port: u16) -> Result<(), Errno> {
    let family = if v6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let socket: OwnedFd = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    if v6 {
        setsockopt(&socket, Ipv6V6Only, &true)?;
        let any = std::net::SocketAddrV6::new(std::net::Ipv6Addr::UNSPECIFIED, port, 0, 0);
        bind(socket.as_raw_fd(), &SockaddrIn6::from(any))
    } else {
        let any = std::net::SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, port);
        bind(socket.as_raw_fd(), &SockaddrIn::from(any))
    }
}
