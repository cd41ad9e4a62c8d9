//! `osvc-net hosts`.

use integration::report;

use crate::{machine, net1, osvc_net, start};

#[test]
fn a_hosts_file_of_what_runs() {
    let net = "10.9.0.0/24";
    let sandbox = machine(&[net1(net)]);
    let [a, b] = ["a", "b"].map(|name| sandbox.netns(name));
    let web = start(&sandbox, &net1(net), &a, "id-web", "web");
    start(&sandbox, &net1(net), &b, "id-db", "db");
    osvc_net(&sandbox, &["ip", "reserve", "-n", "net1", "later"]).ok();
    sandbox.delete_netns(&b);
    sandbox.wait_for("the pair is gone", "[ $(ip -o link | grep -c ' ov') -eq 1 ]");
    let printed = osvc_net(&sandbox, &["hosts", "--search", "lan"]).ok();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[1..], [format!("{web}\tweb web.net1 web.lan web.net1.lan")]);
    let file = "/run/hosts";
    let planned = osvc_net(&sandbox, &["hosts", "--file", file, "--dry-run"]).ok();
    assert!(planned.contains("would be written: 1 addresses") && !sandbox.exists(file), "{planned}");
    osvc_net(&sandbox, &["hosts", "--file", file]).ok();
    assert!(sandbox.read(file).contains(&format!("{web}\tweb web.net1\n")));
    let inode = || sandbox.sh(&format!("stat -c %i {file}")).ok();
    let before = inode();
    let again = osvc_net(&sandbox, &["hosts", "--file", file]).ok();
    assert!(again.contains("nothing to do") && inode() == before, "{again}");
    assert!(sandbox.sh(&format!("getent -V >/dev/null; grep -c . {file}")).ok().trim() == "2");
    sandbox.write("/run/other", "127.0.0.1 localhost\n");
    for foreign in ["/run/other", "/etc/hosts"] {
        let told = osvc_net(&sandbox, &["hosts", "--file", foreign]).failed();
        assert!(told.contains("addn-hosts") && told.contains("base_hosts_file"), "{told}");
    }
    assert_eq!(sandbox.read("/run/other"), "127.0.0.1 localhost\n");
    // What cannot be read: the file of before is better than half a one.
    sandbox.write("/var/lib/cni/osvc/ipam/net1/10.9.0.250", "{");
    let before = sandbox.read(file);
    osvc_net(&sandbox, &["hosts", "--file", file, "--search", "x"]).failed();
    assert_eq!(sandbox.read(file), before);
    report::ran(&report::kernel(), "osvc-net hosts");
}
