//! What a network's configuration says of its ports, when it changes while containers run.

use integration::{Container, Netns, Network, Sandbox, port, port_on};
use serde_json::json;

use crate::{HOST4, HOST6, machine_and_outside, net1, noted, osvc_net, store};

#[track_caller]
fn closed(sandbox: &Sandbox, outside: &Netns, a: &Container<'_>, what: &str) {
    for host in [HOST4, HOST6] {
        sandbox.ask_in_vain(Some(outside), "tcp", &format!("{host}:8080"));
    }
    let call = a.ports(json!([port(8080, 80, "tcp")])).with("allowFrom", json!(["198.18.0.0/16"]));
    let checked = call.with("prevResult", a.result.clone()).call("CHECK");
    assert_eq!(checked.output.rc, 0, "{what}: {}", checked.output);
}

/// The older container's record says what it was told itself, and would be believed after a flush. `before_b` happens before
/// the container with the newer list comes, and `others` is the list of the older one.
fn the_newest_word_stays(others: Option<&str>, before_b: &str) {
    for repair in ["an ADD of osvc-bridge", "an ADD without ports", "osvc-net setup"] {
        let (sandbox, outside) = machine_and_outside();
        let network = net1(&sandbox);
        let older = match others {
            Some(client) => network.clone().with("allowFrom", json!([client])),
            None => network.clone(),
        };
        let a = older.container("a");
        a.publish(json!([port(8080, 80, "tcp")]));
        sandbox.serve(Some(&a.netns), "tcp", "[::]:80", "a");
        assert_eq!(sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:8080")), "a 192.0.2.1");
        let b = network.clone().with("allowFrom", json!(["198.18.0.0/16"])).container("b");
        sandbox.sh(before_b).ok();
        b.publish(json!([port(9090, 80, "tcp")]));
        closed(&sandbox, &outside, &a, "B came");
        b.remove();
        closed(&sandbox, &outside, &a, "B left");
        sandbox.sh("nft flush ruleset").ok();
        match repair {
            "osvc-net setup" => drop(osvc_net(&sandbox, "setup")),
            "an ADD without ports" => network.container("c").publish(json!([])),
            _ => drop(network.container("c")),
        }
        closed(&sandbox, &outside, &a, repair);
    }
}

#[test]
fn the_newest_list_stays_when_the_container_that_brought_it_goes() {
    the_newest_word_stays(Some("192.0.2.0/24"), "true");
    noted("a network's newest allowFrom outlives the container that brought it, and a flush");
}

#[test]
fn the_first_list_of_a_network_stays_as_well() {
    the_newest_word_stays(None, "true");
}

/// The container that brings the list finds no tables.
#[test]
fn the_newest_list_stays_if_its_add_made_the_tables_anew() {
    the_newest_word_stays(Some("192.0.2.0/24"), "nft flush ruleset");
}

/// The last container leaves, and with it the network's word.
#[test]
fn a_network_that_starts_anew_starts_with_its_own_word() {
    let (sandbox, outside) = machine_and_outside();
    let network = net1(&sandbox);
    let a = network.clone().with("allowFrom", json!(["198.18.0.0/16"])).container("a");
    a.publish(json!([port(8080, 80, "tcp")]));
    a.remove();
    let b = network.container("b");
    b.publish(json!([port(8080, 80, "tcp")]));
    sandbox.serve(Some(&b.netns), "tcp", "[::]:80", "b");
    assert_eq!(sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:8080")), "b 192.0.2.1");
}

/// A network whose configuration says `snat: false` now, and its container `web` with a port on 127.0.0.1 alone.
fn web_on_localhost(sandbox: &Sandbox) -> (Network<'_>, Container<'_>) {
    let network = net1(sandbox);
    let web = network.named("id-1", "web");
    web.publish(json!([port_on("127.0.0.1", 8081, 80, "tcp")]));
    sandbox.serve(Some(&web.netns), "tcp", "[::]:80", "web");
    assert_eq!(sandbox.ask(None, "tcp", "127.0.0.1:8081"), "web 10.9.0.1");
    let conflist = network.clone().with("snat", json!(false)).conflist().to_string();
    sandbox.write("/etc/cni/net.d/net1.conflist", &conflist);
    (network, web)
}

#[track_caller]
fn setup_is_refused(sandbox: &Sandbox) {
    for words in ["setup --dry-run", "setup", "setup net1"] {
        let refused = sandbox.sh(&format!("/opt/cni/bin/osvc-net {words}"));
        assert_eq!(refused.rc, 1, "{refused}");
        for word in ["net1", "web", "127.0.0.1", "snat"] {
            assert!(refused.stderr.contains(word), "{words}: {word}: {refused}");
        }
        assert_eq!(sandbox.ask(None, "tcp", "127.0.0.1:8081"), "web 10.9.0.1", "{words}");
    }
}

/// No translation without masquerading can lead from 127.0.0.1: as an ADD refuses it.
#[test]
fn setup_refuses_what_an_add_would_refuse() {
    let (sandbox, _) = machine_and_outside();
    let (_, web) = web_on_localhost(&sandbox);
    let before = store(&sandbox);
    setup_is_refused(&sandbox);
    assert_eq!(store(&sandbox), before);
    web.ports(json!([port_on("127.0.0.1", 8081, 80, "tcp")])).check(&web.result);
    noted("osvc-net setup refuses snat false for a container with a port on 127.0.0.1");
}

/// Masquerading is the network's: what goes with one container and not with another goes with none.
#[test]
fn setup_refuses_it_beside_a_container_that_would_take_it() {
    let (sandbox, _) = machine_and_outside();
    let (network, web) = web_on_localhost(&sandbox);
    network.named("id-2", "db").publish(json!([port(8082, 80, "tcp")]));
    setup_is_refused(&sandbox);
    web.ports(json!([port_on("127.0.0.1", 8081, 80, "tcp")])).check(&web.result);
}
