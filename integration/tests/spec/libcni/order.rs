//! Who is called in which order, and what happens after an error.

use integration::addresses_of;
use serde_json::{Value, json};

use super::{CACHE, CONFLIST, add, cnitool, conflist, del, held, machine, verb};
use crate::inside;
use crate::scripted::{Scripted, order, recorded};

#[test]
fn c132_lc5_a_later_plugin_that_fails_in_add_and_the_del_after_it() {
    let sandbox = machine("1.1.0", &["last"]);
    let pod = sandbox.netns("pod");
    let last = Scripted::new(&sandbox, "last");
    // The network itself, which stays.
    add(&sandbox);
    del(&sandbox);
    let before = (sandbox.leftovers(), inside(&sandbox, &pod));
    last.fails("ADD");
    order(&sandbox);
    for turn in 0..2 {
        let message = cnitool(&sandbox, "add net1 /run/netns/pod").failed();
        assert!(message.contains("the script refuses"), "turn {turn}: {message}");
        assert!(sandbox.list(CACHE).is_empty(), "turn {turn}: nothing is cached");
        assert_eq!(order(&sandbox), ["last ADD"], "turn {turn}: libcni calls no DEL by itself");
        assert_eq!(held(&sandbox), 1, "turn {turn}: so ours is attached");
        del(&sandbox);
        assert_eq!(verb(&recorded(&sandbox), "last DEL").stdin["prevResult"], Value::Null, "turn {turn}: no result");
        sandbox.leftovers().assert_same_as(&before.0, &format!("turn {turn}: a failed chain and its DEL"));
        assert_eq!(inside(&sandbox, &pod), before.1, "turn {turn}: the container after a failed chain and its DEL");
    }
}

#[test]
fn c133_lc7_del_goes_backwards_stops_at_an_error_and_may_come_again() {
    let sandbox = machine("1.1.0", &["middle", "last"]);
    sandbox.netns("pod");
    let (_, last) = (Scripted::new(&sandbox, "middle"), Scripted::new(&sandbox, "last"));
    add(&sandbox);
    assert_eq!(order(&sandbox), ["middle ADD", "last ADD"], "ADD goes forwards");
    last.fails("DEL");
    cnitool(&sandbox, "del net1 /run/netns/pod").failed();
    assert_eq!(order(&sandbox), ["last DEL"], "the first error stops it");
    assert_eq!((held(&sandbox), sandbox.list(CACHE).len()), (1, 1), "ours was not reached, the cache file stays");
    last.succeeds("DEL");
    del(&sandbox);
    assert_eq!(order(&sandbox), ["last DEL", "middle DEL"], "it comes again, backwards");
    assert_eq!((held(&sandbox), sandbox.list(CACHE).len()), (0, 0), "now all is gone");
    del(&sandbox);
    assert_eq!(held(&sandbox), 0, "LC7: a DEL without cache file succeeds");
}

#[test]
fn c133_our_failing_del_keeps_the_cache_and_a_retry_finishes() {
    let sandbox = machine("1.1.0", &[]);
    let pod = sandbox.netns("pod");
    add(&sandbox);
    sandbox.sh("mount --bind /var/lib/cni/osvc /var/lib/cni/osvc && mount -o remount,bind,ro /var/lib/cni/osvc").ok();
    let message = cnitool(&sandbox, "del net1 /run/netns/pod").failed();
    assert!(message.contains("/var/lib/cni/osvc"), "it says what cannot be written: {message}");
    assert_eq!(sandbox.list(CACHE).len(), 1, "the runtime remembers that it has to try again");
    sandbox.sh("umount /var/lib/cni/osvc").ok();
    del(&sandbox);
    assert_eq!((held(&sandbox), sandbox.list(CACHE).len()), (0, 0), "the retry finishes it");
    assert_eq!(sandbox.links_in(&pod), ["lo".to_owned()].into(), "also in the container");
}

#[test]
fn lc8_lc2_the_chain_gets_our_result_and_del_gets_it_since_0_4_0() {
    for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let sandbox = machine(version, &["last"]);
        sandbox.netns("pod");
        Scripted::new(&sandbox, "last");
        let result = add(&sandbox);
        del(&sandbox);
        let calls = recorded(&sandbox);
        let add = verb(&calls, "last ADD");
        assert_eq!(add.stdin["prevResult"]["ips"], result["ips"], "{version}: ADD gets our result");
        assert_eq!(add.stdin["prevResult"]["interfaces"], result["interfaces"], "{version}: whole");
        assert_eq!(add.stdin["cniVersion"], version, "{version}: libcni says which");
        let previous = &verb(&calls, "last DEL").stdin["prevResult"];
        assert_eq!(previous.is_object(), version >= "0.4.0", "{version}: DEL has it since 0.4.0: {previous}");
        for name in ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"] {
            assert_eq!(add.var(name), verb(&calls, "last DEL").var(name), "{version}: {name} is that of the ADD");
        }
        assert_eq!(held(&sandbox), 0, "{version}: ours is gone with or without it");
    }
}

#[test]
fn c134_lc12_gc_deletes_what_is_cached_and_then_asks_each_plugin() {
    let sandbox = machine("1.1.0", &["last"]);
    let pod = sandbox.netns("pod");
    Scripted::new(&sandbox, "last");
    add(&sandbox);
    order(&sandbox);
    cnitool(&sandbox, "gc net1 /run/netns/pod").ok();
    assert_eq!(order(&sandbox), ["last DEL", "last GC"], "DEL for the attachment that nobody lists, then GC");
    assert_eq!((held(&sandbox), sandbox.list(CACHE).len()), (0, 0), "address and cache file are gone");
    assert_eq!(sandbox.links_in(&pod), ["lo".to_owned()].into(), "and the interface");
    let again = add(&sandbox);
    assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses_of(&again), "the container can be attached again");
}

#[test]
fn c104_lc12_with_disable_gc_nobody_is_called_and_ours_stays_attached() {
    let sandbox = machine("1.1.0", &["last"]);
    let pod = sandbox.netns("pod");
    Scripted::new(&sandbox, "last");
    let mut list: Value = serde_json::from_str(&sandbox.read(CONFLIST)).unwrap();
    list["disableGC"] = json!(true);
    conflist(&sandbox, &list);
    let result = add(&sandbox);
    order(&sandbox);
    cnitool(&sandbox, "gc net1 /run/netns/pod").ok();
    assert!(order(&sandbox).is_empty(), "neither DEL nor GC");
    assert_eq!((held(&sandbox), sandbox.list(CACHE).len()), (1, 1), "address and cache file stay");
    assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses_of(&result), "and the interface");
    cnitool(&sandbox, "check net1 /run/netns/pod").ok();
}

#[test]
fn lc13_status_stops_at_our_error_and_later_plugins_are_not_asked() {
    let sandbox = machine("1.1.0", &[]);
    sandbox.netns("pod");
    Scripted::new(&sandbox, "last");
    let range = json!({"type": "osvc-ipam", "subnet": "10.9.0.0/24", "rangeStart": "10.9.0.9", "rangeEnd": "10.9.0.9"});
    let ours = json!({"type": "osvc-bridge", "bridge": "br9", "isGateway": true, "ipam": range});
    conflist(&sandbox, &json!({"cniVersion": "1.1.0", "name": "net1", "plugins": [ours, {"type": "last"}]}));
    cnitool(&sandbox, "status net1 x").ok();
    assert_eq!(order(&sandbox), ["last STATUS"], "ready: the next one is asked");
    add(&sandbox);
    order(&sandbox);
    let message = cnitool(&sandbox, "status net1 x").failed();
    assert!(message.contains("no IP addresses available"), "our text: {message}");
    assert!(order(&sandbox).is_empty(), "the first error is the answer");
}
