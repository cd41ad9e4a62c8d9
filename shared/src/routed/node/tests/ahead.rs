//! What is recorded before anything is done, for when it ends in the middle.

use super::*;

#[test]
fn tunnels_are_guarded_before_they_are_there() {
    with_nodes(2, |nodes| {
        let config = config(30, &value(30, 1, 2, &json!({"tunnelMode": "vxlan"})));
        nodes[0].bridge(30);
        let guarded = std::cell::Cell::new(0);
        let plan = Plan::new(&config, None).unwrap();
        let set_up = |nodes: &mut [Node], fails: bool| {
            let Node { netns, id, socket, host, .. } = &mut nodes[0];
            let guard = |host: &Host| {
                let record = RoutedRecord::load(host, &config.name).unwrap().unwrap();
                assert!(!record.complete && record.tunnels.len() == 2, "rules can be made from it: {record:?}");
                assert_eq!(RouteSocket::open()?.tunnels()?, []);
                guarded.set(guarded.get() + 1);
                if fails { Err(crate::firewall::Error::NoNft) } else { Ok(()) }
            };
            netns
                .enter(|| Ok(establish(host, id, socket, &config, &plan, &guard).map(|outcome| outcome.is_some())))
                .unwrap()
        };
        assert!(matches!(set_up(nodes, true), Err(Error::Rules(_))));
        assert!(set_up(nodes, false).unwrap());
        assert!(!set_up(nodes, false).unwrap(), "another ADD that waited has nothing to do");
        assert_eq!(guarded.get(), 2);
        assert_in_place(&mut nodes[0], &config);
    });
}

#[test]
fn who_moved_is_recorded_as_to_be_done_before_it_is_known_where() {
    with_nodes(3, |nodes| {
        let list = json!([{"name": "node1", "addr": underlay(1)[0]}, {"name": "node2", "addr": underlay(2)[0]},
            {"name": "node3", "addr": "three.test"}]);
        let config = config(36, &value(36, 1, 3, &json!({"tunnelMode": "vxlan", "nodes": list})));
        let resolve = |node: &Node, address: &str| {
            let mut resolution = Resolution::load(&node.host, &config.name).unwrap();
            let answer = vec![address.parse().unwrap()];
            resolution.refresh(["three.test"], Which::All, |_| vec![Ok(answer)]);
            resolution
        };
        resolve(&nodes[0], "192.0.1.3").save(&nodes[0].host).unwrap();
        nodes[0].bridge(36);
        nodes[0].setup_with(&config, Which::New, false);
        let record = nodes[0].record(&config);
        assert!(nodes[0].in_place(&config) && record.complete);
        let resolution = resolve(&nodes[0], "192.0.1.33");
        let plan = Plan::new(&config, None).unwrap();
        let Node { netns, socket, host, .. } = &mut nodes[0];
        netns
            .enter(|| {
                let wanted = Wanted::new(&config, &plan, &resolution, socket);
                let new = RoutedRecord { complete: false, tunnels: Vec::new(), ..record.clone() };
                let ahead = ahead::Ahead { record: &new, old: Some(&record), renamed: false };
                ahead.write(host, &wanted, None, &|_| Ok(())).unwrap();
                // One that was refused a moment ago does not keep the next ADD waiting either.
                let written = RoutedRecord::load(host, &config.name).unwrap().unwrap();
                let asleep = RoutedRecord { refused: Some(crate::routed::record::now()), ..written };
                asleep.save(host).unwrap();
                let ahead = ahead::Ahead { record: &new, old: Some(&asleep), renamed: true };
                ahead.write(host, &wanted, None, &|_| Ok(())).unwrap();
                assert_eq!(RoutedRecord::load(host, &config.name).unwrap().unwrap().refused, None);
                Ok(())
            })
            .unwrap();
        // Killed here, with the names on the disk.
        resolution.save(&nodes[0].host).unwrap();
        assert!(!nodes[0].in_place(&config), "the next ADD completes it");
        nodes[0].setup_with(&config, Which::New, false);
        let device = &nodes[0].record(&config).tunnels[0].name;
        let shown = nodes[0]
            .netns
            .enter(|| Ok(std::process::Command::new("bridge").args(["fdb", "show", "dev", device]).output().unwrap()));
        assert!(String::from_utf8(shown.unwrap().stdout).unwrap().contains("dst 192.0.1.33"));
    });
}

#[test]
fn a_setup_that_was_killed_is_completed() {
    with_nodes(2, |nodes| {
        let keys = json!({"tunnelMode": "vxlan", "tunnel": "always"});
        let configs = set_up(nodes, 25, &keys);
        let record = nodes[0].record(&configs[0]);
        // Nothing of it was made yet, or all but the last record was written.
        let ahead = RoutedRecord { complete: false, ..record.clone() };
        ahead.save(&nodes[0].host).unwrap();
        assert!(!nodes[0].in_place(&configs[0]));
        assert_eq!(nodes[0].setup(&configs[0]).changes, [""; 0]);
        assert_in_place(&mut nodes[0], &configs[0]);
        // Without a record what is there is taken over.
        RoutedRecord::remove(&nodes[0].host, &configs[0].name).unwrap();
        assert_eq!(nodes[0].setup(&configs[0]).changes, [""; 0]);
        assert_eq!(nodes[0].record(&configs[0]), record);
        // Devices that were recorded ahead and made go when they are not wanted.
        let never = config(25, &value(25, 1, 2, &json!({"tunnelMode": "vxlan", "tunnel": "never", "port": 7000})));
        nodes[0].setup(&never);
        let left = nodes[0].ip("-d link show type vxlan");
        assert!(!left.contains("dstport 4779") && left.contains("dstport 7000"), "{left}");
    });
}
