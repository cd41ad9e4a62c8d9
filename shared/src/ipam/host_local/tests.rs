use std::fs::{self, File};
use std::os::fd::AsRawFd;

use tempfile::TempDir;

use super::*;

mod removal;

struct Folder {
    temporary: TempDir,
    records: PathBuf,
    results: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let (records, results) = (temporary.path().join("mynet"), temporary.path().join("results"));
        fs::create_dir(&records).unwrap();
        fs::create_dir(&results).unwrap();
        fs::write(records.join("lock"), "").unwrap();
        fs::write(records.join("last_reserved_ip.0"), "10.1.2.9").unwrap();
        Self { temporary, records, results }
    }

    fn open(&self) -> HostLocal {
        HostLocal::new(&self.records, &"mynet".parse().unwrap()).with_results(&self.results)
    }

    fn record(&self, ip: &str, text: &str) -> &Self {
        fs::write(self.records.join(ip), text).unwrap();
        self
    }

    fn result(&self, container: &str, entry: serde_json::Value) -> &Self {
        fs::write(self.results.join(format!("mynet-{container}-eth0")), entry.to_string()).unwrap();
        self
    }

    fn holder(&self, ip: &str) -> Option<String> {
        self.open().holder(ip.parse().unwrap()).unwrap().map(|holder| holder.container)
    }

    fn remove(&self, container: &str, ifname: &str) -> Vec<String> {
        let removed = self.open().remove(&container.parse().unwrap(), &ifname.parse().unwrap(), None).unwrap();
        let mut removed: Vec<String> = removed.iter().map(ToString::to_string).collect();
        removed.sort();
        removed
    }

    fn left(&self) -> Vec<String> {
        let names = fs::read_dir(&self.records).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "lock" && !name.starts_with("last")).collect();
        names.sort();
        names
    }
}

/// Long ago; and a time that no file has reached.
fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH
}

fn later() -> SystemTime {
    SystemTime::now() + Duration::from_secs(3600)
}

/// A path that is a network namespace, and may not be somebody's /proc link.
fn live_netns() -> String {
    format!("/proc/{}/ns/net", std::process::id())
}

#[test]
fn hl2_b3_records_are_read_as_host_local_writes_them() {
    let folder = Folder::new();
    folder.record("10.1.2.2", "c1\r\neth0").record("2001:db8:1::2", " c2\r\nnet1 \n").record("10.1.2.3", "legacy");
    let mut records = folder.open();
    let holder = records.holder("10.1.2.2".parse().unwrap()).unwrap().unwrap();
    assert_eq!((holder.container.as_str(), holder.ifname.as_deref()), ("c1", Some("eth0")));
    assert_eq!(holder.path, folder.records.join("10.1.2.2"));
    assert!(holder.to_string().starts_with("held by \"c1\" interface \"eth0\" since 2"), "{holder}");
    let holder = records.holder("2001:db8:1::2".parse().unwrap()).unwrap().unwrap();
    assert_eq!((holder.container.as_str(), holder.ifname.as_deref()), ("c2", Some("net1")));
    let holder = records.holder("10.1.2.3".parse().unwrap()).unwrap().unwrap();
    assert_eq!((holder.container.as_str(), holder.ifname), ("legacy", None));
    assert_eq!(records.holder("10.1.2.4".parse().unwrap()).unwrap(), None);
    assert_eq!(records.holders().unwrap().len(), 3);
    assert!(records.any_alive().unwrap());
}

#[test]
fn an_empty_file_or_a_folder_is_nobodys() {
    let folder = Folder::new();
    folder.record("10.1.2.2", "").record("10.1.2.3", " \r\n");
    fs::create_dir(folder.records.join("10.1.2.4")).unwrap();
    for ip in ["10.1.2.2", "10.1.2.3", "10.1.2.4"] {
        assert_eq!(folder.holder(ip), None, "{ip}");
    }
    assert!(!folder.open().any_alive().unwrap(), "lock and last_reserved_ip are no records");
}

#[test]
fn an_absent_folder_holds_nothing_and_is_not_made() {
    let temporary = tempfile::tempdir().unwrap();
    let absent = temporary.path().join("a/b");
    let mut records = HostLocal::new(&absent, &"mynet".parse().unwrap());
    assert_eq!(records.holder("10.0.0.2".parse().unwrap()).unwrap(), None);
    assert!(!records.any_alive().unwrap());
    assert!(records.remove(&"c1".parse().unwrap(), &"eth0".parse().unwrap(), None).unwrap().is_empty());
    assert!(!absent.exists());
}

#[test]
fn e1_records_of_another_boot_do_not_count() {
    let folder = Folder::new();
    folder.record("10.1.2.2", "c1\r\neth0");
    let ip = "10.1.2.2".parse().unwrap();
    assert!(folder.open().with_boot(later()).holder(ip).unwrap().is_none());
    assert!(folder.open().with_boot(long_ago()).holder(ip).unwrap().is_some());
    assert!(folder.open().holder(ip).unwrap().is_some(), "written after the kernel's own boot");
    let old = File::options().write(true).open(folder.records.join("10.1.2.2")).unwrap();
    old.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
    assert!(folder.open().holder(ip).unwrap().is_none());
}

#[test]
fn a_result_whose_netns_is_gone_frees_the_address() {
    let folder = Folder::new();
    let gone = folder.temporary.path().join("netns-gone");
    let plain = folder.temporary.path().join("netns-plain");
    fs::write(&plain, "").unwrap();
    let entry = |container: &str, netns: serde_json::Value, sandbox: serde_json::Value| {
        serde_json::json!({"kind": "cniCacheV1", "containerId": container, "ifName": "eth0", "networkName": "mynet",
            "netns": netns, "result": {"interfaces": [{"name": "cni0"}, {"name": "eth0", "sandbox": sandbox}]}})
    };
    let null = serde_json::Value::Null;
    for (name, entry, alive) in [
        ("gone", entry("gone", gone.to_str().into(), null.clone()), false),
        // So another mount namespace sees what is mounted elsewhere.
        ("plain", entry("plain", plain.to_str().into(), null.clone()), true),
        // libcni 1.1 (podman 4, containerd 1.7) keeps no netns, but the result has it.
        ("sandbox", entry("sandbox", null.clone(), gone.to_str().into()), false),
        ("live", entry("live", live_netns().into(), null.clone()), true),
        ("nowhere", entry("nowhere", null.clone(), null.clone()), true),
        ("relative", entry("relative", "netns-gone".into(), null.clone()), true),
        // Another attachment whose file has the same name.
        ("other", entry("somebody-else", gone.to_str().into(), null.clone()), true),
        ("torn", serde_json::Value::String("x".into()), true),
    ] {
        folder.record("10.1.2.2", &format!("{name}\r\neth0")).result(name, entry);
        assert_eq!(folder.holder("10.1.2.2").is_some(), alive, "{name}");
    }
    fs::write(folder.results.join("mynet-torn-eth0"), "{\"kind\":").unwrap();
    folder.record("10.1.2.2", "torn\r\neth0");
    assert!(folder.holder("10.1.2.2").is_some());
    // A legacy record has no interface: eth0 is meant.
    folder.record("10.1.2.3", "gone");
    assert_eq!(folder.holder("10.1.2.3"), None);
}

#[test]
fn a_netns_in_proc_proves_nothing_after_a_reboot() {
    let folder = Folder::new();
    let entry = serde_json::json!({"containerId": "c1", "ifName": "eth0", "netns": live_netns()});
    folder.record("10.1.2.2", "c1\r\neth0").result("c1", entry);
    assert!(folder.open().with_boot(later()).holder("10.1.2.2".parse().unwrap()).unwrap().is_none());
}

#[test]
fn foreign_names_do_not_lead_out_of_the_results() {
    let folder = Folder::new();
    folder
        .record("10.1.2.2", "../../../etc/passwd\r\neth0")
        .record("10.1.2.3", &format!("{}\r\neth0", "x".repeat(300)));
    assert!(folder.holder("10.1.2.2").is_some());
    assert!(folder.holder("10.1.2.3").is_some());
}

#[test]
fn opensvc_reservations_count_over_reboots() {
    let folder = Folder::new();
    folder.record("10.11.2.10", "test/svc/web!ip#0\n").record("10.11.2.11", "");
    let mut records = HostLocal::opensvc(&folder.records, &"mynet".parse().unwrap()).with_boot(later());
    let holder = records.holder("10.11.2.10".parse().unwrap()).unwrap().unwrap();
    assert_eq!((holder.container.as_str(), holder.ifname), ("test/svc/web!ip#0", None));
    assert!(records.holder("10.11.2.11".parse().unwrap()).unwrap().is_none());
}

#[test]
fn hl4_b2_6_only_the_interface_of_the_id_is_removed() {
    let folder = Folder::new();
    folder.record("10.1.2.2", "c1\r\neth0").record("10.1.2.3", "c1\r\neth1").record("10.1.2.4", "c2\r\neth0");
    folder.record("2001:db8::2", "c1\r\neth0").record("10.1.2.5", "c1");
    assert_eq!(folder.remove("c1", "eth0"), ["10.1.2.2", "2001:db8::2"]);
    assert_eq!(folder.left(), ["10.1.2.3", "10.1.2.4", "10.1.2.5"]);
    assert_eq!(fs::read_to_string(folder.records.join("lock")).unwrap(), "", "host-local's lock stays empty");
}

#[test]
fn hl6_hl7_hl8_legacy_unknown_and_padded_records() {
    let folder = Folder::new();
    folder.record("10.1.2.2", "c1").record("10.1.2.3", " c2 \r\neth0\n").record("10.1.2.4", "");
    assert!(folder.remove("unknown", "eth0").is_empty());
    assert_eq!(folder.remove("c1", "eth0"), ["10.1.2.2"]);
    assert_eq!(folder.remove("c2", "eth0"), ["10.1.2.3"]);
    assert!(folder.remove("c2", "eth0").is_empty());
    assert_eq!(folder.left(), ["10.1.2.4"]);
}

#[test]
fn lk1_removal_waits_for_host_local() {
    let folder = Folder::new();
    folder.record("10.1.2.2", "c1\r\neth0");
    let lock = File::open(folder.records.join("lock")).unwrap();
    let mut held = fd_lock::RwLock::new(lock);
    let guard = held.write().unwrap();
    assert!(guard.as_raw_fd() >= 0);
    std::thread::scope(|scope| {
        let removal = scope.spawn(|| folder.remove("c1", "eth0"));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!removal.is_finished());
        assert_eq!(folder.left(), ["10.1.2.2"]);
        drop(guard);
        assert_eq!(removal.join().unwrap(), ["10.1.2.2"]);
    });
}

#[test]
fn what_cannot_be_read_is_an_error_that_names_it() {
    let folder = Folder::new();
    // Nothing is mapped at its beginning: EIO.
    std::os::unix::fs::symlink("/proc/self/mem", folder.records.join("10.1.2.2")).unwrap();
    let error = folder.open().holder("10.1.2.2".parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("mynet/10.1.2.2"), "{error}");
}
