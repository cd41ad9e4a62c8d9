use super::*;
use crate::network::record::tests::record;
use proptest::prelude::*;

fn texts(share: &Share) -> Vec<&str> {
    share.rules.iter().map(|rule| rule.text.as_str()).collect()
}

#[test]
fn e51_each_family_masquerades_for_itself() {
    let mut both = record("a", &["10.1.0.0/16", "fd00:1::/64"]);
    both.masquerade_v6 = false;
    assert_eq!(
        texts(&Share::of(&both, Family::Ip)),
        [
            "ip saddr 10.1.0.0/16 ip daddr != @inside masquerade",
            "ip saddr 10.1.0.0/16 ip daddr != @inside ct state invalid drop",
            "iifname \"obr_a\" accept",
            "oifname \"obr_a\" accept"
        ]
    );
    assert_eq!(
        texts(&Share::of(&both, Family::Ip6)),
        ["iifname \"obr_a\" accept", "oifname \"obr_a\" accept"],
        "a public network is forwarded, and is one of ours for the others"
    );
    assert_eq!(Share::of(&both, Family::Ip6).elements.len(), 1);
}

#[test]
fn layer_2_needs_no_rule_of_ours_but_foreign_accepts_in_both_families() {
    let layer2 = record("l2", &[]);
    assert!(tables(std::slice::from_ref(&layer2), &|_| Share::default()).is_empty());
    assert_eq!(forwards(&layer2).collect::<Vec<_>>(), Family::ALL);
    assert_eq!(forwards(&record("a", &["10.1.0.0/16"])).collect::<Vec<_>>(), [Family::Ip]);
}

#[test]
fn an_invalid_network_costs_only_itself_its_rules() {
    let mut bad = record("bad", &["10.2.0.0/16", "0.0.0.0/0"]);
    bad.bridge = "obr_a_name_too_long".into();
    let tables = tables(&[record("a", &["10.1.0.0/16"]), bad], &|_| Share::default());
    assert_eq!(tables.len(), 1);
    let share = &tables[0].share;
    assert!(share.rules.iter().all(|rule| rule.mark == "osvc:a"), "{share:?}");
    let inside: Vec<_> = share.elements.iter().map(|element| element.subnet.to_string()).collect();
    assert_eq!(inside, ["10.1.0.0/16", "10.2.0.0/16", "224.0.0.0/4", "255.255.255.255/32"]);
}

#[test]
fn the_fingerprint_follows_what_is_rendered() {
    let a = record("a", &["10.1.0.0/16"]);
    let change = |act: &dyn Fn(&mut NetworkRecord)| {
        let mut other = a.clone();
        act(&mut other);
        fingerprint(&other)
    };
    assert_eq!(fingerprint(&a), change(&|r| r.mtu = 9000));
    assert_ne!(fingerprint(&a), change(&|r| r.masquerade_v4 = false));
    assert_ne!(fingerprint(&a), change(&|r| r.forward_accept = ForwardAccept::Never));
    assert_ne!(fingerprint(&a), change(&|r| r.bridge = "other".into()));
    assert_ne!(fingerprint(&a), change(&|r| r.subnets.push("fd00::/64".parse().unwrap())));
}

proptest! {
    #[test]
    fn elements_are_disjoint_and_cover_what_was_given(given in prop::collection::vec((any::<u32>(), 1u8..=32), 0..40)) {
        let given: Vec<IpNet> = given
            .into_iter()
            .map(|(base, prefix)| IpNet::new(std::net::Ipv4Addr::from(base).into(), prefix).unwrap().trunc())
            .collect();
        let out = outermost(given.clone(), |subnet| *subnet);
        for (i, a) in out.iter().enumerate() {
            for b in &out[i + 1..] {
                prop_assert!(!a.contains(b) && !b.contains(a));
            }
        }
        for subnet in given {
            prop_assert!(out.iter().any(|element| element.contains(&subnet)));
        }
    }
}
