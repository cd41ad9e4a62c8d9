//! `--dry-run` of commands that write a file: it says which, and leaves it alone.

use integration::{Sandbox, report};

use super::{install, osvc_net};

#[test]
fn files_are_told_and_not_written() {
    let sandbox = Sandbox::new();
    install(&sandbox, "/etc/cni/net.d", "net1", "10.9.0.0/24");
    sandbox.sh("mkdir /tmp/out; echo old > /tmp/out/osvc.prom").ok();
    let state = || sandbox.sh("find /tmp/out /var/lib/cni -printf '%p %T@ %i\n' 2>/dev/null | sort").stdout;
    let before = state();

    let told = osvc_net(&sandbox, &["metrics", "--textfile", "/tmp/out/osvc.prom", "--dry-run"]).ok();
    assert!(told.contains("osvc_network_error{network=\"net1\"} 0"), "{told}");
    let told = osvc_net(&sandbox, &["wireguard", "pubkey", "net1", "--dry-run"]).ok();
    assert_eq!(told, "net1: would make the private key /var/lib/cni/osvc/wireguard/net1.key\n");
    let planned = osvc_net(&sandbox, &["man", "/tmp/out/man", "--dry-run"]).ok();
    assert_eq!(state(), before);
    // An unknown name is none, whatever would be done.
    let told = osvc_net(&sandbox, &["wireguard", "pubkey", "nte1", "--dry-run"]).failed();
    assert!(told.contains("did you mean \"net1\""), "{told}");
    for words in [["metrics", "--dry-run"], ["man", "--dry-run"]] {
        assert_eq!(osvc_net(&sandbox, &words).rc, 2, "{words:?}: there is nothing that it would write");
    }

    osvc_net(&sandbox, &["man", "/tmp/out/man"]).ok();
    let mut written: Vec<String> =
        sandbox.list("/tmp/out/man").iter().map(|name| format!("would write /tmp/out/man/{name}")).collect();
    let mut planned: Vec<&str> = planned.lines().collect();
    written.sort();
    planned.sort_unstable();
    assert_eq!(planned, written);
    // The kernel may lack WireGuard: there is a key to be told of all the same.
    let key = "mkdir -p /var/lib/cni/osvc/wireguard; chmod 700 /var/lib/cni/osvc/wireguard; umask 077
        wg genkey > /var/lib/cni/osvc/wireguard/net1.key; wg pubkey < /var/lib/cni/osvc/wireguard/net1.key";
    let public = sandbox.sh(key).ok();
    let told = osvc_net(&sandbox, &["wireguard", "pubkey", "net1", "--dry-run"]);
    assert!(told.stdout == public || told.stderr.contains("wireguard") || told.stderr.contains("ernel"), "{told}");
    report::ran(&report::kernel(), "osvc-net metrics, wireguard pubkey and man with --dry-run");
}
