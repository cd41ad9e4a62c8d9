//! The call itself: where a plugin runs, many at once, and the code of each kind of failure.

use std::collections::BTreeSet;

use integration::{Family, Plugin, Sandbox, VERSIONS, addresses_of};
use serde_json::{Value, json};

use crate::{PLUGINS, bridge, ipam, keys, one_line};

#[test]
fn c1_it_runs_in_the_hosts_netns_with_parameters_by_environment_and_logs_on_stderr() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let call = bridge(&sandbox, &pod, one_line("1.1.0")).ifname("net7").container("any-id.1_x");
    // A key that is worth a line in the log.
    let reply = call.clone().with("ipMasqBackend", json!("iptables")).env("OSVC_LOG", "debug").call("ADD");
    assert!(reply.output.stderr.contains("ipMasqBackend"), "what it logs is on stderr: {}", reply.output);
    assert_eq!(reply.output.stdout.lines().count(), 1, "and the result alone on stdout: {}", reply.output);
    let result = reply.result();
    assert!(sandbox.links().contains("obr_net1"), "the bridge is made where the plugin was started");
    assert_eq!(sandbox.addresses_in(&pod, "net7"), addresses_of(&result), "CNI_NETNS and CNI_IFNAME say where");
    assert!(!sandbox.links_in(&pod).contains("obr_net1"), "and nothing else comes into the container");
    let record = sandbox.record("/var/lib/cni/osvc/ipam/net1", addresses_of(&result)[0].trim_end_matches("/24"));
    assert_eq!(record["container"], "any-id.1_x", "CNI_CONTAINERID says for whom: {record}");
    let quiet = call.env("OSVC_LOG", "trace").call("DEL");
    assert_eq!((quiet.output.rc, quiet.output.stdout.as_str()), (0, ""), "a DEL has no answer: {}", quiet.output);
}

#[test]
fn c20_many_containers_at_once_on_a_network_that_nobody_has_set_up() {
    let sandbox = Sandbox::new();
    sandbox.sh("for n in $(seq 16); do ip netns add p$n; done").ok();
    let all = |verb: &str| {
        format!(
            "for n in $(seq 16); do (cni {verb} id-$n /run/netns/p$n job-$n > /run/out-$n; echo $? > /run/rc-$n) & done; wait
             cat /run/rc-* | sort -u"
        )
    };
    let config = one_line("1.1.0");
    assert_eq!(sandbox.bulk("osvc-bridge", &config, &all("ADD")).ok(), "0\n", "every ADD succeeds");
    let mut given = BTreeSet::new();
    for n in 1..=16 {
        let result: Value = serde_json::from_str(&sandbox.read(&format!("/run/out-{n}"))).unwrap();
        let netns = integration::Netns { name: format!("p{n}"), path: format!("/run/netns/p{n}") };
        assert_eq!(sandbox.addresses_in(&netns, "eth0"), addresses_of(&result), "p{n} has what was printed for it");
        assert!(given.insert(addresses_of(&result)), "{result} was given twice");
        let call = sandbox.plugin("osvc-bridge").config(config.clone()).container(&format!("id-{n}"));
        call.netns(&netns).named(&format!("job-{n}")).check(&result);
    }
    assert_eq!(sandbox.bulk("osvc-bridge", &config, &all("DEL")).ok(), "0\n", "every DEL succeeds");
    assert_eq!(sandbox.links(), ["lo", "obr_net1"].map(str::to_owned).into(), "only the bridge is left");
    assert!(sandbox.held(Family::Osvc, "net1").is_empty(), "no address is held any more");
}

/// A kind of failure: what it is, how it is provoked, its code, and what its message names.
type Failure = (&'static str, fn(&Sandbox) -> (u64, String), u64, &'static [&'static str]);

fn c1(sandbox: &Sandbox, config: Value) -> Plugin<'_> {
    sandbox.plugin("osvc-bridge").netns_path("/run/netns/pod").config(config)
}

fn full(sandbox: &Sandbox) -> Value {
    let one = json!({"subnet": "10.9.0.0/24", "rangeStart": "10.9.0.9", "rangeEnd": "10.9.0.9"});
    let other = sandbox.netns("other");
    bridge(sandbox, &other, keys(one.clone())).container("other").add();
    keys(one)
}

const FAILURES: [Failure; 11] = [
    ("an unknown version", |s| c1(s, one_line("9.9.9")).add_fails(), 1, &["9.9.9"]),
    ("an unsupported value", |s| c1(s, one_line("1.1.0")).with("vlan", json!(5000)).add_fails(), 2, &["vlan", "5000"]),
    ("a missing variable", |s| c1(s, one_line("1.1.0")).no_netns().add_fails(), 4, &["CNI_NETNS"]),
    ("a bad variable", |s| c1(s, one_line("1.1.0")).ifname("a/b").add_fails(), 4, &["interface name", "a/b"]),
    (
        "a disk that cannot be written to",
        |s| {
            s.sh("mount --bind /var/lib/cni /var/lib/cni && mount -o remount,bind,ro /var/lib/cni").ok();
            c1(s, one_line("1.1.0")).add_fails()
        },
        5,
        &["/var/lib/cni"],
    ),
    ("what is no object", |s| c1(s, json!([1])).add_fails(), 6, &["list"]),
    ("a bad range", |s| c1(s, keys(json!({"subnet": "10.9.0.7/24"}))).add_fails(), 7, &["10.9.0.0"]),
    ("no namespace", |s| c1(s, one_line("1.1.0")).netns_path("/run/no").add_fails(), 8, &["/run/no"]),
    ("a full range", |s| c1(s, full(s)).add_fails(), 11, &["no IP addresses available", "10.9.0.9"]),
    ("STATUS of a full range", |s| c1(s, full(s)).call("STATUS").error(), 50, &["10.9.0.9"]),
    (
        "an address of somebody else",
        |s| {
            full(s);
            c1(s, keys(json!({"subnet": "10.9.0.0/24"}))).args("IP=10.9.0.9").add_fails()
        },
        101,
        &["10.9.0.9", "other"],
    ),
];

#[test]
fn c32_each_kind_of_failure_has_its_code_and_names_its_thing() {
    for (what, provoke, expected, words) in FAILURES {
        let sandbox = Sandbox::new();
        sandbox.netns("pod");
        let (code, message) = provoke(&sandbox);
        assert_eq!(code, expected, "the code of {what}: {message}");
        for word in words {
            assert!(message.contains(word), "{what} does not name `{word}`: {message}");
        }
    }
}

#[test]
fn c44_c135_the_answer_to_version_is_what_a_runtime_can_decode_and_lists_each_version_that_works() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    for plugin in PLUGINS {
        let answer = sandbox.plugin(plugin).call("VERSION").result();
        assert!(answer["cniVersion"].is_string(), "without cniVersion libcni fails: {answer}");
        assert_eq!(answer["supportedVersions"], json!(VERSIONS), "without the list libcni takes it for 0.2.0");
        for version in answer["supportedVersions"].as_array().unwrap() {
            let config = if plugin == "osvc-ipam" { ipam(json!({"subnet": "10.9.0.0/24"})) } else { one_line("") };
            let call = sandbox.plugin(plugin).netns(&pod).config(config).with("cniVersion", version.clone());
            assert_eq!(call.add()["cniVersion"], *version, "{plugin} does what it lists");
            call.del();
        }
    }
}
