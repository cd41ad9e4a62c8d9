//! Elements of nftables sets and maps, as the kernel has them (linux/netfilter/nf_tables.h).

use netlink_packet_core::DefaultNla;
use netlink_packet_netfilter::nftables::{
    DataAttribute, ListAttribute, NfTablesMessage, SetElementAttribute, SetElementFlags, SetElementList,
    SetElementMessage,
};

use super::Error;
use super::kernel::comment_of_nft;
use super::nfnetlink::{Nfnetlink, TRIES, attribute, attributes, be32, or_absent};

// Kinds of attributes.
const ELEMENTS: u16 = 3;
const KEY: u16 = 1;
const DATA: u16 = 2;
const FLAGS: u16 = 3;
const USERDATA: u16 = 6;
const KEY_END: u16 = 10;
const VALUE: u16 = 1;
/// NFT_SET_ELEM_INTERVAL_END.
const INTERVAL_END: u32 = 1;
/// NFTNL_UDATA_SET_ELEM_COMMENT, of libnftnl.
const COMMENT: u8 = 0;
/// The longest comment that nft reads, in bytes (NFTNL_UDATA_COMMENT_MAXLEN).
const COMMENT_LENGTH: usize = 128;

/// An element of a set or map.
///
/// Keys and values are bytes in network order. In a concatenation, each field is padded with zeroes to
/// a multiple of 4 bytes: `tcp . 80` is `06 00 00 00 00 50 00 00`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Element {
    /// The key, or the first one of an interval.
    pub key: Vec<u8>,
    /// The last key of an interval, field by field, in a concatenated set with `flags interval` (Linux
    /// 5.6 or later). An interval set of a single field has none: see [`interval_end`](Self::interval_end).
    pub key_end: Option<Vec<u8>>,
    /// In an interval set of a single field, an interval is two elements: that of its first key, and
    /// this one, of the first key after it. No such element ends an interval that reaches the last key.
    pub interval_end: bool,
    /// The value, in a map. A verdict is none.
    pub data: Option<Vec<u8>>,
    /// nft's comment; what is beyond 128 bytes is not written.
    pub comment: Option<String>,
}

impl Element {
    /// Reads what is in NFTA_LIST_ELEM. Nothing if there is no key: a catch-all element.
    fn read(bytes: &[u8]) -> Option<Self> {
        let value = |kind| Some(attribute(attribute(bytes, kind)?, VALUE)?.to_vec());
        let flags = attribute(bytes, FLAGS).and_then(be32).unwrap_or_default();
        Some(Self {
            key: value(KEY)?,
            key_end: value(KEY_END),
            interval_end: flags & INTERVAL_END != 0,
            data: value(DATA),
            comment: attribute(bytes, USERDATA).and_then(comment_of_nft),
        })
    }

    /// What names the element, as the kernel wants it in a question or a deletion.
    pub(super) fn name(&self) -> ListAttribute<SetElementAttribute> {
        let mut found = vec![SetElementAttribute::Key(DataAttribute::Value(self.key.clone()))];
        found.extend(
            self.key_end.as_ref().map(|end| SetElementAttribute::KeyEnd(vec![DefaultNla::new(VALUE, end.clone())])),
        );
        if self.interval_end {
            found.push(SetElementAttribute::Flags(SetElementFlags::IntervalEnd));
        }
        ListAttribute::Element(found)
    }

    /// All of it, as the kernel wants it in an addition.
    pub(super) fn whole(&self) -> ListAttribute<SetElementAttribute> {
        let mut element = self.name();
        if let ListAttribute::Element(found) = &mut element {
            found.extend(self.data.as_ref().map(|data| SetElementAttribute::Data(DataAttribute::Value(data.clone()))));
            found.extend(self.comment.as_deref().map(|comment| SetElementAttribute::UserData(userdata(comment))));
        }
        element
    }
}

/// A comment as libnftnl writes it: type, length, text, NUL.
fn userdata(comment: &str) -> Vec<u8> {
    let end = (0..=COMMENT_LENGTH.min(comment.len())).rev().find(|at| comment.is_char_boundary(*at));
    let text = &comment.as_bytes()[..end.unwrap_or_default()];
    [&[COMMENT, text.len() as u8 + 1], text, &[0]].concat()
}

impl Nfnetlink {
    /// The element of a key. In an interval set: the one that covers it.
    ///
    /// None if there is no such element, set or table.
    ///
    /// # Errors
    /// The kernel's: no nf_tables, no CAP_NET_ADMIN, a key of another length than the set's.
    pub fn element(&mut self, family: u8, table: &str, set: &str, key: &[u8]) -> Result<Option<Element>, Error> {
        let wanted = Element { key: key.to_vec(), ..Element::default() };
        let question = NfTablesMessage::GetSetElement(list(table, set, vec![wanted.name()]));
        or_absent(self.one(family, question, "read an nftables set element", |found| {
            attributes(attribute(found, ELEMENTS)?).find_map(|(_, element)| Element::read(element)).map(Some)
        }))
    }

    /// The elements of a set or map, in the order of their keys; none if there is no such set.
    ///
    /// # Errors
    /// The kernel's, or the ruleset changes faster than it can be read.
    pub fn set_elements(&mut self, family: u8, table: &str, set: &str) -> Result<Vec<Element>, Error> {
        let what = "list nftables set elements";
        let attributes_wanted = vec![SetElementList::Table(table.to_owned()), SetElementList::Set(set.to_owned())];
        let question = NfTablesMessage::GetSetElement(SetElementMessage { attributes: attributes_wanted });
        for _ in 0..TRIES {
            let found = or_absent(self.list(family, question.clone(), what, &|_| true))?;
            let lists = found.iter().filter_map(|(_, message)| attribute(message, ELEMENTS));
            let mut elements: Vec<_> = lists.flat_map(attributes).filter_map(|(_, e)| Element::read(e)).collect();
            elements.sort_unstable();
            // For a while after many additions the kernel moves elements into a larger hash table, in the
            // background. Each part of a list begins after as many elements as were listed before, so
            // that one listed twice tells of one left out.
            let same = |pair: &[Element]| (&pair[0].key, pair[0].interval_end) == (&pair[1].key, pair[1].interval_end);
            if !elements.windows(2).any(same) {
                return Ok(elements);
            }
        }
        Err(Error::Unsteady { request: what, tries: TRIES })
    }
}

/// Some elements of a set.
pub(super) fn list(table: &str, set: &str, elements: Vec<ListAttribute<SetElementAttribute>>) -> SetElementMessage {
    SetElementMessage {
        attributes: vec![
            SetElementList::Table(table.to_owned()),
            SetElementList::Set(set.to_owned()),
            SetElementList::Elements(elements),
        ],
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::Emitable;

    use super::*;

    fn bytes(element: &ListAttribute<SetElementAttribute>) -> Vec<u8> {
        let mut bytes = vec![0; element.buffer_len()];
        element.emit(&mut bytes);
        bytes
    }

    #[test]
    fn an_element_is_written_as_nft_writes_it() {
        let element = Element {
            key: vec![6, 0, 0, 0, 0, 80, 0, 0],
            data: Some(vec![10, 0, 0, 2]),
            comment: Some("osvc".into()),
            ..Element::default()
        };
        let written = bytes(&element.whole());
        if cfg!(target_endian = "little") {
            let name = [&[16, 0, 1, 0x80, 12, 0, 1, 0], &element.key[..]].concat();
            let data = [12, 0, 2, 0x80, 8, 0, 1, 0, 10, 0, 0, 2];
            let comment = [11, 0, 6, 0, 0, 5, b'o', b's', b'v', b'c', 0, 0];
            assert_eq!(written, [&[44, 0, 1, 0x80], &name[..], &data, &comment].concat());
            assert_eq!(bytes(&element.name()), [&[20, 0, 1, 0x80], &name[..]].concat());
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let plain = Element { key: vec![0, 80], ..Element::default() };
        let end = Element { key: vec![10, 0, 0, 3], interval_end: true, ..Element::default() };
        let full = Element {
            key: vec![10, 0, 0, 0],
            key_end: Some(vec![10, 0, 0, 255]),
            data: Some(vec![1, 2]),
            comment: Some("é".repeat(64)),
            ..Element::default()
        };
        for element in [plain, end, full] {
            assert_eq!(Element::read(&bytes(&element.whole())[4..]), Some(element));
        }
        assert_eq!(Element::read(&[8, 0, 3, 0, 0, 0, 0, 2]), None, "a catch-all element");
    }

    #[test]
    fn a_long_comment_is_cut_between_characters() {
        let written = userdata(&format!("a{}", "é".repeat(64)));
        assert_eq!((written[1], written.len()), (128, 130));
        assert_eq!(comment_of_nft(&written), Some(format!("a{}", "é".repeat(63))));
        assert_eq!(userdata(&"a".repeat(300)).len(), 131);
    }
}
