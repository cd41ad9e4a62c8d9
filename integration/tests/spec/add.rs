//! ADD: what is there already, what fails half-way, and what is left of it.

use integration::{Family, Plugin, Sandbox, addresses_of};
use serde_json::{Value, json};

use crate::scripted::{Scripted, address, order, recorded};
use crate::{both, bridge, inside, keys, one_line};

/// The ADD fails and leaves the machine and the container as they were: code and message.
#[track_caller]
fn fails_without_a_trace(sandbox: &Sandbox, call: &Plugin<'_>, what: &str) -> (u64, String) {
    let pod = integration::Netns { name: "pod".into(), path: "/run/netns/pod".into() };
    let before = (sandbox.leftovers(), inside(sandbox, &pod));
    let failure = call.add_fails();
    sandbox.leftovers().assert_same_as(&before.0, what);
    assert_eq!(inside(sandbox, &pod), before.1, "the container after {what}");
    failure
}

#[test]
fn c60_an_interface_that_is_there_is_an_error_and_the_first_attachment_stays_intact() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = bridge(&sandbox, &pod, one_line("1.1.0"));
    let result = call.add();
    for other in ["c1", "c2"] {
        let what = format!("an ADD of {other} by an interface name that is there");
        let (code, message) = fails_without_a_trace(&sandbox, &call.clone().container(other), &what);
        assert!(code != 999 && message.contains("eth0") && message.contains("exists"), "{other}: {code} {message}");
        call.check(&result);
        assert!(sandbox.ping(&pod, "10.9.0.1"), "the first attachment works on");
    }
}

#[test]
fn c60_a_name_that_no_interface_can_have_is_an_error() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = bridge(&sandbox, &pod, one_line("1.1.0"));
    // The first is taken, the others are refused by the kernel: their sysctls are everybody's.
    for name in ["lo", "all", "default"] {
        let named = call.clone().ifname(name);
        let (code, message) = fails_without_a_trace(&sandbox, &named, &format!("an interface named {name}"));
        assert!(code != 999 && message.contains(name), "it is named: {code} {message}");
        named.del();
    }
    assert_eq!(sandbox.links_in(&pod), ["lo".to_owned()].into(), "the container's own lo is left");
}

#[test]
fn c61_an_attachment_is_network_container_and_interface() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let first = bridge(&sandbox, &pod, one_line("1.1.0"));
    let second = first.clone().ifname("eth1");
    let third = first.clone().ifname("eth2").with("name", json!("net2")).with("network", json!("10.10.0.0/24"));
    let calls = [first, second, third];
    let results: Vec<Value> = calls.iter().map(Plugin::add).collect();
    let check = |which: &[usize]| which.iter().for_each(|&n| calls[n].check(&results[n]));
    assert_ne!(addresses_of(&results[0]), addresses_of(&results[1]), "each interface has an address of its own");
    check(&[0, 1, 2]);
    calls[0].del();
    check(&[1, 2]);
    calls[2].del();
    check(&[1]);
    assert_eq!(sandbox.held(Family::Osvc, "net1").len(), 1, "each DEL frees its own");
    assert!(sandbox.held(Family::Osvc, "net2").is_empty(), "and that of its own network");
    calls[1].del();
    assert_eq!(sandbox.links_in(&pod), ["lo".to_owned()].into(), "nothing is left in the container");
}

#[test]
fn c62_a_second_add_neither_takes_another_address_nor_doubles_a_rule() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let [ipam, bridge] = both(&sandbox, &pod);
    let first = ipam.add();
    assert_eq!(ipam.add(), first, "osvc-ipam gives the same again");
    assert_eq!(sandbox.held(Family::Osvc, "net8").len(), 1, "and holds it once");
    let first = bridge.add();
    let (code, message) = fails_without_a_trace(&sandbox, &bridge, "a second ADD");
    assert!(code != 999 && message.contains("eth0"), "{code} {message}");
    bridge.check(&first);
}

#[test]
fn c63_a_delegate_that_fails_gets_its_del() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let script = Scripted::ipam(&sandbox, "script");
    script.fails("ADD");
    let call = bridge(&sandbox, &pod, keys(json!({"type": "script"}))).args("IgnoreUnknown=1;A=b");
    let (code, message) = fails_without_a_trace(&sandbox, &call, "a delegate's failure");
    assert_eq!((code, message.as_str()), (142, "the script refuses (ADD)"), "its own error is passed on");
    let calls = recorded(&sandbox);
    let verbs: Vec<_> = calls.iter().map(|call| call.what.as_str()).collect();
    assert_eq!(verbs, ["script ADD", "script DEL"], "what it has taken by then it alone knows");
    for name in ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH", "CNI_ARGS"] {
        assert!(calls[0].var(name).is_some(), "{name} is passed on");
        assert_eq!(calls[0].var(name), calls[1].var(name), "{name} is the same in DEL");
    }
    assert_eq!(calls[0].stdin, calls[1].stdin, "and so is the configuration");
    // Its DEL failing as well hides nothing.
    script.fails("DEL");
    assert_eq!(call.add_fails().1, "the script refuses (ADD)", "the first error is the one that is told");
}

#[test]
fn c63_a_delegate_that_succeeded_gets_its_del_when_something_else_fails() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let script = Scripted::ipam(&sandbox, "script");
    let call = bridge(&sandbox, &pod, keys(json!({"type": "script"})));
    let mut unreachable = address();
    unreachable["routes"] = json!([{"dst": "198.51.100.0/24", "gw": "203.0.113.1"}]);
    script.gives("ADD", &unreachable);
    fails_without_a_trace(&sandbox, &call, "a route that cannot be");
    assert_eq!(order(&sandbox), ["script ADD", "script DEL"], "a route of its result cannot be made");
    script.gives("ADD", &json!({"cniVersion": "1.1.0", "ips": "none"}));
    let (code, message) = fails_without_a_trace(&sandbox, &call, "a result that cannot be read");
    assert!(code == 6 && message.contains("script"), "{code} {message}");
    assert_eq!(order(&sandbox), ["script ADD", "script DEL"], "its result cannot be read");
}

/// F2, F3: what fails late, how it is mended, and what the message names.
#[test]
fn c64_a_failed_add_leaves_nothing_and_a_retry_without_del_works() {
    let good = json!({"subnet": "10.9.0.0/24"});
    let mut route = good.clone();
    route["routes"] = json!([{"dst": "198.51.100.0/24", "gw": "203.0.113.1"}]);
    let clash = "ip link add name br9 type bridge && ip addr add 10.9.0.200/16 dev br9";
    for (what, break_it, bad, mend_it, words) in [
        (
            "a foreign address on the bridge",
            clash,
            good.clone(),
            "ip addr flush dev br9",
            &["br9", "10.9.0.200/16"][..],
        ),
        ("a route by an unreachable gateway", "true", route, "true", &["203.0.113.1"]),
    ] {
        for is_set_up in [false, true] {
            let sandbox = Sandbox::new();
            let pod = sandbox.netns("pod");
            if is_set_up && break_it == "true" {
                let first = sandbox.netns("first");
                bridge(&sandbox, &first, keys(good.clone())).container("first").add();
            }
            sandbox.sh(break_it).ok();
            let call = bridge(&sandbox, &pod, keys(bad.clone()));
            for turn in 0..2 {
                let (code, message) = fails_without_a_trace(&sandbox, &call, &format!("{what}, turn {turn}"));
                assert!(code != 999 && words.iter().all(|word| message.contains(word)), "{what}: {code} {message}");
            }
            sandbox.sh(mend_it).ok();
            let retry = bridge(&sandbox, &pod, keys(good.clone()));
            let result = retry.add();
            retry.check(&result);
            assert!(sandbox.ping(&pod, "10.9.0.1"), "the gateway answers after {what} and a retry");
        }
    }
}

#[test]
fn c65_an_ipam_plugin_that_gives_no_address_is_an_error() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let script = Scripted::ipam(&sandbox, "script");
    let call = bridge(&sandbox, &pod, keys(json!({"type": "script"})));
    for none in
        [json!({"cniVersion": "1.1.0"}), json!({"cniVersion": "1.1.0", "ips": [], "routes": [{"dst": "0.0.0.0/0"}]})]
    {
        script.gives("ADD", &none);
        let (code, message) = fails_without_a_trace(&sandbox, &call, "a result without addresses");
        assert!(message.contains("IPAM plugin returned missing IP config"), "{code} {message}");
        assert_eq!(order(&sandbox), ["script ADD", "script DEL"], "it gets its DEL");
    }
}

/// The delegate's indexes are of a list that it has not given: ours take their place.
#[test]
fn ci5_interface_indexes_of_an_ipam_result_never_lead_elsewhere() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let script = Scripted::ipam(&sandbox, "script");
    let call = bridge(&sandbox, &pod, keys(json!({"type": "script"})));
    for index in [json!(0), json!(1), json!(99), json!(null)] {
        let mut given = address();
        given["ips"][0]["interface"] = index.clone();
        given["interfaces"] = json!([{"name": "lo", "sandbox": "/run/netns/pod"}, {"name": "wrong0"}]);
        script.gives("ADD", &given);
        let result = call.add();
        assert_eq!(result["ips"][0]["interface"], 2, "index {index} becomes the container's: {result}");
        assert_eq!(result["interfaces"].as_array().unwrap().len(), 3, "its interfaces are nobody's here: {result}");
        assert_eq!(sandbox.addresses_in(&pod, "eth0"), ["10.9.0.5/24"], "index {index}: the address is on eth0");
        assert_eq!(sandbox.addresses_in(&pod, "lo"), ["127.0.0.1/8", "::1/128"], "index {index}: and on nothing else");
        call.del();
    }
    for index in [json!(-1), json!("eth0"), json!(1.5)] {
        let mut given = address();
        given["ips"][0]["interface"] = index.clone();
        script.gives("ADD", &given);
        let (code, message) = fails_without_a_trace(&sandbox, &call, &format!("index {index}"));
        assert!(code == 6 && message.contains("interface"), "index {index} is no index: {code} {message}");
    }
}
