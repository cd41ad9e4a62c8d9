//! Tunnels of kinds that the running kernel may lack: in the VM.

use std::time::Duration;

use integration::Vm;
use integration::cluster::{Cluster, Underlay};
use serde_json::json;

use crate::{only, quiet, silent};

#[test]
fn an_ip_protocol_that_is_blocked() {
    Vm::new().limit(Duration::from_secs(120)).test(|| {
        let cluster = Cluster::new(&[0, 1], &[]);
        let mut config = cluster.network("net", Underlay::V4, &[("10.11.0.0/16", 24)]);
        config["cniVersion"] = json!("1.0.0");
        cluster.install(&config);
        for node in &cluster.nodes {
            quiet(&node.sandbox);
            node.osvc_net(&["setup"]).ok();
        }
        let [first, second] = [0, 1].map(|index| &cluster.nodes[index].sandbox);
        silent(first);
        second.nft("table ip wall { chain in { type filter hook input priority -10; ip protocol 4 drop; }; }");
        only(first, "tunnel-blocked", &["node2", "192.168.2.2", "IP protocol 4"]);
    });
}
