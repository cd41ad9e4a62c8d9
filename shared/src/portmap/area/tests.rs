//! What the sets of pairs hold.

use super::*;

fn area(subnet: &str, masquerade: Masquerade, allow: Option<&[&str]>, mark: &str) -> Area {
    let allow = allow.map(|list| list.iter().map(|net| net.parse().unwrap()).collect());
    Area { subnet: subnet.parse().unwrap(), masquerade, allow, mark: mark.into() }
}

fn shown(areas: &[Area], family: Family) -> Vec<String> {
    pairs(areas, family)
        .iter()
        .map(|pair| format!("{} {} . {} {}", pair.set, pair.source, pair.target, pair.mark))
        .collect()
}

#[test]
fn one_element_for_a_network_and_one_for_localhost() {
    let areas = [area("10.9.0.0/24", Masquerade::Own, None, "a"), area("fd09::/64", Masquerade::Own, None, "a")];
    assert_eq!(
        shown(&areas, Family::Ip),
        ["hairpin 10.9.0.0/24 . 10.9.0.0/24 a", "hairpin 127.0.0.0/8 . 10.9.0.0/24 a"]
    );
    assert_eq!(shown(&areas, Family::Ip6), ["hairpin fd09::/64 . fd09::/64 a"]);
    assert_eq!(
        shown(&[area("10.9.0.0/24", Masquerade::All, None, "a")], Family::Ip),
        ["hairpin 0.0.0.0/0 . 10.9.0.0/24 a"]
    );
    assert_eq!(shown(&[area("10.9.0.0/24", Masquerade::Nothing, None, "a")], Family::Ip), [""; 0]);
}

#[test]
fn clients_of_the_other_family_open_nothing_and_overlapping_ones_are_one() {
    let allow: &[&str] = &["192.0.2.0/24", "192.0.2.7/32", "2001:db8::/32"];
    let areas = [area("10.9.0.0/24", Masquerade::Nothing, Some(allow), "a")];
    assert_eq!(
        shown(&areas, Family::Ip),
        [
            "allowed 10.9.0.0/24 . 10.9.0.0/24 a",
            "allowed 192.0.2.0/24 . 10.9.0.0/24 a",
            "restricted 0.0.0.0/0 . 10.9.0.0/24 a"
        ]
    );
    let areas = [area("fd09::/64", Masquerade::Nothing, Some(&["192.0.2.0/24"]), "a")];
    assert_eq!(shown(&areas, Family::Ip6), ["allowed fd09::/64 . fd09::/64 a", "restricted ::/0 . fd09::/64 a"]);
}

#[test]
fn a_subnet_inside_of_another_is_part_of_it() {
    let areas = [
        area("10.9.5.0/24", Masquerade::All, Some(&["192.0.2.0/24"]), "inner"),
        area("10.9.0.0/16", Masquerade::Own, None, "outer"),
        area("10.9.0.0/16", Masquerade::Nothing, Some(&["192.0.0.0/8", "10.0.0.0/8"]), "twin"),
    ];
    assert_eq!(
        shown(&areas, Family::Ip),
        [
            "allowed 10.9.0.0/16 . 10.9.0.0/16 osvc:several networks",
            "allowed 192.0.2.0/24 . 10.9.0.0/16 osvc:several networks",
            "hairpin 0.0.0.0/0 . 10.9.0.0/16 osvc:several networks",
            "restricted 0.0.0.0/0 . 10.9.0.0/16 osvc:several networks"
        ]
    );
}

#[test]
fn what_is_in_the_sets_is_understood_and_a_newer_word_replaces_it() {
    let old = vec![
        area("10.9.0.0/24", Masquerade::Own, Some(&["192.0.2.0/24"]), "a"),
        area("10.8.0.0/24", Masquerade::All, None, "b"),
    ];
    let read = of_pairs(&pairs(&old, Family::Ip));
    assert_eq!(pairs(&read, Family::Ip), pairs(&old, Family::Ip));
    let newer = merged(read, vec![area("10.9.0.0/24", Masquerade::Nothing, None, "a")]);
    assert_eq!(shown(&newer, Family::Ip), ["hairpin 0.0.0.0/0 . 10.8.0.0/24 b"]);
    for pair in pairs(&old, Family::Ip) {
        assert_eq!(Pair::of(pair.set, &pair.element()), Some(pair));
    }
}
