//! At the same time: two runs, ADDs, DELs.

use std::collections::BTreeSet;

use integration::{Family, Sandbox, report, trace};

use super::{conflist, files, held, osvc_net, start, switch, v4};

#[test]
fn adopts_adds_and_dels_at_once() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &v4());
    let pods: Vec<_> = (0..8).map(|number| start(&sandbox, &format!("p{number}"), &format!("p{number}"))).collect();
    let ids: Vec<String> = files(&sandbox).values().map(|text| text.split("\r\n").next().unwrap().to_owned()).collect();
    switch(&sandbox, Family::Osvc, &v4());
    let mut config = conflist(Family::Osvc, &v4())["plugins"][0].clone();
    config["cniVersion"] = "1.0.0".into();
    config["name"] = "net1".into();
    let back: Vec<(String, String)> = files(&sandbox).into_iter().collect();
    for turn in 0..6 {
        // The last two end while they are taken over.
        let (dying, living) = (&ids[6..], &back[..6]);
        let script = format!(
            "for i in 1 2 3; do /opt/cni/bin/osvc-net adopt > /run/out$i 2>&1 & done
             for i in 1 2 3 4 5 6; do cni ADD new{turn}-$i /run/new new{turn}-$i > /run/add$i & done
             for id in {}; do cni DEL $id '' x > /run/del & done
             wait; cat /run/out*; grep -h address /run/add* | sort",
            dying.join(" ")
        );
        let told = sandbox.bulk("osvc-ipam", &config, &script).ok();
        let new: Vec<&str> = told.lines().filter(|line| line.contains("\"address\"")).collect();
        assert_eq!(new.iter().collect::<BTreeSet<_>>().len(), 6, "six addresses, all different: {told}");
        let is_new = |pod: &&super::Pod| new.iter().any(|line| line.contains(&format!("\"{}/", pod.address())));
        assert!(!pods[..6].iter().any(|pod| is_new(&pod)), "turn {turn}: an address twice: {told}");
        let now = held(&sandbox);
        assert!(living.iter().all(|(address, _)| now.contains(address)), "turn {turn}: {now:?}: {told}");
        let holder = |address: &String| sandbox.record(super::RECORDS, address)["container"].clone();
        let left: Vec<_> = now.iter().filter(|address| dying.iter().any(|id| holder(address) == **id)).collect();
        assert!(left.is_empty(), "turn {turn}: a DEL missed {left:?}: {told}");
        assert!(files(&sandbox).is_empty(), "turn {turn}: {:?}", files(&sandbox));
        let taken = |address: &String| told.matches(&format!("net1: {address} of ")).count();
        assert!(living.iter().all(|(address, _)| taken(address) == 1), "each is taken over once: {told}");
        // And back for the next turn, with the ones that ended.
        osvc_net(&sandbox, &["adopt", "--undo"]).ok();
        sandbox.sh("rm -rf /var/lib/cni/osvc/ipam /var/lib/cni/networks/net1/*").ok();
        for (address, text) in &back {
            sandbox.write(&format!("{}/{address}", super::FILES), text);
        }
    }
    report::ran("osvc-ipam", "osvc-net adopt with ADDs, DELs and itself at the same time");
}

/// DEL looks at our records, then at host-local's: in between it is stopped for a moment, and everything moves.
#[test]
fn a_del_that_meets_the_address_in_neither_place() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &v4());
    let web = start(&sandbox, "web", "web");
    let id = files(&sandbox)[web.address()].split("\r\n").next().unwrap().to_owned();
    switch(&sandbox, Family::Osvc, &v4());
    let mut config = conflist(Family::Osvc, &v4())["plugins"][0].clone();
    config["cniVersion"] = "1.0.0".into();
    config["name"] = "net1".into();
    // Ours has to be there to be looked at.
    start(&sandbox, "other", "other");
    let call = sandbox.plugin("osvc-ipam").config(config.clone()).container("nobody");
    let calls = trace::system_calls(&sandbox, &call, "DEL");
    let look =
        calls.iter().find(|call| call.line.contains("networks/net1\"")).expect("DEL looks at host-local's folder");
    let inject = format!("--inject={}:delay_enter=1500000:when={}", look.name, look.occurrence);
    let script = format!(
        "CNI_COMMAND=DEL CNI_CONTAINERID={id} CNI_IFNAME=eth0 CNI_PATH=/opt/cni/bin \\
            strace -qq -o /dev/null {inject} /opt/cni/bin/osvc-ipam < /run/config & sleep 0.3
         /opt/cni/bin/osvc-net adopt; wait"
    );
    let told = sandbox.bulk("osvc-ipam", &config, &script).ok();
    assert!(told.contains(&format!("{} of \"web\"", web.address())), "adopt came between: {told}");
    assert!(!held(&sandbox).contains(web.address()) && files(&sandbox).is_empty(), "{told}");
}

/// host-local's lock is waited for; and SIGINT lets what was begun be ended.
#[test]
fn interrupted_while_it_waits() {
    let sandbox = Sandbox::new();
    switch(&sandbox, Family::Reference, &v4());
    let (one, two) = (start(&sandbox, "one", "one"), start(&sandbox, "two", "two"));
    switch(&sandbox, Family::Osvc, &v4());
    let script = "mkfifo /run/go
        flock /var/lib/cni/networks/net1/lock cat /run/go & sleep 0.2
        /opt/cni/bin/osvc-net adopt > /run/out 2> /run/err & pid=$!
        sleep 0.5; cat /run/out; kill -INT $pid; sleep 0.2; : > /run/go; wait $pid; echo status $?; cat /run/out /run/err";
    let told = sandbox.sh(script).ok();
    assert!(told.starts_with("status 1\n"), "nothing was done without the lock: {told}");
    assert!(told.contains(&format!("{} of \"one\"", one.address())) && !told.contains("\"two\""), "{told}");
    assert!(told.contains("interrupted: what is told above is done"), "{told}");
    assert_eq!(held(&sandbox), [one.address().to_owned()].into());
    assert!(files(&sandbox).contains_key(two.address()));
    let told = osvc_net(&sandbox, &["adopt"]).ok();
    assert!(told.contains("\"two\"") && !told.contains("\"one\""), "{told}");
}
