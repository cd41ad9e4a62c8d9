//! Somebody else's translation to the same containers: neither masqueraded nor refused by us.

use integration::port;
use serde_json::{Value, json};

use crate::{HOST4, machine_and_outside, net1, noted, set_bridge_netfilter};

/// What leads 203.0.113.1:80 and [2001:db8:fa::1]:80 to a container, as kube-proxy does.
fn services(v4: &str, v6: &str) -> String {
    let chain = "chain pre { type nat hook prerouting priority -100;";
    format!(
        "table ip kube {{ {chain} ip daddr 203.0.113.1 tcp dport 80 dnat to {v4}:80; }}; }}
        table ip6 kube {{ {chain} ip6 daddr 2001:db8:fa::1 tcp dport 80 dnat to [{v6}]:80; }}; }}"
    )
}

#[test]
fn what_others_translate_is_theirs() {
    let options: [(&str, Value); 4] = [
        ("snat", json!(true)),
        ("snat", json!(false)),
        ("masqAll", json!(true)),
        ("allowFrom", json!(["198.51.100.0/24", "2001:db8:5::/64"])),
    ];
    for (key, value) in options {
        for theirs_first in [true, false] {
            let (sandbox, outside) = machine_and_outside();
            set_bridge_netfilter(&sandbox, 1);
            let network = net1(&sandbox).with(key, value.clone());
            let (server, neighbour) = (network.container("server"), network.container("neighbour"));
            sandbox
                .sh("ip -n outside route add 203.0.113.1 via 192.0.2.2
                    ip -n outside -6 route add 2001:db8:fa::1 via 2001:db8:ffff::2")
                .ok();
            sandbox.serve(Some(&server.netns), "tcp", "[::]:80", "server");
            let theirs = services(&server.v4, &server.v6);
            if theirs_first {
                sandbox.nft(&theirs);
            }
            server.publish(json!([port(8080, 80, "tcp")]));
            neighbour.publish(json!([port(9090, 80, "tcp")]));
            if !theirs_first {
                sandbox.nft(&theirs);
            }
            let what = format!("{key} {value}, their table first: {theirs_first}");
            for (from, to, seen) in [
                (&outside, "203.0.113.1", "192.0.2.1"),
                (&outside, "[2001:db8:fa::1]", "2001:db8:ffff::1"),
                (&neighbour.netns, "203.0.113.1", &neighbour.v4),
                (&neighbour.netns, "[2001:db8:fa::1]", &neighbour.v6),
            ] {
                let asked = sandbox.ask(Some(from), "tcp", &format!("{to}:80"));
                assert_eq!(asked, format!("server {seen}"), "from {} to {to}, {what}", from.name);
            }
            // What is ours still is what it was told to be.
            match key {
                "masqAll" => {
                    assert_eq!(sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:8080")), "server 10.9.0.1");
                }
                "allowFrom" => sandbox.ask_in_vain(Some(&outside), "tcp", &format!("{HOST4}:8080")),
                _ => {
                    assert_eq!(sandbox.ask(Some(&outside), "tcp", &format!("{HOST4}:8080")), "server 192.0.2.1");
                }
            }
        }
    }
    noted("what somebody else's rules lead to a container is neither masqueraded nor refused");
}
