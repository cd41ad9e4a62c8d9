//! IFLA_IPTUN_*: ipip, sit and ip6tnl.

use netlink_packet_core::DefaultNla;

use super::data::{end, ends, first, limit as no_limit, read_limit, set};
use super::{Inside, Tunnel, TunnelKind};
use crate::netlink::attributes::{attributes, number};
use crate::netlink::request::byte;

const LINK: u16 = 1;
const LOCAL: u16 = 2;
const REMOTE: u16 = 3;
const TTL: u16 = 4;
const TOS: u16 = 5;
const ENCAP_LIMIT: u16 = 6;
const FLOWINFO: u16 = 7;
const FLAGS: u16 = 8;
const PROTO: u16 = 9;
const PMTUDISC: u16 = 10;
const ENCAP_TYPE: u16 = 15;
const COLLECT_METADATA: u16 = 19;
const FWMARK: u16 = 20;
const IPPROTO_IPIP: u8 = 4;
const IPPROTO_IPV6: u8 = 41;

pub(super) fn write(tunnel: &Tunnel) -> Vec<DefaultNla> {
    let proto = match tunnel.inside {
        Inside::V4 => IPPROTO_IPIP,
        Inside::V6 => IPPROTO_IPV6,
        Inside::Both => 0,
        Inside::Other(proto) => proto,
    };
    let mut data = vec![byte(TTL, tunnel.ttl), byte(PROTO, proto)];
    data.extend(ends(tunnel, LOCAL, REMOTE));
    if tunnel.kind == TunnelKind::Ip6tnl {
        data.extend(no_limit(tunnel, ENCAP_LIMIT, FLAGS));
    } else {
        data.push(byte(PMTUDISC, tunnel.pmtudisc.into()));
    }
    data
}

pub(super) fn read(tunnel: &mut Tunnel, data: &[u8]) {
    let (mut limit, mut flags) = (0, 0);
    for (kind, value) in attributes(data, 0) {
        match kind {
            LOCAL => tunnel.local = end(value),
            REMOTE => tunnel.remote = end(value),
            TTL => tunnel.ttl = first(value),
            PMTUDISC => tunnel.pmtudisc = set(value),
            ENCAP_LIMIT => limit = first(value),
            PROTO => {
                tunnel.inside = match first(value) {
                    IPPROTO_IPIP => Inside::V4,
                    IPPROTO_IPV6 => Inside::V6,
                    // In an ipip device, any means IPv4 and MPLS.
                    0 if tunnel.kind == TunnelKind::Ipip => Inside::V4,
                    0 => Inside::Both,
                    other => Inside::Other(other),
                }
            }
            FLAGS if tunnel.kind == TunnelKind::Ip6tnl => flags = number(value).unwrap_or_default(),
            COLLECT_METADATA => tunnel.unusual = true,
            LINK | TOS | FLOWINFO | FLAGS | ENCAP_TYPE | FWMARK => {
                tunnel.unusual |= set(value);
            }
            _ => {}
        }
    }
    if tunnel.kind == TunnelKind::Ip6tnl {
        tunnel.unusual |= read_limit(tunnel, limit, flags);
    }
}
