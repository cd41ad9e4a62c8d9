//! Figures for Prometheus, read by its grammar.

use std::collections::BTreeMap;

use integration::cluster::{Cluster, Underlay};
use integration::{Sandbox, report};
use serde_json::json;

use super::osvc_net;

type Labels = BTreeMap<String, String>;

/// Reads the text format (version 0.0.4): every sample below the help and the type of its metric, all of one metric
/// together, no sample twice.
#[track_caller]
fn parse(text: &str) -> BTreeMap<(String, Labels), f64> {
    let (mut samples, mut helped, mut typed) = (BTreeMap::new(), Vec::new(), Vec::<String>::new());
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty() && !helped.contains(&name.to_owned()), "{line}");
            helped.push(name.to_owned());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["gauge", "counter"].contains(&kind) && helped.last().unwrap() == name, "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            typed.push(name.to_owned());
        } else {
            let (name, labels, value) = sample(line);
            assert_eq!(typed.last(), Some(&name), "{line}");
            assert!(samples.insert((name, labels), value).is_none(), "twice: {line}");
        }
    }
    samples
}

/// `name{label="value",…} number`
fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    let is_name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    assert!(is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, value) = rest.split_once("=\"").unwrap();
            assert!(is_name(label), "{line}");
            let (mut text, mut characters) = (String::new(), value.char_indices());
            let close = loop {
                match characters.next().unwrap() {
                    (at, '"') => break at,
                    (_, '\\') => text.push(match characters.next().unwrap().1 {
                        'n' => '\n',
                        c @ ('\\' | '"') => c,
                        other => panic!("\\{other} in {line}"),
                    }),
                    (_, c) => text.push(c),
                }
            };
            labels.insert(label.to_owned(), text);
            rest = &value[close + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').unwrap();
    }
    (name.to_owned(), labels, rest.strip_prefix(' ').unwrap().parse().unwrap())
}

#[track_caller]
fn value(samples: &BTreeMap<(String, Labels), f64>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let labels: Labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    *samples.get(&(name.to_owned(), labels.clone())).unwrap_or_else(|| panic!("{name} {labels:?} in {samples:#?}"))
}

#[test]
fn figures_are_what_happened() {
    let sandbox = Sandbox::new();
    let network = sandbox
        .network("net1", &["10.9.0.0/24", "fd09::/64"])
        .with_bridge("ipam", json!({"claims": {"p\"q": 5, "default": 9}}));
    sandbox.write("/etc/cni/net.d/net1.conflist", &network.conflist().to_string());
    let look = || parse(&osvc_net(&sandbox, &["metrics"]).ok());
    let address = |kind: &str, family: &str| {
        value(&look(), "osvc_network_addresses", &[("network", "net1"), ("family", family), ("type", kind)])
    };
    let of_network = |name: &str| value(&look(), name, &[("network", "net1")]);
    assert_eq!((address("size", "ipv4"), address("free", "ipv4"), address("used", "ipv4")), (253.0, 253.0, 0.0));
    let web = network.container("web");
    let db = network.container("db");
    web.publish(json!([{"hostPort": 8080, "containerPort": 80}, {"hostPort": 8081, "containerPort": 81}]));
    db.remove();
    assert_eq!((address("used", "ipv4"), address("released", "ipv4"), address("free", "ipv4")), (1.0, 1.0, 252.0));
    assert_eq!((address("used", "ipv6"), address("released", "ipv6"), address("dead", "ipv6")), (1.0, 1.0, 0.0));
    assert_eq!((of_network("osvc_network_allocations_total"), of_network("osvc_network_conflicts_total")), (2.0, 0.0));
    let refused = network.conflist()["plugins"][0].clone();
    let mut refused = refused;
    refused["cniVersion"] = json!("1.0.0");
    refused["name"] = json!("net1");
    refused["args"] = json!({"cni": {"ips": [web.v4]}});
    let other = sandbox.netns("other");
    sandbox.plugin("osvc-bridge").config(refused).container("other").netns(&other).named("other").add_fails();
    assert_eq!(of_network("osvc_network_conflicts_total"), 1.0);
    let samples = look();
    let published = [("network", "net1"), ("state", "published")];
    // Two ports of two families.
    assert_eq!(value(&samples, "osvc_network_host_ports", &published), 4.0);
    assert_eq!(value(&samples, "osvc_claim_limit", &[("network", "net1"), ("namespace", "p\"q")]), 5.0);
    assert_eq!(value(&samples, "osvc_claim_held", &[("network", "net1"), ("namespace", "default")]), 2.0);
    assert_eq!(value(&samples, "osvc_network_error", &[("network", "net1")]), 0.0);
    assert!(samples.keys().any(|(name, labels)| name == "osvc_info" && labels.contains_key("version")));
    // The dead, and a reservation.
    sandbox.delete_netns(&web.netns);
    sandbox.wait_for("the pair is gone", "! ip -o link | grep -q ' ov'");
    assert_eq!((address("used", "ipv4"), address("dead", "ipv4")), (1.0, 1.0));
    let record = sandbox.read(&format!("/var/lib/cni/osvc/ipam/net1/{}", db.v4)).replace("released", "reserved");
    sandbox.write(&format!("/var/lib/cni/osvc/ipam/net1/{}", db.v4), &record);
    assert_eq!((address("reserved", "ipv4"), address("released", "ipv4"), address("free", "ipv4")), (1.0, 0.0, 251.0));
    assert_eq!(address("used", "ipv4"), 2.0);
    let listed = osvc_net(&sandbox, &["ls"]).ok();
    let row = listed.lines().find(|line| line.contains("10.9.0.0/24")).unwrap().to_owned();
    assert!(row.split_whitespace().collect::<Vec<_>>().ends_with(&["253", "2", "251", "0"]), "as ls has it: {listed}");
    report::ran(&report::kernel(), "osvc-net metrics");
}

#[test]
fn a_network_that_cannot_be_told_of_hides_no_other_and_the_file_is_whole() {
    let sandbox = Sandbox::new();
    let network = sandbox.network("net1", &["10.9.0.0/24"]);
    sandbox.write("/etc/cni/net.d/net1.conflist", &network.conflist().to_string());
    network.container("web");
    let bad =
        json!({"cniVersion": "1.0.0", "name": "bad", "plugins": [{"type": "osvc-bridge", "network": "10.9.0.1/24"}]});
    sandbox.write("/etc/cni/net.d/bad.conflist", &bad.to_string());
    sandbox.write("/var/lib/metrics/osvc.prom", "old\n");
    sandbox.sh("chmod 600 /var/lib/metrics/osvc.prom").ok();
    let output = osvc_net(&sandbox, &["metrics", "--textfile", "/var/lib/metrics/osvc.prom"]);
    assert!(output.rc == 1 && output.stdout.is_empty() && output.stderr.contains("network bad"), "{output}");
    let samples = parse(&sandbox.read("/var/lib/metrics/osvc.prom"));
    assert_eq!(value(&samples, "osvc_network_error", &[("network", "bad")]), 1.0);
    assert_eq!(value(&samples, "osvc_network_allocations_total", &[("network", "net1")]), 1.0);
    assert_eq!(sandbox.sh("stat -c %a /var/lib/metrics/osvc.prom; ls -A /var/lib/metrics").ok(), "644\nosvc.prom\n");
    let nowhere = osvc_net(&sandbox, &["metrics", "--textfile", "/nowhere/osvc.prom"]).failed();
    assert!(nowhere.contains("cannot write /nowhere/osvc.prom"), "{nowhere}");
    report::ran(&report::kernel(), "osvc-net metrics --textfile");
}

#[test]
fn peers_of_routed_networks() {
    let cluster = Cluster::three();
    let mut config = cluster.network("net", Underlay::V4, &[("10.11.0.0/16", 22)]);
    config["tunnelMode"] = json!("vxlan");
    config["nodes"][2]["addr"] = json!("nowhere.invalid");
    let node = &cluster.nodes[0];
    node.install(&config);
    node.osvc_net(&["setup"]);
    let samples = parse(&osvc_net(&node.sandbox, &["metrics"]).ok());
    assert_eq!(value(&samples, "osvc_network_peers", &[("network", "net")]), 2.0);
    assert_eq!(value(&samples, "osvc_network_peers_faulty", &[("network", "net")]), 1.0);
    let size = [("network", "net"), ("family", "ipv4"), ("type", "size")];
    assert_eq!(value(&samples, "osvc_network_addresses", &size), 1021.0, "this node's segment");
    report::ran(&report::kernel(), "osvc-net metrics: peers");
}
