//! What is removed for a DEL, and the lock of that.

use super::*;

#[test]
fn what_is_in_both_stores_goes_whole() {
    let folder = Folder::new();
    folder.record("10.1.2.2", "c1\r\neth0").record("2001:db8::2", "c1\r\neth0").record("10.1.2.3", "c2\r\neth0");
    let remove = |known: &str| {
        let known = [known.parse().unwrap()];
        folder.open().remove(&"c1".parse().unwrap(), &"eth0".parse().unwrap(), Some(&known)).unwrap().len()
    };
    assert_eq!((remove("10.1.2.9"), remove("10.1.2.3")), (0, 0), "none of its was known of");
    assert_eq!(remove("10.1.2.2"), 2);
    assert_eq!(folder.left(), ["10.1.2.3"]);
}

#[test]
fn who_does_not_give_the_lock_back_is_named() {
    let folder = Folder::new();
    let locked = || folder.open().locked_within(Duration::from_millis(5), || Ok::<_, HostLocalError>(()));
    let mut lock = fd_lock::RwLock::new(File::open(folder.records.join("lock")).unwrap());
    let guard = lock.write().unwrap();
    let told = locked().unwrap_err().to_string();
    let holder =
        format!("mynet/lock is held by process {} for more than 0 s: end it, or wait for it", std::process::id());
    assert!(told.starts_with("host-local's lock: /") && told.ends_with(&holder), "{told}");
    drop(guard);
    locked().unwrap();
}
