//! What hooks are told.

use serde_json::{Value, json};

use super::*;
use crate::network::record::tests::host;
use crate::routed::config::tests::{EXAMPLE, config};

fn file(peer: Value) -> PeerFile {
    let value: Value = serde_json::from_str(EXAMPLE).unwrap();
    let config = config(&value).unwrap();
    let record = json!({
        "v": 1, "name": "net", "basis": "", "complete": true, "mode": "ipip", "networks": ["10.11.0.0/16"],
        "here": ["10.11.0.0/22"], "peers": [peer], "tunnels": [], "routes": [], "boot": "b",
        "netns": {"dev": 4, "ino": 5}
    });
    PeerFile::new(&config, &serde_json::from_value(record).unwrap(), &Resolution::new(&config.name))
}

fn direct() -> Value {
    json!({
        "name": "node2", "addresses": {"v4": "192.168.1.2"}, "segments": ["10.11.4.0/22"],
        "ways": [{"segment": "10.11.4.0/22", "remote": "192.168.1.2", "device": "eth0", "tunnel": false, "mtu": 1500}]
    })
}

fn broken() -> Value {
    json!({"name": "node2", "addresses": {}, "segments": ["10.11.4.0/22"], "ways": [], "faults": ["no address"]})
}

#[test]
fn all_that_another_program_needs_of_the_peers() {
    assert_eq!(
        serde_json::to_value(file(direct())).unwrap(),
        json!({
            "v": 1, "network": "net", "networks": ["10.11.0.0/16"], "tunnel": "auto", "tunnelMode": "ipip",
            "node": {"name": "node1", "addresses": ["192.168.1.1"], "segments": ["10.11.0.0/22"]},
            "peers": [{
                "name": "node2", "addresses": ["192.168.1.2"], "segments": ["10.11.4.0/22"],
                "ways": [
                    {"segment": "10.11.4.0/22", "remote": "192.168.1.2", "device": "eth0", "tunnel": false, "mtu": 1500}
                ],
                "faults": []
            }]
        })
    );
    assert_eq!(serde_json::to_value(file(broken())).unwrap()["peers"][0]["faults"], json!(["no address"]));
}

#[test]
fn it_is_written_when_it_says_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(&folder);
    let known = file(direct());
    assert!(known.write(&host).unwrap());
    assert!(!known.write(&host).unwrap());
    assert_eq!(PeerFile::load(&host, &known.network).unwrap(), Some(known.clone()));
    assert!(file(broken()).write(&host).unwrap());
    assert!(known.write(&host).unwrap());
    std::fs::write(PeerFile::path(&host, &known.network), "{").unwrap();
    assert!(known.write(&host).unwrap(), "a torn one is written anew");
    PeerFile::remove(&host, &known.network).unwrap();
    assert_eq!(PeerFile::load(&host, &known.network).unwrap(), None);
}
