//! One container on two networks: podman gives its ports to each.

use integration::{Container, Sandbox, port};
use serde_json::json;

use crate::{HOST4, hide_nft, leads_to, machine, machine_and_outside, net1, noted, osvc_net, show_nft, store};

/// A container on two networks, each with the port 8080 and one of its own: 7001 and 7002.
fn on_two(sandbox: &Sandbox) -> [Container<'_>; 2] {
    let one = net1(sandbox).container("a");
    one.publish(json!([port(8080, 80, "tcp"), port(7001, 80, "tcp")]));
    let two = sandbox.network("net2", &["10.10.0.0/24", "fd10::/64"]).attach(&one.netns, "a", "eth1", "a");
    two.publish(json!([port(8080, 80, "tcp"), port(7002, 80, "tcp")]));
    [one, two]
}

#[track_caller]
fn only_two_leads(sandbox: &Sandbox, two: &Container<'_>, what: &str) {
    for number in [8080, 7002] {
        assert_eq!(leads_to(sandbox, "ip", number), Some(format!("{} . 80", two.v4)), "{number} after {what}");
        assert_eq!(leads_to(sandbox, "ip6", number), Some(format!("{} . 80", two.v6)), "{number} after {what}");
    }
    for family in ["ip", "ip6"] {
        assert_eq!(leads_to(sandbox, family, 7001), None, "{family} after {what}");
    }
}

const DAMAGES: [&str; 4] = [
    "nft flush ruleset",
    "nft delete table ip6 osvc-cni-portmap",
    "nft delete table ip osvc-cni-portmap",
    "nft flush map ip6 osvc-cni-portmap any",
];

#[test]
fn del_of_one_network_succeeds_whatever_somebody_took_away() {
    for damage in DAMAGES {
        let sandbox = machine();
        let [one, two] = on_two(&sandbox);
        sandbox.sh(damage).ok();
        one.withdraw();
        // What a DEL touches is right; the rest is looked after by the next ADD.
        assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", two.v4)), "`{damage}`");
        assert_eq!(leads_to(&sandbox, "ip6", 8080), Some(format!("{} . 80", two.v6)), "`{damage}`");
        net1(&sandbox).container("b").publish(json!([]));
        only_two_leads(&sandbox, &two, damage);
        two.ports(json!([port(8080, 80, "tcp"), port(7002, 80, "tcp")])).check(&two.result);
        one.withdraw();
        two.withdraw();
        two.withdraw();
        assert_eq!(leads_to(&sandbox, "ip", 8080), None);
    }
}

#[test]
fn del_of_one_network_needs_no_nft() {
    for damage in ["true"].into_iter().chain(DAMAGES) {
        let sandbox = machine();
        let [one, two] = on_two(&sandbox);
        sandbox.sh(damage).ok();
        hide_nft(&sandbox);
        one.withdraw();
        show_nft(&sandbox);
        for (family, address) in [("ip", &one.v4), ("ip6", &one.v6)] {
            for number in [8080, 7001] {
                let there = leads_to(&sandbox, family, number);
                assert_ne!(there, Some(format!("{address} . 80")), "{number} after `{damage}`");
            }
        }
        // Who waits has its turn with the next one who can.
        osvc_net(&sandbox, "setup");
        only_two_leads(&sandbox, &two, damage);
        hide_nft(&sandbox);
        two.withdraw();
        show_nft(&sandbox);
        assert_eq!(leads_to(&sandbox, "ip", 8080), None, "`{damage}`");
    }
    noted("DEL without nft");
}

#[test]
fn the_older_network_answers_and_after_its_del_the_other() {
    let (sandbox, outside) = machine_and_outside();
    let ports = || json!([port(8080, 80, "tcp"), port(8080, 80, "udp")]);
    let one = net1(&sandbox).container("a");
    one.publish(ports());
    let two = sandbox.network("net2", &["10.10.0.0/24", "fd10::/64"]).attach(&one.netns, "a", "eth1", "a");
    two.publish(ports());
    for (container, name) in [(&one, "one"), (&two, "two")] {
        sandbox.serve(Some(&one.netns), "tcp,udp", &format!("{}:80", container.v4), name);
        sandbox.serve(Some(&one.netns), "tcp,udp", &format!("[{}]:80", container.v6), &format!("{name}6"));
    }
    let answers = |name: &str| {
        for protocol in ["tcp", "udp"] {
            let answer = sandbox.ask(Some(&outside), protocol, &format!("{HOST4}:8080"));
            assert_eq!(answer, format!("{name} 192.0.2.1"), "{protocol}");
            let answer = sandbox.ask(Some(&outside), protocol, "[2001:db8:ffff::2]:8080");
            assert_eq!(answer, format!("{name}6 2001:db8:ffff::1"), "{protocol}");
        }
    };
    answers("one");
    one.remove();
    sandbox.sh("ip -n a route replace default via 10.10.0.1; ip -n a -6 route replace default via fd10::1").ok();
    answers("two");
    two.remove();
    sandbox.ask_in_vain(Some(&outside), "tcp", &format!("{HOST4}:8080"));
    noted("one container on two networks: the remaining network takes over at DEL");
}

#[test]
fn del_of_the_younger_network_changes_nothing_for_the_older() {
    let sandbox = crate::machine();
    let one = net1(&sandbox).container("a");
    one.publish(json!([port(8080, 80, "tcp")]));
    let alone = store(&sandbox);
    let two = sandbox.network("net2", &["10.10.0.0/24"]).attach(&one.netns, "a", "eth1", "a");
    two.publish(json!([port(8080, 80, "tcp"), port(9090, 80, "tcp")]));
    assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", one.v4)));
    assert_eq!(leads_to(&sandbox, "ip", 9090), Some(format!("{} . 80", two.v4)));
    two.withdraw();
    two.bridge.del();
    assert_eq!(leads_to(&sandbox, "ip", 9090), None);
    assert_eq!(store(&sandbox), alone);
    // Another container is still another container.
    let other = net1(&sandbox).container("b");
    assert_eq!(other.ports(json!([port(8080, 80, "tcp")])).add_fails().0, 101);
}

/// The same network on two interfaces is two attachments as well.
#[test]
fn two_interfaces_on_one_network_are_two_attachments() {
    let sandbox = crate::machine();
    let network = net1(&sandbox);
    let one = network.container("a");
    one.publish(json!([port(8080, 80, "tcp")]));
    let two = network.attach(&one.netns, "a", "eth1", "a");
    two.publish(json!([port(8080, 80, "tcp")]));
    assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", one.v4)));
    one.remove();
    assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", two.v4)));
    assert_eq!(leads_to(&sandbox, "ip6", 8080), Some(format!("{} . 80", two.v6)));
    two.remove();
    assert_eq!(leads_to(&sandbox, "ip", 8080), None);
}
