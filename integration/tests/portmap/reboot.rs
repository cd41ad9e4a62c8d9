//! A port never leads to somebody else's container: not after a reboot, not after a death without DEL.

use integration::{Container, Netns, Network, Sandbox, port, port_on};
use serde_json::json;

use crate::{HOST4, HOST6, kill, machine_and_outside, net1, noted, tables_mention};

/// Everybody asks for the same addresses: whoever comes second gets the first one's.
fn narrow(sandbox: &Sandbox) -> Network<'_> {
    net1(sandbox).with_bridge("args", json!({"cni": {"ips": ["10.9.0.50", "fd09::50"]}}))
}

fn publish_three(container: &Container<'_>) {
    container.publish(json!([port(8001, 80, "tcp"), port(8001, 80, "udp"), port_on(HOST4, 8003, 80, "tcp")]));
}

/// The old address is another workload's, which serves on the same port.
#[track_caller]
fn closed(sandbox: &Sandbox, outside: &Netns, other: &Container<'_>) {
    sandbox.serve(Some(&other.netns), "tcp,udp", "[::]:80", "other");
    for from in [Some(outside), None, Some(&other.netns)] {
        for (protocol, number) in [("tcp", 8001), ("udp", 8001), ("tcp", 8003)] {
            for host in [HOST4, HOST6] {
                sandbox.ask_in_vain(from, protocol, &format!("{host}:{number}"));
            }
        }
    }
    for text in [". 8001 ", ". 8003 "] {
        assert!(!tables_mention(sandbox, text), "{}", sandbox.ruleset());
    }
}

#[test]
fn after_a_reboot_another_workload_on_the_old_address_is_not_published() {
    for with_ports in [false, true] {
        let (mut sandbox, _) = machine_and_outside();
        let (v4, v6) = {
            let web = narrow(&sandbox).named("id-1", "web");
            publish_three(&web);
            (web.v4, web.v6)
        };
        sandbox.reboot();
        let outside = sandbox.outside();
        let other = narrow(&sandbox).named("id-2", "other");
        assert_eq!((&other.v4, &other.v6), (&v4, &v6), "the only address there is");
        other.publish(if with_ports { json!([port(9000, 80, "tcp")]) } else { json!([]) });
        closed(&sandbox, &outside, &other);
        if with_ports {
            assert_eq!(sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:9000")), "other 192.0.2.1");
        }
    }
    noted("after a reboot the ports of the dead are closed, not misdirected");
}

#[test]
fn after_a_reboot_setup_does_not_bring_back_what_the_dead_had() {
    let (mut sandbox, _) = machine_and_outside();
    sandbox.write("/etc/cni/net.d/net1.conflist", &narrow(&sandbox).conflist().to_string());
    publish_three(&narrow(&sandbox).named("id-1", "web"));
    sandbox.reboot();
    let outside = sandbox.outside();
    sandbox.run(&["/opt/cni/bin/osvc-net", "setup"]).ok();
    let other = narrow(&sandbox).named("id-2", "other");
    sandbox.run(&["/opt/cni/bin/osvc-net", "setup"]).ok();
    closed(&sandbox, &outside, &other);
}

#[test]
fn after_a_reboot_the_same_container_has_its_ports_again() {
    let (mut sandbox, _) = machine_and_outside();
    publish_three(&narrow(&sandbox).named("id-1", "web"));
    for id in ["id-1", "id-2"] {
        sandbox.reboot();
        let outside = sandbox.outside();
        let web = narrow(&sandbox).named(id, "web");
        publish_three(&web);
        sandbox.serve(Some(&web.netns), "tcp,udp", "[::]:80", "web");
        for (protocol, number) in [("tcp", 8001), ("udp", 8001), ("tcp", 8003)] {
            assert_eq!(sandbox.ask(Some(&outside), protocol, &format!("{HOST4}:{number}")), "web 192.0.2.1", "{id}");
        }
    }
}

/// The address is handed on by osvc-bridge alone: that is the moment at which the ports must go.
#[test]
fn a_dead_container_s_ports_go_when_its_address_is_handed_on() {
    let (sandbox, outside) = machine_and_outside();
    let web = narrow(&sandbox).named("id-1", "web");
    publish_three(&web);
    kill(&sandbox, &web.netns);
    let other = narrow(&sandbox).named("id-2", "other");
    assert_eq!((&other.v4, &other.v6), (&web.v4, &web.v6), "the only address there is");
    closed(&sandbox, &outside, &other);
    noted("ports of the dead are closed before their address is another's");
}

/// What the kernel knows of the lost store's ports is nobody's.
#[test]
fn ports_of_a_lost_store_go_when_their_address_is_handed_on() {
    let (sandbox, outside) = machine_and_outside();
    let web = narrow(&sandbox).named("id-1", "web");
    publish_three(&web);
    sandbox.sh(&format!("rm -rf {}", crate::STORE)).ok();
    web.withdraw();
    web.bridge.del();
    let other = narrow(&sandbox).named("id-2", "other");
    closed(&sandbox, &outside, &other);
}

/// DEL of the bridge plugin came, DEL of the portmap plugin got lost.
#[test]
fn a_lost_del_of_ports_leaves_none_to_the_next_one_on_the_address() {
    let (sandbox, outside) = machine_and_outside();
    let web = narrow(&sandbox).named("id-1", "web");
    publish_three(&web);
    web.bridge.del();
    let other = narrow(&sandbox).named("id-2", "other");
    assert_eq!((&other.v4, &other.v6), (&web.v4, &web.v6), "the only address there is");
    closed(&sandbox, &outside, &other);
}
