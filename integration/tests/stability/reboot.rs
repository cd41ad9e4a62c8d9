//! Another boot id, another host namespaceed containers, no DEL.

use std::collections::BTreeSet;

use integration::{Family, Sandbox, addresses_of, container_mac};
use serde_json::json;

use crate::{bridge, ipam, plugin, start};

#[test]
fn the_same_container_and_a_new_one_with_the_same_name_get_the_same_address() {
    for config in [bridge("10.9.0.0/16"), ipam(json!({"subnet": "10.9.0.0/16"}))] {
        let mut sandbox = Sandbox::new();
        let (_, first) = start(&sandbox, &config, "id-1", "web");
        sandbox.reboot();
        let (netns, again) = start(&sandbox, &config, "id-1", "web");
        assert_eq!(again, first, "p10: the same container id after a reboot");
        plugin(&sandbox, &config).container("id-1").netns(&netns).named("web").del();
        sandbox.reboot();
        let (_, again) = start(&sandbox, &config, "id-2", "web");
        assert_eq!(again, first, "p11: a new id with the same key");
        sandbox.reboot();
        // Somebody else comes first.
        start(&sandbox, &config, "id-3", "other");
        let (_, again) = start(&sandbox, &config, "id-4", "web");
        assert_eq!(again, first, "p11: a new id with the same key, after a reboot without DEL");
        assert_eq!(sandbox.held(Family::Osvc, "net1").len(), 2, "one address each");
    }
}

#[test]
fn the_mac_follows_the_address_over_reboots() {
    let mut sandbox = Sandbox::new();
    let config = bridge("10.9.0.0/16");
    let mut macs = BTreeSet::new();
    for turn in 0..3 {
        let netns = sandbox.netns("c");
        let result = plugin(&sandbox, &config).container(&format!("id-{turn}")).netns(&netns).named("web").add();
        macs.insert(container_mac(&result).unwrap().to_owned());
        let address = addresses_of(&result)[0].split('/').next().unwrap().to_owned();
        let bytes: Vec<String> =
            address.split('.').map(|byte| format!("{:02x}", byte.parse::<u8>().unwrap())).collect();
        assert_eq!(container_mac(&result).unwrap(), format!("0a:58:{}", bytes.join(":")));
        assert_eq!(sandbox.link("obr_net1")["address"], "0a:58:0a:09:00:01", "the bridge's is the gateway's");
        sandbox.reboot();
    }
    assert_eq!(macs.len(), 1, "{macs:?}");
}

#[test]
fn five_addresses_survive_fifty_reboots_with_the_same_four_containers() {
    let mut sandbox = Sandbox::new();
    let config = bridge("10.9.0.0/29");
    let mut before = Vec::new();
    for reboot in 0..50 {
        let addresses: Vec<_> =
            (0..4).map(|n| start(&sandbox, &config, &format!("id-{n}"), &format!("name{n}")).1).collect();
        if reboot > 0 {
            assert_eq!(addresses, before, "reboot {reboot}");
        }
        before = addresses;
        sandbox.reboot();
    }
}

#[test]
fn five_addresses_survive_fifty_reboots_with_four_new_names_each() {
    let mut sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/29"}));
    for reboot in 0..50 {
        let addresses: BTreeSet<_> = (0..4)
            .map(|n| start(&sandbox, &config, &format!("id-{reboot}-{n}"), &format!("name{reboot}-{n}")).1)
            .collect();
        assert_eq!(addresses.len(), 4, "no address is given twice, reboot {reboot}");
        sandbox.reboot();
    }
}

#[test]
fn a_range_held_by_the_dead_is_not_full_in_status() {
    let mut sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/29"}));
    for n in 0..5 {
        start(&sandbox, &config, &format!("id-{n}"), &format!("name{n}"));
    }
    plugin(&sandbox, &config).call("STATUS").error();
    sandbox.reboot();
    plugin(&sandbox, &config).call("STATUS").done();
}

#[test]
fn containers_that_vanish_without_a_reboot_give_their_addresses_back() {
    let sandbox = Sandbox::new();
    let config = bridge("10.9.0.0/29");
    for turn in 0..10 {
        for n in 0..4 {
            let (netns, _) = start(&sandbox, &config, &format!("id-{turn}-{n}"), &format!("name{turn}-{n}"));
            sandbox.delete_netns(&netns);
        }
    }
}

/// The old host end is still there for tens of milliseconds.
#[test]
fn a_quick_restart_after_a_lost_del_keeps_the_address() {
    let sandbox = Sandbox::new();
    let config = bridge("10.9.0.0/16");
    let (mut netns, address) = start(&sandbox, &config, "id-0", "web");
    for turn in 1..20 {
        sandbox.delete_netns(&netns);
        let (next, again) = start(&sandbox, &config, &format!("id-{turn}"), "web");
        assert_eq!(again, address, "turn {turn}");
        netns = next;
    }
}
