use std::net::IpAddr;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::network::record::tests::record;
use crate::protocol::{CniArgs, Command, Config, Ip, PluginPath, SpecVersion};
use crate::routed::SegmentRecord;
use crate::{Code, Host, Route};

/// A cluster of three nodes, in which this one is `n2`; with these keys changed.
fn call(folder: &TempDir, changes: Value) -> Call {
    let mut config = json!({"cniVersion": "1.1.0", "name": "net", "type": "osvc-routed", "node": "n2",
        "network": ["10.11.0.0/16", "fd11::/48"], "maskPerNode": [22, 64],
        "nodes": [{"name": "n1", "addr": "192.0.2.1"}, {"name": "n2", "addr": "192.0.2.2"},
            {"name": "n3", "addr": "192.0.2.3"}]});
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    let (state, run) = (folder.path().join("state"), folder.path().join("run"));
    Call {
        command: Command::Add,
        version: SpecVersion::V110,
        network: "net".parse().unwrap(),
        netns: None,
        args: CniArgs::default(),
        path: PluginPath::new(""),
        config: Config::parse(config.to_string().into_bytes()).unwrap().of_version(SpecVersion::V110),
        host: Host { state, run, boot: "boot".into() },
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn nets(texts: &[&str]) -> Vec<ipnet::IpNet> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn refused(call: &Call) -> (u32, String) {
    let error = network(call).err().unwrap();
    (error.code(), error.to_string())
}

#[test]
fn this_node_has_a_bridge_with_its_segments_as_osvc_bridge_would_make_it() {
    let folder = folder();
    let wanted = wanted(&call(&folder, json!({}))).unwrap().unwrap();
    assert_eq!(wanted.bridge.name, "obr_net");
    assert_eq!(wanted.subnets, nets(&["10.11.4.0/22", "fd11:0:0:1::/64"]));
    assert_eq!(wanted.gateways, nets(&["10.11.4.1/22", "fd11:0:0:1::1/64"]));
    assert!(wanted.masquerade_v4 && wanted.masquerade_v6 && wanted.hairpin);
    assert!(!folder.path().join("state").exists(), "nothing is written");
    let public = super::wanted(&call(&folder, json!({"public": true, "mtu": 1400}))).unwrap().unwrap();
    assert_eq!((public.masquerade_v4, public.mtu), (false, Some(1400)));
}

#[test]
fn what_osvc_bridge_or_the_cluster_refuses_is_refused_by_name() {
    let folder = folder();
    let (code, text) = refused(&call(&folder, json!({"node": "n9"})));
    assert!(code == 7 && text.contains("n9") && text.contains("n1, n2, n3"), "{text}");
    let (code, text) = refused(&call(&folder, json!({"vlan": 5})));
    assert!(code == 2 && text.contains("vlan"), "{text}");
    let (code, text) = refused(&call(&folder, json!({"nodes": 7})));
    assert!(code == 6 && text.contains("nodes"), "{text}");
    let (code, text) = refused(&call(&folder, json!({"ipam": {"exclude": ["banana"]}})));
    assert!(code == 7 && text.contains("banana"), "{text}");
    let (code, text) = refused(&call(&folder, json!({"ipam": {"type": "host-local"}})));
    assert!(code == 7 && text.contains("host-local"), "{text}");
    let ranges = json!({"runtimeConfig": {"ipRanges": [[{"subnet": "10.99.0.0/24"}]]}});
    let (code, text) = refused(&call(&folder, ranges));
    assert!(code == 7 && text.contains("10.99.0.0/24") && text.contains("10.11.4.0/22"), "{text}");
    assert!(!folder.path().join("state").exists(), "nothing is written");
}

/// The routes that a container gets beside these, with these addresses.
fn routes(changes: Value, routes: &[&str]) -> Vec<String> {
    let member = Member::of(&call(&folder(), changes)).unwrap();
    let ip = |(address, gateway): &(&str, &str)| Ip::new(address.parse().unwrap(), gateway.parse::<IpAddr>().ok());
    let result = CniResult {
        ips: [("10.11.4.7/22", "10.11.4.1"), ("fd11:0:0:1::7/64", "fd11:0:0:1::1")].iter().map(ip).collect(),
        routes: routes.iter().map(|dst| Route::new(dst.parse().unwrap(), None)).collect(),
        ..CniResult::default()
    };
    let shown = |route: Route| format!("{} via {}", route.dst, route.gw.unwrap());
    member.container_routes(&result).into_iter().map(shown).collect()
}

#[test]
fn a_container_has_a_route_to_the_whole_network_beside_its_default_route() {
    let both = ["10.11.0.0/16 via 10.11.4.1", "fd11::/48 via fd11:0:0:1::1"];
    assert_eq!(routes(json!({}), &["0.0.0.0/0", "::/0"]), both);
    assert_eq!(routes(json!({}), &["10.11.0.0/16"]), both[1..], "not twice");
    let one = json!({"network": "10.11.4.0/22", "maskPerNode": 22, "nodes": [{"name": "n2", "addr": "192.0.2.2"}]});
    assert_eq!(routes(one, &[]), [""; 0], "one segment that is all of it is on the link");
}

#[test]
fn the_plan_is_recorded_before_anything_is_made_and_an_edit_moves_nobody() {
    let folder = folder();
    let first = call(&folder, json!({}));
    let member = Member::of(&first).unwrap();
    member.settle(&first.host).unwrap();
    let record = SegmentRecord::load(&first.host, &first.network).unwrap().unwrap();
    assert_eq!(record.networks[0].segments.len(), 3);
    member.agrees(&first.host).unwrap();

    let edited = call(&folder, json!({"nodes": [{"name": "n2", "addr": "192.0.2.2"}]}));
    assert_eq!(wanted(&edited).unwrap().unwrap().subnets[0], nets(&["10.11.4.0/22"])[0], "ADD goes on");
    let member = Member::of(&edited).unwrap();
    member.settle(&edited.host).unwrap();
    let error = member.agrees(&edited.host).unwrap_err();
    assert!(error.code() == 7 && error.to_string().contains("10.11.4.0/22"), "{error}");
}

#[test]
fn of_two_first_calls_with_different_configurations_one_tries_again() {
    let folder = folder();
    let (one, other) = (call(&folder, json!({})), call(&folder, json!({"nodes": [{"name": "n2"}, {"name": "n1"}]})));
    let (first, second) = (Member::of(&one).unwrap(), Member::of(&other).unwrap());
    first.settle(&one.host).unwrap();
    let error = second.settle(&other.host).unwrap_err();
    assert_eq!(error.code(), Code::TryAgainLater as u32, "{error}");
}

#[test]
fn a_lost_record_is_recovered_from_the_record_of_the_bridge() {
    let folder = folder();
    let call = call(&folder, json!({}));
    let before = record("net", &["10.11.8.0/22"]);
    before.save(&call.host).unwrap();
    assert_eq!(wanted(&call).unwrap().unwrap().subnets[0], nets(&["10.11.8.0/22"])[0]);
    Member::of(&call).unwrap().settle(&call.host).unwrap();
    let record = SegmentRecord::load(&call.host, &call.network).unwrap().unwrap();
    assert_eq!(record.networks[0].segments["n2"], nets(&["10.11.8.0/22"])[0]);
}

#[test]
fn a_node_has_left_by_the_name_that_it_was_set_up_by_and_by_no_other() {
    let folder = folder();
    let first = call(&folder, json!({}));
    let retired = json!({"nodes": [{"name": "n1"}, {"name": "N2", "retired": true}, {"name": "n3", "retired": true}]});
    assert!(departed(&call(&folder, retired.clone())).is_err(), "nothing is known of this node yet");
    Member::of(&first).unwrap().settle(&first.host).unwrap();
    assert_eq!(departed(&first).unwrap(), None);
    assert_eq!(departed(&call(&folder, retired.clone())).unwrap(), Some(Departed::Retired("n2".to_owned())));
    let without = json!({"nodes": [{"name": "n1"}, {"name": "n3"}]});
    assert_eq!(departed(&call(&folder, without.clone())).unwrap(), Some(Departed::Unlisted("n2".to_owned())));
    let renamed = |mut changes: Value, name: &str| {
        changes["node"] = json!(name);
        departed(&call(&folder, changes))
    };
    assert!(renamed(json!({}), "n9").is_err(), "n2 is in the list");
    assert_eq!(renamed(without, "n9").unwrap(), Some(Departed::Unlisted("n2".to_owned())));
    assert!(renamed(retired, "n3").is_err(), "what is retired is another one");
    assert!(departed(&call(&folder, json!({"nodes": 7}))).is_err());
}
