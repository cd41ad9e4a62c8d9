//! Elements added and deleted in one nftables transaction.

use netlink_packet_core::{Emitable, NLM_F_ACK, NLM_F_CREATE};
use netlink_packet_netfilter::nftables::{ListAttribute, NfTablesMessage, SetElementAttribute};
use netlink_packet_netfilter::none::ControlMessage;
use netlink_packet_netfilter::{NetfilterHeader, NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily};

use super::Error;
use super::element::{self, Element};
use super::nfnetlink::{Nfnetlink, encode};

/// NFNL_SUBSYS_NFTABLES: whose batch it is.
const NFTABLES: u16 = 10;
/// Bytes of elements in one message: the list is one attribute, and its length has 16 bits.
const CHUNK: usize = 48 * 1024;

/// Changes of elements, done in their order and together or not at all.
#[derive(Debug, Default)]
pub struct Batch {
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    deletes: bool,
    family: u8,
    table: String,
    set: String,
    elements: Vec<Element>,
}

impl Batch {
    /// Adds elements. One that is there with the same value stays as it is, its comment too; one with
    /// another value is refused with EEXIST: delete it first.
    pub fn add(&mut self, family: u8, table: &str, set: &str, elements: Vec<Element>) {
        self.step(false, family, table, set, elements);
    }

    /// Deletes elements: only key, [`key_end`](Element::key_end) and
    /// [`interval_end`](Element::interval_end) count. One that is not there is refused with ENOENT.
    pub fn delete(&mut self, family: u8, table: &str, set: &str, keys: Vec<Element>) {
        self.step(true, family, table, set, keys);
    }

    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    fn step(&mut self, deletes: bool, family: u8, table: &str, set: &str, elements: Vec<Element>) {
        if elements.is_empty() {
            return;
        }
        match self.steps.last_mut() {
            Some(last) if (last.deletes, last.family, &*last.table, &*last.set) == (deletes, family, table, set) => {
                last.elements.extend(elements);
            }
            _ => self.steps.push(Step { deletes, family, table: table.to_owned(), set: set.to_owned(), elements }),
        }
    }

    /// All messages. They have one number: the first error is that of the batch, and the last message
    /// is acknowledged after all errors.
    fn encode(&self, sequence: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let control =
            |message| NetfilterMessage::new(NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, NFTABLES), message);
        encode(&control(ControlMessage::BatchBegin), 0, sequence, &mut bytes);
        let mut chunks = self.steps.iter().flat_map(Step::chunks).peekable();
        while let Some((step, chunk)) = chunks.next() {
            let acknowledge = if chunks.peek().is_none() { NLM_F_ACK } else { 0 };
            let (message, flags) = step.message(chunk);
            encode(&message, flags | acknowledge, sequence, &mut bytes);
        }
        encode(&control(ControlMessage::BatchEnd), 0, sequence, &mut bytes);
        bytes
    }
}

impl Step {
    /// As many elements as fit, time and again.
    fn chunks(&self) -> impl Iterator<Item = (&Self, Vec<ListAttribute<SetElementAttribute>>)> {
        let mut elements = self.elements.iter().map(|e| if self.deletes { e.name() } else { e.whole() }).peekable();
        std::iter::from_fn(move || {
            let mut chunk = vec![elements.next()?];
            let mut size = chunk[0].buffer_len();
            while let Some(next) = elements.next_if(|next| size + next.buffer_len() <= CHUNK) {
                size += next.buffer_len();
                chunk.push(next);
            }
            Some((self, chunk))
        })
    }

    fn message(&self, elements: Vec<ListAttribute<SetElementAttribute>>) -> (NetfilterMessage, u16) {
        let elements = element::list(&self.table, &self.set, elements);
        let (message, flags) = if self.deletes {
            (NfTablesMessage::DeleteSetElement(elements), 0)
        } else {
            (NfTablesMessage::NewSetElement(elements), NLM_F_CREATE)
        };
        let header = NetfilterHeader::new(self.family.into(), 0, 0);
        (NetfilterMessage::new(header, NetfilterMessageInner::from(message)), flags)
    }
}

impl Nfnetlink {
    /// Does all of a batch, or nothing. `what` follows "cannot".
    ///
    /// # Errors
    /// [`Error::Kernel`] with the kernel's first refusal, after which nothing is done: ENOENT if a
    /// table, a set or what is deleted is missing, EEXIST if an element is there with another value,
    /// ENOSPC or ENFILE if a set is full, EPERM without CAP_NET_ADMIN, EMSGSIZE if the batch exceeds a
    /// send buffer that may not grow. After EAGAIN (no answer for 20 s) it may have been done.
    pub fn commit(&mut self, batch: &Batch, what: &'static str) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        let messages = batch.encode(self.next_sequence());
        self.transmit(&messages, what)?;
        self.acknowledged(what)
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{NLM_F_REQUEST, NetlinkBuffer};

    use super::*;

    fn elements(keys: std::ops::Range<u32>) -> Vec<Element> {
        keys.map(|key| Element { key: key.to_be_bytes().to_vec(), ..Element::default() }).collect()
    }

    /// Type, flags and length of each message.
    fn messages(mut bytes: &[u8]) -> Vec<(u16, u16, usize)> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let message = NetlinkBuffer::new_checked(bytes).unwrap();
            assert_eq!(message.sequence_number(), 7);
            found.push((message.message_type(), message.flags() & !NLM_F_REQUEST, message.length() as usize));
            bytes = &bytes[message.length() as usize..];
        }
        found
    }

    const NEW: u16 = 0x0a0c;
    const DELETE: u16 = 0x0a0e;

    #[test]
    fn steps_keep_their_order_and_the_last_is_acknowledged() {
        let mut batch = Batch::default();
        assert!(batch.is_empty());
        batch.add(2, "t", "s", vec![]);
        assert!(batch.is_empty());
        batch.add(2, "t", "s", elements(0..1));
        batch.add(2, "t", "s", elements(1..2));
        assert!(!batch.is_empty());
        batch.delete(2, "t", "s", elements(0..1));
        batch.add(2, "t", "s", elements(0..1));
        batch.add(2, "t", "other", elements(0..1));
        batch.add(10, "t", "other", elements(0..1));
        let found = messages(&batch.encode(7));
        let kinds: Vec<_> = found.iter().map(|(kind, flags, _)| (*kind, *flags)).collect();
        let new = (NEW, NLM_F_CREATE);
        let expected = [(16, 0), new, (DELETE, 0), new, new, (NEW, NLM_F_CREATE | NLM_F_ACK), (17, 0)];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn the_batch_says_whose_it_is() {
        let mut batch = Batch::default();
        batch.add(2, "t", "s", elements(0..1));
        assert_eq!(batch.encode(7)[16..20], [0, 0, 0, 10]);
    }

    #[test]
    fn no_attribute_exceeds_its_length() {
        let mut batch = Batch::default();
        batch.add(2, "t", "s", elements(0..10_000));
        let found = messages(&batch.encode(7));
        let elements = 10_000 * 16 + (found.len() - 2) * (20 + 8 + 8 + 4) + 2 * 20;
        assert_eq!(found.iter().map(|(_, _, length)| length).sum::<usize>(), elements);
        assert!(found.iter().all(|(_, _, length)| *length <= CHUNK + 64), "{found:?}");
        assert_eq!(found.iter().filter(|(_, flags, _)| flags & NLM_F_ACK != 0).count(), 1);
    }
}
