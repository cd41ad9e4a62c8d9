//! `osvc-net ls` and `ip ls`.

use integration::report;
use serde_json::json;

use crate::{call, json_of, machine, net1, osvc_net, start};

#[test]
fn ls_tells_how_full_each_network_is() {
    let range = json!({"cniVersion": "1.0.0", "name": "part", "type": "osvc-bridge", "bridge": "br9", "ipam": {
        "type": "osvc-ipam", "subnet": "10.8.0.0/24", "rangeStart": "10.8.0.10", "rangeEnd": "10.8.0.29",
        "exclude": ["10.8.0.12-10.8.0.15"]}});
    let dual =
        json!({"cniVersion": "1.0.0", "name": "dual", "type": "osvc-bridge", "network": ["10.7.0.0/16", "fd07::/64"]});
    let layer2 = json!({"cniVersion": "1.0.0", "name": "l2", "type": "osvc-bridge", "bridge": "br8"});
    let routed = json!({"cniVersion": "1.0.0", "name": "cluster", "type": "osvc-routed", "network": "10.11.0.0/16",
        "maskPerNode": 22, "node": "n1", "nodes": [{"name": "n1", "addr": "192.0.2.1"}, {"name": "n2", "addr": "192.0.2.2"}]});
    let sandbox = machine(&[net1("10.9.0.0/24"), range, dual, layer2, routed]);
    let [a, b, c] = ["a", "b", "c"].map(|name| sandbox.netns(name));
    for (netns, name) in [(&a, "a"), (&b, "b"), (&c, "c")] {
        start(&sandbox, &net1("10.9.0.0/24"), netns, &format!("id-{name}"), name);
    }
    crate::call(&sandbox, &net1("10.9.0.0/24"), "id-c", "c").netns(&c).del();
    sandbox.delete_netns(&b);
    sandbox.wait_for("the pair is gone", "[ $(ip -o link | grep -c ' ov') -eq 1 ]");
    osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "later"]).ok();
    let table = osvc_net(&sandbox, &["ls"]).ok();
    let row = |start: &str| {
        let line = table.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {table}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("NAME"), ["NAME", "TYPE", "NETWORK", "SEGMENT", "SIZE", "USED", "FREE", "RELEASED"]);
    assert_eq!(row("net1 "), ["net1", "osvc-bridge", "10.9.0.0/24", "-", "253", "3", "250", "1"]);
    assert_eq!(row("part "), ["part", "osvc-bridge", "10.8.0.0/24", "-", "16", "0", "16", "0"]);
    assert_eq!(
        row("dual     osvc-bridge  10."),
        ["dual", "osvc-bridge", "10.7.0.0/16", "-", "65533", "0", "65533", "0"]
    );
    assert_eq!(row("l2 "), ["l2", "osvc-bridge", "-", "-", "-", "-", "-", "-"]);
    assert_eq!(row("cluster "), ["cluster", "osvc-routed", "10.11.0.0/16", "10.11.0.0/22", "1021", "0", "1021", "0"]);
    let rows = json_of(&sandbox, &["ls", "dual", "net1"]);
    assert_eq!(rows[1]["size"], json!("18446744073709551614"), "{rows}");
    assert_eq!((&rows[2]["held"], &rows[2]["dead"], &rows[2]["reserved"]), (&json!(1), &json!(1), &json!(1)), "{rows}");
    report::ran(&report::kernel(), "osvc-net ls");
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_listed() {
    let sandbox = machine(&[net1("10.9.0.0/24")]);
    let netns = sandbox.netns("a");
    start(&sandbox, &net1("10.9.0.0/24"), &netns, "id-a", "a");
    sandbox.write(
        "/etc/cni/net.d/bad.conflist",
        r#"{"cniVersion": "1.0.0", "name": "bad", "plugins": [{"type": "osvc-bridge", "network": "10.3.0.5/24"}]}"#,
    );
    let output = osvc_net(&sandbox, &["ls"]);
    let table = output.stdout.clone();
    let told = output.failed();
    assert!(told.contains("bad.conflist:1:") && told.contains("host bits"), "{told}");
    assert!(table.contains("net1  osvc-bridge") && table.contains("bad   osvc-bridge"), "{table}");
    let folder = "/var/lib/cni/osvc/ipam/net1";
    sandbox
        .sh(&format!(
            "cd {folder}; sed 's/\"v\":1/\"v\":7/' $(ls | grep ^10) > 10.9.0.200; : > 10.9.0.201; mkfifo 10.9.0.202"
        ))
        .ok();
    for words in [&["ip", "ls"][..], &["ls", "net1"]] {
        let output = osvc_net(&sandbox, words);
        let table = output.stdout.clone();
        let told = output.failed();
        assert!(table.contains("net1"), "{words:?}: {table}");
        for part in ["10.9.0.200 has format 7", "10.9.0.201 is no address record", "10.9.0.202 is no address record"] {
            assert!(told.contains(part), "{words:?}: {part} in {told}");
        }
    }
    assert!(sandbox.exists(&format!("{folder}/10.9.0.201")), "nothing is set aside by who only looks");
}

#[test]
fn what_others_have_in_the_same_range_is_not_free() {
    let net = "10.9.0.0/28";
    let sandbox = machine(&[net1(net)]);
    let [a, b] = ["a", "b"].map(|name| sandbox.netns(name));
    let web = start(&sandbox, &net1(net), &a, "id-web", "web");
    let db = start(&sandbox, &net1(net), &b, "id-db", "db");
    call(&sandbox, &net1(net), "id-db", "db").netns(&b).del();
    let mut free = (2..15).map(|n| format!("10.9.0.{n}")).filter(|address| *address != web && *address != db);
    // Of containers of before the conflist was changed; what we had released, and what is no container's.
    for address in [free.next().unwrap(), free.next().unwrap(), db.clone(), "10.9.0.1".to_owned()] {
        sandbox.write(&format!("/var/lib/cni/networks/net1/{address}"), "foreign\r\neth0");
    }
    sandbox.write(&format!("/var/lib/cni/networks/net1/{}", free.next().unwrap()), "");
    let rows = json_of(&sandbox, &["ls"]);
    let figures = ["size", "used", "others", "held", "free", "released"].map(|name| rows[0][name].as_u64().unwrap());
    assert_eq!(figures, [13, 4, 3, 1, 9, 0], "{rows}");
    let text = osvc_net(&sandbox, &["metrics"]).ok();
    for (kind, value) in [("used", 4), ("others", 3), ("free", 9)] {
        let line = format!("osvc_network_addresses{{network=\"net1\",family=\"ipv4\",type=\"{kind}\"}} {value}");
        assert!(text.lines().any(|told| told == line), "{line} in {text}");
    }
    report::ran(&report::kernel(), "osvc-net ls: addresses of host-local in the same range");
}

#[test]
fn nobody_waits_for_a_writer() {
    let sandbox = machine(&[net1("10.9.0.0/24")]);
    let netns = sandbox.netns("a");
    let address = start(&sandbox, &net1("10.9.0.0/24"), &netns, "id-a", "a");
    sandbox.background("flock /var/lib/cni/osvc/ipam/net1/lock sleep 20", "/run/flock.log");
    sandbox.wait_for("the lock is held", "! flock -n /var/lib/cni/osvc/ipam/net1/lock true");
    let output = osvc_net(&sandbox, &["ip", "ls"]);
    assert!(output.elapsed.as_secs() < 5, "{output}");
    let node = sandbox.sh("cat /proc/sys/kernel/hostname").ok();
    let table = output.ok();
    let words: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[..6], ["a", node.trim(), "eth0", &address, "net1", "held"]);
    let rows = json_of(&sandbox, &["ip", "ls"]);
    assert_eq!((&rows[0]["node"], &rows[0]["liveness"]), (&json!(node.trim()), &json!("running")));
    osvc_net(&sandbox, &["claim", "ls"]).ok();
}
