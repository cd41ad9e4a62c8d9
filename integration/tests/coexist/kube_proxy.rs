//! kube-proxy leads its services to our containers: the translation is its, the way is ours.

use integration::{Container, Network, port, report};
use serde_json::json;

use super::{HOST, Neighbour, iptables, machine, nft, ours};

/// The endpoint that the rules name.
fn endpoint<'a>(network: &Network<'a>) -> Container<'a> {
    network.clone().with_bridge("args", json!({"cni": {"ips": ["10.9.0.200"]}})).container("web")
}

fn services_lead_to_containers(neighbour: &Neighbour, theirs_first: bool) {
    let (sandbox, outside) = machine();
    if theirs_first {
        neighbour.load(&sandbox);
    }
    let network = ours(&sandbox);
    let web = endpoint(&network);
    web.publish(json!([port(8080, 80, "tcp")]));
    sandbox.serve(Some(&web.netns), "tcp", "[::]:80", "web");
    let client = network.container("client");
    if !theirs_first {
        neighbour.load(&sandbox);
    }
    for when in ["at first", "after theirs was loaded anew", "after ours was flushed and made again"] {
        let what = format!("{}, theirs first: {theirs_first}, {when}", neighbour.name);
        for (from, to, answer) in [
            (Some(&client.netns), "10.96.0.10:80", format!("web {}", client.v4)),
            (Some(&web.netns), "10.96.0.10:80", "web 10.9.0.1".to_owned()),
            (None, "10.96.0.10:80", "web 10.9.0.1".to_owned()),
            (Some(&outside), &format!("{HOST}:30080"), "web 10.9.0.1".to_owned()),
            (Some(&outside), &format!("{HOST}:8080"), "web 192.0.2.1".to_owned()),
            (Some(&client.netns), &format!("{HOST}:8080"), "web 10.9.0.1".to_owned()),
            (Some(&client.netns), "192.0.2.1:9000", format!("world {HOST}")),
        ] {
            let whence = from.map_or("the host", |netns| netns.name.as_str());
            assert_eq!(sandbox.ask(from, "tcp", to), answer, "{whence} to {to}, {what}");
        }
        match when {
            "at first" => neighbour.load(&sandbox),
            _ => {
                sandbox.sh("for t in osvc-cni osvc-cni-portmap; do nft delete table ip $t; nft delete table ip6 $t || true; done 2>/dev/null").ok();
                let name = if sandbox.exists("/run/netns/again") { "once-more" } else { "again" };
                network.container(name);
            }
        }
    }
    let order = if theirs_first { "before ours" } else { "after ours" };
    report::ran(&report::kernel(), &format!("rules of {} loaded {order}", neighbour.name));
}

fn of_iptables() -> Neighbour {
    iptables("kube-proxy (iptables)", include_str!("rulesets/kube-proxy.rules"))
}

fn of_nftables() -> Neighbour {
    nft("kube-proxy (nftables)", "ip kube-proxy", include_str!("rulesets/kube-proxy.nft"))
}

#[test]
fn iptables_first() {
    services_lead_to_containers(&of_iptables(), true);
}

#[test]
fn iptables_last() {
    services_lead_to_containers(&of_iptables(), false);
}

#[test]
fn nftables_first() {
    services_lead_to_containers(&of_nftables(), true);
}

#[test]
fn nftables_last() {
    services_lead_to_containers(&of_nftables(), false);
}
