//! What goes over the wires of a namespace.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, sockopt};
use nix::sys::time::TimeVal;

use crate::Sandbox;

/// How often it looks whether it is to end, in microseconds.
const TICK: i64 = 10_000;
/// Room for what comes while the reading thread does not run, in bytes.
const BUFFER: usize = 8 << 20;

/// All packets of a namespace, from now on: on all its devices, as they come in and as they go out.
pub struct Capture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Vec<u8>>>,
}

/// Packets that a [`Capture`] saw, from their Ethernet header on.
#[derive(Debug)]
pub struct Packets(Vec<Vec<u8>>);

impl Sandbox {
    /// Starts a [`Capture`] in a namespace or (none) on the machine itself.
    #[track_caller]
    pub fn capture(&self, netns: Option<&str>) -> Capture {
        let socket = self.within(netns, || {
            let flags = SockFlag::SOCK_CLOEXEC;
            socket::socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll).expect("root may listen")
        });
        let _ = socket::setsockopt(&socket, sockopt::RcvBufForce, &BUFFER);
        socket::setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(0, TICK)).expect("a socket has a limit");
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let (mut packets, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
            loop {
                match socket::recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_TRUNC) {
                    Ok(length) => packets.push(buffer[..length.min(buffer.len())].to_vec()),
                    // Only when there is nothing more: what was sent before the end is seen.
                    Err(_) if flag.load(Ordering::Relaxed) => return packets,
                    Err(_) => {}
                }
            }
        });
        Capture { stop, thread }
    }
}

impl Capture {
    /// Ends it.
    pub fn end(self) -> Packets {
        self.stop.store(true, Ordering::Relaxed);
        Packets(self.thread.join().expect("a listening thread ends"))
    }
}

impl Packets {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many have this text in them.
    pub fn with_text(&self, text: &str) -> usize {
        self.with_bytes(text.as_bytes())
    }

    /// How many were sent by this Ethernet address.
    ///
    /// # Panics
    /// It is none.
    pub fn from_mac(&self, mac: &str) -> usize {
        let octet = |text| u8::from_str_radix(text, 16).expect("an octet of an Ethernet address");
        let mac: Vec<u8> = mac.split(':').map(octet).collect();
        self.0.iter().filter(|packet| packet.get(6..12) == Some(&mac[..])).count()
    }

    /// How many have this address in them, in whatever header.
    pub fn with_address(&self, address: IpAddr) -> usize {
        match address {
            IpAddr::V4(address) => self.with_bytes(&address.octets()),
            IpAddr::V6(address) => self.with_bytes(&address.octets()),
        }
    }

    /// How many are IP from one of these two addresses to the other, by their outermost header, with this protocol
    /// number (IPv6: next header).
    pub fn between(&self, ends: [IpAddr; 2], protocol: u8) -> usize {
        let of = |packet: &Vec<u8>| outermost(packet);
        let found = self
            .0
            .iter()
            .filter_map(of)
            .filter(|(from, to, number)| *number == protocol && (ends == [*from, *to] || ends == [*to, *from]));
        found.count()
    }

    fn with_bytes(&self, bytes: &[u8]) -> usize {
        self.0.iter().filter(|packet| packet.windows(bytes.len()).any(|part| part == bytes)).count()
    }
}

/// Source, destination and protocol of a packet's outermost IP header.
fn outermost(packet: &[u8]) -> Option<(IpAddr, IpAddr, u8)> {
    let (ethernet, ip) = packet.split_at_checked(14)?;
    let part = |from: usize, length: usize| ip.get(from..from + length);
    match ethernet[12..] {
        [0x08, 0x00] => {
            let address = |from| Some(IpAddr::from(<[u8; 4]>::try_from(part(from, 4)?).ok()?));
            Some((address(12)?, address(16)?, *ip.get(9)?))
        }
        [0x86, 0xdd] => {
            let address = |from| Some(IpAddr::from(<[u8; 16]>::try_from(part(from, 16)?).ok()?));
            Some((address(8)?, address(24)?, *ip.get(6)?))
        }
        _ => None,
    }
}
