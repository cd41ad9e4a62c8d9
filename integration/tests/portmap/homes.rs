//! Two network namespaces with one state folder, as a machine and what is nested in it may be: each has ports of its own.

use integration::{Netns, Plugin, Sandbox, addresses_of, port};
use serde_json::{Value, json};

use crate::{STORE, leads_to, machine, net1, noted, osvc_net};

const SUBNET: &str = "10.10.0.0/24";
const ELSEWHERE: [&str; 2] = ["nsenter", "--net=/run/netns/elsewhere"];

fn ports() -> Value {
    json!([port(8080, 80, "tcp")])
}

/// A container in the other network namespace: what runs its bridge plugin, and its portmap plugin.
struct Other<'a> {
    bridge: Plugin<'a>,
    portmap: Plugin<'a>,
    target: String,
}

fn other<'a>(sandbox: &'a Sandbox, id: &str, subnet: &str) -> Other<'a> {
    let netns: Netns = sandbox.netns(id);
    let plugin = |name: &str| {
        let config = json!({"cniVersion": "1.1.0", "name": "net2", "type": name});
        sandbox.plugin(name).config(config).container(id).netns(&netns).named(id).through(&ELSEWHERE)
    };
    let bridge = plugin("osvc-bridge").with("network", json!([subnet]));
    let result = bridge.add();
    let target = format!("{} . 80", addresses_of(&result)[0].split('/').next().unwrap());
    Other { bridge, portmap: plugin("osvc-portmap").with("prevResult", result), target }
}

impl Other<'_> {
    fn with_ports(&self) -> Plugin<'_> {
        self.portmap.clone().with("runtimeConfig", json!({"portMappings": ports()}))
    }
}

/// As [`leads_to`], there.
fn leads_there_to(sandbox: &Sandbox) -> Option<String> {
    let map = sandbox.sh("nsenter --net=/run/netns/elsewhere nft -n list map ip osvc-cni-portmap any").stdout;
    let (_, after) = map.split_once(" . 8080 ")?;
    Some(after.split(" : ").nth(1)?.split([',', '}', '\n']).next()?.trim().to_owned())
}

#[test]
fn each_restores_its_own() {
    for damage in ["true", "rm tables.json", "echo '{' > tables.json"] {
        let sandbox = machine();
        sandbox.netns("elsewhere");
        let a = net1(&sandbox).container("a");
        a.publish(ports());
        let z = other(&sandbox, "z", SUBNET);
        z.with_ports().add();
        let here = || leads_to(&sandbox, "ip", 8080);
        let (ours, theirs) = (Some(format!("{} . 80", a.v4)), Some(z.target.clone()));
        assert_eq!((here(), leads_there_to(&sandbox)), (ours.clone(), theirs.clone()), "no conflict");
        for turn in 0..2 {
            sandbox
                .sh(&format!(
                    "nft flush ruleset; nsenter --net=/run/netns/elsewhere nft flush ruleset; cd {STORE} && {damage}"
                ))
                .ok();
            let netns = sandbox.netns(&format!("y{turn}"));
            let bridge = z.bridge.clone().container(&netns.name).netns(&netns).named(&netns.name);
            bridge.add();
            bridge.del();
            assert_eq!((here(), leads_there_to(&sandbox)), (None, theirs.clone()), "`{damage}`, turn {turn}");
            net1(&sandbox).container(&format!("b{turn}"));
            assert_eq!((here(), leads_there_to(&sandbox)), (ours.clone(), theirs.clone()), "`{damage}`, turn {turn}");
            a.ports(ports()).check(&a.result);
            z.with_ports().call("CHECK").done();
        }
    }
    noted("two network namespaces with one state folder: each restores its own ports");
}

/// What cannot be withdrawn from here is not forgotten here.
#[test]
fn gc_and_del_from_another_network_namespace_leave_the_record() {
    let sandbox = machine();
    sandbox.netns("elsewhere");
    let z = other(&sandbox, "z", SUBNET);
    z.with_ports().add();
    let theirs = Some(z.target.clone());
    // From here nothing shows that it lives.
    sandbox.sh("umount /run/netns/z && mv /run/netns/z /run/z").ok();
    let here = z.portmap.clone().through(&[]);
    let gc = here.clone().without("prevResult");
    let records = || sandbox.sh(&format!("cat {STORE}/attachments/*")).stdout;
    let before = records();
    assert!(before.contains("net2"));
    for (what, act) in [
        ("GC", gc.clone().with("cni.dev/valid-attachments", json!([])).call("GC")),
        ("GC without a list", gc.call("GC")),
        ("DEL", here.no_netns().call("DEL")),
    ] {
        act.done();
        assert_eq!(records(), before, "{what} from here");
        assert_eq!(leads_there_to(&sandbox), theirs, "{what} from here");
    }
    for words in ["gc", "setup", "port ls"] {
        osvc_net(&sandbox, words);
        assert_eq!((records(), leads_there_to(&sandbox)), (before.clone(), theirs.clone()), "osvc-net {words}");
    }
    net1(&sandbox).container("a").publish(ports());
    assert_eq!(leads_there_to(&sandbox), theirs);
    z.portmap.clone().without("prevResult").no_netns().del();
    assert_eq!(leads_there_to(&sandbox), None);
    assert!(!records().contains("net2"), "{}", records());
}
