//! The examples of the manual are what the commands print.

use integration::Sandbox;
use serde_json::json;

use crate::{call, machine, osvc_net, start};

/// Times, and the name of the test's host, as the examples have them.
fn plain(sandbox: &Sandbox, text: &str) -> String {
    let host = sandbox.sh("cat /proc/sys/kernel/hostname").ok();
    let mut words = String::new();
    for line in text.lines() {
        for word in line.split_whitespace() {
            let word = word.trim_end_matches([')', ',', ';', ':']);
            let is_time = word.len() == 20 && word.ends_with('Z') && word.starts_with("20");
            words += match word {
                _ if is_time => "TIME",
                _ if word == host.trim() || word == "node1" => "NODE",
                _ => word,
            };
            words.push(' ');
        }
        words.push('\n');
    }
    words
}

#[test]
fn the_manual_shows_what_is_printed() {
    let podnet = json!({"cniVersion": "1.0.0", "name": "podnet", "type": "osvc-bridge", "network": "10.22.0.0/16"});
    let dual = json!({"cniVersion": "1.0.0", "name": "v6net", "type": "osvc-bridge", "network": "fd22::/64"});
    let cluster = json!({"cniVersion": "1.0.0", "name": "prod", "type": "osvc-routed", "network": "10.11.0.0/16",
        "maskPerNode": 22, "node": "node1",
        "nodes": [{"name": "node1", "addr": "192.0.2.1"}, {"name": "node2", "addr": "192.0.2.2"}]});
    let sandbox = machine(&[podnet.clone(), dual, cluster]);
    let [a, b, c] = ["a", "b", "c"].map(|name| sandbox.netns(name));
    let show = |name: &str, words: &[&str]| {
        let output = osvc_net(&sandbox, words);
        let printed = format!("{}{}", output.stdout, output.stderr);
        let path = format!("{}/../cli/src/args/examples/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let example = std::fs::read_to_string(&path).unwrap_or_default();
        let call = format!("# osvc-net {}", words.join(" "));
        let shown: String = example
            .lines()
            .skip_while(|line| line.trim() != call)
            .skip(1)
            .take_while(|line| line.starts_with("  ") && !line.trim().starts_with("# osvc-net"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(plain(&sandbox, &shown), plain(&sandbox, &printed), "{path}: {call}\n{printed}");
    };
    start(&sandbox, &podnet, &a, "8d1f2a6c3b5e", "web");
    start(&sandbox, &podnet, &b, "1b0c9d8e7f6a", "db");
    call(&sandbox, &podnet, "1b0c9d8e7f6a", "db").netns(&b).del();
    show("ip-reserve", &["ip", "reserve", "-n", "podnet", "mail", "10.22.0.25"]);
    show("ls", &["ls"]);
    show("ip-ls", &["ip", "ls", "-n", "podnet"]);
    show("ip-explain", &["ip", "explain", "-n", "podnet", "web"]);
    show("ip-explain", &["ip", "explain", "-n", "podnet", "cache"]);
    show("hosts", &["hosts", "--search", "example.org"]);
    show("ip-unreserve", &["ip", "unreserve", "-n", "podnet", "mail"]);
    start(&sandbox, &podnet, &c, "5c4b3a291807", "cache");
    sandbox.delete_netns(&c);
    sandbox.wait_for("the pair is gone", "[ $(ip -o link | grep -c ' ov') -eq 1 ]");
    show("ip-release", &["ip", "release", "-n", "podnet", "cache"]);
    show("ip-history", &["ip", "history", "-n", "podnet", "db"]);
}
