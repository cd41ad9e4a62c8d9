//! Routing tables that get the routes beside main.

use integration::cluster::Cluster;
use serde_json::json;

use crate::{noted, vxlan};

/// What a table has of IPv4 and IPv6, without the kernel's own.
#[track_caller]
fn table(cluster: &Cluster, table: &str) -> Vec<String> {
    let script = format!("ip -4 route show table {table}; ip -6 route show table {table}");
    let shown = cluster.nodes[0].sandbox.sh(&format!("{script} 2>/dev/null; true")).ok();
    let mut routes: Vec<String> =
        shown.lines().filter_map(|line| line.split(" dev ").next()).map(|line| line.trim().to_owned()).collect();
    routes.sort();
    routes
}

#[test]
fn each_table_has_the_routes_to_all_peers_and_loses_them_with_the_key() {
    let cluster = Cluster::three();
    for node in &cluster.nodes {
        node.sandbox.write("/etc/iproute2/rt_tables", "254 main\n255 local\n120 backup\n");
    }
    cluster.nodes[0].sandbox.ip("route add 10.200.0.0/16 via 192.168.1.254 table 120");
    let mut config = vxlan(&cluster);
    config["tables"] = json!(["main", "backup", 130]);
    let pods = cluster.start_everywhere(&config);
    assert!(pods[0].reaches(&pods[2]));
    for number in ["120", "130"] {
        let routes = table(&cluster, number).join(", ");
        for segment in ["10.11.4.0/22", "10.11.8.0/22", "fd11:0:0:1::/64", "fd11:0:0:2::/64"] {
            assert!(routes.contains(segment), "{segment} in table {number}: {routes}");
        }
    }
    pods[0].check();
    cluster.nodes[0].sandbox.ip("route del 10.11.8.0/22 table 130");
    assert!(pods[0].check_fails().contains("10.11.8.0/22"));
    config["tables"] = json!(["main", 120]);
    cluster.nodes[0].start(&config, "next").end();
    assert_eq!(table(&cluster, "130"), [""; 0], "nothing stale is left");
    let left = table(&cluster, "120");
    assert!(left.iter().any(|route| route.starts_with("10.200.0.0/16")), "what is not ours stays: {left:?}");
    noted("additional routing tables, by name and by number");
}
