//! `osvc-net render`: programs that are configured from what the nodes are.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;

use integration::cluster::{Cluster, Node, Underlay};
use integration::{Sandbox, report};
use serde_json::json;

const TEMPLATE: &str = include_str!("../../../conf-examples/templates/swanctl.conf.j2");
const HOOK: &str = include_str!("../../../conf-examples/hooks/50-swanctl");
const PLACE: &str = "/etc/osvc-cni/templates/swanctl.conf.j2";
const FILE: &str = "/etc/swanctl/conf.d/osvc.conf";

/// The settings of a swanctl.conf, as paths: sections are closed as often as they are opened, and each line is a section,
/// an end, a setting or a comment.
#[track_caller]
fn settings(text: &str) -> BTreeSet<(String, String)> {
    let (mut path, mut found) = (Vec::<String>::new(), BTreeSet::new());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(section) = line.strip_suffix('{') {
            assert!(section.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{line}");
            path.push(section.trim().to_owned());
        } else if line == "}" {
            assert!(path.pop().is_some(), "one end too many: {text}");
        } else {
            let (name, value) = line.split_once(" = ").unwrap_or_else(|| panic!("{line:?} of {text}"));
            let new = found.insert((format!("{}.{name}", path.join(".")), value.to_owned()));
            assert!(new && !value.is_empty(), "{line}");
        }
    }
    assert!(path.is_empty(), "an end is missing: {text}");
    found
}

/// The traffic that is encrypted, as this end says: (from, to).
fn selectors(text: &str) -> BTreeSet<(String, String)> {
    let settings = settings(text);
    let of = |end: &str| -> Vec<(String, String)> {
        let end = format!(".{end}");
        let ours =
            settings.iter().filter_map(|(name, value)| Some((name.strip_suffix(&end)?.to_owned(), value.clone())));
        ours.collect()
    };
    let (local, remote) = (of("local_ts"), of("remote_ts"));
    assert_eq!(local.len(), remote.len());
    local.into_iter().zip(remote).map(|((_, local), (_, remote))| (local, remote)).collect()
}

fn render(node: &Node) -> String {
    node.sandbox.write(PLACE, TEMPLATE);
    node.osvc_net(&["render", PLACE]).ok()
}

/// Both ends say the same of what is between them, mirrored.
#[track_caller]
fn agree(nodes: &[Node]) {
    let told: Vec<_> = nodes.iter().map(|node| selectors(&render(node))).collect();
    for (index, node) in nodes.iter().enumerate() {
        assert!(!told[index].is_empty(), "{} has tunnels", node.name);
        for (local, remote) in &told[index] {
            assert!(local.starts_with(&format!("{}[", node.v4)), "{local} is {}'s", node.name);
            let peer =
                nodes.iter().position(|peer| remote.starts_with(&format!("{}[", peer.v4))).expect("a node's address");
            assert!(told[peer].contains(&(remote.clone(), local.clone())), "{remote} to {local} in {:?}", told[peer]);
        }
    }
}

fn config(cluster: &Cluster, mode: &str) -> serde_json::Value {
    let mut config = cluster.network("net", Underlay::V4, &[("10.11.0.0/16", 22), ("fd11::/48", 64)]);
    config["tunnelMode"] = json!(mode);
    config["tunnel"] = json!("always");
    config
}

#[test]
fn a_strongswan_mesh_follows_the_nodes() {
    let mut cluster = Cluster::new(&[0, 0, 1], &[]);
    let mut config = config(&cluster, "vxlan");
    cluster.install(&config);
    for node in &cluster.nodes {
        node.osvc_net(&["setup"]).ok();
    }
    agree(&cluster.nodes);
    let node = &cluster.nodes[0];
    let text = render(node);
    for word in ["local_addrs = 192.168.1.1", "remote_addrs = 192.168.2.3", "mode = transport", "192.168.1.2[udp/"] {
        assert!(text.contains(word), "{word:?} is in {text}");
    }
    // Written when it says something else, and only then.
    let write = |more: &[&str]| node.osvc_net(&[&["render", PLACE, "--file", FILE], more].concat()).ok();
    node.sandbox.sh("mkdir -p /etc/swanctl/conf.d").ok();
    assert_eq!((write(&["--dry-run"]), node.sandbox.exists(FILE)), (text.clone(), false), "a dry run prints it");
    assert_eq!(write(&[]), format!("{FILE}: written\n"));
    let stamp = || node.sandbox.sh(&format!("stat -c '%i %Y %Z' {FILE}")).ok();
    let before = stamp();
    assert_eq!((write(&[]), stamp()), (format!("{FILE}: unchanged\n"), before));
    assert_eq!(node.sandbox.read(FILE), text);
    // The hook follows: a node gets another address, and one joins.
    let place = "/etc/osvc-cni/hooks.d/50-swanctl";
    node.sandbox.write(place, HOOK);
    node.sandbox.sh(&format!("chmod 755 /etc/osvc-cni /etc/osvc-cni/hooks.d {place}")).ok();
    config["nodes"][2]["addr"] = json!("192.168.2.33");
    node.install(&config);
    node.osvc_net(&["setup"]).ok();
    let now = node.sandbox.read(FILE);
    assert!(now.contains("remote_addrs = 192.168.2.33") && !now.contains("192.168.2.3\n"), "{now}");
    config["nodes"][2]["addr"] = json!("192.168.2.3");
    cluster.add(1, &[]);
    let joined = cluster.nodes[3].entry(Underlay::V4);
    config["nodes"].as_array_mut().unwrap().push(joined);
    cluster.install(&config);
    for node in &cluster.nodes {
        node.osvc_net(&["setup"]).ok();
    }
    assert!(cluster.nodes[0].sandbox.read(FILE).contains("remote_addrs = 192.168.2.4"));
    agree(&cluster.nodes);
    report::ran(&report::kernel(), "osvc-net render: a strongSwan mesh");
}

#[test]
fn all_that_a_template_is_told() {
    let cluster = Cluster::new(&[0, 0, 1], &[]);
    let config = config(&cluster, "vxlan");
    let node = &cluster.nodes[0];
    node.install(&config);
    node.osvc_net(&["setup"]).ok();
    let fill = |text: &str| {
        node.sandbox.write("/run/t.j2", text);
        node.osvc_net(&["render", "/run/t.j2"])
    };
    let text =
        "{% set n = network('net') %}{{ n.name }} {{ n.kind }} {{ n.bridge }} {{ n.mode }} {{ n.tunnel }} {{ n.node }}
{{ n.networks|join(' ') }} {{ n.segments|join(' ') }} {{ n.gateways|join(' ') }}
{% for p in n.peers %}
{{ p.name }} {{ p.addresses|join(' ') }} {{ p.ways[0].device }} {{ p.ways[0].tunnel }}
{% endfor %}
{{ networks()|length }} {{ n.nodes|map(attribute='name')|join(',') }}
";
    assert_eq!(
        fill(text).ok().replace(&node.tunnels()[0].name, "TUNNEL"),
        "net osvc-routed obr_net vxlan always node1
10.11.0.0/16 fd11::/48 10.11.0.0/22 fd11::/64 10.11.0.1/22 fd11::1/64
node2 192.168.1.2 TUNNEL True
node3 192.168.2.3 TUNNEL True
1 node1,node2,node3
"
    );
    for (text, said) in [
        ("\n\n{{ network('nte').name }}\n", "/run/t.j2:3: no network \"nte\": did you mean \"net\"?"),
        ("\n{{ network('net').nothing }}\n", "/run/t.j2:2: undefined value"),
        ("{{ nothing }}", "/run/t.j2:1: undefined value"),
        ("\n{% for %}", "/run/t.j2:2: syntax error"),
    ] {
        let output = fill(text);
        assert!(output.rc == 1 && output.stdout.is_empty() && output.stderr.contains(said), "{text}: {output}");
    }
    assert!(node.osvc_net(&["render", "/nowhere.j2"]).failed().contains("cannot read /nowhere.j2"));
    // No private key, whatever is asked for.
    let all = fill("{{ networks() }}{{ tunnels() }}").ok();
    assert!(!all.to_lowercase().contains("private"), "{all}");
    report::ran(&report::kernel(), "osvc-net render");
}

#[test]
fn a_network_that_cannot_be_read_hides_no_other() {
    let sandbox = Sandbox::new();
    let bad =
        json!({"cniVersion": "1.0.0", "name": "bad", "plugins": [{"type": "osvc-bridge", "network": "10.9.0.1/24"}]});
    sandbox.write("/etc/cni/net.d/bad.conflist", &bad.to_string());
    let network = sandbox.network("net1", &["10.9.0.0/24"]);
    sandbox.write("/etc/cni/net.d/net1.conflist", &network.conflist().to_string());
    network.container("web");
    sandbox.write("/run/t.j2", "{% for n in networks() %}\n{{ n.name }} {{ n.error }}\n{% endfor %}\n");
    let run = |words: &[&str]| sandbox.run(&[&["/opt/cni/bin/osvc-net", "render"], words].concat());
    let text = run(&["/run/t.j2"]).ok();
    assert!(text.contains("bad /etc/cni/net.d/bad.conflist:1:") && text.contains("net1 None"), "{text}");
    sandbox.write("/run/t.j2", "{{ network('bad').name }}");
    assert!(run(&["/run/t.j2"]).failed().contains("10.9.0.1/24"));
    report::ran(&report::kernel(), "osvc-net render with a network that cannot be read");
}
