//! `ipam.claims`: what a namespace may hold, whoever asks, in whatever order, at once, and after whatever was lost.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::{Family, Plugin, Sandbox, addresses_of, report, trace};
use serde_json::{Value, json};

const FOLDER: &str = "/var/lib/cni/osvc/ipam/mynet";

fn config(claims: Value) -> Value {
    Family::Osvc.ipam_config("1.1.0", "mynet", json!({"subnet": "10.1.0.0/16", "claims": claims}))
}

fn call<'a>(sandbox: &'a Sandbox, config: &Value, key: &str, container: &str) -> Plugin<'a> {
    let pod = format!("/run/netns/{container}");
    sandbox.plugin("osvc-ipam").config(config.clone()).container(container).named(key).netns_path(&pod)
}

fn held(sandbox: &Sandbox) -> usize {
    sandbox.held(Family::Osvc, "mynet").len()
}

/// What `jobs` at once make of `verb` for the keys `prod/NAME1…`: how many succeed. The others are refused for the claim.
#[track_caller]
fn all(sandbox: &Sandbox, config: &Value, verb: &str, name: &str, count: usize, jobs: usize) -> usize {
    let script = format!(
        r#"mkdir -p /run/out && rm -f /run/out/*
        one() {{ cni {verb} {name}$1 /run/netns/{name}$1 prod/{name}$1 > /run/out/$1 2>/dev/null || echo no; }}
        export -f one
        seq {count} | xargs -P {jobs} -I% bash -c 'one %'"#
    );
    let refused = sandbox.bulk("osvc-ipam", config, &script).ok().lines().filter(|line| *line == "no").count();
    let named = sandbox.sh("grep -l 'may hold 20 addresses' /run/out/* | wc -l").ok();
    assert_eq!(named.trim(), refused.to_string(), "whoever is refused is told why");
    count - refused
}

fn namespaces(sandbox: &Sandbox, verb: &str, name: &str, count: usize) {
    sandbox.sh(&format!("for n in $(seq {count}); do ip netns {verb} {name}$n; done")).ok();
}

#[test]
fn twenty_stopped_twenty_new_and_twenty_restarted_never_hold_more_than_twenty() {
    let sandbox = Sandbox::new();
    let config = config(json!({"prod": 20, "none": 0}));
    let do_all = |verb: &str, name: &str| all(&sandbox, &config, verb, name, 20, 2);
    namespaces(&sandbox, "add", "old", 20);
    namespaces(&sandbox, "add", "new", 20);
    assert_eq!(do_all("ADD", "old"), 20);
    let first = sandbox.held(Family::Osvc, "mynet");
    // What runs comes again: the same container, and another of the same name in its place.
    assert_eq!(do_all("ADD", "old"), 20);
    call(&sandbox, &config, "prod/old7", "old7").del();
    call(&sandbox, &config, "prod/old7", "new1").add();
    call(&sandbox, &config, "prod/old7", "new1").del();
    call(&sandbox, &config, "prod/old7", "old7").add();
    assert_eq!(sandbox.held(Family::Osvc, "mynet"), first, "at their own addresses");
    let (code, message) = call(&sandbox, &config, "prod/more", "new1").add_fails();
    assert_eq!(code, 11, "it passes by itself: {message}");
    for word in ["namespace \"prod\" may hold 20", "network mynet", "holds 20", "osvc-net ip ls", "raise the claim"] {
        assert!(message.contains(word), "{word}: {message}");
    }
    assert_eq!(call(&sandbox, &config, "none/web", "new1").add_fails().0, 7, "nothing to wait for");
    call(&sandbox, &config, "test/web", "new1").add();
    call(&sandbox, &config, "test/web", "new1").del();

    assert_eq!((do_all("DEL", "old"), do_all("ADD", "new"), do_all("ADD", "old")), (20, 20, 0));
    assert_eq!(held(&sandbox), 20);
    // The same with DELs that never came: no namespace, no container.
    namespaces(&sandbox, "del", "new", 20);
    assert_eq!((do_all("ADD", "old"), held(&sandbox)), (20, 20));
    assert_eq!(sandbox.held(Family::Osvc, "mynet"), first, "each is back where it was");
    let (code, _) = call(&sandbox, &config, "prod/more", "new1").add_fails();
    assert_eq!(code, 11);
    // GC frees as DEL does.
    let gone = call(&sandbox, &config, "", "").with("cni.dev/valid-attachments", json!([]));
    namespaces(&sandbox, "del", "old", 20);
    gone.call("GC").done();
    namespaces(&sandbox, "add", "new", 20);
    assert_eq!((do_all("ADD", "new"), do_all("ADD", "old"), held(&sandbox)), (20, 0, 20));
}

#[test]
fn thirty_two_at_once() {
    let sandbox = Sandbox::new();
    let config = config(json!({"*": 20}));
    namespaces(&sandbox, "add", "web", 32);
    let do_all = |verb: &str| all(&sandbox, &config, verb, "web", 32, 32);
    assert_eq!((do_all("ADD"), held(&sandbox)), (20, 20), "exactly the claim");
    // Those who run keep what they have, whoever else tries.
    let before = sandbox.held(Family::Osvc, "mynet");
    assert_eq!((do_all("ADD"), sandbox.held(Family::Osvc, "mynet")), (20, before));
    assert_eq!((do_all("DEL"), held(&sandbox)), (32, 0));
    assert_eq!((do_all("ADD"), held(&sandbox)), (20, 20));
}

#[test]
fn requests_and_sets_count_and_an_edit_disturbs_nobody() {
    let sandbox = Sandbox::new();
    for name in ["a", "b", "c", "d"] {
        sandbox.netns(name);
    }
    let sets = |claim: u64| {
        let keys =
            json!({"ranges": [[{"subnet": "10.1.0.0/16"}], [{"subnet": "fd01::/64"}]], "claims": {"prod": claim}});
        Family::Osvc.ipam_config("1.1.0", "mynet", keys)
    };
    let one = config(json!({"prod": 3}));
    let asking = |key: &str, container: &str, address: &str| {
        call(&sandbox, &one, key, container).with("runtimeConfig", json!({"ips": [address]}))
    };
    asking("prod/a", "a", "10.1.0.77").add();
    call(&sandbox, &sets(3), "prod/b", "b").add();
    assert_eq!(held(&sandbox), 3, "two sets count two");
    let (_, message) = asking("prod/c", "c", "10.1.0.99").add_fails();
    assert!(message.contains("may hold 3") && message.contains("holds 3 and asks for 1 more"), "{message}");
    assert_eq!(sandbox.record(FOLDER, "10.1.0.99"), Value::Null, "nothing was taken");
    let (_, message) = call(&sandbox, &sets(4), "prod/c", "c").add_fails();
    assert!(message.contains("holds 3 and asks for 2 more"), "{message}");
    // Another address instead of its own is none more.
    assert_eq!(addresses_of(&asking("prod/a", "a", "10.1.0.78").add()), ["10.1.0.78/16"]);
    assert_eq!(held(&sandbox), 3);
    // What an operator sees.
    let claims = json!({"prod": 3, "quiet": 1});
    let network = config(claims);
    sandbox.write("/etc/cni/net.d/mynet.conf", &network.to_string());
    let seen = sandbox.run(&["/opt/cni/bin/osvc-net", "claim", "ls", "-n", "mynet"]).ok();
    let rows: Vec<Vec<&str>> = seen.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [["NETWORK", "NAMESPACE", "LIMIT", "HELD"], ["mynet", "prod", "3", "3"], ["mynet", "quiet", "1", "0"]]
    );
    let seen = sandbox.run(&["/opt/cni/bin/osvc-net", "claim", "ls", "-o", "json"]).ok();
    let rows: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(rows[0], json!({"network": "mynet", "namespace": "prod", "limit": 3, "held": 3}));
    // Lowered below what is held: all run on and come again; what was stopped does not.
    assert_eq!(call(&sandbox, &sets(2), "prod/b", "b").add()["ips"].as_array().map(Vec::len), Some(2));
    call(&sandbox, &config(json!({"prod": 1})), "prod/a", "a").add();
    call(&sandbox, &sets(2), "prod/b", "b").call("STATUS").done();
    call(&sandbox, &sets(2), "prod/b", "b").del();
    let (code, message) = call(&sandbox, &sets(2), "prod/b", "b").add_fails();
    assert!(code == 11 && message.contains("holds 1 and asks for 2 more"), "{code} {message}");
    let (code, message) = call(&sandbox, &sets(1), "prod/d", "d").add_fails();
    assert!(code == 7 && message.contains("raise the claim"), "two addresses never fit one: {code} {message}");
}

#[test]
fn what_is_no_claim_is_refused_before_anything() {
    let sandbox = Sandbox::new();
    sandbox.outside();
    let pod = sandbox.netns("pod");
    let nodes = json!([{"name": "n1", "addr": "192.0.2.2"}]);
    let forms = [
        json!({"type": "osvc-ipam", "ipam": {"type": "osvc-ipam", "subnet": "10.1.0.0/16"}}),
        json!({"type": "osvc-bridge", "network": "10.1.0.0/16", "ipam": {}}),
        json!({"type": "osvc-routed", "network": "10.1.0.0/16", "maskPerNode": 24, "node": "n1", "nodes": nodes, "ipam": {}}),
    ];
    for mut form in forms {
        form["cniVersion"] = json!("1.1.0");
        form["name"] = json!("mynet");
        let kind = form["type"].as_str().unwrap().to_owned();
        let call = |claims: Value| {
            form["ipam"]["claims"] = claims;
            sandbox.plugin(&kind).config(form.clone()).netns(&pod).container("c").named("prod/web")
        };
        let mut call = call;
        let before = sandbox.leftovers();
        for (claims, words) in [
            (json!({"prod": -1}), ["ipam.claims.\"prod\"", "-1"]),
            (json!({"prod": "20"}), ["ipam.claims.\"prod\"", "\"20\""]),
            (json!({"prod": 2.5}), ["ipam.claims.\"prod\"", "2.5"]),
            (json!({"prod": true}), ["ipam.claims.\"prod\"", "true"]),
            (json!({"": 20}), ["ipam.claims.\"\"", "20"]),
            (json!({"prod/web": 20}), ["ipam.claims.\"prod/web\"", "20"]),
        ] {
            let (code, message) = call(claims).add_fails();
            assert!(code == 7 && words.iter().all(|word| message.contains(word)), "{kind}: {code} {message}");
        }
        assert_eq!(call(json!(["prod"])).add_fails().0, 6);
        sandbox.leftovers().assert_same_as(&before, &kind);
        assert!(!sandbox.exists(FOLDER), "{kind}: nothing was made");

        // And what is one works in this form.
        let (code, message) = call(json!({"prod": 0})).add_fails();
        assert!(code == 7 && message.contains("may hold 0 addresses"), "{kind}: {code} {message}");
        assert!(sandbox.held(Family::Osvc, "mynet").is_empty(), "{kind}");
        let good = call(json!({"prod": 1}));
        good.add();
        let (code, message) = good.clone().ifname("eth1").add_fails();
        assert!(code == 11 && message.contains("holds 1"), "{kind}: {code} {message}");
        if kind != "osvc-ipam" {
            // An ADD that fails after its address was taken.
            good.del();
            sandbox.sh("ip -n pod link add eth0 type veth peer name other").ok();
            good.add_fails();
            sandbox.sh("ip -n pod link del eth0").ok();
            good.add();
        }
        good.del();
        sandbox.sh("rm -rf /var/lib/cni/osvc; ip link del obr_mynet 2>/dev/null; nft flush ruleset; true").ok();
    }
}

/// The status of a program that SIGKILL has ended.
const KILLED: i32 = 137;

/// A third container at a claim of three, killed wherever: afterwards three fit, and not four.
#[test]
fn killed_at_any_call_the_claim_is_still_three() {
    let sandbox = Sandbox::new();
    let config = config(json!({"prod": 3}));
    for name in ["a", "b", "c", "d", "e"] {
        sandbox.netns(name);
    }
    let of = |name: &str| call(&sandbox, &config, &format!("prod/{name}"), name);
    let (c, d, e) = (of("c"), of("d"), of("e"));
    of("a").add();
    of("b").add();
    c.add();
    c.del();
    let mut killed = 0;
    for verb in ["ADD", "DEL"] {
        let prepare = |verb: &str| {
            if verb == "DEL" {
                _ = c.add()
            }
        };
        prepare(verb);
        let calls = trace::system_calls(&sandbox, &c, verb);
        c.del();
        // Between two calls that change nothing, nothing is changed.
        let names = ["write", "rename", "link", "linkat", "unlink", "symlink", "mkdir", "flock"];
        let changes = |call: &&trace::SystemCall| names.contains(&call.name.as_str()) || call.line.contains("O_CREAT");
        for call in calls.iter().filter(changes) {
            prepare(verb);
            let words = trace::inject(call, "signal=SIGKILL");
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            killed += usize::from(c.clone().through(&words).call(verb).output.rc != 0);
            let what = format!("{verb} killed at {call}");
            if killed % 2 == 0 {
                // Without the DEL: its address counts if it has one.
                let has = sandbox.held(Family::Osvc, "mynet").len();
                assert_eq!(d.call("ADD").output.rc == 0, has < 3, "{what}");
            }
            c.del();
            d.add();
            let (_, message) = e.add_fails();
            assert!(message.contains("holds 3 and"), "{what}: {message}");
            d.del();
        }
    }
    // One more than may be: killed wherever, it is refused again, and nothing was ever given.
    c.add();
    let calls = trace::system_calls_of_refused(&sandbox, &e, "ADD");
    let before = killed;
    let names = ["write", "rename", "link", "linkat", "unlink", "symlink", "mkdir", "flock"];
    for call in calls.iter().filter(|call| names.contains(&call.name.as_str()) || call.line.contains("O_CREAT")) {
        let words = trace::inject(call, "signal=SIGKILL");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        killed += usize::from(e.clone().through(&words).call("ADD").output.rc == KILLED);
        let (_, message) = e.add_fails();
        assert!(message.contains("holds 3 and"), "refused ADD killed at {call}: {message}");
        assert_eq!(sandbox.held(Family::Osvc, "mynet").len(), 3, "refused ADD killed at {call}");
    }
    assert!(before > 15 && killed > before, "{before} killed, and {} that were to be refused", killed - before);
    report::ran(
        "strace --inject",
        &format!("SIGKILL at each of {killed} changing system calls of ADD and DEL with a claim"),
    );
}

/// System calls of an ADD and a DEL of a new key.
fn cost(sandbox: &Sandbox, config: &Value, key: &str) -> [usize; 2] {
    // The first builds what it looks up.
    call(sandbox, config, "prod/first", "pod").add();
    call(sandbox, config, "prod/first", "pod").del();
    let call = call(sandbox, config, key, "pod").container(&key.replace('/', "-"));
    ["ADD", "DEL"].map(|verb| trace::system_calls(sandbox, &call, verb).len())
}

#[test]
fn a_claim_costs_the_same_with_ten_and_with_ten_thousand_held() {
    let sandbox = Sandbox::new();
    sandbox.netns("pod");
    let (with, without) = (config(json!({"*": 20_000})), config(json!({})));
    let call = call(&sandbox, &with, "prod/model", "pod");
    let given = addresses_of(&call.add())[0].split('/').next().unwrap().to_owned();
    let model = sandbox.record(FOLDER, &given);
    call.del();
    let fill = |from: usize, to: usize| {
        for index in from..to {
            let mut record = model.clone();
            record["key"]["text"] = json!(format!("prod/{index}"));
            record["container"] = json!(format!("held{index}"));
            let address = format!("10.1.{}.{}", 100 + index / 200, 10 + index % 200);
            std::fs::write(sandbox.path(&format!("{FOLDER}/{address}")), format!("{record}\n")).unwrap();
        }
    };
    fill(0, 10);
    let plain = cost(&sandbox, &without, "prod/plain");
    let ten = cost(&sandbox, &with, "prod/ten");
    let new_beside_ten = cost(&sandbox, &with, "new1/web");
    fill(10, 10_000);
    let many = cost(&sandbox, &with, "prod/many");
    let new_beside_many = cost(&sandbox, &with, "new2/web");
    report::ran(
        "strace",
        &format!("ADD and DEL: {plain:?} system calls, with a claim {ten:?}, with 10 000 held {many:?}"),
    );
    for verb in 0..2 {
        assert!(many[verb].abs_diff(ten[verb]) <= 2, "{ten:?} with ten held, {many:?} with ten thousand");
        let (few, new) = (new_beside_ten[verb], new_beside_many[verb]);
        assert!(new.abs_diff(few) <= 2, "a new namespace: {few} beside ten held, {new} beside ten thousand");
        assert!(new <= plain[verb] + 6, "{plain:?} without, {new} for a new namespace");
        assert!(ten[verb] <= plain[verb] + 5, "{plain:?} without, {ten:?} with a claim");
    }
}
