//! The free segments of a network, from the lowest.

use ipnet::IpNet;

use crate::ipam::range::{address, number};

/// The segments of one size that nothing has taken yet, in ascending order. Integers of 128 bits: any network of either
/// family.
#[derive(Debug)]
pub(super) struct Slots {
    network: IpNet,
    prefix: u8,
    /// Inclusive, ascending, disjoint.
    taken: Vec<(u128, u128)>,
    /// How many of `taken` lie below `next`.
    passed: usize,
    /// Where the next segment may begin.
    next: Option<u128>,
}

impl Slots {
    /// The segments of this prefix length, without those that `taken` touches.
    pub(super) fn new(network: IpNet, prefix: u8, taken: impl IntoIterator<Item = IpNet>) -> Self {
        let mut spans: Vec<(u128, u128)> =
            taken.into_iter().filter(|net| net.addr().is_ipv6() == network.addr().is_ipv6()).map(span).collect();
        spans.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(spans.len());
        for (first, last) in spans {
            match merged.last_mut() {
                Some(before) if first <= before.1 => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        let fits = prefix >= network.prefix_len() && prefix <= network.max_prefix_len();
        Self { network, prefix, taken: merged, passed: 0, next: fits.then(|| span(network).0) }
    }

    /// How many segments there are, taken or not: 2^126 at most, since no network has prefix length 0.
    pub(super) fn how_many(&self) -> u128 {
        1 << self.prefix.saturating_sub(self.network.prefix_len()).min(127)
    }
}

impl Iterator for Slots {
    type Item = IpNet;

    fn next(&mut self) -> Option<IpNet> {
        let size = 1_u128 << (self.network.max_prefix_len() - self.prefix).min(127);
        loop {
            let first = self.next?;
            let last = first.checked_add(size - 1).filter(|last| *last <= span(self.network).1);
            let Some(last) = last else {
                self.next = None;
                return None;
            };
            while self.taken.get(self.passed).is_some_and(|(_, end)| *end < first) {
                self.passed += 1;
            }
            match self.taken.get(self.passed) {
                // On to the first boundary behind it.
                Some((start, end)) if *start <= last => self.next = (end | (size - 1)).checked_add(1),
                _ => {
                    self.next = last.checked_add(1);
                    return IpNet::new(address(self.network.addr().is_ipv6(), first), self.prefix).ok();
                }
            }
        }
    }
}

/// First and last address.
fn span(net: IpNet) -> (u128, u128) {
    (number(net.network()), number(net.broadcast()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::network::config::overlap;

    fn slots(network: &str, prefix: u8, taken: &[&str]) -> Vec<String> {
        let taken = taken.iter().map(|net| net.parse().unwrap());
        Slots::new(network.parse().unwrap(), prefix, taken).take(4).map(|net| net.to_string()).collect()
    }

    #[test]
    fn the_lowest_first_around_what_is_taken() {
        assert_eq!(slots("10.11.0.0/16", 22, &[])[..3], ["10.11.0.0/22", "10.11.4.0/22", "10.11.8.0/22"]);
        assert_eq!(slots("10.0.0.0/24", 26, &["10.0.0.64/28", "10.0.0.0/27"]), ["10.0.0.128/26", "10.0.0.192/26"]);
        assert_eq!(slots("10.0.0.0/24", 26, &["10.0.0.0/25", "10.0.0.16/28"]), ["10.0.0.128/26", "10.0.0.192/26"]);
        assert_eq!(slots("10.0.0.0/24", 26, &["10.0.0.0/8"]), [""; 0]);
        assert_eq!(slots("10.0.0.0/24", 26, &["fd00::/8"]).len(), 4);
        assert_eq!(slots("10.0.0.0/24", 24, &[]), ["10.0.0.0/24"]);
        assert_eq!(slots("10.0.0.0/24", 23, &[]), [""; 0], "no segment is larger than the network");
    }

    #[test]
    fn networks_of_any_size_and_at_the_end_of_the_addresses() {
        assert_eq!(slots("fd77::/48", 64, &["fd77::/64"])[..2], ["fd77:0:0:1::/64", "fd77:0:0:2::/64"]);
        assert_eq!(slots("8000::/1", 2, &[]), ["8000::/2", "c000::/2"]);
        assert_eq!(slots("8000::/1", 126, &["8000::/2"])[0], "c000::/126");
        assert_eq!(slots("255.255.255.0/24", 25, &[]), ["255.255.255.0/25", "255.255.255.128/25"]);
        assert_eq!(Slots::new("8000::/1".parse().unwrap(), 126, []).how_many(), 1 << 125);
        assert_eq!(Slots::new("ffff::/16".parse().unwrap(), 16, ["ffff::/126".parse().unwrap()]).how_many(), 1);
    }

    proptest! {
        #[test]
        fn exactly_those_that_nothing_touches(
            v6: bool, prefix in 0_u8..=6, taken in prop::collection::vec((0_u128..64, 0_u8..=6), 0..8),
        ) {
            let (base, bits) = if v6 { (0xfd77 << 112, 128) } else { (0x0a00_0000, 32) };
            let net = |start: u128, len: u8| IpNet::new(address(v6, base + start), bits - 6 + len).unwrap().trunc();
            let taken: Vec<IpNet> = taken.into_iter().map(|(start, len)| net(start, len)).collect();
            let size = 1 << (6 - prefix);
            let all: Vec<IpNet> = (0..64 / size).map(|slot| net(slot * size, prefix)).collect();
            let slots = Slots::new(net(0, 0), bits - 6 + prefix, taken.iter().copied());
            prop_assert_eq!(slots.how_many(), all.len() as u128);
            let free: Vec<IpNet> =
                all.into_iter().filter(|slot| !taken.iter().any(|taken| overlap(taken, slot))).collect();
            prop_assert_eq!(slots.collect::<Vec<_>>(), free);
        }
    }
}
