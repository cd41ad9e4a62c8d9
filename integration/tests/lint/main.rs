//! `osvc-net conf lint`: every fault with its place; what passes is taken by the plugins, what does not is refused.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;

use integration::{Output, Sandbox, report};
use serde_json::{Value, json};

const FILE: &str = "/etc/cni/net.d/a.conflist";

fn lint(sandbox: &Sandbox, words: &[&str]) -> Output {
    let argv: Vec<&str> = ["/opt/cni/bin/osvc-net", "conf", "lint"].into_iter().chain(words.iter().copied()).collect();
    sandbox.run(&argv)
}

/// What is said of a text: the status, and the lines without the name of the file.
#[track_caller]
fn said(sandbox: &Sandbox, text: &str) -> (i32, Vec<String>) {
    sandbox.write(FILE, text);
    let output = lint(sandbox, &[FILE]);
    assert_eq!(output.stderr, "", "{output}");
    let lines = output.stdout.lines().map(|line| line.strip_prefix(FILE).unwrap_or(line).to_owned());
    (output.rc, lines.collect())
}

#[test]
fn the_examples_are_clean() {
    let sandbox = Sandbox::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("conf-examples");
    let mut names = Vec::new();
    for folder in ["", "ipam", "routed"] {
        for entry in fs::read_dir(examples.join(folder)).unwrap().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "conflist") {
                let name = format!("/etc/cni/net.d/{folder}{}", entry.file_name().to_string_lossy());
                sandbox.write(&name, &fs::read_to_string(&path).unwrap());
                names.push(name);
            }
        }
    }
    assert!(names.len() > 10, "{names:?}");
    for name in &names {
        let output = lint(&sandbox, &[name]);
        assert_eq!((output.rc, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""), "{name}: {output}");
    }
    // All of the folders, too.
    assert_eq!(lint(&sandbox, &[]).ok(), "");
    assert_eq!(lint(&sandbox, &["-o", "json"]).ok(), "[]\n");
    report::ran(&report::kernel(), "osvc-net conf lint: the examples");
}

#[test]
fn each_fault_is_told_with_its_place() {
    let sandbox = Sandbox::new();
    let mut wrong = Vec::new();
    // A title, the status and how the only line begins behind the name of the file, and the file.
    for case in include_str!("faults.txt").split("\n----\n") {
        let mut parts = case.splitn(3, '\n');
        let [what, told, text] = [(); 3].map(|()| parts.next().unwrap());
        let (status, line) = told.split_once(' ').unwrap();
        let (rc, lines) = said(&sandbox, text);
        if (rc.to_string().as_str(), lines.len()) != (status, 1) || !lines[0].starts_with(line) {
            wrong.push(format!("{what}: status {rc}, {lines:#?}, not {line}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    report::ran(&report::kernel(), "osvc-net conf lint: places");
}

#[test]
fn words_of_the_specification_and_of_tools_are_known() {
    let sandbox = Sandbox::new();
    let text = json!({
        "cniVersion": "1.0.0", "cniVersions": ["1.0.0", "0.4.0"], "name": "a", "disableCheck": false, "disableGC": true,
        "loadOnlyInlinedPlugins": true, "nerdctlID": "0a1b", "nerdctlLabels": {"nerdctl/default-network": "true"}, "args": {"podman_labels": {"a": "b"}}, "_comment": "ours", "io.tool/key": 1,
        "plugins": [
            {"type": "osvc-bridge", "NETWORK": ["10.9.0.0/24"], "capabilities": {"ips": true}, "args": {"cni": {}},
             "runtimeConfig": {}, "dns": {"nameservers": ["192.0.2.53"]}, "ipam": {"claims": {"*": 4}}},
            {"type": "osvc-portmap", "capabilities": {"portMappings": true}},
            {"type": "tuning", "sysctl": {}, "whatever": 1}]});
    assert_eq!(said(&sandbox, &text.to_string()), (0, vec![]));
}

#[test]
fn lint_and_add_never_disagree() {
    let sandbox = Sandbox::new();
    let netns = sandbox.netns("c");
    let plugin = |kind: &str, keys: Value| {
        let mut plugin = keys;
        plugin["type"] = json!(kind);
        plugin
    };
    let node = |number: u8| json!({"name": format!("n{number}"), "addr": format!("192.0.2.{number}")});
    let routed = |keys: Value| {
        let mut all = json!({"type": "osvc-routed", "network": "10.9.0.0/16", "maskPerNode": 24, "node": "n1",
            "tunnelMode": "vxlan", "nodes": [node(1), node(2)]});
        keys.as_object().unwrap().iter().for_each(|(key, value)| all[key] = value.clone());
        all
    };
    let cases = [
        plugin("osvc-bridge", json!({"network": "10.9.0.0/24"})),
        plugin("osvc-bridge", json!({"network": "10.9.0.0/33"})),
        plugin("osvc-bridge", json!({"network": ["10.9.0.0/24", "10.9.0.128/25"]})),
        plugin("osvc-bridge", json!({"network": "10.9.0.0/24", "forwardAccept": "perhaps"})),
        plugin("osvc-bridge", json!({"network": "10.9.0.0/24", "mtu": 99_999})),
        plugin("osvc-bridge", json!({"network": "10.9.0.0/24", "vlan": 5000})),
        plugin("osvc-bridge", json!({"network": "10.9.0.0/24", "ipam": {"key": "${NOBODY"}})),
        plugin("osvc-bridge", json!({"network": "10.9.0.0/24", "ipam": {"claims": {"*": -1}}})),
        plugin("osvc-bridge", json!({"network": "10.9.0.0/24", "ipam": {"dataDir": "relative"}})),
        plugin("osvc-bridge", json!({"network": "10.9.0.0/24", "ipam": {"exclude": ["10.9.0.0/24x"]}})),
        plugin("osvc-bridge", json!({"bridge": "a-name-that-is-too-long", "network": "10.9.0.0/24"})),
        plugin("osvc-bridge", json!({"ipam": {"type": "osvc-ipam"}})),
        plugin("osvc-bridge", json!({"ipam": {"type": "osvc-ipam", "subnet": "10.9.0.0/24", "gateway": "10.8.0.1"}})),
        routed(json!({})),
        routed(json!({"tunnelMode": "pigeon"})),
        routed(json!({"node": "n9"})),
        routed(json!({"nodes": [node(1), node(1)]})),
        routed(json!({"tunnelMode": "wireguard"})),
        routed(json!({"port": 4789})),
        routed(json!({"tables": ["nowhere"]})),
        routed(json!({"nodes": [node(1), {"name": "n2", "addr": "10.9.3.3"}]})),
    ];
    let (mut good, mut bad) = (0, 0);
    for plugin in cases {
        let (rc, lines) = said(&sandbox, &json!({"cniVersion": "1.0.0", "name": "a", "plugins": [plugin]}).to_string());
        let mut config = plugin.clone();
        config["cniVersion"] = json!("1.0.0");
        config["name"] = json!("a");
        let call = sandbox.plugin(plugin["type"].as_str().unwrap()).config(config).container("c").netns(&netns);
        let reply = call.clone().call("ADD");
        call.call("DEL");
        assert_eq!(rc == 0, reply.output.rc == 0, "{plugin}: lint says {lines:?}, ADD {}", reply.output);
        if rc == 0 {
            good += 1;
            continue;
        }
        bad += 1;
        let answer: Value = serde_json::from_str(&reply.output.stdout).unwrap();
        let message = answer["msg"].as_str().unwrap();
        let message = message.strip_prefix("network a: ").unwrap_or(message);
        assert!(lines[0].contains(message), "{plugin}: lint says {lines:?}, ADD {message}");
    }
    assert!(good >= 2 && bad >= 15, "{good} good, {bad} bad");
    report::ran(&report::kernel(), "osvc-net conf lint says what ADD says");
}

#[test]
fn output_for_programs_and_what_cannot_be_read() {
    let sandbox = Sandbox::new();
    sandbox.write(
        FILE,
        "{\"cniVersion\": \"1.1.0\", \"name\": \"a\",\n \"plugins\": [{\"type\": \"osvc-bridge\", \"netwrok\": 1}]}",
    );
    let output = lint(&sandbox, &["-o", "json"]);
    assert_eq!(output.rc, 1, "{output}");
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    // podman 4 and containerd of this host.
    let versions: Vec<_> =
        found.as_array().unwrap().iter().filter(|problem| problem["severity"] == "warning").collect();
    assert!(
        versions.iter().all(|problem| problem["problem"].as_str().unwrap().contains("reads 1.0.0 at most")),
        "{found:#}"
    );
    let error = found.as_array().unwrap().iter().find(|problem| problem["severity"] == "error").unwrap();
    assert_eq!((&error["file"], &error["line"], &error["column"]), (&json!(FILE), &json!(2), &json!(38)), "{found:#}");
    let output = lint(&sandbox, &["/etc/cni/net.d/absent.conflist"]);
    assert!(output.rc == 1 && output.stderr.contains("cannot read /etc/cni/net.d/absent.conflist"), "{output}");
    // A network that is configured twice, and one that cannot be read, are all looked at.
    sandbox.write("/etc/cni/net.d/b.conflist", "{\n");
    sandbox.write("/etc/cni/net.d/c.conflist", "{\"name\": \"a\", \"type\": \"osvc-bridge\", \"netwrok\": 1}");
    let output = lint(&sandbox, &[]);
    for place in ["a.conflist:2:38: error", "b.conflist:", "c.conflist:1:38: error"] {
        assert!(output.stdout.contains(place), "{place}: {output}");
    }
}

#[test]
fn what_is_no_plain_file_is_not_waited_for() {
    let sandbox = Sandbox::new();
    sandbox
        .sh("mkdir -p /etc/cni/net.d; mkfifo /etc/cni/net.d/pipe.conflist; truncate -s 9M /etc/cni/net.d/b.conf")
        .ok();
    for words in [&[][..], &["/etc/cni/net.d/pipe.conflist", "/etc/cni/net.d/b.conf", "/etc/cni/net.d"]] {
        let told = sandbox.run(&[&["timeout", "20", "/opt/cni/bin/osvc-net", "conf", "lint"], words].concat());
        assert_eq!(told.rc, 1, "{words:?}: {told}");
        for file in ["pipe.conflist", "b.conf"] {
            let line = format!("cannot read /etc/cni/net.d/{file}: no file, or one of more than 8 MiB");
            assert!(told.stderr.contains(&line), "{words:?}: {told}");
        }
    }
}

#[test]
fn a_plugin_of_ours_that_is_not_installed_is_named_rightly() {
    let sandbox = Sandbox::new();
    let lines = |kind: &str| {
        sandbox.sh(
            "mkdir -p /tmp/empty; for folder in /opt/cni/bin /usr/lib/cni; do mount --bind /tmp/empty $folder; done",
        );
        let text = json!({"cniVersion": "1.0.0", "name": "a", "plugins": [{"type": kind, "network": "10.9.0.0/24"}]});
        sandbox.write(FILE, &text.to_string());
        sandbox.run(&["/opt/net", "conf", "lint", FILE]).stdout
    };
    sandbox.sh("cp /opt/cni/bin/osvc-net /opt/net").ok();
    let told = lines("osvc-bridge");
    assert!(told.contains("there is no plugin \"osvc-bridge\" in ") && !told.contains("did you mean"), "{told}");
    assert!(lines("osvc-bridg").contains("did you mean \"osvc-bridge\""));
}
