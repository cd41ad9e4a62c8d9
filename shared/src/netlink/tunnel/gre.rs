//! IFLA_GRE_*: gre and ip6gre.

use netlink_packet_core::DefaultNla;

use super::data::{end, ends, first, limit as no_limit, read_limit, set, short};
use super::{Tunnel, TunnelKind};
use crate::netlink::attributes::{attributes, number};
use crate::netlink::request::{byte, bytes};

const LINK: u16 = 1;
const IFLAGS: u16 = 2;
const OFLAGS: u16 = 3;
const IKEY: u16 = 4;
const OKEY: u16 = 5;
const LOCAL: u16 = 6;
const REMOTE: u16 = 7;
const TTL: u16 = 8;
const TOS: u16 = 9;
const PMTUDISC: u16 = 10;
const ENCAP_LIMIT: u16 = 11;
const FLOWINFO: u16 = 12;
const FLAGS: u16 = 13;
const ENCAP_TYPE: u16 = 14;
const COLLECT_METADATA: u16 = 18;
const IGNORE_DF: u16 = 19;
const FWMARK: u16 = 20;
/// GRE_KEY: there is a key.
const KEY: u16 = 0x2000;

pub(super) fn write(tunnel: &Tunnel) -> Vec<DefaultNla> {
    let mut data = vec![byte(TTL, tunnel.ttl)];
    data.extend(ends(tunnel, LOCAL, REMOTE));
    if let Some(key) = tunnel.key {
        data.extend([IFLAGS, OFLAGS].map(|kind| bytes(kind, &KEY.to_be_bytes())));
        data.extend([IKEY, OKEY].map(|kind| bytes(kind, &key.to_be_bytes())));
    }
    if tunnel.kind == TunnelKind::Ip6gre {
        data.extend(no_limit(tunnel, ENCAP_LIMIT, FLAGS));
    } else {
        data.push(byte(PMTUDISC, tunnel.pmtudisc.into()));
    }
    data
}

pub(super) fn read(tunnel: &mut Tunnel, data: &[u8]) {
    let (mut limit, mut flags) = (0, 0);
    // Flags and key of what comes in, and of what goes out.
    let (mut received, mut sent) = ((0, 0), (0, 0));
    for (kind, value) in attributes(data, 0) {
        let key = || value.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        match kind {
            LOCAL => tunnel.local = end(value),
            REMOTE => tunnel.remote = end(value),
            TTL => tunnel.ttl = first(value),
            PMTUDISC => tunnel.pmtudisc = set(value),
            IFLAGS => received.0 = short(value).unwrap_or_default(),
            OFLAGS => sent.0 = short(value).unwrap_or_default(),
            IKEY => received.1 = key(),
            OKEY => sent.1 = key(),
            ENCAP_LIMIT => limit = first(value),
            FLAGS => flags = number(value).unwrap_or_default(),
            COLLECT_METADATA => tunnel.unusual = true,
            LINK | TOS | FLOWINFO | ENCAP_TYPE | IGNORE_DF | FWMARK => {
                tunnel.unusual |= set(value);
            }
            _ => {}
        }
    }
    tunnel.key = (received.0 & KEY != 0).then_some(received.1);
    tunnel.unusual |= received != sent || received.0 & !KEY != 0;
    if tunnel.kind == TunnelKind::Ip6gre {
        tunnel.unusual |= read_limit(tunnel, limit, flags);
    }
}
