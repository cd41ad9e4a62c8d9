//! Networks of other main plugins whose subnets overlap: the restriction of the one outlives the other.

use integration::{Container, Family, Plugin, Sandbox, port};
use serde_json::{Value, json};

use crate::{HOST4, machine_and_outside, noted, osvc_net};

fn listed() -> Value {
    json!(["198.18.0.0/16"])
}

fn ports() -> Value {
    json!([port(8081, 80, "tcp")])
}

/// A call for a container with an address in the wider subnet.
fn wide(sandbox: &Sandbox) -> Plugin<'_> {
    let netns = sandbox.netns("wide");
    let call = sandbox.network("wide", &[]).portmap().container("wide").netns(&netns).named("wide");
    let call = call.with("prevResult", json!({"cniVersion": "1.0.0", "ips": [{"address": "10.9.1.1/16"}]}));
    call.with("runtimeConfig", json!({"portMappings": [port(8080, 80, "tcp")]}))
}

/// A call for a container in the narrower subnet, whose clients are listed.
fn narrow<'a>(sandbox: &'a Sandbox, reference: &Container<'a>) -> Plugin<'a> {
    let network = sandbox.network("narrow", &[]).with("allowFrom", listed());
    let call = network.portmap().container("narrow").netns(&reference.netns).named("narrow");
    call.with("prevResult", reference.result.clone()).with("runtimeConfig", json!({"portMappings": ports()}))
}

#[test]
fn del_of_the_wider_leaves_the_restriction_of_the_narrower() {
    for wide_first in [true, false] {
        let (sandbox, outside) = machine_and_outside();
        let reference = sandbox.network_of(Family::Reference, "narrow", &["10.9.5.0/24"]).container("narrow");
        sandbox.serve(Some(&reference.netns), "tcp", "[::]:80", "narrow");
        let (wide, narrow) = (wide(&sandbox), narrow(&sandbox, &reference));
        let calls = if wide_first { [&wide, &narrow] } else { [&narrow, &wide] };
        calls.iter().for_each(|call| drop(call.add()));
        let closed = |what: &str| {
            sandbox.ask_in_vain(Some(&outside), "tcp", &format!("{HOST4}:8081"));
            let checked = narrow.call("CHECK");
            assert_eq!(checked.output.rc, 0, "{what}, wide first: {wide_first}: {}", checked.output);
            assert!(sandbox.ask(None, "tcp", "127.0.0.1:8081").starts_with("narrow "), "{what}");
        };
        closed("both");
        wide.call("DEL").done();
        closed("after the DEL of the wider");
        wide.add();
        osvc_net(&sandbox, "setup");
        closed("after setup");
        sandbox.sh("nft flush ruleset").ok();
        wide.clone().without("runtimeConfig").add();
        closed("after a flush and an ADD");
        narrow.call("DEL").done();
        let sets = sandbox.sh("nft list set ip osvc-cni-portmap restricted").ok();
        assert!(!sets.contains("10.9."), "the list goes with its network: {sets}");
        let after = narrow.clone().without("allowFrom");
        after.add();
        assert_eq!(sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:8081")), "narrow 192.0.2.1");
    }
    noted("overlapping subnets of two networks: DEL of one leaves the list of the other");
}

/// What holds for both is no fault of either.
#[test]
fn check_passes_for_both() {
    let (sandbox, _) = machine_and_outside();
    let reference = sandbox.network_of(Family::Reference, "narrow", &["10.9.5.0/24"]).container("narrow");
    let (wide, narrow) = (wide(&sandbox), narrow(&sandbox, &reference));
    wide.add();
    narrow.add();
    for call in [&narrow, &wide] {
        call.call("CHECK").done();
    }
}

#[test]
fn another_add_of_the_wider_leaves_the_restriction_of_the_narrower() {
    let (sandbox, outside) = machine_and_outside();
    let reference = sandbox.network_of(Family::Reference, "narrow", &["10.9.5.0/24"]).container("narrow");
    sandbox.serve(Some(&reference.netns), "tcp", "[::]:80", "narrow");
    let (wide, narrow) = (wide(&sandbox), narrow(&sandbox, &reference));
    wide.add();
    narrow.add();
    sandbox.ask_in_vain(Some(&outside), "tcp", &format!("{HOST4}:8081"));
    let netns = sandbox.netns("wide2");
    let another = wide.clone().container("wide2").netns(&netns).named("wide2");
    let another = another.with("prevResult", json!({"cniVersion": "1.0.0", "ips": [{"address": "10.9.1.2/16"}]}));
    another.with("runtimeConfig", json!({"portMappings": [port(8082, 80, "tcp")]})).add();
    sandbox.ask_in_vain(Some(&outside), "tcp", &format!("{HOST4}:8081"));
    narrow.call("CHECK").done();
}

/// The one without a list keeps its masquerading when the listed one inside of it goes.
#[test]
fn del_of_the_narrower_leaves_the_wider() {
    let (sandbox, _) = machine_and_outside();
    let reference = sandbox.network_of(Family::Reference, "narrow", &["10.9.5.0/24"]).container("narrow");
    let (wide, narrow) = (wide(&sandbox), narrow(&sandbox, &reference));
    wide.add();
    let before = crate::ruleset_in_order(&sandbox);
    narrow.add();
    narrow.call("DEL").done();
    wide.call("CHECK").done();
    assert_eq!(crate::ruleset_in_order(&sandbox), before);
}
