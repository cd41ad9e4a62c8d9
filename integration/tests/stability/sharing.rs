//! Several holders, taken candidates, full ranges: who gets which address.

use std::collections::{BTreeMap, BTreeSet};

use integration::{Sandbox, addresses_of, report};
use serde_json::json;

use crate::{bridge, ipam, plugin, start};

#[test]
fn two_live_holders_of_one_name_get_two_stable_addresses() {
    for config in [bridge("10.9.0.0/16"), ipam(json!({"subnet": "10.9.0.0/16"}))] {
        let mut sandbox = Sandbox::new();
        let (_, first) = start(&sandbox, &config, "id-1", "web");
        let (_, second) = start(&sandbox, &config, "id-2", "web");
        assert_ne!(first, second, "never one address for two");
        for turn in 0..3 {
            sandbox.reboot();
            // In the other order.
            assert_eq!(start(&sandbox, &config, "id-2", "web").1, second, "turn {turn}");
            assert_eq!(start(&sandbox, &config, "id-1", "web").1, first, "turn {turn}");
        }
        sandbox.reboot();
        let new: BTreeSet<_> = ["id-3", "id-4"].iter().map(|id| start(&sandbox, &config, id, "web").1).collect();
        assert_eq!(new, BTreeSet::from([first, second]), "new ids of the name take the two addresses over");
    }
}

#[test]
fn a_netns_in_a_private_mount_namespace_is_not_taken_for_dead() {
    let sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/16"}));
    sandbox.netns("pod");
    // Seen from outside /run/private is a plain file; inside it is the namespace.
    sandbox.sh("touch /run/private").ok();
    sandbox.background(
        "exec unshare -m --propagation private bash -c 'mount --bind /run/netns/pod /run/private; touch /run/ready; exec sleep 600'",
        "/run/log",
    );
    sandbox.wait_for("the private mount is there", "test -e /run/ready");
    let holder = sandbox.sh("pgrep -x sleep").ok();
    let inside = ["nsenter", "-t", holder.trim(), "-m", "--"];
    let call = plugin(&sandbox, &config).container("id-1").netns_path("/run/private").named("web");
    let first = addresses_of(&call.clone().through(&inside).add());
    let (_, second) = start(&sandbox, &config, "id-2", "web");
    assert_ne!(first, second, "the first holder lives, where we cannot see it");
    assert_eq!(addresses_of(&call.through(&inside).add()), first, "p10: its own ADD again is idempotent");
}

#[test]
fn a_displaced_name_keeps_its_displaced_address() {
    let mut sandbox = Sandbox::new();
    // Five names on five addresses: some are not where they would have been alone.
    let config = ipam(json!({"subnet": "10.9.0.0/29"}));
    let names = ["a", "b", "c", "d", "e"];
    let before: BTreeMap<_, _> =
        names.iter().map(|name| (*name, start(&sandbox, &config, &format!("1-{name}"), name).1)).collect();
    assert_eq!(before.values().collect::<BTreeSet<_>>().len(), 5);
    for (turn, order) in [["e", "d", "c", "b", "a"], ["c", "a", "e", "b", "d"]].iter().enumerate() {
        sandbox.reboot();
        for name in order {
            let (netns, again) = start(&sandbox, &config, &format!("r{turn}-{name}"), name);
            assert_eq!(again, before[name], "{name} after a reboot, order {order:?}");
            // A restart with everybody else gone or not yet there.
            plugin(&sandbox, &config).container(&format!("r{turn}-{name}")).netns(&netns).named(name).del();
            let again = plugin(&sandbox, &config).container(&format!("s{turn}-{name}")).netns(&netns).named(name).add();
            assert_eq!(addresses_of(&again), before[name], "{name} after a restart");
        }
    }
}

#[test]
fn a_service_stopped_for_long_gets_its_address_back_after_5000_names() {
    let sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/24"}));
    let (netns, address) = start(&sandbox, &config, "service-1", "service");
    for id in ["service-1", "service-2", "service-3"] {
        let call = plugin(&sandbox, &config).container(id).netns(&netns).named("service");
        assert_eq!(addresses_of(&call.add()), address);
        call.del();
    }
    sandbox
        .bulk(
            "osvc-ipam",
            &config,
            "set -e; for n in $(seq 5000); do
                cni ADD id-$n /run/netns/service-1 job-$n > /dev/null; cni DEL id-$n /run/netns/service-1 job-$n; done",
        )
        .ok();
    let call = plugin(&sandbox, &config).container("service-9").netns(&netns).named("service");
    assert_eq!(addresses_of(&call.add()), address);
}

#[test]
fn p17_a_full_range_fails_at_once_and_says_how_full_and_since_when() {
    let sandbox = Sandbox::new();
    let config = ipam(json!({"subnet": "10.9.0.0/28"}));
    for n in 0..13 {
        start(&sandbox, &config, &format!("id-{n}"), &format!("name{n}"));
    }
    let netns = sandbox.netns("more");
    let reply = plugin(&sandbox, &config).container("more").netns(&netns).named("more").call("ADD");
    report::ran(
        "plain plugin calls",
        &format!("ADD in a full range took {:.1} ms", reply.elapsed().as_secs_f64() * 1e3),
    );
    let (code, message) = reply.error();
    assert_eq!(code, 11, "{message}");
    assert!(message.contains("no IP addresses available"), "{message}");
    assert!(message.contains("13"), "how many are held: {message}");
    assert!(message.contains("since 20"), "since when the oldest: {message}");
    let (code, message) = plugin(&sandbox, &config).call("STATUS").error();
    assert_eq!(code, 50, "{message}");
    let quiet = ipam(json!({"subnet": "10.9.0.0/28", "statusWhenFull": false}));
    plugin(&sandbox, &quiet).call("STATUS").done();
    plugin(&sandbox, &config).container("id-3").del();
    plugin(&sandbox, &config).call("STATUS").done();
    plugin(&sandbox, &config).container("more").netns(&netns).named("more").add();
}

#[test]
fn a_requested_address_is_refused_with_its_holder_and_kept_for_its_name() {
    let sandbox = Sandbox::new();
    let config = bridge("10.9.0.0/24");
    let request = |id: &str, name: &str| {
        let netns = if sandbox.exists(&format!("/run/netns/{id}")) {
            format!("/run/netns/{id}")
        } else {
            sandbox.netns(id).path
        };
        plugin(&sandbox, &config).container(id).netns_path(&netns).args(&format!("K8S_POD_NAME={name};IP=10.9.0.50"))
    };
    request("id-1", "web").add();
    let (_, message) = request("id-2", "db").add_fails();
    for word in ["10.9.0.50", "web", "id-1", "since"] {
        assert!(message.contains(word), "holder's key, container and since when: {message}");
    }
    request("id-1", "web").del();
    let (_, again) = start(&sandbox, &config, "id-3", "web");
    assert_eq!(again, ["10.9.0.50/24"], "the name comes back without asking");
}
