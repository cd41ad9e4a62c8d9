//! IPv4 and IPv6 together or not at all.

use integration::{Sandbox, port};
use serde_json::json;

use crate::{everything, leads_to, machine, net1, noted};

/// A table that belongs to a process: nobody else can change it while that runs (kernel 5.12).
fn hold_table(sandbox: &Sandbox, family: &str, table: &str) {
    sandbox.sh("rm -f /run/nft; mkfifo /run/nft").ok();
    sandbox.background(&format!("exec 9<>/run/nft; echo 'add table {family} {table} {{ flags owner; }}' >&9; echo $$ > /run/nft.pid; exec nft -i <&9"), "/run/nft.log");
    sandbox.wait_for(
        "the table is held",
        &format!("nft list table {family} {table} && ! nft add chain {family} {table} x"),
    );
}

fn release(sandbox: &Sandbox) {
    sandbox.sh("kill $(cat /run/nft.pid)").ok();
    sandbox.wait_for("the table is gone with its owner", "! nft list tables | grep -q portmap");
}

#[test]
fn a_failure_of_one_family_leaves_nothing_of_the_other() {
    for family in ["ip6", "ip"] {
        let sandbox = machine();
        let network = net1(&sandbox);
        let (a, b) = (network.container("a"), network.container("b"));
        hold_table(&sandbox, family, "osvc-cni-portmap");
        let before = sandbox.ruleset();
        for turn in 0..2 {
            let (code, message) = a.ports(json!([port(8080, 80, "tcp")])).add_fails();
            assert!(code >= 5 && !message.contains("panic"), "{message}");
            assert!(message.contains("osvc-cni-portmap") || message.contains("nft"), "{message}");
            assert_eq!(sandbox.ruleset(), before, "{family}, turn {turn}");
            let attachments = sandbox.list(&format!("{}/attachments", crate::STORE));
            assert!(attachments.is_empty(), "{family}, turn {turn}: {attachments:?}");
            // What every runtime does then; it may fail as long as it cannot know what is in the table.
            a.bare().call("DEL").success_or_error().ok();
        }
        release(&sandbox);
        // Nobody holds the port.
        b.publish(json!([port(8080, 80, "tcp")]));
        b.withdraw();
        a.publish(json!([port(8080, 80, "tcp")]));
        assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", a.v4)));
        assert_eq!(leads_to(&sandbox, "ip6", 8080), Some(format!("{} . 80", a.v6)));
    }
    noted("a failure of IPv6 leaves no IPv4 mapping, and the other way round");
}

/// Neither a set of another kind nor a chain of another hook in our tables stops it for good.
#[test]
fn a_table_of_our_name_and_another_shape_is_put_right() {
    let sandbox = machine();
    sandbox.nft(
        "table ip6 osvc-cni-portmap { map any { type inet_service : ipv6_addr; }
        chain prerouting { type filter hook input priority 5; }; }",
    );
    let a = net1(&sandbox).container("a");
    a.publish(json!([port(8080, 80, "tcp")]));
    assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", a.v4)));
    assert_eq!(leads_to(&sandbox, "ip6", 8080), Some(format!("{} . 80", a.v6)));
}

/// As after an upgrade that changed a map: DEL is not for ever stuck on it.
#[test]
fn del_succeeds_over_a_table_of_another_shape() {
    for family in ["ip", "ip6"] {
        let sandbox = machine();
        let a = net1(&sandbox).container("a");
        a.publish(json!([port(8080, 80, "tcp")]));
        let kind = if family == "ip" { "ipv4_addr" } else { "ipv6_addr" };
        sandbox.nft(&format!(
            "delete table {family} osvc-cni-portmap; table {family} osvc-cni-portmap {{ map any {{ type inet_service : {kind}; }}; }}"
        ));
        a.withdraw();
        for family in ["ip", "ip6"] {
            assert_eq!(leads_to(&sandbox, family, 8080), None);
        }
        assert!(sandbox.list(&format!("{}/attachments", crate::STORE)).is_empty());
    }
}

/// A container of one family publishes in that one; the other's table is not made for nothing.
#[test]
fn a_container_of_one_family_publishes_in_that_one() {
    for (subnet, family, other) in [("10.9.0.0/24", "ip", "ip6"), ("fd09::/64", "ip6", "ip")] {
        let sandbox = machine();
        let a = sandbox.network("net1", &[subnet]).container("a");
        a.publish(json!([port(8080, 80, "tcp")]));
        let address = if family == "ip" { &a.v4 } else { &a.v6 };
        assert_eq!(leads_to(&sandbox, family, 8080), Some(format!("{address} . 80")));
        assert!(!sandbox.ruleset().contains(&format!("table {other} osvc-cni-portmap")), "{}", sandbox.ruleset());
        let before = everything(&sandbox);
        a.withdraw();
        assert_ne!(everything(&sandbox), before);
    }
}
