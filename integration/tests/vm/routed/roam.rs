//! WireGuard's peers are where they were heard of last.

use integration::{Vm, report};
use serde_json::json;

use super::{assert_in_place, configs, set_up, talk, wg, with_ends};

#[test]
fn a_peer_that_sends_from_another_address_is_where_it_is() {
    Vm::new().test(|| {
        with_ends(|ends| {
            let keys = json!({"tunnelMode": "wireguard"});
            let before = configs(ends, 11, &[0], &keys);
            ends.iter().for_each(|end| end.bridge(11));
            set_up(ends, &before);
            assert!(talk(ends, 11, 1420));
            let device = ends[0].tunnels().remove(0).0;
            let endpoint = |ends: &[super::End<'_>; 2]| {
                let told = wg(&ends[0], &format!("show {device} endpoints"));
                told.split_whitespace().last().unwrap().rsplit_once(':').unwrap().0.to_owned()
            };
            assert_eq!(endpoint(ends), "192.0.2.2");
            // Node 2 goes on from another address, and says so by whatever it sends.
            ends[1].ip("address add 192.0.2.22/24 dev eth0");
            ends[1].ip("address del 192.0.2.2/24 dev eth0");
            ends[1].ip("address replace 192.0.2.22/24 dev eth0");
            assert!(ends[1].node.reaches("10.11.4.1".parse().unwrap(), 100));
            assert_eq!(endpoint(ends), "192.0.2.22");
            assert_in_place(&mut ends[0], &before[0]);
            assert_eq!(endpoint(ends), "192.0.2.22", "nothing is changed back");
            // What else is to change of it does not send packets back either.
            let key = wg(&ends[0], &format!("show {device} peers"));
            wg(&ends[0], &format!("set {device} peer {} allowed-ips 10.11.8.0/24", key.trim()));
            assert!(!ends[0].missing(&before[0]).is_empty());
            assert_eq!(ends[0].setup(&before[0], false).faults, []);
            assert_eq!(endpoint(ends), "192.0.2.22");
            // Told of a new address by the configuration, it is sent there at once.
            ends[1].node.underlay[0] = "192.0.2.33".parse().unwrap();
            let after = configs(ends, 11, &[0], &keys);
            assert!(!ends[0].missing(&after[0]).is_empty());
            assert_eq!(ends[0].setup(&after[0], false).faults, []);
            assert_eq!(endpoint(ends), "192.0.2.33");
            report::ran(&report::kernel(), "a peer of WireGuard with another address than the configuration has");
        });
    });
}
