//! A machine that is in order is never accused, however busy it is.

use integration::report;

use super::*;

#[test]
fn a_healthy_machine_is_never_accused() {
    let mut sandbox = Sandbox::new();
    {
        silent(&sandbox, "nothing there at all");
        let network = network(&sandbox);
        silent(&sandbox, "nothing set up");
        let pods = containers(&network);
        silent(&sandbox, "containers");
        pods[1].remove();
        sandbox.delete_netns(&pods[1].netns);
        silent(&sandbox, "one gone");
        network.container("db");
        silent(&sandbox, "one restarted");
        let layer2 = json!({"cniVersion": "1.0.0", "name": "layer2", "type": "osvc-bridge"});
        sandbox.write("/etc/cni/net.d/layer2.conf", &layer2.to_string());
        sandbox.plugin("osvc-bridge").config(layer2).container("l2").netns(&sandbox.netns("l2")).add();
        // Addresses of another plugin, in the alias of a host end of ours.
        let foreign = sandbox
            .plugin("osvc-bridge")
            .config(
                json!({"cniVersion": "1.0.0", "name": "hl", "type": "osvc-bridge", "bridge": "br9", "isGateway": true,
                "ipam": {"type": "host-local", "subnet": "10.7.0.0/24"}}),
            )
            .container("hl1")
            .netns(&sandbox.netns("hl1"));
        foreign.add();
        silent(&sandbox, "host-local's addresses are not ours to miss");
    }
    sandbox.reboot();
    silent(&sandbox, "rebooted");
    let network = network(&sandbox);
    containers(&network);
    silent(&sandbox, "started again");
    report::ran(&report::kernel(), "osvc-net fsck on a healthy machine");
}

#[test]
fn nor_while_containers_come_and_go() {
    let sandbox = Sandbox::new();
    let network = network(&sandbox);
    containers(&network);
    let config = network.conflist()["plugins"][0].clone();
    let mut config = config.as_object().unwrap().clone();
    config.insert("cniVersion".into(), json!("1.0.0"));
    config.insert("name".into(), json!("net1"));
    let script = r#"
        one() { for round in 1 2 3 4 5 6 7 8; do ip netns add n$1; cni ADD c$1 /run/netns/n$1 name$1 >/dev/null || echo ADD
                cni DEL c$1 /run/netns/n$1 name$1 || echo DEL; ip netns del n$1; done; }
        export -f one
        (seq 6 | xargs -P 3 -I% bash -c 'one %' > /run/churn.out 2>&1; touch /run/churn.done) &
        looks=0
        while [ ! -e /run/churn.done ]; do
            /opt/cni/bin/osvc-net fsck >> /run/fsck.out 2>&1 || echo accused >> /run/fsck.out; looks=$((looks + 1))
        done
        echo $looks"#;
    let looks: u32 = sandbox.bulk("osvc-bridge", &Value::from(config), script).ok().trim().parse().unwrap();
    assert!(looks >= 3, "it looked {looks} times");
    assert_eq!(sandbox.read("/run/churn.out"), "", "and kept nobody from anything");
    assert_eq!(sandbox.read("/run/fsck.out"), "");
    silent(&sandbox, "afterwards");
    report::ran(&report::kernel(), "osvc-net fsck beside ADDs and DELs");
}
