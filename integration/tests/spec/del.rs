//! DEL: everything of the attachment goes, whatever else has gone or changed.

use integration::{Family, Plugin, Sandbox, addresses_of};
use serde_json::{Value, json};

use crate::scripted::{Scripted, order, recorded};
use crate::{bridge, ipam, keys, one_line};

#[test]
fn c72_del_releases_everything_with_the_netns_gone() {
    let sandbox = Sandbox::new();
    let first = sandbox.netns("first");
    bridge(&sandbox, &first, one_line("1.1.0")).container("first").add();
    let before = sandbox.leftovers();
    type Change = fn(Plugin<'_>) -> Plugin<'_>;
    let ways: [(&str, Change, bool); 4] = [
        ("its path gone", |del| del, true),
        ("CNI_NETNS unset", |del| del.no_netns(), true),
        ("CNI_NETNS empty", |del| del.netns_path(""), true),
        ("CNI_NETNS empty though it lives", |del| del.netns_path(""), false),
    ];
    for (what, change, is_gone) in ways {
        let pod = sandbox.netns("pod");
        let call = bridge(&sandbox, &pod, one_line("1.1.0"));
        let address = addresses_of(&call.add())[0].trim_end_matches("/24").to_owned();
        if is_gone {
            sandbox.delete_netns(&pod);
        }
        change(call).del();
        if !is_gone {
            assert_eq!(sandbox.links_in(&pod), ["lo".to_owned()].into(), "the container's end goes with {what}");
            sandbox.delete_netns(&pod);
        }
        sandbox.leftovers().assert_same_as(&before, &format!("a DEL with {what}"));
        let rules = sandbox.sh("nft list ruleset").ok();
        assert!(!rules.contains(&address), "no rule names {address} after a DEL with {what}: {rules}");
    }
}

#[test]
fn c73_the_delegate_gets_del_and_its_error_surfaces_after_all_else_is_done() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let script = Scripted::ipam(&sandbox, "script");
    let call = bridge(&sandbox, &pod, keys(json!({"type": "script"})));
    call.add();
    script.fails("DEL");
    order(&sandbox);
    let (code, message) = call.call("DEL").error();
    assert_eq!((code, message.as_str()), (142, "the script refuses (DEL)"), "the delegate's error is ours");
    assert_eq!(order(&sandbox), ["script DEL"], "it was called once");
    assert_eq!(sandbox.links_in(&pod), ["lo".to_owned()].into(), "the pair is gone all the same");
    assert_eq!(sandbox.links(), ["br9", "lo"].map(str::to_owned).into(), "at both ends");
    script.succeeds("DEL");
    call.no_netns().del();
    let calls = recorded(&sandbox);
    assert_eq!(calls.len(), 1, "a retry reaches the delegate again");
    assert_eq!(calls[0].var("CNI_NETNS").unwrap_or_default(), "", "also without a namespace");
}

#[test]
fn c75_del_does_not_need_a_valid_configuration() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let good = keys(json!({"subnet": "10.9.0.0/24"}));
    let call = bridge(&sandbox, &pod, good.clone());
    call.add();
    call.del();
    let before = sandbox.leftovers();
    for (key, bad) in [
        ("vlan", json!(5000)),
        ("vlan", json!("x")),
        ("mtu", json!("big")),
        ("bridge", json!("name-of-more-than-15-bytes")),
        ("bridge", json!({})),
        ("ipMasq", json!([1])),
        ("ipMasqBackend", json!("foo")),
        ("hairpinMode", json!("x")),
        ("ipam", json!({"type": "osvc-ipam"})),
        ("ipam", json!({"type": "osvc-ipam", "ranges": []})),
        ("ipam", json!({"type": "osvc-ipam", "subnet": "banana"})),
        ("ipam", json!({"type": "osvc-ipam", "dataDir": 5, "routes": "x"})),
        ("ipam", json!({})),
        ("ipam", json!("x")),
        ("ipam", json!(null)),
        ("network", json!("10.9.0.7/24")),
        ("runtimeConfig", json!({"ips": "x", "mac": 5})),
        ("args", json!({"cni": {"ips": [5]}})),
        ("dns", json!([])),
        ("prevResult", json!({"cniVersion": "0.1.0", "ips": 5})),
        ("prevResult", json!("x")),
    ] {
        for plugin in crate::PLUGINS {
            let add = sandbox.plugin(plugin).netns(&pod).config(good.clone());
            assert_eq!(addresses_of(&add.add()).len(), 1, "the ADD is a real one");
            assert_eq!(sandbox.held(Family::Osvc, "net1").len(), 1, "and its address is held");
            add.clone().with(key, bad.clone()).del();
            let what = format!("a DEL of {plugin} with {key} {bad}");
            sandbox.leftovers().assert_same_as(&before, &what);
            assert_eq!(sandbox.links_in(&pod), ["lo".to_owned()].into(), "the container after {what}");
        }
    }
    for args in ["IP=banana", "MAC=zz", "x;=;;", "IP"] {
        call.add();
        call.clone().args(args).del();
        sandbox.leftovers().assert_same_as(&before, &format!("a DEL with CNI_ARGS {args}"));
    }
}

/// ADD A by X, which dies without DEL; ADD B by X; DEL A.
#[test]
fn c76_a_late_del_leaves_the_address_and_the_rules_to_the_next_holder() {
    let sandbox = Sandbox::new();
    sandbox.outside();
    let old = sandbox.netns("old");
    let config = |id: &str| -> Value {
        let mut config = one_line("1.1.0");
        config["runtimeConfig"] = json!({"ips": ["10.9.0.50"]});
        config["note"] = json!(id);
        config
    };
    let a = bridge(&sandbox, &old, config("a")).container("a").named("a");
    assert_eq!(addresses_of(&a.add()), ["10.9.0.50/24"], "A has it");
    sandbox.delete_netns(&old);
    sandbox.wait_for("the pair is gone", "! ip -o link | grep -q ' ov'");
    let new = sandbox.netns("new");
    let b = bridge(&sandbox, &new, config("b")).container("b").named("b");
    let result = b.add();
    assert_eq!(addresses_of(&result), ["10.9.0.50/24"], "B has it now");
    let before = sandbox.leftovers();
    for del in [a.clone(), a.clone().no_netns(), a.netns(&new)] {
        del.del();
        sandbox.leftovers().assert_same_as(&before, "A's late DEL");
        b.check(&result);
        assert!(sandbox.ping(&new, "192.0.2.1"), "B is masqueraded as before");
    }
}

#[test]
fn c76_a_late_del_of_osvc_ipam_leaves_the_next_holder_s_record() {
    let sandbox = Sandbox::new();
    let old = sandbox.netns("old");
    let config = ipam(json!({"subnet": "10.9.0.0/24"}));
    let plugin = |id: &str, netns| sandbox.plugin("osvc-ipam").netns(netns).config(config.clone()).container(id);
    let a = plugin("a", &old).args("IP=10.9.0.50");
    a.add();
    sandbox.delete_netns(&old);
    let new = sandbox.netns("new");
    let b = plugin("b", &new).args("IP=10.9.0.50");
    let result = b.add();
    a.del();
    b.check(&result);
    assert_eq!(sandbox.held(Family::Osvc, "net1").len(), 1, "it is held, and once");
}
