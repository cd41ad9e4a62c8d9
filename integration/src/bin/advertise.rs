//! A router that says so: sends router advertisements (RFC 4861, section 4.2) on one interface until it is killed.
//!
//! `advertise INTERFACE-INDEX PREFIX`: default route for 1800 s, `PREFIX::/64` on-link and autonomous.

use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6, sendto, setsockopt, socket, sockopt,
};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(Ok(index)), Some(Ok(prefix))) = (words.next().map(|w| w.parse()), words.next().map(|w| w.parse())) else {
        eprintln!("usage: advertise INTERFACE-INDEX PREFIX");
        return ExitCode::FAILURE;
    };
    match advertise(index, prefix) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("advertise: {error}");
            ExitCode::FAILURE
        }
    }
}

fn advertise(index: u32, prefix: Ipv6Addr) -> io::Result<std::convert::Infallible> {
    let socket = socket(AddressFamily::Inet6, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::IcmpV6)?;
    // RFC 4861 6.1.2: a receiver drops an advertisement whose hop limit is not 255.
    setsockopt(&socket, sockopt::Ipv6MulticastHops, &255)?;
    let all_nodes = SocketAddrV6::new(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), 0, 0, index);
    let message = message(prefix);
    loop {
        // The kernel fills in the checksum of a raw ICMPv6 socket (RFC 3542, section 3.1).
        if let Err(error) = sendto(socket.as_raw_fd(), &message, &SockaddrIn6::from(all_nodes), MsgFlags::empty()) {
            eprintln!("advertise: {error}");
        }
        sleep(Duration::from_millis(500));
    }
}

fn message(prefix: Ipv6Addr) -> Vec<u8> {
    let mut bytes = vec![134, 0, 0, 0]; // router advertisement, checksum
    bytes.extend([64, 0]); // hop limit, flags
    bytes.extend(1800u16.to_be_bytes()); // router lifetime, s
    bytes.extend([0; 8]); // reachable time, retransmission timer
    bytes.extend([3, 4, 64, 0xc0]); // prefix information, 4 × 8 bytes, /64, on-link and autonomous
    bytes.extend(7200u32.to_be_bytes());
    bytes.extend(3600u32.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(prefix.octets());
    bytes
}
