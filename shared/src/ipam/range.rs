//! Arithmetic on ranges of addresses: what may be handed out, and what comes next.
//!
//! Both families are integers of up to 128 bits here, so that nothing depends on the size of a range.
//! A [`Range`] is a pool; a [`RangeSet`] is a list of pools out of which a container gets one address.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

pub use self::address::{address, compare, next, number, previous};
pub use self::set::RangeSet;

mod address;
mod set;

/// A range that cannot be used. The texts are those of the reference host-local plugin, which people search for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The subnet is given by an address inside it.
    #[error("Network has host bits set. For a subnet mask of length {} the network address is {}", .0.prefix_len(), .0.network())]
    HostBits(IpNet),
    /// An IPv4-mapped IPv6 subnet (`::ffff:10.0.0.0/120`).
    #[error("IPNet IP and Mask version mismatch: write {0} as an IPv4 subnet")]
    Mapped(IpNet),
    /// Nothing would be left beside the gateway.
    #[error("Network {0} too small to allocate from: set `gateway` to an address that leaves one for a container")]
    TooSmall(IpNet),
    /// `rangeStart` is elsewhere, or behind `rangeEnd`.
    #[error("RangeStart {start} not in network {subnet}: {reason}")]
    Start {
        /// As configured.
        start: IpAddr,
        /// The subnet that it should be in.
        subnet: IpNet,
        /// Of another family, or outside.
        reason: &'static str,
    },
    /// `rangeStart` is behind `rangeEnd`, or behind what that is when it is not given.
    #[error("RangeStart {start} not in network {subnet}: it is behind the end of the range, {end}")]
    Reversed {
        /// As configured.
        start: IpAddr,
        /// As configured, or the last usable address.
        end: IpAddr,
        /// The subnet.
        subnet: IpNet,
    },
    /// `rangeEnd` is elsewhere.
    #[error("RangeEnd {end} not in network {subnet}")]
    End {
        /// As configured.
        end: IpAddr,
        /// The subnet that it should be in.
        subnet: IpNet,
    },
    /// A next hop of another family is unreachable.
    #[error("gateway {gateway} is not of the address family of subnet {subnet}")]
    GatewayFamily {
        /// As configured.
        gateway: IpAddr,
        /// The subnet that it should serve.
        subnet: IpNet,
    },
    /// From start to end there is only what is never handed out.
    #[error("range {0} holds no usable address: only the gateway, the network or the broadcast address")]
    Nothing(Box<Range>),
    /// A set without a range.
    #[error("empty range set")]
    EmptySet,
    /// IPv4 and IPv6 in one set: the container would get one of them, whichever comes first.
    #[error("mixed address families")]
    MixedFamilies,
    /// Two ranges of one set share addresses.
    #[error("subnets {} and {} overlap", .0[0], .0[1])]
    Overlap(Box<[Range; 2]>),
    /// No range of the set holds the address.
    #[error("{0} not in range set {1}")]
    NotInSet(IpAddr, RangeSet),
}

/// A pool: the addresses from `start` to `end` of a subnet, without some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The subnet, without host bits: it gives prefix length and first candidates.
    pub subnet: IpNet,
    /// The first address of the pool.
    pub start: IpAddr,
    /// The last address of the pool, inclusive.
    pub end: IpAddr,
    /// The next hop of the containers, never handed out. `None`: none is wanted.
    pub gateway: Option<IpAddr>,
    /// Spans never handed out unless asked for: inclusive, inside the pool, sorted, disjoint.
    pub exclude: Vec<(IpAddr, IpAddr)>,
}

impl Range {
    /// The pool of a subnet, with host-local's defaults: from the second address to the last usable one, the
    /// gateway being the second address too.
    ///
    /// A subnet of two addresses (/31, /127: RFC 3021, RFC 6164) or of one has no network and no broadcast
    /// address: what its gateway, which must be given, does not take is usable. A gateway outside of the subnet
    /// is allowed in general, for networks that are routed to the container.
    ///
    /// # Errors
    /// [`RangeError`], with the reference's texts.
    pub fn new(
        subnet: IpNet,
        start: Option<IpAddr>,
        end: Option<IpAddr>,
        gateway: Option<IpAddr>,
    ) -> Result<Self, RangeError> {
        let (base, last) = (subnet.network(), subnet.broadcast());
        if matches!(base, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
            return Err(RangeError::Mapped(subnet));
        }
        if subnet.trunc() != subnet {
            return Err(RangeError::HostBits(subnet));
        }
        let few = is_few(subnet);
        let gateway = match gateway {
            Some(gateway) if gateway.is_ipv4() != base.is_ipv4() => {
                return Err(RangeError::GatewayFamily { gateway, subnet });
            }
            Some(gateway) if base == last && gateway == base => return Err(RangeError::TooSmall(subnet)),
            Some(gateway) => gateway,
            None if few => return Err(RangeError::TooSmall(subnet)),
            None => next(base).ok_or(RangeError::TooSmall(subnet))?,
        };
        if let Some(start) = start
            && !subnet.contains(&start)
        {
            return Err(RangeError::Start { start, subnet, reason: "it is outside" });
        }
        if let Some(end) = end
            && !subnet.contains(&end)
        {
            return Err(RangeError::End { end, subnet });
        }
        let default_start = if few { Some(base) } else { next(base) };
        let default_end = if few || base.is_ipv6() { Some(last) } else { previous(last) };
        let start = start.or(default_start).unwrap_or(base);
        let end = end.or(default_end).unwrap_or(last);
        if number(start) > number(end) {
            return Err(RangeError::Reversed { start, end, subnet });
        }
        let range = Self { subnet, start, end, gateway: Some(gateway), exclude: Vec::new() };
        if range.size() == 0 { Err(RangeError::Nothing(Box::new(range))) } else { Ok(range) }
    }

    /// Keeps these spans (inclusive, in any order, of any family) from being handed out unasked.
    pub fn excluding(mut self, spans: &[(IpAddr, IpAddr)]) -> Self {
        let (low, high) = (number(self.start), number(self.end));
        let mut numbers: Vec<(u128, u128)> = self
            .exclude
            .iter()
            .chain(spans)
            .filter(|(first, last)| self.is_family_of(*first) && self.is_family_of(*last))
            .map(|(first, last)| (number(*first).max(low), number(*last).min(high)))
            .filter(|(first, last)| first <= last)
            .collect();
        numbers.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(numbers.len());
        for (first, last) in numbers {
            match merged.last_mut() {
                Some(previous) if first <= previous.1.saturating_add(1) => previous.1 = previous.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        self.exclude = merged.into_iter().map(|(first, last)| (self.address(first), self.address(last))).collect();
        self
    }

    /// True if the address lies between start and end, both included.
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.is_family_of(ip) && (number(self.start)..=number(self.end)).contains(&number(ip))
    }

    /// True if the address may be handed out without being asked for.
    pub fn allocatable(&self, ip: IpAddr) -> bool {
        self.requestable(ip) && self.span_with(number(ip)).is_none()
    }

    /// True if the address may be handed out when it is asked for: excluded ones may.
    pub fn requestable(&self, ip: IpAddr) -> bool {
        self.contains(ip) && !self.is_never_handed_out(ip)
    }

    /// Where the walk of a key begins: its digest as a big-endian integer modulo the size of the *subnet*.
    ///
    /// Not of the pool: the first candidates of all others would move with every edit of its ends or exclusions.
    pub fn first_candidate(&self, digest: &[u8; 32]) -> IpAddr {
        // 2^host bits divides 2^128: the lower half of the digest decides.
        let low = digest[16..].iter().fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
        self.address(number(self.subnet.network()) + (low & host_mask(self.subnet)))
    }

    /// The first allocatable address from `from` on, or `None` past the end of the pool.
    ///
    /// Its cost depends on the number of excluded spans, not on the number of addresses.
    pub fn next_allocatable(&self, from: IpAddr) -> Option<IpAddr> {
        if !self.is_family_of(from) {
            return None;
        }
        let end = number(self.end);
        let mut candidate = number(from).max(number(self.start));
        while candidate <= end {
            let gap_end = match self.span_with(candidate) {
                Some((_, last)) => last,
                None if self.is_never_handed_out(self.address(candidate)) => candidate,
                None => return Some(self.address(candidate)),
            };
            candidate = gap_end.checked_add(1)?;
        }
        None
    }

    /// How many addresses are allocatable.
    pub fn size(&self) -> u128 {
        // Saturating: all of IPv6 has one address more than the largest u128.
        let all = (number(self.end) - number(self.start)).saturating_add(1);
        let excluded: u128 = self
            .exclude
            .iter()
            .map(|(first, last)| (number(*last) - number(*first)).saturating_add(1))
            .fold(0, u128::saturating_add);
        let mut never: Vec<u128> = [self.gateway, Some(self.subnet.network()), Some(self.subnet.broadcast())]
            .into_iter()
            .flatten()
            .filter(|ip| self.contains(*ip) && self.is_never_handed_out(*ip) && self.span_with(number(*ip)).is_none())
            .map(number)
            .collect();
        never.sort_unstable();
        never.dedup();
        all.saturating_sub(excluded).saturating_sub(never.len() as u128)
    }

    /// True if the two pools share an address, whatever their subnets.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.is_family_of(other.start)
            && number(self.start) <= number(other.end)
            && number(other.start) <= number(self.end)
    }

    /// True if the address is IPv4 and the pool is, or IPv6 and the pool is.
    fn is_family_of(&self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.start.is_ipv4()
    }

    /// The number as an address of this pool's family.
    pub fn address(&self, number: u128) -> IpAddr {
        address(self.start.is_ipv6(), number)
    }

    /// The excluded span that holds the number.
    fn span_with(&self, value: u128) -> Option<(u128, u128)> {
        let after = self.exclude.partition_point(|(first, _)| number(*first) <= value);
        let (first, last) = *self.exclude.get(after.checked_sub(1)?)?;
        (value <= number(last)).then(|| (number(first), number(last)))
    }

    /// The gateway; network and broadcast address of IPv4; the subnet-router anycast address of IPv6 (RFC 4291,
    /// 2.6.1), which the host itself answers as soon as it forwards. Subnets of one or two addresses have neither.
    fn is_never_handed_out(&self, ip: IpAddr) -> bool {
        self.gateway == Some(ip)
            || (!is_few(self.subnet)
                && (ip == self.subnet.network() || (ip.is_ipv4() && ip == self.subnet.broadcast())))
    }
}

impl fmt::Display for Range {
    /// `10.0.0.1-10.0.0.254`, as host-local prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.start, self.end)
    }
}

/// The host bits of a subnet, set.
fn host_mask(subnet: IpNet) -> u128 {
    let bits = u32::from(subnet.max_prefix_len() - subnet.prefix_len());
    1_u128.checked_shl(bits).map_or(u128::MAX, |size| size - 1)
}

/// A subnet of one or two addresses.
fn is_few(subnet: IpNet) -> bool {
    subnet.max_prefix_len() - subnet.prefix_len() < 2
}

#[cfg(test)]
mod tests;
