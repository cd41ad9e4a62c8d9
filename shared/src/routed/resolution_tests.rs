use proptest::prelude::*;

use super::*;
use crate::network::record::tests::host;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn found(addresses: &[&str]) -> Answer {
    Ok(addresses.iter().map(|text| ip(text)).collect())
}

fn failed() -> Answer {
    Err(LookupError::NotFound("n1".into()))
}

fn new() -> Resolution {
    Resolution::new(&"prod".parse().unwrap())
}

/// A setup with one name.
fn set_up(record: &mut Resolution, answer: Answer) -> Addresses {
    record.refresh(["n1"], Which::All, |names| {
        assert_eq!(names, ["n1"]);
        vec![answer]
    });
    record.addresses(&[Listed::Name("n1")]).0
}

#[test]
fn an_add_looks_up_what_it_has_never_heard_of() {
    let mut record = new();
    let asked = |names: &[&str]| {
        assert_eq!(names, ["n1", "n2"]);
        vec![failed(), found(&["10.0.0.2"])]
    };
    assert_eq!(record.refresh(["n2", "n1", "n1"], Which::New, asked).len(), 1);
    let never = |_: &[&str]| -> Vec<Answer> { panic!("nothing is looked up twice, found or not") };
    assert!(record.refresh(["n1", "n2"], Which::New, never).is_empty());
    record.refresh(["n1", "n2", "n3"], Which::New, |names| {
        assert_eq!(names, ["n3"]);
        vec![found(&["10.0.0.3"])]
    });
    record.refresh(["n3"], Which::New, never);
    assert_eq!(record.names.keys().collect::<Vec<_>>(), ["n3"], "nobody has the others any more");
}

#[test]
fn what_is_known_stays_while_it_is_true() {
    let mut record = new();
    let both = |v4: &str, v6: &str| [ip(v4), ip(v6)].into_iter().collect::<Addresses>();
    assert!(set_up(&mut record, failed()).is_empty());
    assert_eq!(set_up(&mut record, found(&["10.0.0.9", "fd00::9", "10.0.0.8"])), both("10.0.0.8", "fd00::9"));
    assert_eq!(set_up(&mut record, failed()), both("10.0.0.8", "fd00::9"), "DNS is down");
    assert_eq!(
        set_up(&mut record, found(&["10.0.0.1", "fd00::1", "fd00::9", "10.0.0.8"])),
        both("10.0.0.8", "fd00::9")
    );
    assert_eq!(set_up(&mut record, found(&["10.0.0.7", "10.0.0.1"])), [ip("10.0.0.1")].into_iter().collect());
}

#[test]
fn the_list_of_a_node_decides() {
    let mut record = new();
    set_up(&mut record, found(&["10.0.0.9", "fd00::9"]));
    let (addresses, unresolved) =
        record.addresses(&[Listed::Name("gone"), Listed::Ip(ip("10.0.0.1")), Listed::Name("n1")]);
    assert_eq!(addresses, [ip("10.0.0.1"), ip("fd00::9")].into_iter().collect());
    assert_eq!(unresolved, ["gone"]);
}

#[test]
fn the_record_survives_and_a_torn_one_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(&folder);
    let mut record = new();
    assert_eq!(Resolution::load(&host, &record.network).unwrap(), record);
    set_up(&mut record, found(&["10.0.0.9", "fd00::9"]));
    record.refresh(["n1", "n2"], Which::New, |_| vec![failed()]);
    record.save(&host).unwrap();
    record.save(&host).unwrap();
    assert_eq!(Resolution::load(&host, &record.network).unwrap(), record);
    let path = Resolution::path(&host, &record.network);
    let text = std::fs::read_to_string(&path).unwrap();
    let wanted = r#"{"v":1,"network":"prod","names":{"n1":{"v4":"10.0.0.9","v6":"fd00::9"},"n2":{}}}"#;
    assert_eq!(text.trim_end(), wanted);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
    for torn in ["", "{", "\0\0", &text[..40], &text.replace("prod", "other"), &text.replace("fd00::9", "10.0.0.1")] {
        std::fs::write(&path, torn).unwrap();
        assert_eq!(Resolution::load(&host, &record.network).unwrap(), new(), "{torn:?}");
        assert!(!path.exists() && path.with_file_name("corrupt").join("prod.json").exists());
    }
    std::fs::write(&path, r#"{"v":2,"new":1}"#).unwrap();
    assert!(matches!(Resolution::load(&host, &record.network), Err(Error::NewerFormat { v: 2, .. })));
    assert!(path.exists());
    Resolution::remove(&host, &record.network).unwrap();
    Resolution::remove(&host, &record.network).unwrap();
    assert!(!path.exists());
}

fn answers() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(1_u8..=6, 0..5), 1..8)
}

proptest! {
    /// Whatever the name servers say, in whatever order: an address changes only when it is not among the answers.
    #[test]
    fn addresses_are_stable(rounds in answers(), seed: u64) {
        let mut record = new();
        let mut before = Addresses::default();
        for mut round in rounds {
            let wire: Vec<String> = round.iter().map(|n| format!("10.0.0.{n}")).collect();
            let mut texts: Vec<&str> = wire.iter().map(String::as_str).collect();
            if !texts.is_empty() {
                let turn = seed as usize % texts.len();
                texts.rotate_left(turn);
            }
            let answer = if texts.is_empty() { failed() } else { found(&texts) };
            let after = set_up(&mut record, answer);
            round.sort_unstable();
            let known = before.v4.map(|address| address.octets()[3]);
            let wanted = match (known, round.first()) {
                (known, None) => known,
                (Some(known), _) if round.contains(&known) => Some(known),
                (_, lowest) => lowest.copied(),
            };
            prop_assert_eq!(after.v4.map(|address| address.octets()[3]), wanted);
            before = after;
        }
    }
}
