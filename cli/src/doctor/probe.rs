//! How large a packet an address answers to: echo requests that may not be fragmented.
//!
//! A raw socket sets DF on what fits into the path MTU that the kernel knows (`ip_dont_fragment`, IP_PMTUDISC_WANT),
//! and cuts what does not: so the kernel is asked first what it has learnt, and again after each loss.

use std::io;
use std::net::{IpAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6, SockaddrLike, SockaddrStorage,
    bind, recvfrom, sendto, socket,
};
use osvc_cni::netlink::RouteSocket;

/// Room for any header, and less than any path lets through.
const SMALL: u32 = 100;

/// How long each round waits for its answers: 1 s in all.
const ROUNDS: [Duration; 3] = [Duration::from_millis(350), Duration::from_millis(250), Duration::from_millis(200)];

/// How many sizes are tried at once.
const STEPS: u32 = 32;

/// Whom to ask.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// From which address of this host; none: the kernel's choice.
    pub source: Option<IpAddr>,
    /// Whom.
    pub to: IpAddr,
    /// What should get through, in bytes of an IP packet.
    pub size: u32,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answer {
    /// Small packets are answered.
    pub small: bool,
    /// The largest that is, if it is less than what should be.
    pub most: Option<u32>,
    /// The address says itself that there is nobody for it: no such protocol or port, or a firewall's reject.
    pub refused: bool,
}

/// Asks an address, for a second at most.
///
/// # Errors
/// No raw socket: no CAP_NET_RAW.
pub fn probe(target: Target) -> io::Result<Answer> {
    let mut probe = Probe::open(target)?;
    if let Some(known) = probe.learnt() {
        probe.answer.most = Some(known);
    } else {
        probe.send(target.size);
    }
    probe.send(SMALL);
    for round in &ROUNDS[..2] {
        probe.wait(*round);
        probe.answer.most = probe.answer.most.or_else(|| probe.learnt());
        if probe.answer.small && (probe.full || probe.answer.most.is_some()) {
            return Ok(probe.answer);
        }
        if !probe.full && probe.answer.most.is_none() {
            probe.send(target.size);
        }
        if !probe.answer.small {
            probe.send(SMALL);
        }
    }
    if probe.answer.small && !probe.full && probe.answer.most.is_none() {
        probe.search();
    }
    Ok(probe.answer)
}

struct Probe {
    target: Target,
    socket: OwnedFd,
    id: u16,
    answer: Answer,
    /// The full size was answered.
    full: bool,
    /// The largest answered size below.
    largest: u32,
}

impl Probe {
    fn open(target: Target) -> io::Result<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let (family, protocol) = match target.to {
            IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp),
            IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6),
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(family, SockType::Raw, flags, protocol)?;
        if let Some(source) = target.source {
            // Where that address is gone, the kernel's choice is as good.
            let _ = bind(socket.as_raw_fd(), address(source).as_ref());
        }
        // Several of us may run at once, and each has several.
        let id = (std::process::id() as u16).wrapping_mul(251).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Self { target, socket, id, answer: Answer::default(), full: false, largest: 0 })
    }

    /// What the kernel knows of the path, if that is less than what should get through.
    fn learnt(&self) -> Option<u32> {
        let route = RouteSocket::open().ok()?.route_to(self.target.to).ok()??;
        route.mtu.filter(|mtu| *mtu < self.target.size)
    }

    /// Sends an echo request of a size, which its sequence number tells.
    fn send(&self, size: u32) {
        let (kind, header) = if self.target.to.is_ipv4() { (8, 20) } else { (128, 40) };
        let mut packet = vec![0; size.saturating_sub(header).max(8) as usize];
        packet[0] = kind;
        packet[4..6].copy_from_slice(&self.id.to_be_bytes());
        packet[6..8].copy_from_slice(&(size as u16).to_be_bytes());
        // That of ICMPv6 is the kernel's work.
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        // What cannot be sent is not answered.
        let _ = sendto(self.socket.as_raw_fd(), &packet, address(self.target.to).as_ref(), MsgFlags::empty());
    }

    /// Takes answers until all that was hoped for is there, or the time is over.
    fn wait(&mut self, patience: Duration) {
        let deadline = Instant::now() + patience;
        while !(self.answer.small && (self.full || self.answer.most.is_some())) {
            if !self.receive(deadline) {
                return;
            }
        }
    }

    /// Takes one packet; false once the time is over.
    fn receive(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        let timeout = PollTimeout::try_from(left.as_millis().max(1)).unwrap_or(PollTimeout::ZERO);
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(0) => return false,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
        // An answer may be as long as the question.
        let mut buffer = vec![0; 1 << 16];
        while let Ok((length, from)) = recvfrom::<SockaddrStorage>(self.socket.as_raw_fd(), &mut buffer) {
            if from.as_ref().and_then(ip) == Some(self.target.to) {
                self.take(&buffer[..length]);
            }
        }
        true
    }

    fn take(&mut self, packet: &[u8]) {
        let v4 = self.target.to.is_ipv4();
        // IPv4 comes with its header.
        let header = if v4 { packet.first().map_or(0, |byte| usize::from(byte & 15) * 4) } else { 0 };
        let Some([kind, code, _, _, id1, id2, size1, size2]) = packet.get(header..header + 8) else { return };
        let reply = if v4 { 0 } else { 129 };
        // Protocol, port, and what a firewall says (RFC 792, 1812; 4443): not that a packet is too large.
        self.answer.refused |= match (v4, *kind) {
            (true, 3) => matches!(code, 2 | 3 | 9 | 10 | 13),
            (false, 1) => matches!(code, 1 | 4),
            (false, 4) => *code == 1,
            _ => false,
        };
        if *kind != reply || u16::from_be_bytes([*id1, *id2]) != self.id {
            return;
        }
        let size = u32::from(u16::from_be_bytes([*size1, *size2]));
        match size {
            SMALL => self.answer.small = true,
            size if size == self.target.size => self.full = true,
            size => self.largest = self.largest.max(size),
        }
    }

    /// Finds the largest size that gets through: one in [`STEPS`], and then nearer.
    fn search(&mut self) {
        let (mut from, mut to) = (SMALL, self.target.size);
        for _ in 0..2 {
            let step = ((to - from) / STEPS).max(1);
            for number in 1..STEPS {
                let size = from + number * step;
                if size < to {
                    self.send(size);
                }
            }
            let deadline = Instant::now() + ROUNDS[2];
            while self.receive(deadline) {}
            from = self.largest.max(from);
            to = (from + step).min(to);
        }
        self.answer.most = Some(from);
    }
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn address(ip: IpAddr) -> Box<dyn SockaddrLike> {
    match ip {
        IpAddr::V4(ip) => Box::new(SockaddrIn::from(SocketAddrV4::new(ip, 0))),
        IpAddr::V6(ip) => Box::new(SockaddrIn6::from(SocketAddrV6::new(ip, 0, 0, 0))),
    }
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_rfc_1071() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[8, 0, 0, 0, 0, 1, 0]), !0x0801);
    }
}
