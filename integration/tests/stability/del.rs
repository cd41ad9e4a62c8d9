//! DEL: whatever it is told or not told, it removes what is its own and nothing else (p8, p9).

use integration::{Family, Plugin, Sandbox, addresses_of};
use serde_json::{Value, json};

use crate::{bridge, ipam, plugin, start};

#[test]
fn p9_a_late_del_of_an_old_container_leaves_the_successor_alone() {
    let sandbox = Sandbox::new();
    let config = bridge("10.9.0.0/16");
    let (old_netns, address) = start(&sandbox, &config, "old", "web");
    let old = plugin(&sandbox, &config).container("old").netns(&old_netns).named("web");
    sandbox.delete_netns(&old_netns);
    let (new_netns, again) = start(&sandbox, &config, "new", "web");
    assert_eq!(again, address, "the successor has the address already");
    old.del();
    old.clone().no_netns().del();
    // The path may be the successor's by now.
    old.clone().netns(&new_netns).del();
    assert_eq!(sandbox.addresses_in(&new_netns, "eth0"), address, "the successor keeps its interface");
    assert_eq!(sandbox.held(Family::Osvc, "net1").len(), 1, "and its reservation");
    let (_, third) = start(&sandbox, &config, "third", "web");
    assert_ne!(third, address, "which nobody else gets");
}

/// Each row: how the DEL differs from the ADD.
#[test]
fn p8_every_kind_of_del_succeeds_and_leaves_nothing() {
    type Change = fn(Plugin<'_>) -> Plugin<'_>;
    let changes: [(&str, Change); 11] = [
        ("as the ADD", |del| del),
        ("without netns", |del| del.no_netns()),
        ("with an empty netns", |del| del.netns_path("")),
        ("with a netns path that is gone", |del| del.netns_path("/run/netns/gone")),
        ("with a netns path that is a plain file", |del| del.netns_path("/run/plain")),
        ("with the host's own netns", |del| del.netns_path("/proc/self/ns/net")),
        ("without arguments", |del| del.no_args()),
        ("with malformed arguments", |del| del.args("x;=;;K8S_POD_NAME")),
        ("with a prevResult of another boot", |del| {
            del.with("prevResult", json!({"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "sandbox": "/gone"}]}))
        }),
        ("with another subnet", |del| del.with("network", json!("10.99.0.0/24"))),
        ("without masquerading and with another MTU", |del| del.with("ipMasq", json!(false)).with("mtu", json!(1300))),
    ];
    let sandbox = Sandbox::new();
    sandbox.write("/run/plain", "");
    let config = bridge("10.9.0.0/24");
    // Makes the network itself, which stays.
    let (netns, _) = start(&sandbox, &config, "first", "first");
    plugin(&sandbox, &config).container("first").netns(&netns).del();
    let netns = sandbox.netns("pod");
    let before = sandbox.leftovers();
    for (what, change) in changes {
        let call = plugin(&sandbox, &config).container("id-1").netns(&netns).named("web");
        call.add();
        change(call.clone()).del();
        sandbox.leftovers().assert_same_as(&before, &format!("a DEL {what}"));
        assert!(!sandbox.links_in(&netns).contains("eth0"), "the interface is gone after a DEL {what}");
        change(call).del();
        sandbox.leftovers().assert_same_as(&before, &format!("a second DEL {what}"));
    }
}

#[test]
fn p8_del_of_what_was_never_added_changes_nothing() {
    let sandbox = Sandbox::new();
    let before = sandbox.leftovers();
    for config in [bridge("10.9.0.0/24"), ipam(json!({"subnet": "10.9.0.0/24"}))] {
        plugin(&sandbox, &config).container("never").del();
        plugin(&sandbox, &config).container("never").netns_path("/run/netns/none").del();
        sandbox.leftovers().assert_same_as(&before, "a DEL of what was never added");
    }
}

#[test]
fn p8_del_after_the_whole_state_was_lost_removes_the_interface() {
    let sandbox = Sandbox::new();
    let config = bridge("10.9.0.0/24");
    let (netns, _) = start(&sandbox, &config, "id-1", "web");
    sandbox.sh("rm -rf /var/lib/cni/osvc /run/osvc-cni; nft flush ruleset").ok();
    plugin(&sandbox, &config).container("id-1").netns(&netns).named("web").del();
    assert!(!sandbox.links_in(&netns).contains("eth0"));
    assert_eq!(sandbox.links().into_iter().collect::<Vec<_>>(), ["lo", "obr_net1"]);
}

#[test]
fn del_of_one_interface_leaves_the_other_of_the_same_container() {
    let sandbox = Sandbox::new();
    let config = bridge("10.9.0.0/24");
    let netns = sandbox.netns("pod");
    let call = plugin(&sandbox, &config).container("id-1").netns(&netns).named("web");
    call.add();
    let second: Value = call.clone().ifname("eth1").add();
    call.del();
    assert_eq!(sandbox.addresses_in(&netns, "eth1"), addresses_of(&second));
    assert_eq!(sandbox.held(Family::Osvc, "net1").len(), 1);
}
