use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::network::record::tests::host;

/// A host that shows these segments, and that it is this node by its addresses.
struct Shows(&'static [&'static str], &'static str);

impl Witness for Shows {
    fn segments(&self, _: &RoutedConfig) -> Vec<IpNet> {
        self.0.iter().map(|net| net.parse().unwrap()).collect()
    }

    fn is_now(&self, config: &RoutedConfig, former: &Node) -> bool {
        config.this_node().name == self.1 && former.name != self.1
    }
}

const NOTHING: Shows = Shows(&[], "");

/// There is a record: nobody is asked.
struct Unasked;

impl Witness for Unasked {
    fn segments(&self, _: &RoutedConfig) -> Vec<IpNet> {
        panic!("there is a record")
    }

    fn is_now(&self, _: &RoutedConfig, _: &Node) -> bool {
        panic!("it is the same node")
    }
}

#[test]
fn settling_records_once_and_reading_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(&folder);
    let three = config("a", "a b c");
    assert!(read(&host, &mut three.clone()).unwrap().is_new());
    assert!(!host.state.exists(), "nothing is written");
    let plan = settle(&host, &three, &NOTHING).unwrap();
    let path = SegmentRecord::path(&host, &three.name);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "{\"v\":1,\"name\":\"net\",\"node\":\"a\",\"networks\":[{\"network\":\"10.11.0.0/16\",\"segments\":\
         {\"a\":\"10.11.0.0/22\",\"b\":\"10.11.4.0/22\",\"c\":\"10.11.8.0/22\"}}]}\n"
    );
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&SegmentRecord::folder(&host)), mode(&host.state)), (0o600, 0o700, 0o700));
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(settle(&host, &three, &Unasked).unwrap().record(), plan.record());
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    settle(&host, &config("a", "a b c d"), &Unasked).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("10.11.12.0/22"));
    let removed = settle(&host, &config("a", "a c d"), &Unasked).unwrap();
    let error = removed.agrees(&host).unwrap_err();
    assert_eq!(error.code(), Code::InvalidConfig);
    let text = error.to_string();
    assert!(text.contains("node c has 10.11.8.0/22 and would move") && text.contains("/segments/net.json"), "{text}");
    SegmentRecord::remove(&host, &three.name).unwrap();
    SegmentRecord::remove(&host, &three.name).unwrap();
    assert_eq!(SegmentRecord::load(&host, &three.name).unwrap(), None);
}

#[test]
fn a_lost_record_is_made_again_around_what_this_node_has() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(&folder);
    let shows = Shows(&["10.0.0.1/24", "10.11.8.1/22"], "");
    let plan = settle(&host, &config("c", "a c"), &shows).unwrap();
    assert_eq!((short(&plan).as_str(), plan.refused().len(), plan.is_first()), ("a0 c2", 1, false));
    let again = settle(&host, &config("c", "a c"), &NOTHING).unwrap();
    assert_eq!(short(&again), "a0 c2", "recorded");
    let whole = ["10.11.0.1/16".parse().unwrap()];
    assert_eq!(SegmentRecord::recovered(&config("c", "a c"), &whole), None, "a bridge of all of it is no segment");
}

#[test]
fn a_copied_disk_is_told_by_the_addresses_and_by_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(&folder);
    assert!(settle(&host, &config("b", "a b c"), &NOTHING).unwrap().is_first());
    let (mut c, mut d) = (config("c", "a b c d"), config("d", "a b c d"));
    for config in [&mut c, &mut d] {
        let plan = preview(&host, config, &NOTHING).unwrap();
        assert_eq!(
            (config.this_node().name.as_str(), plan.here()[0].to_string()),
            ("b", segment(1)),
            "b by its record"
        );
        assert!(settle(&host, config, &NOTHING).unwrap().refused().is_empty(), "as which it is set up");
    }
    for (name, own) in [("c", 2), ("d", 3)] {
        let mut config = config(name, "a b c d");
        let plan = preview(&host, &mut config, &Shows(&[], name)).unwrap();
        assert_eq!((plan.here()[0].to_string(), plan.refused(), plan.is_new()), (segment(own), &[][..], true));
        settle(&host, &config, &Shows(&[], name)).unwrap();
        let record = SegmentRecord::load(&host, &config.name).unwrap().unwrap();
        assert_eq!((record.node.as_str(), record.networks[0].segments["b"].to_string()), (name, segment(1)));
    }
}

#[test]
fn torn_records_are_set_aside_and_later_ones_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(&folder);
    let three = config("a", "a b c");
    settle(&host, &three, &NOTHING).unwrap();
    let path = SegmentRecord::path(&host, &three.name);
    let good = fs::read_to_string(&path).unwrap();
    let torn = [
        String::new(),
        "\0\0\0".to_owned(),
        "[]".to_owned(),
        good[..good.len() / 2].to_owned(),
        good.replace("\"net\"", "\"other\""),
        good.replace("10.11.8.0/22", "10.11.4.0/24"),
        good.replace("10.11.8.0/22", "10.12.8.0/22"),
        good.replace("10.11.8.0/22", "10.11.8.1/22"),
        good.replace("]}\n", ",{\"network\":\"10.0.0.0/8\",\"segments\":{}}]}"),
    ];
    for text in torn {
        fs::write(&path, &text).unwrap();
        assert_eq!(SegmentRecord::load(&host, &three.name).unwrap(), None, "{text:?}");
        assert!(!path.exists() && path.with_file_name("corrupt").join("net.json").exists());
    }
    fs::write(&path, "{\"v\":2,\"new\":1}").unwrap();
    let error = settle(&host, &three, &NOTHING).unwrap_err();
    assert!(error.code() == Code::Io && error.to_string().contains("has format 2"), "{error}");
    assert!(path.exists());
    fs::remove_dir_all(&host.state).unwrap();
    fs::write(&host.state, "").unwrap();
    let error = settle(&host, &three, &NOTHING).unwrap_err();
    assert!(error.code() == Code::Io && error.to_string().contains("/state/segments"), "{error}");
}

#[test]
fn two_at_once_record_one_plan() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(&folder);
    std::thread::scope(|scope| {
        for nodes in ["a b c", "a b c d", "a b c", "a b c d e"] {
            let host = &host;
            scope.spawn(move || settle(host, &config("a", nodes), &NOTHING).unwrap());
        }
    });
    let record = SegmentRecord::load(&host, &"net".parse().unwrap()).unwrap().unwrap();
    assert_eq!(record.networks[0].segments.len(), 5);
}
