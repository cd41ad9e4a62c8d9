//! IFLA_VXLAN_*.

use netlink_packet_core::DefaultNla;

use super::Tunnel;
use super::data::{end, ends, first, set, short};
use crate::netlink::attributes::{attributes, number};
use crate::netlink::request::{byte, bytes, number as word};

const ID: u16 = 1;
const GROUP: u16 = 2;
const LINK: u16 = 3;
const LOCAL: u16 = 4;
const TTL: u16 = 5;
const TOS: u16 = 6;
const LEARNING: u16 = 7;
const PROXY: u16 = 11;
const RSC: u16 = 12;
const L2MISS: u16 = 13;
const L3MISS: u16 = 14;
const PORT: u16 = 15;
const GROUP6: u16 = 16;
const LOCAL6: u16 = 17;
const GBP: u16 = 23;
const COLLECT_METADATA: u16 = 25;
const GPE: u16 = 27;
const TTL_INHERIT: u16 = 28;
const DF: u16 = 29;
const VNIFILTER: u16 = 30;

pub(super) fn write(tunnel: &Tunnel, change: bool) -> Vec<DefaultNla> {
    let (local, remote) = if tunnel.is_over_v6() { (LOCAL6, GROUP6) } else { (LOCAL, GROUP) };
    let mut data = vec![byte(TTL, tunnel.ttl), byte(LEARNING, tunnel.learning.into())];
    data.extend(ends(tunnel, local, remote));
    if !tunnel.is_over_v6() {
        data.push(byte(DF, tunnel.pmtudisc.into()));
    }
    // They cannot change, and the port must not even be told again.
    if !change {
        data.extend(tunnel.vni.map(|vni| word(ID, vni)));
        data.extend(tunnel.port.map(|port| bytes(PORT, &port.to_be_bytes())));
    }
    data
}

pub(super) fn read(tunnel: &mut Tunnel, data: &[u8]) {
    for (kind, value) in attributes(data, 0) {
        match kind {
            ID => tunnel.vni = number(value),
            PORT => tunnel.port = short(value),
            LOCAL | LOCAL6 => tunnel.local = end(value),
            GROUP | GROUP6 => tunnel.remote = end(value),
            TTL => tunnel.ttl = first(value),
            LEARNING => tunnel.learning = set(value),
            DF => tunnel.pmtudisc = first(value) == 1,
            GBP | GPE => tunnel.unusual = true,
            LINK | TOS | PROXY | RSC | L2MISS | L3MISS | COLLECT_METADATA | TTL_INHERIT | VNIFILTER => {
                tunnel.unusual |= set(value)
            }
            _ => {}
        }
    }
}
