//! One port, two containers: the second is told who has it.

use std::thread;

use integration::{Family, port, port_on};
use serde_json::{Value, json};

use crate::{HOST4, everything, kill, leads_to, machine, machine_and_outside, net1, noted, tables_mention};

#[test]
fn a_taken_port_is_refused_with_its_holder_and_nothing_is_changed() {
    let (sandbox, outside) = machine_and_outside();
    let holder = net1(&sandbox).named("id-1", "web");
    holder.publish(json!([port(8080, 80, "tcp")]));
    sandbox.serve(Some(&holder.netns), "tcp", "[::]:80", "web");
    let other = sandbox.network("net2", &["10.10.0.0/24"]).named("id-2", "db");
    let before = everything(&sandbox);
    let wanted = json!([port(7000, 80, "tcp"), port(8080, 81, "tcp"), port(7001, 80, "tcp")]);
    let (code, message) = other.ports(wanted.clone()).add_fails();
    assert_eq!(code, 101, "{message}");
    for word in ["portMappings[1]", "8080", "web", "id-1", "net1", "since 20"] {
        assert!(message.contains(word), "key, container, network and since when: {word} in {message}");
    }
    assert_eq!(everything(&sandbox), before, "nothing is changed by a refusal");
    // What every runtime does then.
    other.ports(wanted.clone()).call("DEL").done();
    other.withdraw();
    assert_eq!(everything(&sandbox), before, "nor by the DEL after it");
    assert_eq!(sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:8080")), "web 192.0.2.1");
    holder.withdraw();
    other.publish(wanted);
    noted("a taken host port is refused with its holder");
}

/// Each row: what one has, what another wants, and whether a packet could be meant for both.
#[test]
fn ports_overlap_as_their_addresses_do() {
    let sandbox = machine();
    let network = net1(&sandbox);
    let (a, b) = (network.container("a"), network.container("b"));
    let none = port(80, 80, "tcp");
    let on = |address: &str| port_on(address, 80, 80, "tcp");
    let rows: [(Value, Value, bool); 16] = [
        (on("0.0.0.0"), on("192.0.2.1"), true),
        (none.clone(), none.clone(), true),
        (none.clone(), on("0.0.0.0"), true),
        (none.clone(), on("::"), true),
        (none.clone(), on("192.0.2.1"), true),
        (none.clone(), on("2001:db8::1"), true),
        (on("127.0.0.1"), none.clone(), true),
        (on("192.0.2.1"), on("192.0.2.1"), true),
        (on("192.0.2.1"), on("::ffff:192.0.2.1"), true),
        (on("2001:db8::1"), on("2001:DB8:0::1"), true),
        (on("192.0.2.1"), on("192.0.2.2"), false),
        (on("127.0.0.1"), on("192.0.2.2"), false),
        (on("0.0.0.0"), on("::"), false),
        (on("0.0.0.0"), on("2001:db8::1"), false),
        (none.clone(), port(80, 80, "udp"), false),
        (none.clone(), port(81, 80, "tcp"), false),
    ];
    for (one, another, conflict) in rows {
        for (held, wanted) in [(&one, &another), (&another, &one)] {
            a.publish(json!([held]));
            let answer = b.ports(json!([wanted])).call("ADD").success_or_error();
            match answer {
                Ok(_) => assert!(!conflict, "{wanted} was given although {held} is held"),
                Err((code, message)) => {
                    assert!(conflict, "{wanted} was refused although {held} is no reason: {message}");
                    assert_eq!(code, 101, "{message}");
                }
            }
            b.withdraw();
            a.withdraw();
        }
    }
}

#[test]
fn a_dead_holder_loses_all_its_ports() {
    let (sandbox, outside) = machine_and_outside();
    let network = net1(&sandbox);
    let dead = network.named("id-1", "web");
    dead.publish(json!([port(8001, 80, "tcp"), port(8002, 80, "udp"), port_on(HOST4, 8003, 80, "tcp")]));
    let living = network.named("id-2", "db");
    kill(&sandbox, &dead.netns);
    living.publish(json!([port(8001, 80, "tcp")]));
    sandbox.serve(Some(&living.netns), "tcp", "[::]:80", "db");
    assert_eq!(sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:8001")), "db 192.0.2.1");
    for text in [". 8002 ", ". 8003 ", &format!(": {} .", dead.v4), &format!(": {} .", dead.v6)] {
        assert!(!tables_mention(&sandbox, text), "{text} is still there: {}", sandbox.ruleset());
    }
    // Its late DEL finds nothing of its own.
    let before = everything(&sandbox);
    dead.withdraw();
    assert_eq!(everything(&sandbox), before);
    noted("a dead holder loses its ports");
}

#[test]
fn a_second_add_of_the_same_container_replaces_the_first() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    a.publish(json!([port(8080, 80, "tcp"), port(8081, 80, "tcp")]));
    a.publish(json!([port(8081, 82, "tcp"), port(8082, 80, "tcp")]));
    assert_eq!(leads_to(&sandbox, "ip", 8080), None);
    assert_eq!(leads_to(&sandbox, "ip", 8081), Some(format!("{} . 82", a.v4)));
    assert_eq!(leads_to(&sandbox, "ip6", 8082), Some(format!("{} . 80", a.v6)));
    net1(&sandbox).container("b").publish(json!([port(8080, 80, "tcp")]));
    let before = everything(&sandbox);
    a.publish(json!([port(8081, 82, "tcp"), port(8082, 80, "tcp")]));
    let strip = |text: &str| text.lines().filter(|line| !line.contains("since")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(strip(&everything(&sandbox)), strip(&before), "the same ADD again changes nothing");
}

/// It has ports, and asks for others of which one is taken.
#[test]
fn a_refused_second_add_leaves_the_first_as_it_was() {
    let sandbox = machine();
    let network = net1(&sandbox);
    let (a, b) = (network.container("a"), network.container("b"));
    a.publish(json!([port(8080, 80, "tcp")]));
    b.publish(json!([port(9090, 80, "tcp")]));
    let before = everything(&sandbox);
    let (code, message) = a.ports(json!([port(8081, 80, "tcp"), port(9090, 80, "tcp")])).add_fails();
    assert_eq!(code, 101, "{message}");
    assert_eq!(everything(&sandbox), before);
    a.ports(json!([port(8080, 80, "tcp")])).check(&a.result);
}

/// There is no pair of ours whose absence would tell.
#[test]
fn a_dead_holder_behind_another_main_plugin_loses_its_ports() {
    let sandbox = machine();
    let reference = sandbox.network_of(Family::Reference, "net2", &["10.10.0.0/24"]).container("dead");
    let ports = || json!({"portMappings": [port(8080, 80, "tcp")]});
    let call = sandbox.network("net2", &[]).portmap().container("dead").netns(&reference.netns).named("dead");
    let call = call.with("runtimeConfig", ports()).with("prevResult", reference.result.clone());
    call.add();
    let living = net1(&sandbox).container("living");
    assert_eq!(living.ports(json!([port(8080, 80, "tcp")])).add_fails().0, 101);
    sandbox.delete_netns(&reference.netns);
    living.publish(json!([port(8080, 80, "tcp")]));
    assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", living.v4)));
}

/// Two entries of one container, of which only one could be.
#[test]
fn a_container_s_own_entries_may_be_double_but_not_contradict() {
    let sandbox = machine();
    let a = net1(&sandbox).container("a");
    a.publish(json!([port(8080, 80, "tcp"), port(8080, 80, "TCP"), port_on("", 8080, 80, "tcp")]));
    a.withdraw();
    let before = everything(&sandbox);
    for second in [port(8080, 81, "tcp"), port_on("", 8080, 81, "Tcp")] {
        let wanted = json!([port(8080, 80, "tcp"), port(9000, 80, "tcp"), second]);
        let (code, message) = a.ports(wanted).add_fails();
        assert_eq!(code, 7, "{message}");
        for word in ["portMappings[0]", "portMappings[2]", "8080"] {
            assert!(message.contains(word), "both entries are named: {message}");
        }
        assert_eq!(everything(&sandbox), before);
    }
}

#[test]
fn of_eight_at_once_one_gets_the_port() {
    let sandbox = machine();
    let network = net1(&sandbox);
    let containers: Vec<_> = (0..8).map(|n| network.container(&format!("c{n}"))).collect();
    for protocol in ["tcp", "udp"] {
        let answers: Vec<_> = thread::scope(|scope| {
            let calls: Vec<_> = containers
                .iter()
                .map(|container| {
                    let call = container.ports(json!([port(8080, 80, protocol)]));
                    scope.spawn(move || call.call("ADD"))
                })
                .collect();
            calls.into_iter().map(|call| call.join().unwrap().success_or_error()).collect()
        });
        let winners: Vec<_> = (0..8).filter(|n| answers[*n].is_ok()).collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        assert!(answers.iter().filter_map(|answer| answer.as_ref().err()).all(|(code, _)| *code == 101), "{answers:?}");
        if protocol == "tcp" {
            assert_eq!(leads_to(&sandbox, "ip", 8080), Some(format!("{} . 80", containers[winners[0]].v4)));
        }
    }
    noted("eight ADDs of one port at once: one wins");
}
