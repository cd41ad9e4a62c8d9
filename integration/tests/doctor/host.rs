//! Faults of the host.

use serde_json::json;

use crate::{DROP, conflist, fake, help, machine, one_of, only, quiet, silent, start, write};
use integration::Sandbox;

#[test]
fn forwarding_that_is_off() {
    let sandbox = Sandbox::new();
    quiet(&sandbox);
    let both = conflist("net1", json!({"type": "osvc-bridge", "network": ["10.9.0.0/24", "fd09::/64"]}));
    write(&sandbox, "net1", &both);
    start(&sandbox, &both, &sandbox.netns("web"));
    silent(&sandbox);
    sandbox.outside();
    for (path, network) in [
        ("net/ipv4/ip_forward", json!("net1")),
        ("net/ipv6/conf/all/forwarding", json!("net1")),
        ("net/ipv4/conf/obr_net1/forwarding", json!(null)),
        ("net/ipv4/conf/up0/forwarding", json!(null)),
    ] {
        sandbox.sh(&format!("echo 0 > /proc/sys/{path}")).ok();
        let found = only(&sandbox, "forwarding-off", &[&format!("/proc/sys/{path} is 0")]);
        assert_eq!(found["network"], network);
        help(&sandbox, &found);
        silent(&sandbox);
    }
    // Of IPv6 the host's switch alone decides.
    sandbox.sh("echo 0 > /proc/sys/net/ipv6/conf/obr_net1/forwarding").ok();
    silent(&sandbox);
}

#[test]
fn somebodys_forward_drop_and_what_was_done_about_it() {
    let (sandbox, _) = machine();
    sandbox.sh("for call in /proc/sys/net/bridge/bridge-nf-call-*; do echo 0 > $call; done").ok();
    sandbox.nft(DROP);
    let found =
        only(&sandbox, "foreign-drop", &["chain ip filter FORWARD", "obr_net1", "no accept of ours is in it yet"]);
    help(&sandbox, &found);
    silent(&sandbox);
    // Left to the administrator, who has done nothing yet.
    let mut never = crate::net1();
    never["plugins"][0]["forwardAccept"] = json!("never");
    write(&sandbox, "net1", &never);
    sandbox.sh("/opt/cni/bin/osvc-net setup").ok();
    start(&sandbox, &never, &sandbox.netns("b"));
    let found = only(&sandbox, "foreign-drop", &["chain ip filter FORWARD", "forwardAccept is \"never\""]);
    // With br_netfilter it concerns the bridge's own frames as well.
    sandbox.sh("echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables").ok();
    let bridged = one_of(&sandbox, "bridge-netfilter", &["bridge-nf-call-iptables is 1", "obr_net1"]);
    assert!(bridged["help"].as_str().unwrap().contains("net.bridge.bridge-nf-call-iptables=0"), "{bridged}");
    let by_hand = found["help"].as_str().unwrap().split('#').next().unwrap().to_owned();
    sandbox.sh(&by_hand).ok();
    silent(&sandbox);
}

#[test]
fn the_old_iptables_drops() {
    let (sandbox, _) = machine();
    sandbox.sh("for call in /proc/sys/net/bridge/bridge-nf-call-*; do echo 0 > $call; done").ok();
    sandbox.sh("iptables-legacy -P FORWARD DROP").ok();
    let found = only(&sandbox, "foreign-drop", &["iptables-legacy", "obr_net1"]);
    help(&sandbox, &found);
    silent(&sandbox);
}

#[test]
fn a_route_to_the_networks_addresses() {
    let (sandbox, _) = machine();
    sandbox.outside();
    silent(&sandbox);
    sandbox.ip("route add 10.9.0.128/25 via 192.0.2.1");
    let found = only(&sandbox, "route-overlap", &["10.9.0.0/24", "10.9.0.128/25", "up0"]);
    assert_eq!(found["network"], "net1");
    sandbox.ip("route del 10.9.0.128/25");
    silent(&sandbox);
}

#[test]
fn no_room_and_no_leave_to_write() {
    let (sandbox, _) = machine();
    sandbox.sh("mkdir /tmp/state && cp -a /var/lib/cni/osvc/. /tmp/state/").ok();
    let mounted = |options: &str| {
        sandbox
            .sh(&format!(
                "set -e; mount -t tmpfs -o {options} tmpfs /var/lib/cni/osvc
            cp -a /tmp/state/. /var/lib/cni/osvc/"
            ))
            .ok();
    };
    mounted("size=8m");
    silent(&sandbox);
    sandbox.sh("head -c 6m /dev/zero > /var/lib/cni/osvc/big").ok();
    only(&sandbox, "disk-full", &["/var/lib/cni/osvc", "kB are left"]);
    sandbox.sh("head -c 8m /dev/zero > /var/lib/cni/osvc/big").failed();
    only(&sandbox, "disk-full", &["/var/lib/cni/osvc", "0 kB are left"]);
    sandbox.sh("rm /var/lib/cni/osvc/big").ok();
    silent(&sandbox);
    sandbox.sh("umount /var/lib/cni/osvc").ok();
    mounted("nr_inodes=200");
    only(&sandbox, "disk-full", &["/var/lib/cni/osvc", "inodes"]);
    sandbox.sh("umount /var/lib/cni/osvc").ok();
    mounted("size=8m");
    sandbox.sh("mount -o remount,ro /var/lib/cni/osvc").ok();
    let found = only(&sandbox, "not-writable", &["/var/lib/cni/osvc", "read-only"]);
    help(&sandbox, &found);
    silent(&sandbox);
}

#[test]
fn no_nft_and_an_old_one() {
    let (sandbox, _) = machine();
    fake(&sandbox, "nft", "echo nftables v0.9.0 '(Fearless Fosdick)'");
    only(&sandbox, "old-nft", &["0.9.0", "0.9.4 is needed"]);
    fake(&sandbox, "nft", "exec /usr/sbin/nft \"$@\"");
    silent(&sandbox);
    sandbox.sh("mount --bind /dev/null /usr/sbin/nft; rm /opt/fake/nft").ok();
    only(&sandbox, "no-nft", &["nft"]);
    sandbox.sh("umount /usr/sbin/nft").ok();
    silent(&sandbox);
}

#[test]
fn what_cannot_be_found_out_is_no_good_news() {
    let (sandbox, _) = machine();
    // Without the right to ask the kernel for its rules.
    let drop = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];
    let argv: Vec<&str> = drop.iter().copied().chain(["env", crate::PATH, "/opt/cni/bin/osvc-net", "doctor"]).collect();
    let output = sandbox.run(&argv);
    assert_eq!(output.rc, 1, "{output}");
    assert!(output.stdout.contains("cannot-tell: cannot find out what rules there are"), "{output}");
}

#[test]
fn dockers_and_firewalls_drops() {
    let (sandbox, _) = machine();
    sandbox.sh("for call in /proc/sys/net/bridge/bridge-nf-call-*; do echo 0 > $call; done").ok();
    sandbox.nft(
        "table ip filter {
            chain DOCKER-USER { }
            chain FORWARD { type filter hook forward priority 0; policy drop; jump DOCKER-USER; }
        }",
    );
    help(&sandbox, &only(&sandbox, "foreign-drop", &["chain ip filter DOCKER-USER", "obr_net1"]));
    silent(&sandbox);
    sandbox
        .nft("table inet firewalld { chain filter_FORWARD { type filter hook forward priority 10; policy drop; }; }");
    help(&sandbox, &only(&sandbox, "foreign-drop", &["firewalld drops", "obr_net1"]));
    silent(&sandbox);
}

#[test]
fn a_device_that_has_the_bridges_name() {
    let (sandbox, _) = machine();
    sandbox.ip("link add obr_net2 type veth peer name peer0");
    write(&sandbox, "net2", &conflist("net2", json!({"type": "osvc-bridge", "network": "10.10.0.0/24"})));
    only(&sandbox, "status", &["osvc-bridge: ", "\"obr_net2\" already exists but is not a bridge"]);
    sandbox.ip("link del obr_net2");
    help(&sandbox, &only(&sandbox, "not-set-up", &["obr_net2"]));
    silent(&sandbox);
}

#[test]
fn addresses_of_other_plugins_may_be_the_hosts_neighbourhood() {
    let (sandbox, _) = machine();
    sandbox.outside();
    let ipam = json!({"type": "osvc-ipam", "subnet": "192.0.2.0/24", "rangeStart": "192.0.2.100"});
    write(&sandbox, "lan", &conflist("lan", json!({"type": "macvlan", "master": "up0", "ipam": ipam})));
    silent(&sandbox);
}

#[test]
fn a_containers_device_that_was_taken_out_of_the_bridge() {
    let (sandbox, _) = machine();
    sandbox.sh("ip link set $(ip -o link show master obr_net1 | grep -o 'ov[0-9a-f]*' | head -n 1) nomaster").ok();
    help(&sandbox, &only(&sandbox, "not-set-up", &["devices of 1 containers", "obr_net1"]));
    silent(&sandbox);
}

#[test]
fn an_user_without_rights_is_told_so() {
    let (sandbox, _) = machine();
    let user = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let output = sandbox.sh(&format!("{user} env {} /opt/cni/bin/osvc-net doctor", crate::PATH));
    assert!(output.rc == 1 && output.stderr.contains("run it as root"), "{output}");
    sandbox.sh("chmod -R a+rX /var/lib/cni/osvc").ok();
    let output = sandbox.sh(&format!("{user} env {} /opt/cni/bin/osvc-net doctor", crate::PATH));
    assert!(
        output.rc == 1 && output.stdout.contains("cannot-tell: ") && output.stdout.contains("sudo osvc-net doctor"),
        "{output}"
    );
    assert!(!output.stdout.contains("not-set-up"), "what is not known is not told as a fault: {output}");
}
