//! osvc-bridge behind and before other plugins.

use integration::{Sandbox, addresses_of};
use serde_json::json;

use crate::{bridge, inside, one_line};

/// C110 for the bridge: what an earlier plugin has made is in the result, with ours.
#[test]
fn c114_a_previous_result_is_accepted_and_stays_in_the_result() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    sandbox.ip("link add host7 type veth peer name host8");
    let earlier = json!({
        "cniVersion": "1.1.0",
        "interfaces": [{"name": "host7", "mac": "02:00:00:00:00:07"}],
        "dns": {"nameservers": ["192.0.2.53"]},
    });
    let call = bridge(&sandbox, &pod, one_line("1.1.0")).with("prevResult", earlier);
    let before = (sandbox.leftovers(), inside(&sandbox, &pod));
    match call.call("ADD").success_or_error() {
        Ok(result) => {
            let result = result.unwrap();
            let names: Vec<_> = result["interfaces"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
            assert!(names.contains(&&json!("host7")), "what the earlier plugin made is still in the result: {result}");
            assert_eq!(result["dns"]["nameservers"], json!(["192.0.2.53"]), "and its dns: {result}");
            assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses_of(&result), "the container is attached");
            let index =
                result["ips"][0]["interface"].as_u64().and_then(|at| names.get(usize::try_from(at).ok()?).copied());
            assert_eq!(index, Some(&json!("eth0")), "the address's index is that of the container's end: {result}");
        }
        Err((code, message)) => {
            assert!(matches!(code, 2 | 7) && message.contains("prevResult"), "or refused by name: {code} {message}");
            sandbox.leftovers().assert_same_as(&before.0, "a refusal");
            assert_eq!(inside(&sandbox, &pod), before.1, "the container after a refusal");
        }
    }
}

/// The interface that the chain is about was made by an earlier plugin: ours cannot make it again.
#[test]
fn c114_c60_an_interface_of_an_earlier_plugin_is_refused_and_left_as_it_is() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    sandbox.ip("link add host7 type veth peer name eth0 netns pod");
    sandbox.ip("-n pod addr add 10.77.0.5/24 dev eth0");
    let earlier = json!({
        "cniVersion": "1.1.0",
        "interfaces": [{"name": "host7"}, {"name": "eth0", "sandbox": pod.path}],
        "ips": [{"address": "10.77.0.5/24", "interface": 1}],
    });
    let before = (sandbox.leftovers(), inside(&sandbox, &pod));
    let call = bridge(&sandbox, &pod, one_line("1.1.0")).with("prevResult", earlier);
    let (code, message) = call.add_fails();
    assert!(code != 999 && message.contains("eth0"), "{code} {message}");
    call.del();
    sandbox.leftovers().assert_same_as(&before.0, "a refusal and a DEL");
    assert_eq!(inside(&sandbox, &pod), before.1, "the earlier plugin's interface is its own");
}
