//! Containers that died without DEL, on several networks: all that they had goes, with whoever comes upon it.

use integration::{Container, Sandbox, port};
use serde_json::{Value, json};

use crate::{STORE, leads_to, machine, noted};

/// A container on an IPv4 network and on a dual-stack one, with ports of its own on each, that is no more.
fn dead<'a>(sandbox: &'a Sandbox, on_one: &Value, on_two: &Value) -> [Container<'a>; 2] {
    let one = sandbox.network("net1", &["10.9.0.0/24"]).container("a");
    one.publish(on_one.clone());
    let two = sandbox.network("net2", &["10.10.0.0/24", "fd10::/64"]).attach(&one.netns, "a", "eth1", "a");
    two.publish(on_two.clone());
    sandbox.delete_netns(&one.netns);
    [one, two]
}

#[track_caller]
fn nothing_is_left(sandbox: &Sandbox, ports: &[u16], what: &str) {
    for number in ports {
        for family in ["ip", "ip6"] {
            assert_eq!(leads_to(sandbox, family, *number), None, "{family} {number} after {what}");
        }
    }
}

#[test]
fn both_dels_take_away_all_of_it_in_either_order() {
    for first in [0, 1] {
        let sandbox = machine();
        let containers =
            dead(&sandbox, &json!([port(8080, 80, "tcp")]), &json!([port(8080, 80, "tcp"), port(7070, 80, "tcp")]));
        containers[first].withdraw();
        assert_eq!(leads_to(&sandbox, "ip", 8080), None, "a dead one does not take over");
        containers[1 - first].withdraw();
        nothing_is_left(&sandbox, &[8080, 7070], "both DELs");
        assert!(sandbox.list(&format!("{STORE}/attachments")).is_empty());
    }
    noted("a dead container on two networks: nothing of it is left after its DELs, in either order");
}

#[test]
fn who_takes_one_port_orphans_none_of_the_others() {
    let sandbox = machine();
    let of_one = json!([port(8080, 80, "tcp"), port(9090, 80, "tcp")]);
    let containers = dead(&sandbox, &of_one, &json!([port(9090, 80, "tcp"), port(7070, 80, "tcp")]));
    let c = sandbox.network("net1", &["10.9.0.0/24"]).container("c");
    c.publish(json!([port(8080, 80, "tcp")]));
    // What still leads somewhere has a record that a DEL finds.
    containers[0].withdraw();
    containers[1].withdraw();
    nothing_is_left(&sandbox, &[9090, 7070], "the DELs");
    assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", c.v4)));
    assert_eq!(sandbox.list(&format!("{STORE}/attachments")).len(), 1);
}
