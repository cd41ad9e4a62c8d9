//! Forgetting UDP flows: the kernel translates the packets of a flow as it did the first one, however
//! the ruleset has changed since (linux/netfilter/nfnetlink_conntrack.h).

use std::collections::BTreeSet;

use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED};
use netlink_packet_netfilter::NetfilterMessageInner;
use netlink_packet_netfilter::conntrack::{ConntrackMessage, ProtoTuple, Protocol, Tuple};
use nix::libc::{EINVAL, EOPNOTSUPP, EPROTONOSUPPORT, IPPROTO_UDP};

use super::Error;
use super::nfnetlink::{Nfnetlink, attribute, attributes, be32, or_absent};

// IPCTNL_MSG_CT_*.
const GET: u8 = 1;
const DELETE: u8 = 2;
const GET_STATS: u8 = 5;
// Kinds of attributes.
const STATS_ENTRIES: u16 = 1;
const TUPLE_ORIG: u16 = 1;
const ID: u16 = 12;
const ZONE: u16 = 18;
const FILTER: u16 = 25;
const FILTER_ORIG_FLAGS: u16 = 1;
const TUPLE_PROTO: u16 = 2;
const PROTO_NUM: u16 = 1;
const PROTO_DST_PORT: u16 = 3;
/// CTA_FILTER_FLAG(CTA_PROTO_NUM) and CTA_FILTER_FLAG(CTA_PROTO_DST_PORT): what of the tuple counts.
const BY_PROTOCOL: u32 = 1 << 3;
const BY_PORT: u32 = 1 << 5;
/// Up to so many ports are deleted one by one: each walks the kernel's whole table, as a dump does.
const DIRECT: usize = 4;

const FORGET: &str = "delete conntrack entries";

impl Nfnetlink {
    /// Deletes the conntrack entries of UDP flows that were first sent to one of these ports, whatever
    /// the address.
    ///
    /// Costs some 10 µs if no flow of any kind is known. A kernel that lists no flows is no error.
    ///
    /// # Errors
    /// The kernel's: no CAP_NET_ADMIN.
    pub fn forget_udp(&mut self, family: u8, ports: &[u16]) -> Result<(), Error> {
        self.forget_udp_up_to(DIRECT, family, ports)
    }

    /// As [`forget_udp`](Self::forget_udp); more ports than `direct` are looked for in a list.
    pub(super) fn forget_udp_up_to(&mut self, direct: usize, family: u8, ports: &[u16]) -> Result<(), Error> {
        let ports: BTreeSet<u16> = ports.iter().copied().collect();
        if ports.is_empty() || self.flows()? == 0 {
            return Ok(());
        }
        if ports.len() <= direct && self.forget_each(family, &ports)? {
            return Ok(());
        }
        // Linux before 5.8 does not know the filter, and lists all of the family.
        let entries = match self.entries(family, &ports, by_protocol()) {
            Err(error) if is_unknown(&error) => self.entries(family, &ports, vec![]),
            answer => answer,
        }?;
        for entry in entries {
            // Some other may have been faster.
            or_absent(self.order(family, message(DELETE, entry), FORGET))?;
        }
        Ok(())
    }

    /// One deletion for each port; false if the kernel has none by port.
    pub(super) fn forget_each(&mut self, family: u8, ports: &BTreeSet<u16>) -> Result<bool, Error> {
        match ports.iter().try_for_each(|port| self.order(family, message(DELETE, by_port(*port)), FORGET)) {
            Err(error) if is_unknown(&error) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// How many flows are known in this network namespace, of whatever family and protocol.
    fn flows(&mut self) -> Result<u32, Error> {
        let question = message(GET_STATS, vec![]);
        match self.one(0, question, "count conntrack entries", |found| attribute(found, STATS_ENTRIES).and_then(be32)) {
            Err(error) if is_unknown(&error) => {
                tracing::debug!(%error, "this kernel has no ctnetlink: UDP flows are not forgotten");
                Ok(0)
            }
            answer => answer,
        }
    }

    /// The entries of UDP flows to these ports, each as the attributes that name it.
    pub(super) fn entries(
        &mut self,
        family: u8,
        ports: &BTreeSet<u16>,
        filter: Vec<DefaultNla>,
    ) -> Result<Vec<Vec<DefaultNla>>, Error> {
        let wanted = |found: &[u8]| udp_port(found).is_some_and(|port| ports.contains(&port));
        let found = self.list(family, message(GET, filter), "list conntrack entries", &wanted)?;
        Ok(found.iter().filter_map(|(_, entry)| name(entry)).collect())
    }
}

/// `ConntrackAttribute` loses the flag of nested attributes that it does not know, and without it the
/// kernel refuses a filter.
fn message(message_type: u8, attributes: Vec<DefaultNla>) -> NetfilterMessageInner {
    ConntrackMessage::Other { message_type, attributes }.into()
}

/// All UDP flows to a port, for a deletion.
///
/// Linux 6.1 has no such deletion and answers EINVAL, because the tuple has no addresses. A deletion
/// with no tuple at all would delete everything there.
fn by_port(port: u16) -> Vec<DefaultNla> {
    let tuple = vec![ProtoTuple::Protocol(Protocol::Udp), ProtoTuple::DestinationPort(port)];
    selection(tuple, BY_PROTOCOL | BY_PORT)
}

/// All UDP flows, for a list.
pub(super) fn by_protocol() -> Vec<DefaultNla> {
    selection(vec![ProtoTuple::Protocol(Protocol::Udp)], BY_PROTOCOL)
}

/// What selects the entries whose original tuple has these parts.
fn selection(tuple: Vec<ProtoTuple>, parts: u32) -> Vec<DefaultNla> {
    let nest = |kind, content: &dyn Emitable| {
        let mut bytes = vec![0; content.buffer_len()];
        content.emit(&mut bytes);
        DefaultNla::new(kind | NLA_F_NESTED, bytes)
    };
    // The only number here that is in host byte order.
    let flags = DefaultNla::new(FILTER_ORIG_FLAGS, parts.to_ne_bytes().to_vec());
    vec![nest(TUPLE_ORIG, &Tuple::Proto(tuple)), nest(FILTER, &flags)]
}

/// The port that a flow was first sent to, if it is one of UDP.
fn udp_port(entry: &[u8]) -> Option<u16> {
    let protocol = attribute(attribute(entry, TUPLE_ORIG)?, TUPLE_PROTO)?;
    let is_udp = attribute(protocol, PROTO_NUM)? == [IPPROTO_UDP as u8];
    let port = attribute(protocol, PROTO_DST_PORT)?.try_into().ok().map(u16::from_be_bytes)?;
    is_udp.then_some(port)
}

/// What names an entry of a list: tuple and zone, and the number that tells it from a later entry with
/// the same tuple. Nothing without a tuple: such a deletion would delete everything.
fn name(entry: &[u8]) -> Option<Vec<DefaultNla>> {
    let tuple = attribute(entry, TUPLE_ORIG).filter(|tuple| !tuple.is_empty())?;
    let others = attributes(entry).filter(|(kind, _)| matches!(*kind, ID | ZONE));
    let others = others.map(|(kind, value)| DefaultNla::new(kind, value.to_vec()));
    Some(std::iter::once(DefaultNla::new(TUPLE_ORIG | NLA_F_NESTED, tuple.to_vec())).chain(others).collect())
}

/// True if the kernel does not know the question.
fn is_unknown(error: &Error) -> bool {
    matches!(error.errno(), Some(EINVAL | EOPNOTSUPP | EPROTONOSUPPORT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(attributes: &[DefaultNla]) -> Vec<u8> {
        let mut bytes = vec![0; Emitable::buffer_len(&attributes)];
        attributes.emit(&mut bytes);
        bytes
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_deletion_by_port_has_tuple_and_filter() {
        let tuple = [24, 0, 1, 0x80, 20, 0, 2, 0x80, 5, 0, 1, 0, 17, 0, 0, 0, 6, 0, 3, 0, 0x14, 0xe9, 0, 0];
        let filter = [12, 0, 25, 0x80, 8, 0, 1, 0, 0x28, 0, 0, 0];
        assert_eq!(bytes(&by_port(5353)), [&tuple[..], &filter].concat());
    }

    #[test]
    fn the_port_of_an_entry_is_that_of_udp() {
        let entry = |protocol, port| {
            bytes(&selection(vec![ProtoTuple::Protocol(protocol), ProtoTuple::DestinationPort(port)], 0))
        };
        assert_eq!(udp_port(&entry(Protocol::Udp, 53)), Some(53));
        assert_eq!(udp_port(&entry(Protocol::Tcp, 53)), None);
        assert_eq!(udp_port(&[]), None);
    }

    #[test]
    fn an_entry_is_named_by_tuple_zone_and_number_and_never_by_nothing() {
        let tuple = DefaultNla::new(TUPLE_ORIG | NLA_F_NESTED, vec![4, 0, 2, 0x80]);
        let [timeout, id, zone] = [(7, 4), (ID, 4), (ZONE, 2)].map(|(kind, size)| DefaultNla::new(kind, vec![1; size]));
        let entry = bytes(&[timeout.clone(), tuple.clone(), id.clone(), zone.clone()]);
        assert_eq!(name(&entry), Some(vec![tuple, id.clone(), zone.clone()]));
        assert_eq!(name(&bytes(&[timeout, id, zone])), None);
        assert_eq!(name(&bytes(&[DefaultNla::new(TUPLE_ORIG, vec![])])), None);
        assert_eq!(name(&[]), None);
    }
}
