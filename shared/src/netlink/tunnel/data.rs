//! A tunnel's parameters as attributes (linux/if_tunnel.h, if_link.h, ip6_tunnel.h), written and read.

use std::net::IpAddr;

use netlink_packet_core::DefaultNla;

use super::{Tunnel, TunnelKind, gre, iptun, vxlan};
use crate::netlink::attributes::ip;
use crate::netlink::request::{address, byte, number as word};

/// IP6_TNL_F_IGN_ENCAP_LIMIT: no encapsulation limit.
const NO_LIMIT: u32 = 1;
/// The flags of an IPv6 tunnel that are somebody's choice; the others tell what the kernel found out.
const CHOSEN: u32 = 0xffff;

/// The parameters of a new tunnel, or of one that changes.
pub(in crate::netlink) fn write(tunnel: &Tunnel, change: bool) -> Vec<DefaultNla> {
    match tunnel.kind {
        TunnelKind::Ipip | TunnelKind::Sit | TunnelKind::Ip6tnl => iptun::write(tunnel),
        TunnelKind::Gre | TunnelKind::Ip6gre => gre::write(tunnel),
        TunnelKind::Vxlan => vxlan::write(tunnel, change),
        TunnelKind::Wireguard => Vec::new(),
    }
}

/// The parameters of a tunnel that is there, from its IFLA_INFO_DATA.
pub(in crate::netlink) fn read(kind: TunnelKind, data: &[u8]) -> Tunnel {
    let mut tunnel = Tunnel { pmtudisc: false, ttl: 0, ..Tunnel::wireguard() };
    tunnel.kind = kind;
    match kind {
        TunnelKind::Ipip | TunnelKind::Sit | TunnelKind::Ip6tnl => iptun::read(&mut tunnel, data),
        TunnelKind::Gre | TunnelKind::Ip6gre => gre::read(&mut tunnel, data),
        TunnelKind::Vxlan => vxlan::read(&mut tunnel, data),
        TunnelKind::Wireguard => {}
    }
    tunnel.pmtudisc |= tunnel.is_over_v6() || kind == TunnelKind::Wireguard;
    tunnel
}

/// The addresses of both ends.
pub(super) fn ends(tunnel: &Tunnel, local: u16, remote: u16) -> impl Iterator<Item = DefaultNla> {
    let ends = [(local, tunnel.local), (remote, tunnel.remote)];
    ends.into_iter().filter_map(|(kind, end)| Some(address(kind, end?)))
}

/// The encapsulation limit, and the flag that there is none.
pub(super) fn limit(tunnel: &Tunnel, limit: u16, flags: u16) -> [DefaultNla; 2] {
    [
        byte(limit, tunnel.encap_limit.unwrap_or_default()),
        word(flags, if tunnel.encap_limit.is_none() { NO_LIMIT } else { 0 }),
    ]
}

/// Flags of an IPv6 tunnel, with the encapsulation limit that came along; true if others are set.
pub(super) fn read_limit(tunnel: &mut Tunnel, limit: u8, flags: u32) -> bool {
    tunnel.encap_limit = (flags & NO_LIMIT == 0).then_some(limit);
    flags & CHOSEN & !NO_LIMIT != 0
}

/// An address that is one.
pub(super) fn end(value: &[u8]) -> Option<IpAddr> {
    ip(value).filter(|address| !address.is_unspecified())
}

/// An attribute of one byte.
pub(super) fn first(value: &[u8]) -> u8 {
    value.first().copied().unwrap_or_default()
}

/// True if it is not zero, whatever its length.
pub(super) fn set(value: &[u8]) -> bool {
    value.iter().any(|&byte| byte != 0)
}

/// 16 bits in network byte order.
pub(super) fn short(value: &[u8]) -> Option<u16> {
    value.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}
