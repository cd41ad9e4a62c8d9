//! What a plugin weighs: a file that runs on any distribution, little memory.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::{Sandbox, report};
use serde_json::{Value, json};

const PLUGINS: [&str; 4] = ["osvc-ipam", "osvc-bridge", "osvc-routed", "osvc-portmap"];

/// elf(5): a dynamically linked program names its interpreter in a program header of type PT_INTERP.
fn has_interpreter(elf: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    assert_eq!(&elf[..5], b"\x7fELF\x02", "a 64-bit ELF file");
    let half = |at: usize| usize::from(u16::from_le_bytes([elf[at], elf[at + 1]]));
    let table = usize::try_from(u64::from_le_bytes(elf[0x20..0x28].try_into().unwrap())).unwrap();
    let (size, count) = (half(0x36), half(0x38));
    (0..count).any(|index| {
        let at = table + index * size;
        u32::from_le_bytes(elf[at..at + 4].try_into().unwrap()) == PT_INTERP
    })
}

#[test]
fn the_plugins_are_static_and_smaller_than_three_megabytes() {
    let sandbox = Sandbox::new();
    for plugin in PLUGINS {
        let _ = sandbox.plugin(plugin);
        let elf = std::fs::read(sandbox.path(&format!("/opt/cni/bin/{plugin}"))).unwrap();
        assert!(!has_interpreter(&elf), "{plugin} is static");
        let size = elf.len() as f64 / 1e6;
        report::ran("size", &format!("{plugin} is {size:.2} MB, static"));
        assert!(size < 3.0, "{plugin} is {size:.2} MB");
    }
    assert!(has_interpreter(&std::fs::read("/bin/bash").unwrap()), "the test can tell");
}

#[test]
fn a_call_takes_less_than_four_megabytes_of_memory() {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let ipam = json!({"cniVersion": "1.0.0", "name": "net1", "type": "osvc-bridge", "ipam": {"type": "osvc-ipam", "subnet": "10.8.0.0/16"}});
    let bridge =
        json!({"cniVersion": "1.0.0", "name": "net2", "type": "osvc-bridge", "network": ["10.9.0.0/16", "fd09::/64"]});
    let mut portmap = json!({"cniVersion": "1.0.0", "name": "net2", "type": "osvc-portmap"});
    portmap["runtimeConfig"] = json!({"portMappings": [
        {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}, {"hostPort": 5353, "containerPort": 53, "protocol": "udp"},
    ]});
    let attach = sandbox.plugin("osvc-bridge").netns(&pod).config(bridge.clone()).container("portmap");
    portmap["prevResult"] = attach.clone().ifname("eth1").add();
    portmap["prevResult"]["interfaces"][2]["name"] = json!("eth0");
    for (plugin, config) in [("osvc-ipam", ipam), ("osvc-bridge", bridge), ("osvc-portmap", portmap)] {
        let call = sandbox.plugin(plugin).netns(&pod).config(config).named("web");
        // The first ADD sets the network up and starts nft, whose memory is its own.
        call.add();
        call.del();
        let mut figures = Vec::new();
        for verb in ["VERSION", "ADD", "CHECK", "DEL", "ADD", "DEL"] {
            let mut call = call.clone().through(&["/usr/bin/time", "-f", "%M", "-o", "/run/memory"]);
            if verb == "CHECK" {
                call = call.with("prevResult", last_result(&sandbox));
            }
            let reply = call.call(verb);
            assert!(reply.output.rc == 0, "{}", reply.output);
            if verb == "ADD" {
                sandbox.write("/run/result", &reply.output.stdout);
            }
            let kilobytes: u64 = sandbox.read("/run/memory").trim().parse().unwrap();
            figures.push(format!("{verb} {:.1}", kilobytes as f64 / 1024.0));
            assert!(kilobytes < 4096, "{plugin} {verb} took {kilobytes} kB at its peak");
        }
        report::ran("peak memory, MB", &format!("{plugin}: {}", figures.join(", ")));
    }
}

fn last_result(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.read("/run/result")).unwrap()
}
