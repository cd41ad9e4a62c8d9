//! Events of changes, in the order in which they happened.

use std::time::Duration;

use integration::cluster::{Cluster, Underlay};
use integration::{Network, Sandbox, podman, report};
use serde_json::{Value, json};

use super::osvc_net;

const LOG: &str = "/run/events";

/// Starts it, and waits until it watches: by then it has told of what is there.
fn start(sandbox: &Sandbox, words: &str, ready: usize) {
    sandbox.background(&format!("exec /opt/cni/bin/osvc-net watch {words} 2>/run/events.err"), LOG);
    wait(sandbox, ready);
}

#[track_caller]
fn wait(sandbox: &Sandbox, count: usize) {
    sandbox.wait_for(&format!("{count} events are told"), &format!("[ $(wc -l < {LOG}) -ge {count} ]"));
}

/// What was told, each as a line of JSON.
fn events(sandbox: &Sandbox) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    sandbox.read(LOG).lines().map(parse).collect()
}

/// `event address-or-container`
fn brief(events: &[Value]) -> Vec<String> {
    let word = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    events
        .iter()
        .map(|event| match event.get("address") {
            Some(_) => format!("{} {} {}", word(event, "event"), word(event, "address"), word(event, "container")),
            None => format!("{} {}", word(event, "event"), word(event, "network")),
        })
        .collect()
}

fn install(sandbox: &Sandbox, network: &Network<'_>, name: &str) {
    sandbox.write(&format!("/etc/cni/net.d/{name}.conflist"), &network.conflist().to_string());
}

#[test]
fn addresses_and_ports_of_containers_as_they_come_and_go() {
    let sandbox = Sandbox::new();
    let network = sandbox.network("net1", &["10.9.0.0/24"]);
    install(&sandbox, &network, "net1");
    let web = network.container("web");
    start(&sandbox, "--existing", 1);
    web.publish(json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]));
    wait(&sandbox, 2);
    web.withdraw();
    wait(&sandbox, 3);
    web.bridge.del();
    wait(&sandbox, 4);
    web.bridge.add();
    wait(&sandbox, 5);
    // A network that comes later, in a folder of its own.
    let later = sandbox.network("later", &["10.8.0.0/24"]);
    let elsewhere = sandbox.network("far", &["10.7.0.0/24"]).with_bridge("ipam", json!({"dataDir": "/var/lib/far"}));
    let (one, two) = (later.container("one"), elsewhere.container("two"));
    wait(&sandbox, 7);
    let told = events(&sandbox);
    let v4 = &web.v4;
    assert_eq!(
        brief(&told),
        [
            format!("held {v4} web"),
            "published net1".to_owned(),
            "unpublished net1".to_owned(),
            format!("released {v4} web"),
            format!("held {v4} web"),
            format!("held {} one", one.v4),
            format!("held {} two", two.v4),
        ]
    );
    let held = &told[0];
    assert_eq!(
        (&held["key"]["text"], &held["state"], &held["ifname"]),
        (&json!("web"), &json!("held"), &json!("eth0"))
    );
    assert_eq!(told[1]["mappings"][0]["host_port"], 8080, "{}", told[1]);
    assert!(told.windows(2).all(|pair| pair[0]["time"].as_str() <= pair[1]["time"].as_str()), "in order: {told:?}");
    assert_eq!(sandbox.read("/run/events.err"), "");
    // Everything goes, and comes again.
    sandbox.sh("rm -rf /var/lib/cni /var/lib/far").ok();
    wait(&sandbox, 10);
    let mut gone = brief(&events(&sandbox)[7..]);
    gone.sort();
    let mut all =
        [format!("forgotten {v4} web"), format!("forgotten {} one", one.v4), format!("forgotten {} two", two.v4)];
    all.sort();
    assert_eq!(gone, all);
    network.container("new");
    sandbox.wait_for("the new store is seen", &format!("grep held {LOG} | grep -q '\"new\"'"));
    report::ran(&report::kernel(), "osvc-net watch");
}

#[test]
fn per_address_what_happened_is_told_in_its_order_and_nothing_twice() {
    let sandbox = Sandbox::new();
    let network = sandbox.network("net1", &["10.9.0.0/24"]);
    install(&sandbox, &network, "net1");
    network.container("first");
    start(&sandbox, "net1 --existing", 1);
    let other = sandbox.network("other", &["10.8.0.0/24"]);
    other.container("unasked");
    let script = r#"
        one() { ip netns add n$1; for round in 1 2 3 4 5; do cni ADD c$1 /run/netns/n$1 name$1 >/dev/null || echo ADD
                cni DEL c$1 /run/netns/n$1 name$1 || echo DEL; done; }
        export -f one
        seq 4 | xargs -P 4 -I% bash -c 'one %'"#;
    let config = json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "network": ["10.9.0.0/24"]});
    assert_eq!(sandbox.bulk("osvc-bridge", &config, script).ok(), "");
    sandbox
        .wait_for("the last one is told", &format!("[ $(tail -n +2 {LOG} | grep -c '\"event\":\"released\"') -ge 4 ]"));
    std::thread::sleep(Duration::from_millis(200));
    let told = events(&sandbox);
    assert!(told.iter().all(|event| event["network"] == "net1"), "only what was asked for");
    let mut last = std::collections::BTreeMap::new();
    for event in &told {
        let what = event["event"].as_str().unwrap().to_owned();
        let before = last.insert(event["address"].to_string(), what.clone());
        assert_ne!(before.as_deref(), Some(what.as_str()), "an address is held and released in turn: {event}");
    }
    assert_eq!(last.values().filter(|what| *what == "held").count(), 1, "all but the first are given back: {last:?}");
    report::ran(&report::kernel(), "osvc-net watch: order");
}

#[test]
fn what_the_kernel_has_no_room_for_is_found_by_reading_all_again() {
    let sandbox = Sandbox::new();
    let network = sandbox.network("net1", &["10.9.0.0/24"]);
    install(&sandbox, &network, "net1");
    let first = network.container("first");
    start(&sandbox, "--existing", 1);
    // More than fs.inotify.max_queued_events, while nobody reads.
    let fill = "kill -STOP $(pgrep -x osvc-net); cd /var/lib/cni/osvc/ipam/net1
        seq -f .x%g $(cat /proc/sys/fs/inotify/max_queued_events) | xargs touch; find . -name '.x*' -delete";
    sandbox.sh(fill).ok();
    let second = network.container("second");
    first.bridge.del();
    sandbox.sh("kill -CONT $(pgrep -x osvc-net)").ok();
    wait(&sandbox, 3);
    let mut told = brief(&events(&sandbox)[1..]);
    told.sort();
    assert_eq!(told, [format!("held {} second", second.v4), format!("released {} first", first.v4)]);
    report::ran(&report::kernel(), "osvc-net watch: a queue that ran over");
}

#[test]
fn it_ends_with_its_reader_and_by_a_signal() {
    let sandbox = Sandbox::new();
    // Nobody reads: it does not wait for an event to find out.
    let output = sandbox
        .sh("{ /opt/cni/bin/osvc-net watch; echo $? > /run/status; } 2>/run/err | true; cat /run/status /run/err");
    assert!(output.stdout.starts_with("1\n") && output.stdout.contains("cannot print"), "{output}");
    let output = sandbox.sh("timeout -s INT 0.5 /opt/cni/bin/osvc-net watch; echo $?");
    assert!(output.stderr.contains("interrupted"), "{output}");
    let output = sandbox.sh("/opt/cni/bin/osvc-net watch > /run/out & sleep 0.3; kill -TERM $!; wait $!; echo $?");
    assert_eq!(output.stdout.trim(), "130", "{output}");
    let network = sandbox.network("net1", &["10.9.0.0/24"]);
    install(&sandbox, &network, "net1");
    assert!(osvc_net(&sandbox, &["watch", "nte1"]).failed().contains("did you mean \"net1\""));
    report::ran(&report::kernel(), "osvc-net watch: how it ends");
}

#[test]
fn peers_that_change_are_told() {
    let cluster = Cluster::three();
    let config = cluster.network("net", Underlay::V4, &[("10.11.0.0/16", 22)]);
    let mut config = config;
    config["tunnelMode"] = json!("vxlan");
    let node = &cluster.nodes[0];
    node.install(&config);
    start(&node.sandbox, "", 0);
    node.sandbox.wait_for("it watches", "grep -q inotify /proc/$(pgrep -x osvc-net)/fdinfo/*");
    node.osvc_net(&["setup"]).ok();
    wait(&node.sandbox, 1);
    config["tunnel"] = json!("always");
    node.install(&config);
    node.osvc_net(&["setup"]).ok();
    wait(&node.sandbox, 2);
    node.osvc_net(&["teardown", "net"]).ok();
    wait(&node.sandbox, 3);
    let told = events(&node.sandbox);
    let ways = |event: &Value| event["peers"][0]["ways"][0]["tunnel"].clone();
    assert_eq!(
        (ways(&told[0]), ways(&told[1]), &told[2]["gone"]),
        (json!(false), json!(true), &json!(true)),
        "{told:?}"
    );
    assert!(told.iter().all(|event| event["event"] == "peers" && event["network"] == "net"), "{told:?}");
    report::ran(&report::kernel(), "osvc-net watch: peers");
}

#[test]
fn containers_of_podman() {
    let mut sandbox = Sandbox::new();
    podman::install(&mut sandbox);
    let conflist = json!({"cniVersion": "1.0.0", "name": "net1", "plugins": [
        {"type": "osvc-bridge", "network": "10.9.0.0/24"},
        {"type": "osvc-portmap", "capabilities": {"portMappings": true}}]});
    sandbox.write(&format!("{}/net1.conflist", podman::CONF), &conflist.to_string());
    start(&sandbox, "", 0);
    sandbox.wait_for("it watches", "grep -q inotify /proc/$(pgrep -x osvc-net)/fdinfo/*");
    podman::run(&sandbox, "web", "net1", &["-p", "8080:80"]);
    wait(&sandbox, 2);
    podman::podman(&sandbox, &["rm", "-f", "-t", "0", "web"]).ok();
    wait(&sandbox, 4);
    let what: Vec<String> = events(&sandbox).iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!(what, ["held", "published", "unpublished", "released"]);
    report::ran(&podman::version(&sandbox), "osvc-net watch");
}
