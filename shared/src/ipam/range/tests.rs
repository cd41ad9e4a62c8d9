use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn pool(subnet: &str) -> Range {
    Range::new(net(subnet), None, None, None).unwrap()
}

fn part(subnet: &str, start: &str, end: &str) -> Result<Range, RangeError> {
    let optional = |text: &str| (!text.is_empty()).then(|| ip(text));
    Range::new(net(subnet), optional(start), optional(end), None)
}

/// All that a pool hands out, in order.
fn all(range: &Range) -> Vec<String> {
    let mut found = vec![];
    let mut from = Some(range.start);
    while let Some(address) = from.and_then(|from| range.next_allocatable(from)) {
        found.push(address.to_string());
        from = next(address);
    }
    found
}

#[test]
fn rg1_defaults() {
    for (subnet, text, gateway) in [
        ("192.0.2.0/24", "192.0.2.1-192.0.2.254", "192.0.2.1"),
        ("192.0.2.0/25", "192.0.2.1-192.0.2.126", "192.0.2.1"),
        ("192.0.2.4/30", "192.0.2.5-192.0.2.6", "192.0.2.5"),
        ("0.0.0.0/0", "0.0.0.1-255.255.255.254", "0.0.0.1"),
        ("2001:db8:1::/64", "2001:db8:1::1-2001:db8:1:0:ffff:ffff:ffff:ffff", "2001:db8:1::1"),
        ("2001:db8:1::/126", "2001:db8:1::1-2001:db8:1::3", "2001:db8:1::1"),
        ("::/0", "::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::1"),
    ] {
        let range = pool(subnet);
        assert_eq!(range.to_string(), text);
        assert_eq!(range.gateway, Some(ip(gateway)));
    }
}

#[test]
fn rg2_host_bits_are_refused_and_the_base_is_named() {
    for (subnet, length, base) in [
        ("192.0.2.12/24", 24, "192.0.2.0"),
        ("192.0.3.0/23", 23, "192.0.2.0"),
        ("2001:db8:1::1/64", 64, "2001:db8:1::"),
        ("2001:db8:0:1::/63", 63, "2001:db8::"),
    ] {
        assert_eq!(
            part(subnet, "", "").unwrap_err().to_string(),
            format!("Network has host bits set. For a subnet mask of length {length} the network address is {base}")
        );
    }
}

#[test]
fn rg3_too_small_to_allocate_from() {
    for subnet in ["10.0.0.0/31", "10.0.0.1/32", "fd00::/127", "fd00::1/128"] {
        let text = part(subnet, "", "").unwrap_err().to_string();
        assert!(text.starts_with(&format!("Network {subnet} too small to allocate from")), "{text}");
    }
    assert!(matches!(Range::new(net("10.0.0.1/32"), None, None, Some(ip("10.0.0.1"))), Err(RangeError::TooSmall(_))));
}

#[test]
fn rg3_one_or_two_addresses_are_usable_with_a_gateway_elsewhere() {
    for (subnet, gateway, usable) in [
        ("10.0.0.0/31", "10.0.0.0", vec!["10.0.0.1"]),
        ("10.0.0.0/31", "169.254.1.1", vec!["10.0.0.0", "10.0.0.1"]),
        ("10.0.0.7/32", "169.254.1.1", vec!["10.0.0.7"]),
        ("fd00::/127", "fe80::1", vec!["fd00::", "fd00::1"]),
        ("fd00::7/128", "fe80::1", vec!["fd00::7"]),
    ] {
        let range = Range::new(net(subnet), None, None, Some(ip(gateway))).unwrap();
        assert_eq!(all(&range), usable, "{subnet}");
        assert_eq!(range.size(), usable.len() as u128);
    }
}

#[test]
fn rg4_ends_outside_or_reversed() {
    for (start, end, text) in [
        ("192.0.3.0", "", "RangeStart 192.0.3.0 not in network 192.0.2.0/24"),
        ("", "192.0.4.0", "RangeEnd 192.0.4.0 not in network 192.0.2.0/24"),
        ("192.0.2.50", "192.0.2.40", "RangeStart 192.0.2.50 not in network 192.0.2.0/24"),
        ("2001:db8::1", "", "RangeStart 2001:db8::1 not in network 192.0.2.0/24"),
        ("", "2001:db8::1", "RangeEnd 2001:db8::1 not in network 192.0.2.0/24"),
    ] {
        let error = part("192.0.2.0/24", start, end).unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
    }
}

#[test]
fn e32_reversed_by_a_default_end() {
    // The reference hands out .255, then addresses of the next network.
    let error = part("10.0.0.0/24", "10.0.0.255", "").unwrap_err().to_string();
    assert!(error.starts_with("RangeStart 10.0.0.255 not in network 10.0.0.0/24"), "{error}");
    assert!(part("10.0.0.0/24", "", "10.0.0.0").is_err());
}

#[test]
fn e31_network_and_broadcast_are_never_handed_out() {
    let range = part("10.0.0.0/29", "10.0.0.0", "10.0.0.7").unwrap();
    assert_eq!(all(&range), ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"]);
    assert_eq!(range.size(), 5);
    for never in ["10.0.0.0", "10.0.0.1", "10.0.0.7", "10.0.0.8"] {
        assert!(!range.allocatable(ip(never)) && !range.requestable(ip(never)), "{never}");
    }
    // cni#256: .255 inside a /16 is an address as any other.
    assert!(pool("10.0.0.0/16").allocatable(ip("10.0.3.255")));
    // The last address of an IPv6 subnet is none of these, the first is (RFC 4291, 2.6.1).
    let range = part("fd00::/126", "fd00::", "").unwrap();
    assert_eq!(all(&range), ["fd00::2", "fd00::3"]);
}

#[test]
fn e29_gateway_of_another_family_is_refused() {
    let error = Range::new(net("10.0.0.0/24"), None, None, Some(ip("fd00::1"))).unwrap_err();
    assert_eq!(error.to_string(), "gateway fd00::1 is not of the address family of subnet 10.0.0.0/24");
}

#[test]
fn e30_gateway_outside_of_the_subnet_is_allowed() {
    let range = Range::new(net("2001:db8::/64"), None, None, Some(ip("fe80::1"))).unwrap();
    assert_eq!(range.gateway, Some(ip("fe80::1")));
    assert!(Range::new(net("10.0.0.0/24"), None, None, Some(ip("10.1.0.1"))).is_ok());
}

#[test]
fn e33_the_first_address_is_usable_when_the_gateway_is_another() {
    let range = Range::new(net("10.0.0.0/29"), None, None, Some(ip("10.0.0.6"))).unwrap();
    assert_eq!(all(&range), ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"]);
    let without = Range { gateway: None, ..pool("10.0.0.0/30") };
    assert_eq!(all(&without), ["10.0.0.1", "10.0.0.2"]);
}

#[test]
fn b1_7_mapped_subnets_and_useless_ranges() {
    let error = part("::ffff:10.0.0.0/120", "", "").unwrap_err().to_string();
    assert!(error.starts_with("IPNet IP and Mask version mismatch"), "{error}");
    let error = part("10.0.0.0/24", "10.0.0.1", "10.0.0.1").unwrap_err().to_string();
    assert!(error.starts_with("range 10.0.0.1-10.0.0.1 holds no usable address"), "{error}");
}

#[test]
fn rg5_contains() {
    for (subnet, start, end, inside, outside) in [
        (
            "192.0.2.0/24",
            "192.0.2.40",
            "192.0.2.50",
            vec!["192.0.2.40", "192.0.2.45", "192.0.2.50"],
            vec!["192.0.2.39", "192.0.2.51", "192.0.3.45", "::ffff:192.0.2.45", "2001:db8::45"],
        ),
        (
            "2001:db8::/64",
            "2001:db8::40",
            "2001:db8::50",
            vec!["2001:db8::40", "2001:db8::50"],
            vec!["2001:db8::39", "2001:db8::51", "2001:db8:1::45", "192.0.2.45"],
        ),
    ] {
        let range = part(subnet, start, end).unwrap();
        assert!(inside.iter().all(|text| range.contains(ip(text))));
        assert!(!outside.iter().any(|text| range.contains(ip(text))));
    }
}

#[test]
fn rg6_overlaps() {
    let cases = [
        (("10.0.0.0/24", "", ""), ("10.0.1.0/24", "", ""), false),
        (("10.0.0.0/24", "", ""), ("fd00::/64", "", ""), false),
        (("0.0.0.0/8", "", ""), ("::/104", "", ""), false),
        (("10.0.0.0/20", "", ""), ("10.0.0.0/20", "", ""), true),
        (("10.0.0.0/20", "", ""), ("10.0.1.0/24", "", ""), true),
        (("10.0.0.0/20", "", "10.0.1.9"), ("10.0.0.0/20", "10.0.1.10", ""), false),
        (("10.0.0.0/20", "", "10.0.1.10"), ("10.0.0.0/20", "10.0.1.10", ""), true),
    ];
    for ((a, a_start, a_end), (b, b_start, b_end), expected) in cases {
        let (a, b) = (part(a, a_start, a_end).unwrap(), part(b, b_start, b_end).unwrap());
        assert_eq!(a.overlaps(&b), expected, "{a} {b}");
        assert_eq!(b.overlaps(&a), expected, "{b} {a}");
    }
}

#[test]
fn rg7_sets() {
    let set = RangeSet::new(vec![pool("192.168.0.0/24"), pool("192.168.1.0/24")]).unwrap();
    assert_eq!(set.range_of(ip("192.168.1.8")).unwrap().subnet, net("192.168.1.0/24"));
    assert_eq!(
        set.range_of(ip("192.168.99.99")).unwrap_err().to_string(),
        "192.168.99.99 not in range set 192.168.0.1-192.168.0.254,192.168.1.1-192.168.1.254"
    );
    let other = RangeSet::new(vec![pool("192.168.1.0/24")]).unwrap();
    assert!(set.overlaps(&other) && other.overlaps(&set));
    let third = RangeSet::new(vec![pool("192.168.2.0/24")]).unwrap();
    assert!(!set.overlaps(&third) && !third.overlaps(&set));
    assert_eq!(RangeSet::new(vec![]).unwrap_err(), RangeError::EmptySet);
    assert_eq!(set.size(), 2 * 253);
}

#[test]
fn cf8_cf9_sets_that_cannot_be() {
    assert_eq!(
        RangeSet::new(vec![pool("10.1.0.0/22"), pool("10.1.2.0/24")]).unwrap_err().to_string(),
        "subnets 10.1.0.1-10.1.3.254 and 10.1.2.1-10.1.2.254 overlap"
    );
    assert_eq!(
        RangeSet::new(vec![pool("10.1.0.0/22"), pool("fd00::/64")]).unwrap_err().to_string(),
        "mixed address families"
    );
    // B1.8: one subnet in two parts.
    assert!(
        RangeSet::new(vec![
            part("10.0.0.0/24", "", "10.0.0.9").unwrap(),
            part("10.0.0.0/24", "10.0.0.10", "").unwrap()
        ])
        .is_ok()
    );
}

#[test]
fn al1_al4_what_a_29_holds() {
    assert_eq!(
        all(&pool("192.168.1.0/29")),
        ["192.168.1.2", "192.168.1.3", "192.168.1.4", "192.168.1.5", "192.168.1.6"]
    );
    assert_eq!(all(&pool("10.0.0.0/30")), ["10.0.0.2"]);
}

#[test]
fn al2_what_comes_next() {
    let range = pool("10.0.0.0/29");
    for (from, found) in [
        ("10.0.0.0", Some("10.0.0.2")),
        ("9.255.255.255", Some("10.0.0.2")),
        ("10.0.0.3", Some("10.0.0.3")),
        ("10.0.0.6", Some("10.0.0.6")),
        ("10.0.0.7", None),
        ("10.0.0.128", None),
        ("fd00::2", None),
    ] {
        assert_eq!(range.next_allocatable(ip(from)), found.map(ip), "{from}");
    }
    assert_eq!(pool("2001:db8:1::/64").next_allocatable(ip("2001:db8:1::")), Some(ip("2001:db8:1::2")));
}

#[test]
fn excluded_spans_are_merged_clipped_and_jumped_over() {
    let range = pool("10.0.0.0/8").excluding(&[
        (ip("10.0.0.9"), ip("10.200.0.0")),
        (ip("10.0.0.2"), ip("10.0.0.3")),
        (ip("10.0.0.4"), ip("10.0.0.4")),
        (ip("10.100.0.0"), ip("11.0.0.0")),
        (ip("fd00::"), ip("fd00::9")),
        (ip("192.0.2.0"), ip("192.0.2.9")),
    ]);
    assert_eq!(
        range.exclude,
        [(ip("10.0.0.2"), ip("10.0.0.4")), (ip("10.0.0.9"), ip("10.255.255.254"))],
        "of this family and inside the pool"
    );
    assert_eq!(all(&range), ["10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.8"]);
    assert_eq!(range.size(), 4);
    assert!(range.requestable(ip("10.0.0.9")) && !range.allocatable(ip("10.0.0.9")));
    let none = pool("::/0").excluding(&[(ip("::"), ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"))]);
    assert_eq!((none.size(), none.next_allocatable(ip("::"))), (0, None));
}

#[test]
fn first_candidates_do_not_move_with_ends_or_exclusions() {
    let digest = *b"0123456789abcdef0123456789abcdef";
    let candidate = pool("10.22.0.0/16").first_candidate(&digest);
    assert_eq!(candidate, ip("10.22.101.102"), "the low 16 bits: 'e', 'f'");
    let edited = part("10.22.0.0/16", "10.22.1.0", "10.22.2.0").unwrap().excluding(&[(candidate, candidate)]);
    assert_eq!(edited.first_candidate(&digest), candidate);
    assert_eq!(pool("fd22::/64").first_candidate(&digest), ip("fd22::3839:6162:6364:6566"));
    assert_eq!(pool("::/0").first_candidate(&digest), ip("3031:3233:3435:3637:3839:6162:6364:6566"));
}

#[test]
fn ip1_next_previous_compare() {
    for (before, after) in [
        ("192.168.0.255", "192.168.1.0"),
        ("ab12::ffff", "ab12::1:0"),
        ("0.1.0.5", "0.1.0.6"),
        ("::123", "::124"),
        ("255.255.255.254", "255.255.255.255"),
    ] {
        assert_eq!(next(ip(before)), Some(ip(after)));
        assert_eq!(previous(ip(after)), Some(ip(before)));
    }
    assert_eq!(next(ip("255.255.255.255")), None);
    assert_eq!(next(ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")), None);
    assert_eq!((previous(ip("0.0.0.0")), previous(ip("::"))), (None, None));
    assert_eq!(compare(ip("192.168.0.12"), ip("::ffff:192.168.0.12")), Some(Ordering::Equal));
    assert_eq!(compare(ip("192.168.0.12"), ip("192.168.0.3")), Some(Ordering::Greater));
    assert_eq!(compare(ip("fd00::1"), ip("fd00::2")), Some(Ordering::Less));
    assert_eq!(compare(ip("192.168.0.12"), ip("fd00::2")), None);
}

/// A pool of a small subnet of either family, with ends, gateway and exclusions as they come.
fn small_range() -> impl Strategy<Value = Range> {
    let offset = 0_u32..300;
    let spans = proptest::collection::vec((0_u32..300, 0_u32..20), 0..6);
    (any::<bool>(), 22_u8..=30, offset.clone(), offset.clone(), proptest::option::of(offset), spans).prop_map(
        |(v4, length, a, b, gateway, spans)| {
            let base: IpAddr = if v4 { ip("10.1.4.0") } else { ip("fd00:0:0:1::") };
            let subnet = IpNet::new(base, if v4 { length } else { length + 96 }).unwrap();
            let at = |offset: u32| match base {
                IpAddr::V4(base) => IpAddr::from(Ipv4Addr::from_bits(base.to_bits() + offset)),
                IpAddr::V6(base) => IpAddr::from(Ipv6Addr::from_bits(base.to_bits() + u128::from(offset))),
            };
            let size = 1_u32 << (32 - length);
            let (start, end) = (a.min(b) % size, a.max(b) % size);
            Range {
                subnet,
                start: at(start.min(end)),
                end: at(start.max(end)),
                gateway: gateway.map(at),
                exclude: vec![],
            }
            .excluding(&spans.iter().map(|(first, more)| (at(*first), at(first + more))).collect::<Vec<_>>())
        },
    )
}

/// What the documentation says, address by address.
fn naive(range: &Range) -> Vec<IpAddr> {
    range
        .subnet
        .hosts()
        .chain([range.subnet.network(), range.subnet.broadcast()])
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .filter(|ip| *ip >= range.start && *ip <= range.end)
        .filter(|ip| *ip != range.subnet.network() && range.gateway != Some(*ip))
        .filter(|ip| ip.is_ipv6() || *ip != range.subnet.broadcast())
        .filter(|ip| !range.exclude.iter().any(|(first, last)| ip >= first && ip <= last))
        .collect()
}

proptest! {
    #[test]
    fn hands_out_what_the_naive_model_does(range in small_range()) {
        let expected = naive(&range);
        prop_assert_eq!(all(&range), expected.iter().map(ToString::to_string).collect::<Vec<_>>());
        prop_assert_eq!(range.size(), expected.len() as u128);
        for ip in range.subnet.hosts() {
            prop_assert_eq!(range.allocatable(ip), expected.contains(&ip));
            prop_assert_eq!(range.next_allocatable(ip), expected.iter().find(|next| **next >= ip).copied());
        }
    }

    #[test]
    fn first_candidates_lie_in_the_subnet(range in small_range(), digest in any::<[u8; 32]>()) {
        prop_assert!(range.subnet.contains(&range.first_candidate(&digest)));
    }

    #[test]
    fn overlap_is_a_shared_address(a in small_range(), b in small_range()) {
        let shared = a.subnet.hosts().any(|ip| a.contains(ip) && b.contains(ip))
            || [a.start, a.end].iter().any(|ip| b.contains(*ip));
        prop_assert_eq!(a.overlaps(&b), shared);
        prop_assert_eq!(b.overlaps(&a), shared);
    }
}
