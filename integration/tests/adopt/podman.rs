//! podman's containers.

use integration::podman::{self, address, identity, podman};
use integration::{Family, Sandbox, report};
use serde_json::{Value, json};

use super::{files, held, osvc_net};

/// What podman itself writes, with the types of a family.
fn switch(sandbox: &Sandbox, family: Family) {
    let plugin = json!({
        "type": family.bridge(), "bridge": "cni-podman1", "isGateway": true, "ipMasq": true, "hairpinMode": true,
        "ipam": {"type": family.ipam(), "ranges": [[{"subnet": "10.77.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]},
        "capabilities": {"ips": true}
    });
    let conflist = json!({"cniVersion": "0.4.0", "name": "net1", "plugins": [plugin]});
    sandbox.write(&format!("{}/net1.conflist", podman::CONF), &conflist.to_string());
}

fn machine() -> Sandbox {
    let mut sandbox = Sandbox::new();
    podman::install(&mut sandbox);
    switch(&sandbox, Family::Reference);
    sandbox
}

/// Pid, namespace, address, MAC.
fn state(sandbox: &Sandbox, names: &[String]) -> Vec<(String, (Vec<String>, String))> {
    let format = "{{.Name}} {{.State.Pid}} {{.State.StartedAt}} {{.NetworkSettings.SandboxKey}}";
    let mut words = vec!["inspect", "--format", format];
    words.extend(names.iter().map(String::as_str));
    let text = podman(sandbox, &words).ok();
    text.lines().zip(names).map(|(line, name)| (line.to_owned(), identity(sandbox, name))).collect()
}

/// Ten containers under podman take their time.
#[test]
fn ten_containers_of_the_reference_plugins_keep_their_addresses() {
    let sandbox = machine();
    let names: Vec<String> = (0..10).map(|number| format!("c{number}")).collect();
    // In an order that is not that of the addresses that the names would get.
    for name in names.iter().rev() {
        podman::run(&sandbox, name, "net1", &[]);
    }
    switch(&sandbox, Family::Osvc);
    let before = state(&sandbox, &names);
    let of: Vec<String> = names.iter().map(|name| address(&sandbox, name)).collect();
    let ping = format!("ping -n -i 0.02 -c 60 {} > /run/ping", of[1]);
    let pid = podman(&sandbox, &["inspect", "--format", "{{.State.Pid}}", "c0"]).ok();
    sandbox.background(&format!("nsenter -t {} -n {ping}; echo done >> /run/ping", pid.trim()), "/run/ping.log");
    let told = osvc_net(&sandbox, &["adopt"]).ok();
    for (name, address) in names.iter().zip(&of) {
        let line = told.lines().find(|line| line.contains(&format!("{address} of \"{name}\" "))).unwrap_or_default();
        assert!(line.starts_with("net1: ") && line.ends_with("eth0) taken over from host-local"), "{name}: {told}");
    }
    assert_eq!(told.lines().count(), 10, "{told}");
    sandbox.wait_for("the pings are over", "grep -q done /run/ping");
    let pinged = sandbox.read("/run/ping");
    assert!(pinged.contains(" 0% packet loss"), "{pinged}");
    assert_eq!(state(&sandbox, &names), before, "nobody was disturbed");
    assert!(files(&sandbox).is_empty());
    assert_eq!(held(&sandbox), of.iter().cloned().collect());
    assert_eq!(osvc_net(&sandbox, &["adopt"]).ok(), "net1: nothing to take over from host-local\n");

    // A stranger comes between.
    podman::run(&sandbox, "stranger", "net1", &[]);
    assert!(!of.contains(&address(&sandbox, "stranger")));
    let restarted: Vec<&str> = names[..5].iter().map(String::as_str).collect();
    podman(&sandbox, &[&["restart", "-t", "0"], &restarted[..]].concat()).ok();
    let stopped: Vec<&str> = names[5..].iter().map(String::as_str).collect();
    podman(&sandbox, &[&["stop", "-t", "0"], &stopped[..]].concat()).ok();
    // podman sends the DEL by the configuration that it cached at the ADD, to the reference plugins: our records are then
    // those of the dead, which a sweep makes memories.
    let swept = osvc_net(&sandbox, &["gc"]).ok();
    assert!(of[5..].iter().all(|address| swept.contains(&format!("net1: {address} of "))), "{swept}");
    assert!(of[5..].iter().all(|address| !held(&sandbox).contains(address)), "a stopped container holds nothing");
    podman(&sandbox, &[&["start"], &stopped[..]].concat()).ok();
    for (name, before) in names.iter().zip(&of) {
        assert_eq!(&address(&sandbox, name), before, "{name} after its first restart");
    }
    let left: Vec<String> = sandbox.links().into_iter().filter(|name| name.starts_with("veth")).collect();
    assert!(left.is_empty(), "the reference's host ends are gone: {left:?}");
    podman(&sandbox, &["exec", "c0", "ping", "-c", "1", "-W", "2", &of[9]]).ok();
    podman(&sandbox, &["rm", "-f", "-t", "0", "c3"]).ok();
    podman::run(&sandbox, "c3", "net1", &[]);
    assert_eq!(address(&sandbox, "c3"), of[3], "a new container of the same name");
    report::ran(&podman::version(&sandbox), "osvc-net adopt: ten containers keep their addresses");
}

#[test]
fn undo_gives_podmans_containers_back_to_the_reference_plugins() {
    let sandbox = machine();
    podman::run(&sandbox, "old", "net1", &[]);
    let old = address(&sandbox, "old");
    switch(&sandbox, Family::Osvc);
    osvc_net(&sandbox, &["adopt"]).ok();
    podman::run(&sandbox, "new", "net1", &[]);
    let new = address(&sandbox, "new");
    let before: Value = json!(state(&sandbox, &["old".into(), "new".into()]));
    let told = osvc_net(&sandbox, &["adopt", "--undo"]).ok();
    assert!(told.contains(&format!("net1: {new} of \"new\" (container ")) && told.contains("given back"), "{told}");
    switch(&sandbox, Family::Reference);
    assert_eq!(osvc_net(&sandbox, &["adopt", "--undo"]).ok(), "net1: nothing to give back to host-local\n");
    assert_eq!(before, json!(state(&sandbox, &["old".into(), "new".into()])));
    assert!(held(&sandbox).is_empty());
    assert_eq!(
        files(&sandbox).into_keys().collect::<Vec<_>>(),
        std::collections::BTreeSet::from([old, new]).into_iter().collect::<Vec<_>>()
    );
    podman(&sandbox, &["restart", "-t", "0", "old", "new"]).ok();
    let now = [address(&sandbox, "old"), address(&sandbox, "new")];
    assert_ne!(now[0], now[1]);
    podman(&sandbox, &["exec", "old", "ping", "-c", "1", "-W", "2", &now[1]]).ok();
    podman(&sandbox, &["rm", "-f", "-a", "-t", "0"]).ok();
    assert!(files(&sandbox).is_empty(), "the reference's DEL frees them: {:?}", files(&sandbox));
    let left = sandbox.links().into_iter().collect::<Vec<_>>();
    assert_eq!(left, ["cni-podman1", "lo"]);
    report::ran(&podman::version(&sandbox), "osvc-net adopt --undo");
}
