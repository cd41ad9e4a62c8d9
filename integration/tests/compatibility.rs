//! docs/compatibility.md is complete, and every test that it names is there.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const TABLE: &str = include_str!("../../docs/compatibility.md");

/// The groups of cases, and how many each has.
const GROUPS: [(&str, u32); 13] = [
    ("HL", 14),
    ("AL", 7),
    ("CF", 11),
    ("RG", 7),
    ("LK", 1),
    ("IP", 2),
    ("ST", 10),
    ("BR", 26),
    ("CI", 6),
    ("LN", 10),
    ("SP", 4),
    ("NF", 4),
    ("DT", 1),
];

/// The cells of each row.
fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| case ");
    TABLE.lines().filter(is_row).map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
}

#[test]
fn no_case_is_missing_and_none_is_there_twice() {
    let cases: Vec<&str> = rows().map(|row| row[0]).collect();
    let all: Vec<String> =
        GROUPS.iter().flat_map(|(group, last)| (1..=*last).map(move |number| format!("{group}{number}"))).collect();
    assert_eq!(cases, all);
}

#[test]
fn every_row_says_what_both_do_and_which_test_shows_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut missing = BTreeSet::new();
    for row in rows() {
        let [case, behaviour, ours, reference, _, shown] = row[..] else { panic!("six cells: {row:?}") };
        assert!(!behaviour.is_empty() && !ours.is_empty() && !reference.is_empty(), "{case}");
        for shown in shown.split(", ") {
            let (place, both) = shown.strip_suffix(" (both)").map_or((shown, false), |place| (place, true));
            let (file, name) = place.split_once(' ').unwrap_or_else(|| panic!("{case}: file and test: {shown}"));
            let path = match file.starts_with("integration/") || file.starts_with("shared/") {
                true => root.join(file),
                false => root.join("integration/tests").join(file),
            };
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{case}: {}: {error}", path.display()));
            let is_test = |text: &str| {
                text.contains(&format!("#[test]\nfn {name}(")) || text.contains(&format!("#[test]\n    fn {name}("))
            };
            let listed = text.split_once("both! {").and_then(|(_, list)| list.split_once('}'));
            let is_both = listed.is_some_and(|(list, _)| list.split_whitespace().any(|one| one == name));
            if !(if both { is_both } else { is_test(&text) }) {
                missing.insert(format!("{case}: {shown}"));
            }
        }
    }
    assert!(missing.is_empty(), "no such test:\n{}", missing.into_iter().collect::<Vec<_>>().join("\n"));
}
