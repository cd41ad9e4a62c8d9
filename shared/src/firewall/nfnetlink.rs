//! A netfilter netlink socket that is used for one question, order or batch at a time.
//!
//! Questions are built with `netlink-packet-netfilter`. Answers are handed over as bytes and read
//! attribute by attribute: rules of other programs hold expressions that no library knows, and of ours
//! the bytes themselves are compared.

use std::io;

use netlink_packet_core::{
    Emitable, NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP,
    NetlinkBuffer, NetlinkHeader, NetlinkSerializable, NlasIterator,
};
use netlink_packet_netfilter::{NetfilterHeader, NetfilterMessage, NetfilterMessageInner};
use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use nix::libc::{EMSGSIZE, MSG_TRUNC};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

use super::Error;

/// Bytes of a netlink message header.
const HEADER: usize = 16;
/// The kernel fills dumps up to 32 KiB when the reader offers as much (`netlink_recvmsg`).
const BUFFER: usize = 32 * 1024;
/// A lost answer must not hang a container's start for ever.
const SECONDS: i64 = 20;
/// Readings of a list that changes while it is read: each commit of anybody counts.
pub(super) const TRIES: u32 = 64;

/// A netfilter netlink socket of one network namespace: that of the thread which opened it.
///
/// Closing it after nothing but questions and additions waits for nothing. After a deletion in nf_tables
/// anywhere, the close of any such socket waits until what was deleted is gone: an RCU grace period, some
/// 12 ms. So everything that deletes does all of its work through one socket and closes it last.
pub struct Nfnetlink {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Nfnetlink {
    /// Opens a socket in the network namespace of this thread.
    ///
    /// # Errors
    /// The kernel has no nfnetlink.
    pub fn open() -> Result<Self, Error> {
        let socket = Socket::new(NETLINK_NETFILTER).map_err(|source| Error::NoNftables { source })?;
        let refused = |source| Error::Kernel { request: "open a netfilter socket", source };
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(SECONDS)).map_err(|e| refused(e.into()))?;
        // An error repeats the message it is about, unless told not to: that of a batch may not fit.
        socket.set_cap_ack(true).map_err(refused)?;
        Ok(Self { socket, buffer: vec![0; BUFFER], sequence: 0 })
    }

    /// Asks for one object and hands over its attributes. `what` follows "cannot".
    pub(super) fn one<T>(
        &mut self,
        family: u8,
        question: impl Into<NetfilterMessageInner>,
        what: &'static str,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, Error> {
        self.send(family, question.into(), 0, what)?;
        let mut read = Some(read);
        let mut found = None;
        self.receive(false, what, &mut |_, attributes| {
            found = read.take().and_then(|read| read(attributes));
        })?;
        found.ok_or(Error::Malformed { request: what })
    }

    /// Asks for a list and hands over family and attributes of each object, once the list was read
    /// without a commit in between.
    pub(super) fn list(
        &mut self,
        family: u8,
        question: impl Into<NetfilterMessageInner>,
        what: &'static str,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Vec<(u8, Vec<u8>)>, Error> {
        let question = question.into();
        for _ in 0..TRIES {
            let mut found = Vec::new();
            self.send(family, question.clone(), NLM_F_DUMP, what)?;
            let whole = self.receive(true, what, &mut |family, attributes| {
                if wanted(attributes) {
                    found.push((family, attributes.to_vec()));
                }
            })?;
            if whole {
                return Ok(found);
            }
        }
        Err(Error::Unsteady { request: what, tries: TRIES })
    }

    /// Has something done and waits until it is. `what` follows "cannot".
    pub(super) fn order(&mut self, family: u8, order: NetfilterMessageInner, what: &'static str) -> Result<(), Error> {
        self.send(family, order, NLM_F_ACK, what)?;
        self.acknowledged(what)
    }

    /// Waits for the acknowledgement of what was sent last.
    pub(super) fn acknowledged(&mut self, what: &'static str) -> Result<(), Error> {
        self.receive(false, what, &mut |_, _| {}).map(drop)
    }

    fn send(
        &mut self,
        family: u8,
        question: NetfilterMessageInner,
        flags: u16,
        what: &'static str,
    ) -> Result<(), Error> {
        // Version 1 tells conntrack that the family is meant: until then, a deletion ignored it.
        let version = matches!(question, NetfilterMessageInner::Conntrack(_)).into();
        let header = NetfilterHeader::new(family.into(), version, 0);
        let mut message = Vec::new();
        encode(&NetfilterMessage::new(header, question), flags, self.next_sequence(), &mut message);
        self.transmit(&message, what)
    }

    /// A number for the next message, and for all its answers.
    pub(super) fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    /// Sends one message or several in one system call, however long.
    pub(super) fn transmit(&mut self, messages: &[u8], what: &'static str) -> Result<(), Error> {
        let kernel = SocketAddr::new(0, 0);
        let mut enlarged = false;
        loop {
            match self.socket.send_to(messages, &kernel, 0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(EMSGSIZE) && !enlarged => {
                    enlarged = true;
                    // In a user namespace there is no more than net.core.wmem_max: sending says so.
                    if setsockopt(&self.socket, sockopt::SndBufForce, &messages.len()).is_err() {
                        let _ = setsockopt(&self.socket, sockopt::SndBuf, &messages.len());
                    }
                }
                Err(source) => return Err(Error::Kernel { request: what, source }),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Hands over the objects of the answer; false if it is a list that changed while it was read.
    fn receive(&mut self, list: bool, what: &'static str, each: &mut dyn FnMut(u8, &[u8])) -> Result<bool, Error> {
        let malformed = || Error::Malformed { request: what };
        let mut whole = true;
        loop {
            // With MSG_TRUNC the length is that of the message, whatever fits.
            let (length, sender) = match self.socket.recv_from(&mut &mut self.buffer[..], MSG_TRUNC) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(Error::Kernel { request: what, source }),
                Ok(received) => received,
            };
            if sender.port_number() != 0 {
                continue;
            }
            let mut rest = self.buffer.get(..length).ok_or_else(malformed)?;
            while !rest.is_empty() {
                let message = NetlinkBuffer::new_checked(rest).map_err(|_| malformed())?;
                rest = rest.get((message.length() as usize).next_multiple_of(4)..).unwrap_or_default();
                // The rest of an answer that was given up.
                if message.sequence_number() != self.sequence {
                    continue;
                }
                whole &= message.flags() & NLM_F_DUMP_INTR == 0;
                match (message.message_type(), message.payload()) {
                    (NLMSG_NOOP, _) => {}
                    (NLMSG_DONE | NLMSG_ERROR, [a, b, c, d, ..]) => {
                        return match i32::from_ne_bytes([*a, *b, *c, *d]) {
                            0.. => Ok(whole),
                            code => Err(Error::Kernel {
                                request: what,
                                source: io::Error::from_raw_os_error(code.saturating_neg()),
                            }),
                        };
                    }
                    // struct nfgenmsg: family, version, 16 bits of the generation; then the attributes.
                    (_, [family, _, _, _, attributes @ ..]) => {
                        each(*family, attributes);
                        if !list {
                            return Ok(true);
                        }
                    }
                    _ => return Err(malformed()),
                }
            }
        }
    }
}

/// Appends a message as it is sent.
pub(super) fn encode(message: &NetfilterMessage, flags: u16, sequence: u32, messages: &mut Vec<u8>) {
    let length = HEADER + Emitable::buffer_len(message);
    let mut header = NetlinkHeader::default();
    header.length = length as u32;
    header.message_type = NetlinkSerializable::message_type(message);
    header.flags = NLM_F_REQUEST | flags;
    header.sequence_number = sequence;
    let start = messages.len();
    messages.resize(start + length, 0);
    header.emit(&mut messages[start..]);
    message.emit(&mut messages[start + HEADER..]);
}

/// Success instead of ENOENT: what does not exist has no parts.
pub(super) fn or_absent<T: Default>(answer: Result<T, Error>) -> Result<T, Error> {
    match answer {
        Err(Error::Kernel { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        other => other,
    }
}

/// The attributes in some bytes, as kind and value, up to the first that is malformed.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    // `NlaBuffer::value` borrows from the buffer's own life: the value is cut from `bytes` instead.
    NlasIterator::new(bytes).map_while(Result::ok).scan(0usize, move |at, attribute| {
        let start = *at + 4;
        *at = (*at + attribute.length() as usize).next_multiple_of(4);
        Some((attribute.kind(), bytes.get(start..start + attribute.value_length())?))
    })
}

/// The value of the first attribute of a kind.
pub(super) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// A text up to its NUL; nothing if it is no UTF-8.
pub(super) fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.split(|byte| *byte == 0).next()?).ok()
}

/// A number of 32 bits: nf_tables sends all numbers in network byte order.
pub(super) fn be32(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_be_bytes)
}

/// A number of 64 bits.
pub(super) fn be64(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_be_bytes)
}
