//! `osvc-net ip reserve`, `unreserve` and `release`.

use integration::{report, trace};
use serde_json::json;

use crate::{call, json_of, machine, net1, osvc_net, start, state};

const NET: &str = "10.9.0.0/28";

#[test]
fn a_reserved_address_is_its_keys_for_ever() {
    let sandbox = machine(&[net1(NET)]);
    let [a, b] = ["a", "b"].map(|name| sandbox.netns(name));
    let planned = osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "web", "10.9.0.7", "--dry-run"]).ok();
    assert!(planned.contains("net1: 10.9.0.7 would be reserved for \"web\" (source podman, by its form)"), "{planned}");
    assert!(!sandbox.exists("/var/lib/cni/osvc/ipam/net1"), "a dry run makes nothing");
    osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "web", "10.9.0.7"]).ok();
    let before = state(&sandbox);
    let again = osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "web"]).ok();
    assert!(again.contains("10.9.0.7 is reserved already"), "{again}");
    assert_eq!(state(&sandbox), before);
    // The range is full with the reservation: strangers do not get it.
    for n in 0..12 {
        let netns = sandbox.netns(&format!("s{n}"));
        assert_ne!(start(&sandbox, &net1(NET), &netns, &format!("id-{n}"), &format!("s{n}")), "10.9.0.7");
    }
    let (code, message) = call(&sandbox, &net1(NET), "id-x", "x").netns(&b).add_fails();
    assert!(code == 11 && message.contains("no IP addresses available"), "{message}");
    let told = osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "y", "10.9.0.7"]).failed();
    assert!(told.contains("10.9.0.7 is not available: it is reserved for \"web\""), "{told}");
    for turn in 0..2 {
        assert_eq!(start(&sandbox, &net1(NET), &a, &format!("id-web{turn}"), "web"), "10.9.0.7");
        let held = osvc_net(&sandbox, &["ip", "ls"]).ok();
        assert!(held.lines().any(|line| line.starts_with("web") && line.contains(" held ")), "{held}");
        call(&sandbox, &net1(NET), &format!("id-web{turn}"), "web").netns(&a).del();
        let left = osvc_net(&sandbox, &["ip", "ls"]).ok();
        assert!(left.lines().any(|line| line.starts_with("web") && line.contains(" reserved ")), "{left}");
    }
    let before = state(&sandbox);
    let planned = osvc_net(&sandbox, &["ip", "unreserve", "-n", "net1", "web", "--dry-run"]).ok();
    assert!(planned.contains("10.9.0.7 would be reserved no longer"), "{planned}");
    assert_eq!(state(&sandbox), before);
    osvc_net(&sandbox, &["ip", "unreserve", "-n", "net1", "10.9.0.7"]).ok();
    let nothing = osvc_net(&sandbox, &["ip", "unreserve", "-n", "net1", "web"]).ok();
    assert!(nothing.contains("nothing to do"), "{nothing}");
    assert_eq!(start(&sandbox, &net1(NET), &b, "id-x", "x"), "10.9.0.7", "it is anybody's now");
    report::ran(&report::kernel(), "osvc-net ip reserve, unreserve");
}

#[test]
fn what_is_somebody_elses_is_refused_with_its_holder() {
    let sandbox = machine(&[net1(NET)]);
    let [a, b] = ["a", "b"].map(|name| sandbox.netns(name));
    let web = start(&sandbox, &net1(NET), &a, "id-web", "web");
    let before = state(&sandbox);
    let told = osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "db", &web]).failed();
    assert!(told.contains("\"web\" (container id-web, interface eth0) since 20"), "{told}");
    for (address, word) in [("10.9.0.1", "gateway"), ("10.9.0.0", "network"), ("10.9.1.5", "10.9.0.1-10.9.0.14")] {
        let told = osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "db", address]).failed();
        assert!(told.contains(word), "{address}: {told}");
    }
    assert_eq!(state(&sandbox), before);
    // Elsewhere: from its next start on, though the runtime forgot to tell of the end.
    let other = if web == "10.9.0.9" { "10.9.0.10" } else { "10.9.0.9" };
    let told = osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "web", other]).ok();
    assert!(told.contains(&format!("it runs with {web} until it ends, and gets {other} at its next start")), "{told}");
    call(&sandbox, &net1(NET), "id-web", "web").netns(&a).del();
    assert_eq!(start(&sandbox, &net1(NET), &a, "id-web", "web"), other);
    // A dead holder yields.
    let db = start(&sandbox, &net1(NET), &b, "id-db", "db");
    sandbox.delete_netns(&b);
    sandbox.wait_for("the pair is gone", "[ $(ip -o link | grep -c ' ov') -eq 1 ]");
    let told = osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "new", &db]).ok();
    assert!(told.contains("it was last \"db\"'s (container gone"), "{told}");
}

#[test]
fn a_lost_end_does_not_keep_a_container_from_its_reservation() {
    let mut sandbox = machine(&[net1(NET)]);
    let a = sandbox.netns("a");
    let web = start(&sandbox, &net1(NET), &a, "id-web", "web");
    let other = if web == "10.9.0.9" { "10.9.0.10" } else { "10.9.0.9" };
    osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "web", other]).ok();
    sandbox.reboot();
    let a = sandbox.netns("a");
    assert_eq!(start(&sandbox, &net1(NET), &a, "id-web", "web"), other);
    let rows = json_of(&sandbox, &["ip", "ls"]);
    assert_eq!(rows.as_array().unwrap().iter().filter(|row| row["state"] == "held").count(), 1, "{rows}");
}

#[test]
fn release_is_for_what_is_held_in_vain() {
    let sandbox = machine(&[net1(NET)]);
    let [a, b] = ["a", "b"].map(|name| sandbox.netns(name));
    let web = start(&sandbox, &net1(NET), &a, "id-web", "web");
    start(&sandbox, &net1(NET), &b, "id-db", "db");
    sandbox.delete_netns(&b);
    let before = state(&sandbox);
    let told = osvc_net(&sandbox, &["ip", "release", "-n", "net1", "web"]).failed();
    for part in [web.as_str(), "container id-web", "/run/netns/a", "--force"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let told = osvc_net(&sandbox, &["ip", "release", "-n", "net1", "wbe"]).failed();
    assert!(told.contains("did you mean \"web\""), "{told}");
    let told = osvc_net(&sandbox, &["ip", "release", "-n", "net1", &format!("{web}9")]).failed();
    assert!(told.contains("no record of"), "{told}");
    osvc_net(&sandbox, &["ip", "release", "-n", "net1", "db", "--dry-run"]).ok();
    assert_eq!(state(&sandbox), before);
    let done = osvc_net(&sandbox, &["ip", "release", "-n", "net1", "db"]).ok();
    assert!(done.contains("of \"db\" (container id-db eth0, gone"), "{done}");
    let nothing = osvc_net(&sandbox, &["ip", "release", "-n", "net1", "db"]).ok();
    assert!(nothing.contains("nothing to do"), "{nothing}");
    let done = osvc_net(&sandbox, &["ip", "release", "-n", "net1", &web, "--force"]).ok();
    assert!(done.contains("running") && done.contains("given back"), "{done}");
    assert_eq!(sandbox.held(integration::Family::Osvc, "net1").len(), 0);
}

#[test]
fn who_may_be_alive_keeps_its_address_without_force() {
    let sandbox = machine(&[net1(NET)]);
    let a = sandbox.netns("a");
    let web = start(&sandbox, &net1(NET), &a, "id-web", "web");
    // As an ADD in another mount namespace leaves it, whose host end cannot be seen.
    let path = format!("/var/lib/cni/osvc/ipam/net1/{web}");
    let mut record: serde_json::Value = serde_json::from_str(&sandbox.read(&path)).unwrap();
    record["netns"]["mntns"] = json!(1);
    record.as_object_mut().unwrap().remove("host");
    sandbox.write(&path, &record.to_string());
    let before = state(&sandbox);
    for dry_run in [&[][..], &["--dry-run"]] {
        let told = osvc_net(&sandbox, &[&["ip", "release", "-n", "net1", "web"], dry_run].concat()).failed();
        assert!(told.contains("it cannot be told from here whether it runs") && told.contains("--force"), "{told}");
        let held = json_of(&sandbox, &["ip", "ls"]);
        assert_eq!((&held[0]["state"], &held[0]["liveness"]), (&json!("held"), &json!("unknown")));
    }
    assert_eq!(state(&sandbox).lines().count(), before.lines().count());
    let done = osvc_net(&sandbox, &["ip", "release", "-n", "net1", "web", "--force"]).ok();
    assert!(done.contains("not to be seen from here") && done.contains("given back"), "{done}");
}

#[test]
fn a_reservation_in_a_new_store_is_on_the_disk_with_all_its_folders() {
    let sandbox = machine(&[net1(NET)]);
    let reserve = "strace -f -y -e trace=fsync,fdatasync -o /run/trace \
                   /opt/cni/bin/osvc-net ip reserve -n net1 web 10.9.0.7";
    sandbox.sh(reserve).ok();
    let trace = sandbox.read("/run/trace");
    let folder = "/var/lib/cni/osvc/ipam/net1";
    for path in [
        format!("{folder}/.new"),
        folder.to_owned(),
        "/var/lib/cni/osvc/ipam".into(),
        "/var/lib/cni/osvc".into(),
        "/var/lib/cni".into(),
    ] {
        assert!(trace.contains(&format!("<{path}>")), "{path} in {trace}");
    }
}

#[test]
fn killed_anywhere_and_run_again() {
    let sandbox = machine(&[net1(NET)]);
    let a = sandbox.netns("a");
    let web = start(&sandbox, &net1(NET), &a, "id-web", "web");
    let words = ["/opt/cni/bin/osvc-net", "ip", "reserve", "-n", "net1", "web"];
    let fresh = || osvc_net(&sandbox, &["ip", "unreserve", "-n", "net1", "web"]).ok();
    let calls = trace::system_calls_of(&sandbox, &words);
    // All that changes something is behind the lock.
    let from = calls.iter().position(|call| call.line.contains("net1/lock")).unwrap();
    let mut killed = 0;
    for call in &calls[from..] {
        fresh();
        let inject = trace::inject(call, "signal=SIGKILL");
        let argv: Vec<&str> = inject.iter().map(String::as_str).chain(words).collect();
        killed += usize::from(sandbox.run(&argv).rc != 0);
        let again = sandbox.run(&words).ok();
        assert!(again.contains(&web), "{call}: {again}");
        let rows = json_of(&sandbox, &["ip", "ls"]);
        let row = &rows[0];
        assert_eq!(
            (&row["state"], &row["pinned"], rows.as_array().unwrap().len()),
            (&json!("held"), &json!(true), 1),
            "{call}"
        );
    }
    assert!(killed > 10, "{killed} of {}", calls.len() - from);
    call(&sandbox, &net1(NET), "id-web", "web").netns(&a).del();
    assert_eq!(json_of(&sandbox, &["ip", "ls"])[0]["state"], "reserved");
    report::ran("strace --inject", &format!("SIGKILL at each of {killed} system calls of osvc-net ip reserve"));
}
