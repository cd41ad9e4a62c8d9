//! What it costs.

use std::time::Instant;

use super::*;
use crate::netlink::testing::in_new_netns;

/// Not a test of speed, but its figures: `cargo test --release firewall -- --ignored --nocapture`.
#[test]
#[ignore = "prints figures"]
fn figures() {
    in_new_netns(|| {
        let median = |rounds: usize, act: &mut dyn FnMut()| {
            let mut times: Vec<_> = (0..rounds)
                .map(|_| {
                    let start = Instant::now();
                    act();
                    start.elapsed()
                })
                .collect();
            times.sort();
            times[rounds / 2]
        };
        let place = Place::new(&[A, B]);
        place.apply();
        let record = place.record("a");
        println!(
            "in_place, nobody committed: {:?}",
            median(500, &mut || assert!(in_place(&place.host, &record).unwrap()))
        );
        nft("table ip other { }");
        println!(
            "in_place, others committed: {:?}",
            median(500, &mut || assert!(in_place(&place.host, &record).unwrap()))
        );
        println!("apply, nothing to do: {:?}", median(100, &mut || place.apply()));
        println!("check: {:?}", median(100, &mut || place.passes("a")));
        println!(
            "apply, flushed: {:?}",
            median(20, &mut || {
                nft("delete table ip osvc-cni");
                place.apply()
            })
        );
        println!("  of it the flush of the test: {:?}", median(20, &mut || nft("table ip x { }; delete table ip x")));
        run("iptables", &["-P", "FORWARD", "DROP"]);
        place.apply();
        nft("add table ip another");
        println!(
            "in_place, with a foreign chain: {:?}",
            median(500, &mut || assert!(in_place(&place.host, &record).unwrap()))
        );
        let many: String = (0..10_000).map(|i| format!("add chain ip other c{i}\n")).collect();
        nft(&many);
        println!(
            "in_place, 10 000 foreign chains: {:?}",
            median(50, &mut || assert!(in_place(&place.host, &record).unwrap()))
        );
        for i in 0..200 {
            place.set_up(&format!("n{i}"), &[&format!("10.{}.{}.0/24", 100 + i / 100, i % 100)], |r| {
                r.bridge = format!("obr_n{i}")
            });
        }
        place.apply();
        nft("add table ip another2");
        println!("in_place, 202 networks: {:?}", median(50, &mut || assert!(in_place(&place.host, &record).unwrap())));
    });
}
