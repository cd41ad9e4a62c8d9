//! What `osvc-net ip explain` tells is what the next ADD does.

use integration::{addresses_of, report};
use serde_json::{Value, json};

use crate::{call, json_of, machine, osvc_net, state};

fn config() -> Value {
    json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-ipam", "ipam": {"type": "osvc-ipam", "ranges": [
        [{"subnet": "10.9.0.0/27", "rangeStart": "10.9.0.4", "rangeEnd": "10.9.0.24", "gateway": "10.9.0.9"}],
        [{"subnet": "fd09::/64"}]], "exclude": ["10.9.0.11-10.9.0.13"]}})
}

#[test]
fn explain_then_add() {
    let mut network = config();
    // A plugin that takes addresses from osvc-ipam, of which only these matter here.
    network["type"] = json!("osvc-bridge");
    let sandbox = machine(std::slice::from_ref(&network));
    sandbox.write("/var/lib/cni/networks/net1/10.9.0.20", "foreign\r\neth0");
    let called = |container: &str, name: &str| {
        let mut config = config();
        config["type"] = json!("osvc-bridge");
        sandbox.plugin("osvc-ipam").config(config).container(container).named(name)
    };
    let (mut full, mut told_by_digest) = (0, 0);
    for n in 0..34 {
        let name = format!("key{}", n * 7 % 19);
        let netns = sandbox.netns(&format!("ns{n}"));
        let before = state(&sandbox);
        let why = json_of(&sandbox, &["ip", "explain", "-n", "net1", "--source", "podman", &name]);
        if n > 0 {
            assert_eq!(state(&sandbox), before, "explaining changes nothing");
        }
        match called(&format!("id-{n}"), &name).netns(&netns).call("ADD").success_or_error() {
            Ok(result) => {
                let given: Vec<String> = addresses_of(&result.unwrap())
                    .iter()
                    .map(|address| address.split('/').next().unwrap().to_owned())
                    .collect();
                let told: Vec<String> = why["sets"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|set| set["next"]["address"].as_str().unwrap_or("none").to_owned())
                    .collect();
                assert_eq!(given, told, "{name}: {why:#}");
                told_by_digest += usize::from(why["sets"][0]["first"] == json!(given[0]));
            }
            Err((11, message)) => {
                assert!(why["refused"].as_str().is_some_and(|told| message.contains(told)), "{message}: {why:#}");
                full += 1;
            }
            Err(other) => panic!("{other:?}"),
        }
        match n % 5 {
            1 => called(&format!("id-{n}"), &name).netns(&netns).del(),
            2 => sandbox.delete_netns(&netns),
            3 => {
                _ = osvc_net(
                    &sandbox,
                    &["ip", "reserve", "-n", "net1", "--source", "podman", &format!("key{}", n % 11)],
                )
            }
            _ => {}
        }
    }
    assert!(told_by_digest > 0 && full > 0, "{told_by_digest} {full}");
    report::ran(&report::kernel(), "osvc-net ip explain, then ADD: 34 times the same address");
}

#[test]
fn the_words_of_an_explanation() {
    let network = json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "network": "10.9.0.0/29",
        "ipam": {"exclude": ["10.9.0.2"]}});
    let sandbox = machine(std::slice::from_ref(&network));
    let [a, b] = ["a", "b"].map(|name| sandbox.netns(name));
    let web = crate::start(&sandbox, &network, &a, "id-web", "web");
    let text = osvc_net(&sandbox, &["ip", "explain", "-n", "net1", "web"]).ok();
    assert!(text.contains("source podman (as recorded)") && text.contains(&web), "{text}");
    assert!(text.contains("has it (container id-web eth0") && text.contains("first candidate"), "{text}");
    for name in ["x", "y"] {
        osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", name]).ok();
    }
    crate::start(&sandbox, &network, &b, "id-db", "db");
    let text = osvc_net(&sandbox, &["ip", "explain", "-n", "net1", "wep"]).ok();
    for part in [
        "has no record yet; there is \"web\"",
        "(by its form)",
        "gateway",
        "in exclude",
        "reserved for \"x\"",
        "held by \"db\" (container id-db",
        "the next ADD is refused: no IP addresses available",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let text = osvc_net(&sandbox, &["ip", "explain", "-n", "net1", "web", "--instance", "1"]).ok();
    assert!(text.contains("instance 1"), "{text}");
    call(&sandbox, &network, "id-db", "db").netns(&b).del();
    let text = osvc_net(&sandbox, &["ip", "explain", "-n", "net1", "new"]).ok();
    assert!(text.contains("none is unused; of the released ones its turn: \"db\""), "{text}");
    let told = osvc_net(&sandbox, &["ip", "explain", "-n", "nte1", "web"]).failed();
    assert!(told.contains("did you mean \"net1\""), "{told}");
    let told = osvc_net(&sandbox, &["ip", "explain", "-n", "net1", "web", "--source", "docker"]).failed();
    assert!(told.contains("no source \"docker\""), "{told}");
}
