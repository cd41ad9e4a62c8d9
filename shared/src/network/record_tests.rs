use super::*;

/// A host whose state lies in a folder.
pub(crate) fn host(folder: &tempfile::TempDir) -> Host {
    Host { state: folder.path().join("state"), run: folder.path().join("run"), boot: "boot".to_owned() }
}

/// The record of a network with these subnets.
pub(crate) fn record(name: &str, subnets: &[&str]) -> NetworkRecord {
    NetworkRecord {
        v: FORMAT,
        name: name.parse().unwrap(),
        bridge: format!("obr_{name}"),
        owned: true,
        gateways: Vec::new(),
        added: Vec::new(),
        subnets: subnets.iter().map(|subnet| subnet.parse().unwrap()).collect(),
        masquerade_v4: true,
        masquerade_v6: true,
        forward_accept: ForwardAccept::Auto,
        vlan_device: None,
        vlans: Vlans::default(),
        port_isolation: false,
        promiscuous: false,
        promiscuous_by_us: false,
        isolate: false,
        guarded: false,
        mtu: 1500,
        ipam: None,
        cluster: None,
        boot: "boot".to_owned(),
        netns: NetnsId { cookie: Some(1), dev: 4, ino: 5, ctime: None },
    }
}

#[test]
fn a_record_comes_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(&folder);
    let (a, b) = (record("a", &["10.1.0.0/16", "fd00:1::/64"]), record("b", &[]));
    assert_eq!(NetworkRecord::load(&host, &a.name).unwrap(), None);
    assert_eq!(NetworkRecord::all(&host).unwrap(), []);
    a.save(&host).unwrap();
    b.save(&host).unwrap();
    let keys = |host: &Host| {
        let text = fs::read_to_string(NetworkRecord::path(host, &a.name)).unwrap();
        ["vlans", "port_isolation", "promiscuous"].map(|key| text.contains(key))
    };
    assert_eq!(keys(&host), [false; 3], "what is not configured is not in the file");
    let vlans = Vlans { access: Some(100), trunk: [7, 9].into(), keep_default: true };
    let with = NetworkRecord { vlans, port_isolation: true, promiscuous: true, promiscuous_by_us: true, ..a.clone() };
    with.save(&host).unwrap();
    assert_eq!((NetworkRecord::load(&host, &a.name).unwrap(), keys(&host)), (Some(with), [true; 3]));
    a.save(&host).unwrap();
    assert_eq!(NetworkRecord::load(&host, &a.name).unwrap(), Some(a.clone()));
    let mut all = NetworkRecord::all(&host).unwrap();
    crate::order::sort_by(&mut all, |a, b| a.name.cmp(&b.name));
    assert_eq!(all, [a.clone(), b]);
    let entries: Vec<_> = fs::read_dir(NetworkRecord::folder(&host)).unwrap().collect();
    assert_eq!(entries.len(), 2, "no temporary file is left");
    NetworkRecord::remove(&host, &a.name).unwrap();
    NetworkRecord::remove(&host, &a.name).unwrap();
    assert_eq!(NetworkRecord::load(&host, &a.name).unwrap(), None);
}

#[test]
fn a_torn_record_is_set_aside_and_a_later_one_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(&folder);
    let a = record("a", &["10.1.0.0/16"]);
    a.save(&host).unwrap();
    let path = NetworkRecord::path(&host, &a.name);
    fs::copy(&path, path.with_file_name("copy.json")).unwrap();
    assert_eq!(NetworkRecord::all(&host).unwrap(), std::slice::from_ref(&a));
    let text = fs::read_to_string(&path).unwrap();
    for torn in ["", "{", &text[..text.len() / 2], "[]", "\0\0\0"] {
        fs::write(&path, torn).unwrap();
        assert_eq!(NetworkRecord::load(&host, &a.name).unwrap(), None, "{torn:?}");
        assert!(!path.exists());
    }
    assert!(path.with_file_name("corrupt").join("a.json").exists());
    fs::write(&path, "{\"v\":2,\"new\":1}").unwrap();
    assert!(matches!(NetworkRecord::load(&host, &a.name), Err(Error::NewerFormat { v: 2, .. })));
    assert!(path.exists());
    let b = record("b", &["10.2.0.0/16"]);
    b.save(&host).unwrap();
    fs::create_dir(path.with_file_name("folder.json")).unwrap();
    assert_eq!(NetworkRecord::all(&host).unwrap(), [b], "the others are not concerned");
}

#[test]
fn a_record_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(&folder);
    fs::write(&host.state, "").unwrap();
    let error = record("a", &[]).save(&host).unwrap_err();
    assert_eq!(error.code(), crate::Code::Io);
    assert!(error.to_string().contains("/state/networks/a.json"), "{error}");
}
