//! Elements of maps and sets, one by one and by the thousand.

use std::time::Instant;

use super::super::batch::Batch;
use super::super::element::Element;
use super::super::nfnetlink::Nfnetlink;
use super::*;
use crate::netlink::testing::in_new_netns;
use nix::libc::{EEXIST, ENOENT};

const IP: u8 = 2;
const IP6: u8 = 10;
const T: &str = "osvc-cni-portmap";
const WHAT: &str = "test elements";

const TABLES: &str = "
table ip osvc-cni-portmap {
    map any { type inet_proto . inet_service : ipv4_addr . inet_service; }
    map host { type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service; }
    set hairpin { type ipv4_addr . ipv4_addr; flags interval; }
    set restricted { type ipv4_addr; flags interval; }
    chain mapped {
        dnat ip to ip daddr . meta l4proto . th dport map @host
        dnat ip to meta l4proto . th dport map @any
    }
}
table ip6 osvc-cni-portmap {
    map any { type inet_proto . inet_service : ipv6_addr . inet_service; }
    set hairpin { type ipv6_addr . ipv6_addr; flags interval; }
}
";

/// A socket in a network namespace with both tables.
fn in_tables(test: impl FnOnce(Nfnetlink) + Send) {
    in_new_netns(|| {
        nft(TABLES);
        test(Nfnetlink::open().unwrap());
    });
}

/// `tcp . port`.
fn port(port: u16) -> Vec<u8> {
    let [a, b] = port.to_be_bytes();
    vec![6, 0, 0, 0, a, b, 0, 0]
}

/// An element of `any`: `tcp . from : 10.1.0.last . 80`.
fn mapping(from: u16, last: u8) -> Element {
    let data = Some(vec![10, 1, 0, last, 0, 80, 0, 0]);
    Element { key: port(from), data, comment: Some(format!("osvc:{from}")), ..Element::default() }
}

fn interval(from: &[u8], to: &[u8], comment: &str) -> Element {
    let comment = Some(comment.to_owned());
    Element { key: from.to_vec(), key_end: Some(to.to_vec()), comment, ..Element::default() }
}

fn add(set: &str, elements: Vec<Element>) -> Batch {
    let mut batch = Batch::default();
    batch.add(IP, T, set, elements);
    batch
}

fn delete(set: &str, keys: Vec<Element>) -> Batch {
    let mut batch = Batch::default();
    batch.delete(IP, T, set, keys);
    batch
}

/// What nft says of a set, on one line.
fn listed(kind: &str, family: &str, set: &str) -> String {
    run("nft", &["-n", "list", kind, family, T, set]).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn errno(result: Result<(), Error>) -> Option<i32> {
    result.unwrap_err().errno()
}

#[test]
fn a_map_is_read_and_changed_as_nft_does() {
    in_tables(|mut kernel| {
        assert_eq!(kernel.element(IP, T, "any", &port(8080)).unwrap(), None);
        assert_eq!(kernel.element(IP, T, "none", &port(8080)).unwrap(), None);
        assert_eq!(kernel.element(IP, "none", "any", &port(8080)).unwrap(), None);
        assert_eq!(kernel.set_elements(IP, T, "none").unwrap(), []);
        assert_eq!(kernel.set_elements(IP, T, "any").unwrap(), []);
        kernel.commit(&Batch::default(), WHAT).unwrap();

        kernel.commit(&add("any", vec![mapping(8080, 2)]), WHAT).unwrap();
        let text = listed("map", "ip", "any");
        assert!(text.contains(r#"elements = { 6 . 8080 comment "osvc:8080" : 10.1.0.2 . 80 }"#), "{text}");
        assert_eq!(kernel.element(IP, T, "any", &port(8080)).unwrap(), Some(mapping(8080, 2)));
        assert_eq!(kernel.element(IP, T, "any", &port(8081)).unwrap(), None);
        // The same again, with another comment, and with another value.
        kernel.commit(&add("any", vec![Element { comment: Some("x".into()), ..mapping(8080, 2) }]), WHAT).unwrap();
        assert_eq!(kernel.element(IP, T, "any", &port(8080)).unwrap(), Some(mapping(8080, 2)));
        kernel.commit(&add("any", vec![mapping(8080, 2)]), WHAT).unwrap();
        assert_eq!(errno(kernel.commit(&add("any", vec![mapping(8080, 3)]), WHAT)), Some(EEXIST));

        let mut batch = delete("any", vec![mapping(8080, 2)]);
        batch.add(IP, T, "any", vec![mapping(8080, 3)]);
        kernel.commit(&batch, WHAT).unwrap();
        assert_eq!(kernel.set_elements(IP, T, "any").unwrap(), [mapping(8080, 3)]);
        kernel.commit(&delete("any", vec![Element { key: port(8080), ..Element::default() }]), WHAT).unwrap();
        assert_eq!(kernel.element(IP, T, "any", &port(8080)).unwrap(), None);
        assert_eq!(errno(kernel.commit(&delete("any", vec![mapping(8080, 3)]), WHAT)), Some(ENOENT));

        nft(r#"add element ip osvc-cni-portmap any { tcp . 9 comment "osvc:9" : 10.1.0.7 . 80 }"#);
        assert_eq!(kernel.set_elements(IP, T, "any").unwrap(), [mapping(9, 7)]);
    });
}

#[test]
fn intervals_of_a_concatenation_are_those_of_nft() {
    in_tables(|mut kernel| {
        let net = interval(&[10, 9, 0, 0, 10, 9, 0, 0], &[10, 9, 0, 255, 10, 9, 0, 255], "osvc:web");
        let host = interval(&[127, 0, 0, 0, 10, 9, 0, 0], &[127, 255, 255, 255, 10, 9, 0, 255], "osvc:web");
        let every = interval(&[0, 0, 0, 0, 10, 8, 0, 0], &[255, 255, 255, 255, 10, 8, 0, 255], "osvc:all");
        let one = interval(&[10, 7, 0, 1, 10, 7, 0, 2], &[10, 7, 0, 1, 10, 7, 0, 2], "osvc:one");
        let elements = [net, host, every, one];
        kernel.commit(&add("hairpin", elements.to_vec()), WHAT).unwrap();
        let ours = listed("set", "ip", "hairpin");
        for element in [
            r#"10.9.0.0/24 . 10.9.0.0/24 comment "osvc:web""#,
            r#"127.0.0.0/8 . 10.9.0.0/24 comment "osvc:web""#,
            r#"0.0.0.0/0 . 10.8.0.0/24 comment "osvc:all""#,
            r#"10.7.0.1 . 10.7.0.2 comment "osvc:one""#,
        ] {
            assert!(ours.contains(element), "{element} in {ours}");
        }
        let sorted = |mut elements: Vec<Element>| {
            elements.sort();
            elements
        };
        assert_eq!(kernel.set_elements(IP, T, "hairpin").unwrap(), sorted(elements.to_vec()));
        for element in &elements {
            assert_eq!(kernel.element(IP, T, "hairpin", &element.key).unwrap().as_ref(), Some(element));
        }
        // The element that covers a key, and none for one outside.
        let inside = kernel.element(IP, T, "hairpin", &[10, 9, 0, 5, 10, 9, 0, 6]).unwrap();
        assert_eq!(inside.as_ref(), Some(&elements[0]));
        assert_eq!(kernel.element(IP, T, "hairpin", &[10, 9, 1, 5, 10, 9, 0, 6]).unwrap(), None);

        kernel.commit(&add("hairpin", elements.to_vec()), WHAT).unwrap();
        let mut batch = delete("hairpin", elements.to_vec());
        batch.add(IP, T, "hairpin", vec![elements[3].clone()]);
        kernel.commit(&batch, WHAT).unwrap();
        assert_eq!(kernel.set_elements(IP, T, "hairpin").unwrap(), [elements[3].clone()]);
        run("nft", &["delete element ip osvc-cni-portmap hairpin { 10.7.0.1 . 10.7.0.2 }"]);
        // nft's own are read as ours.
        nft(r#"add element ip osvc-cni-portmap hairpin { 10.7.0.1 . 10.7.0.2 comment "osvc:one" }"#);
        assert_eq!(kernel.set_elements(IP, T, "hairpin").unwrap(), [elements[3].clone()]);
    });
}

#[test]
fn intervals_of_a_single_field_are_two_elements() {
    in_tables(|mut kernel| {
        let first = |key: [u8; 4]| Element { key: key.into(), comment: Some("osvc:a".into()), ..Element::default() };
        let end = |key: [u8; 4]| Element { key: key.into(), interval_end: true, ..Element::default() };
        let neighbours = vec![first([10, 0, 0, 2]), end([10, 0, 0, 3]), first([10, 0, 0, 3]), end([10, 0, 0, 4])];
        kernel.commit(&add("restricted", neighbours.clone()), WHAT).unwrap();
        kernel.commit(&add("restricted", vec![first([255, 255, 255, 255])]), WHAT).unwrap();
        let text = listed("set", "ip", "restricted");
        let expected = r#"10.0.0.2 comment "osvc:a", 10.0.0.3 comment "osvc:a", 255.255.255.255 comment "osvc:a""#;
        assert!(text.contains(expected), "{text}");
        assert_eq!(kernel.set_elements(IP, T, "restricted").unwrap().len(), 5);
        assert_eq!(kernel.element(IP, T, "restricted", &[10, 0, 0, 3]).unwrap(), Some(first([10, 0, 0, 3])));
        assert_eq!(kernel.element(IP, T, "restricted", &[10, 0, 0, 1]).unwrap(), None);
        kernel.commit(&add("restricted", neighbours[..2].to_vec()), WHAT).unwrap();
        kernel.commit(&delete("restricted", neighbours[..2].to_vec()), WHAT).unwrap();
        let text = listed("set", "ip", "restricted");
        assert!(text.contains("{ 10.0.0.3") && !text.contains("10.0.0.2"), "{text}");
        assert_eq!(kernel.element(IP, T, "restricted", &[10, 0, 0, 2]).unwrap(), None);
        kernel.commit(&add("restricted", vec![first([10, 1, 0, 0]), end([10, 1, 1, 0])]), WHAT).unwrap();
        assert_eq!(kernel.element(IP, T, "restricted", &[10, 1, 0, 7]).unwrap(), Some(first([10, 1, 0, 0])));
        assert_eq!(kernel.element(IP, T, "restricted", &[10, 1, 1, 0]).unwrap(), None);
    });
}

#[test]
fn thousands_go_in_as_one_transaction() {
    in_tables(|mut kernel| {
        for count in [5000, 60_000] {
            let mappings: Vec<_> = (1..=count).map(|port| mapping(port, 2)).collect();
            let before = kernel.generation().unwrap();
            let start = Instant::now();
            kernel.commit(&add("any", mappings.clone()), WHAT).unwrap();
            println!("{count} elements: {:?}", start.elapsed());
            assert_eq!(kernel.generation().unwrap(), before + 1);
            let start = Instant::now();
            let found = kernel.set_elements(IP, T, "any").unwrap();
            println!("list them: {:?}", start.elapsed());
            assert!(found == mappings, "{} of {count}", found.len());
            let start = Instant::now();
            kernel.commit(&add("any", vec![mapping(65_000, 2)]), WHAT).unwrap();
            println!("one more: {:?}", start.elapsed());
            let mut everything = delete("any", mappings);
            everything.delete(IP, T, "any", vec![mapping(65_000, 2)]);
            kernel.commit(&everything, WHAT).unwrap();
            assert_eq!(kernel.set_elements(IP, T, "any").unwrap(), []);
        }
    });
}

#[test]
fn a_failure_anywhere_undoes_all_and_leaves_the_socket_usable() {
    in_tables(|mut kernel| {
        kernel.commit(&add("any", vec![mapping(2500, 9)]), WHAT).unwrap();
        let before = run("nft", &["list", "ruleset"]);
        let many = |from| (from..from + 5000).map(|port| mapping(port, 2)).collect::<Vec<_>>();
        // One of the middle exists with another value.
        assert_eq!(errno(kernel.commit(&add("any", many(1)), WHAT)), Some(EEXIST));
        assert_eq!(kernel.element(IP, T, "any", &port(2500)).unwrap(), Some(mapping(2500, 9)));
        // Both families or none, whichever fails.
        for (good, bad) in [(IP, IP6), (IP6, IP)] {
            let mut batch = Batch::default();
            let key = |family| if family == IP { vec![1; 8] } else { vec![1; 32] };
            let element = |family| interval(&key(family), &key(family), "osvc:x");
            batch.add(good, T, "hairpin", vec![element(good)]);
            batch.add(bad, T, "no such set", vec![element(bad)]);
            batch.add(good, T, "hairpin", vec![element(good)]);
            assert_eq!(errno(kernel.commit(&batch, WHAT)), Some(ENOENT));
        }
        // Every message fails, and each has more than what an answer may have.
        let mut batch = Batch::default();
        for set in ["no", "nor", "neither"] {
            batch.add(IP, T, set, many(1));
        }
        let error = kernel.commit(&batch, WHAT).unwrap_err();
        assert_eq!(error.to_string(), "cannot test elements: No such file or directory (os error 2)");
        assert_eq!(kernel.element(IP, T, "any", &port(2500)).unwrap(), Some(mapping(2500, 9)));
        assert_eq!(run("nft", &["list", "ruleset"]), before);
        kernel.commit(&add("any", many(3000)), WHAT).unwrap();
        assert_eq!(kernel.set_elements(IP, T, "any").unwrap().len(), 5001);
    });
}

#[test]
fn the_fingerprint_is_that_of_the_table_and_not_of_its_elements() {
    in_tables(|mut kernel| {
        let print = |kernel: &mut Nfnetlink| kernel.table_fingerprint(IP, T).unwrap().unwrap();
        assert_eq!(kernel.table_fingerprint(IP, "none").unwrap(), None);
        let first = print(&mut kernel);
        assert_eq!(first.len(), 32);
        assert_ne!(Some(first.clone()), kernel.table_fingerprint(IP6, T).unwrap());
        kernel.commit(&add("any", (1..=5000).map(|port| mapping(port, 2)).collect()), WHAT).unwrap();
        kernel.commit(&add("hairpin", vec![interval(&[1; 8], &[2; 8], "osvc:a")]), WHAT).unwrap();
        assert_eq!(print(&mut kernel), first);
        nft("flush map ip osvc-cni-portmap any");
        nft("add table ip other; add set ip other any { type ipv4_addr; }; add chain ip other c");
        assert_eq!(print(&mut kernel), first, "what is in the maps, and in other tables, is not in it");
        let mut seen = vec![first];
        for change in [
            "insert rule ip osvc-cni-portmap mapped ip saddr 10.0.0.1 accept",
            "flush chain ip osvc-cni-portmap mapped",
            "add set ip osvc-cni-portmap more { type ipv4_addr; }",
            "delete set ip osvc-cni-portmap restricted",
            "add set ip osvc-cni-portmap restricted { type ipv4_addr; flags interval; }",
        ] {
            nft(change);
            let now = print(&mut kernel);
            assert!(!seen.contains(&now), "{change}");
            seen.push(now);
        }
        nft(&format!("delete table ip {T}; delete table ip6 {T}"));
        assert_eq!(kernel.table_fingerprint(IP, T).unwrap(), None);
        nft(TABLES);
        assert!(!seen.contains(&print(&mut kernel)), "the same table, made anew");
    });
}
