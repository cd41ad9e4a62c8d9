//! A netlink socket that is used for one request at a time.

use std::fmt::Arguments;

use netlink_packet_core::{
    Emitable, NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE,
    NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN, NetlinkHeader,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

use super::Error;
use super::attributes::{attributes, number, text};
use super::error::errno;

/// Bytes of a netlink message header.
const HEADER: usize = 16;
/// The kernel fills dumps up to 32 KiB when the reader offers as much (`netlink_recvmsg`).
const BUFFER: usize = 32 * 1024;
/// rtnetlink answers at once, but for the RCU grace periods of a deletion and a contended RTNL lock.
const SECONDS: i64 = 20;
/// Interrupted system calls in a row that are taken for signals and not for a fault.
const INTERRUPTS: u32 = 1000;
/// Readings of a list that changes while it is read. Links change with every container.
const TRIES: u32 = 64;
/// NLMSGERR_ATTR_MSG: the kernel's explanation (linux/netlink.h).
const EXPLANATION: u16 = 1;

/// How the end of an answer is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// An acknowledgement, after any number of messages.
    Acknowledged,
    /// One message.
    One,
    /// Messages until NLMSG_DONE.
    List,
}

/// An rtnetlink socket of one network namespace: that of the thread which opened it. It stays there
/// when the thread leaves.
#[derive(Debug)]
pub struct RouteSocket {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl RouteSocket {
    /// Opens a socket in the network namespace of this thread.
    ///
    /// # Errors
    /// The kernel refuses the socket.
    pub fn open() -> Result<Self, Error> {
        Self::open_for(NETLINK_ROUTE)
    }

    /// A socket of another protocol, whose conversations have the same form.
    pub(super) fn open_for(protocol: isize) -> Result<Self, Error> {
        let failed = |what: &'static str| move |error: std::io::Error| Error::Socket { what, errno: errno(&error) };
        let socket = Socket::new(protocol).map_err(failed("open"))?;
        // A lost answer must not hang a container's start for ever.
        for set in [
            setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(SECONDS)),
            setsockopt(&socket, sockopt::SendTimeout, &TimeVal::seconds(SECONDS)),
        ] {
            set.map_err(|errno| Error::Socket { what: "configure", errno })?;
        }
        // Filters of dumps are only honoured with this (kernel 4.20).
        socket.set_netlink_get_strict_chk(true).map_err(failed("configure"))?;
        // For the words of the error messages; nothing depends on them.
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        Ok(Self { socket, sequence: 0, buffer: Vec::with_capacity(BUFFER) })
    }

    /// Asks for a change; `what` is its description after "cannot".
    pub(super) fn change(
        &mut self,
        kind: u16,
        flags: u16,
        body: &dyn Emitable,
        what: Arguments<'_>,
    ) -> Result<(), Error> {
        self.send(kind, flags | NLM_F_REQUEST | NLM_F_ACK, body, what)?;
        self.receive(Answer::Acknowledged, what, &mut |_| {}).map(drop)
    }

    /// Asks for one object. `missing` are the errors that mean that there is none.
    pub(super) fn one<T>(
        &mut self,
        kind: u16,
        body: &dyn Emitable,
        what: Arguments<'_>,
        missing: &[Errno],
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        self.send(kind, NLM_F_REQUEST, body, what)?;
        let mut found = None;
        match self.receive(Answer::One, what, &mut |message| found = read(message)) {
            Ok(_) if found.is_none() => Err(Error::Malformed { request: what.to_string(), what: "no object in it" }),
            Ok(_) => Ok(found),
            Err(Error::Refused { errno, .. }) if missing.contains(&errno) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks for a list, again if it changed while it was read.
    pub(super) fn list<T>(
        &mut self,
        kind: u16,
        body: &dyn Emitable,
        what: Arguments<'_>,
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        for _ in 0..TRIES {
            let mut found = Vec::new();
            self.send(kind, NLM_F_REQUEST | NLM_F_DUMP, body, what)?;
            if self.receive(Answer::List, what, &mut |message| found.extend(read(message)))? {
                return Ok(found);
            }
        }
        Err(Error::Unsteady { request: what.to_string(), tries: TRIES })
    }

    fn send(&mut self, kind: u16, flags: u16, body: &dyn Emitable, what: Arguments<'_>) -> Result<(), Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = HEADER + body.buffer_len();
        let mut header = NetlinkHeader::default();
        header.length = length as u32;
        header.message_type = kind;
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = vec![0; length];
        header.emit(&mut message);
        body.emit(&mut message[HEADER..]);
        let kernel = SocketAddr::new(0, 0);
        retried(what, || self.socket.send_to(&message, &kernel, 0)).map(drop)
    }

    /// Hands over the messages of the answer; false if it is a list that changed meanwhile.
    fn receive(&mut self, answer: Answer, what: Arguments<'_>, each: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let malformed = |fault| Error::Malformed { request: what.to_string(), what: fault };
        let mut steady = true;
        loop {
            let (socket, buffer) = (&self.socket, &mut self.buffer);
            let (length, sender) = retried(what, || {
                buffer.clear();
                // With MSG_TRUNC the length is that of the message, whatever fits.
                socket.recv_from(buffer, nix::libc::MSG_TRUNC)
            })?;
            if sender.port_number() != 0 {
                continue;
            }
            let mut rest = self.buffer.get(..length).ok_or_else(|| malformed("longer than 32 KiB"))?;
            while !rest.is_empty() {
                let header = Header::read(rest).ok_or_else(|| malformed("truncated"))?;
                let message = &rest[..header.length];
                rest = rest.get(header.length.next_multiple_of(4)..).unwrap_or_default();
                // The rest of an answer that was given up.
                if header.sequence != self.sequence {
                    continue;
                }
                steady &= header.flags & NLM_F_DUMP_INTR == 0;
                match header.kind {
                    NLMSG_NOOP => {}
                    NLMSG_OVERRUN => return Err(malformed("data lost")),
                    NLMSG_ERROR | NLMSG_DONE => {
                        return match outcome(message, &header) {
                            Some((Ok(()), _)) => Ok(steady),
                            Some((Err(errno), hint)) => Err(Error::Refused { request: what.to_string(), errno, hint }),
                            None => Err(malformed("truncated")),
                        };
                    }
                    _ => {
                        each(&message[HEADER..]);
                        if answer == Answer::One {
                            return Ok(true);
                        }
                    }
                }
            }
        }
    }
}

/// The header fields that matter of an answer.
struct Header {
    length: usize,
    kind: u16,
    flags: u16,
    sequence: u32,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let length = word(0)? as usize;
        let header = Self { length, kind: half(4)?, flags: half(6)?, sequence: word(8)? };
        (HEADER..=bytes.len()).contains(&length).then_some(header)
    }
}

/// The error number and the explanation of an NLMSG_ERROR or NLMSG_DONE.
fn outcome(message: &[u8], header: &Header) -> Option<(Result<(), Errno>, Option<String>)> {
    let code = match message.get(HEADER..HEADER + 4) {
        Some(bytes) => i32::from_ne_bytes(bytes.try_into().ok()?),
        // An NLMSG_DONE without a number is a good end.
        None if header.kind == NLMSG_DONE => 0,
        None => return None,
    };
    if code >= 0 {
        return Some((Ok(()), None));
    }
    // Before the explanation lies the request's header, and the request itself unless capped.
    let hint = (header.kind == NLMSG_ERROR && header.flags & NLM_F_ACK_TLVS != 0)
        .then(|| {
            let request = number(message.get(HEADER + 4..)?)? as usize;
            let skip = if header.flags & NLM_F_CAPPED != 0 { HEADER } else { request.next_multiple_of(4) };
            attributes(message, HEADER + 4 + skip).find(|(kind, _)| *kind == EXPLANATION).map(|(_, value)| text(value))
        })
        .flatten();
    Some((Err(Errno::from_raw(code.saturating_neg())), hint))
}

/// A system call on the socket, repeated when a signal interrupts it.
fn retried<T>(what: Arguments<'_>, mut call: impl FnMut() -> std::io::Result<T>) -> Result<T, Error> {
    for _ in 0..INTERRUPTS {
        match call() {
            Err(error) if errno(&error) == Errno::EINTR => {}
            Err(error) if errno(&error) == Errno::EAGAIN => {
                return Err(Error::Timeout { request: what.to_string(), seconds: SECONDS });
            }
            Err(error) => {
                return Err(Error::Refused { request: what.to_string(), errno: errno(&error), hint: None });
            }
            Ok(value) => return Ok(value),
        }
    }
    Err(Error::Refused { request: what.to_string(), errno: Errno::EINTR, hint: None })
}
