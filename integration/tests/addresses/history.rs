//! `osvc-net ip history`.

use integration::report;
use serde_json::{Value, json};

use crate::{call, json_of, machine, net1, osvc_net, start};

#[test]
fn what_happened_to_an_address() {
    let net = "10.9.0.0/30";
    let sandbox = machine(&[net1(net)]);
    let [a, b] = ["a", "b"].map(|name| sandbox.netns(name));
    let address = start(&sandbox, &net1(net), &a, "id-web", "web");
    call(&sandbox, &net1(net), "id-db", "db").netns(&b).add_fails();
    call(&sandbox, &net1(net), "id-web", "web").netns(&a).del();
    osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "web"]).ok();
    osvc_net(&sandbox, &["ip", "unreserve", "-n", "net1", "web"]).ok();
    // An ADD that fails after its address was given: a route whose gateway is nowhere.
    let mut config = net1(net);
    config["ipam"] = json!({"routes": [{"dst": "192.0.2.0/24", "gw": "203.0.113.1"}]});
    call(&sandbox, &config, "id-db", "db").netns(&b).add_fails();
    let rows = json_of(&sandbox, &["ip", "history"]);
    let story: Vec<(String, &str, &Value)> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["what"].as_str().unwrap().to_owned(), row["key"]["text"].as_str().unwrap(), &row["undone"]))
        .collect();
    let (yes, no) = (&Value::Bool(true), &Value::Bool(false));
    let expected = [
        ("held", "web", no),
        ("refused", "db", no),
        ("released", "web", no),
        ("reserved", "web", no),
        ("released", "web", no),
        ("held", "db", no),
        ("released", "web", yes),
    ];
    assert_eq!(story, expected.map(|(what, key, undone)| (what.to_owned(), key, undone)), "{rows:#}");
    let table = osvc_net(&sandbox, &["ip", "history", "-n", "net1", &address]).ok();
    assert!(table.starts_with("TIME") && table.contains("released (undone)"), "{table}");
    assert_eq!(table.lines().count(), 7, "the refusal is of no address: {table}");
    assert_eq!(osvc_net(&sandbox, &["ip", "history", "web"]).ok().lines().count(), 6);
    let told = osvc_net(&sandbox, &["ip", "history", "wbe"]).failed();
    assert!(told.contains("did you mean \"web\""), "{told}");
    report::ran(&report::kernel(), "osvc-net ip history");
}
