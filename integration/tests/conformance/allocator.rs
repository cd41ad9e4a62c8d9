//! AL: which addresses are given. Where host-local goes round, ours starts at the key's own place: the same set of
//! addresses, each once, in another order.

use std::collections::BTreeSet;

use integration::{Family, Plugin, Sandbox, addresses_of};
use serde_json::{Value, json};

both! {
    al1_al4_a_slash_29_gives_five_addresses_and_never_the_broadcast
    al2_the_next_address
    al3_al7_pools_of_a_set_are_all_used
    al5_requested_addresses
    al6_an_exhausted_range_says_so
}

fn ipam<'a>(sandbox: &'a Sandbox, family: Family, keys: Value) -> Plugin<'a> {
    let pod = sandbox.netns("pod");
    sandbox.plugin(family.ipam()).netns(&pod).config(family.ipam_config("0.4.0", "mynet", keys))
}

fn fill(plugin: &Plugin<'_>, count: usize) -> Vec<String> {
    let add = |number| addresses_of(&plugin.clone().container(&format!("c{number}")).add()).concat();
    (1..=count).map(add).collect()
}

fn assert_full(family: Family, plugin: &Plugin<'_>) {
    let (code, message) = plugin.clone().container("one-too-many").add_fails();
    assert!(message.contains("no IP addresses available in range set"), "{message}");
    if family.is_ours() {
        assert_eq!(code, 11, "a full range may have room later: {message}");
    }
}

fn al1_al4_a_slash_29_gives_five_addresses_and_never_the_broadcast(family: Family) {
    let sandbox = Sandbox::new();
    let plugin = ipam(&sandbox, family, json!({"subnet": "192.168.1.0/29"}));
    let given = fill(&plugin, 5);
    let all: BTreeSet<_> = (2..=6).map(|last| format!("192.168.1.{last}/29")).collect();
    assert_eq!(given.iter().cloned().collect::<BTreeSet<_>>(), all, "each usable address once");
    if family == Family::Reference {
        assert_eq!(given, all.into_iter().collect::<Vec<_>>(), "host-local counts up");
    }
    assert_full(family, &plugin);
    // AL1: the one that was released is the one that is left.
    plugin.clone().container("c3").del();
    assert_eq!(addresses_of(&plugin.clone().container("c6").add()), [given[2].clone()]);
}

/// AL4: a released address is not handed to another at once; and for ours, its own container gets it back.
fn al2_the_next_address(family: Family) {
    let sandbox = Sandbox::new();
    let plugin = ipam(&sandbox, family, json!({"subnet": "10.0.0.0/29"}));
    let first = fill(&plugin, 1);
    plugin.clone().container("c1").del();
    let second = addresses_of(&plugin.clone().container("c2").add());
    if family.is_ours() {
        plugin.clone().container("c2").del();
        assert_eq!(fill(&plugin, 1), first, "the same container gets its address back");
    } else {
        assert_eq!((first, second), (vec!["10.0.0.2/29".to_owned()], vec!["10.0.0.3/29".to_owned()]));
    }
}

fn al3_al7_pools_of_a_set_are_all_used(family: Family) {
    let sandbox = Sandbox::new();
    let ranges = json!({"ranges": [[{"subnet": "10.0.0.0/30"}, {"subnet": "10.0.1.0/30"}, {"subnet": "10.0.2.0/30"}]]});
    let plugin = ipam(&sandbox, family, ranges);
    let given: BTreeSet<_> = fill(&plugin, 3).into_iter().collect();
    let all: BTreeSet<_> = (0..3).map(|third| format!("10.0.{third}.2/30")).collect();
    assert_eq!(given, all, "each pool gives its one address, with its own netmask");
    assert_full(family, &plugin);
}

fn al5_requested_addresses(family: Family) {
    let sandbox = Sandbox::new();
    let plugin = ipam(
        &sandbox,
        family,
        json!({"subnet": "192.168.1.0/29", "rangeStart": "192.168.1.3", "rangeEnd": "192.168.1.5"}),
    );
    let requesting = |container: &str, address: &str| {
        plugin.clone().container(container).with("args", json!({"cni": {"ips": [address]}}))
    };
    assert_eq!(addresses_of(&requesting("c1", "192.168.1.4").add()), ["192.168.1.4/29"]);
    let (_, message) = requesting("c2", "192.168.1.4").add_fails();
    assert!(message.contains("192.168.1.4"), "the address is named: {message}");
    let expected = if family.is_ours() { "c1" } else { "is not available in range set 192.168.1.3-192.168.1.5" };
    assert!(message.contains(expected), "{message}");
    for outside in ["192.168.1.6", "192.168.1.2", "192.168.1.1", "10.0.0.1"] {
        let (_, message) = requesting("c2", outside).add_fails();
        assert!(message.contains(outside), "{outside} is outside the range: {message}");
    }
    assert_eq!(sandbox.held(family, "mynet").len(), 1, "refusals take nothing");
}

fn al6_an_exhausted_range_says_so(family: Family) {
    for (ranges, count) in [
        (json!([[{"subnet": "192.168.1.0/30"}]]), 1),
        (json!([[{"subnet": "192.168.1.0/29"}]]), 5),
        (json!([[{"subnet": "192.168.1.0/30"}, {"subnet": "192.168.1.4/30"}]]), 2),
    ] {
        let sandbox = Sandbox::new();
        let plugin = ipam(&sandbox, family, json!({"ranges": ranges}));
        fill(&plugin, count);
        assert_full(family, &plugin);
    }
}
