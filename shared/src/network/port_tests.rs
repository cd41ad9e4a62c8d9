use std::collections::HashSet;

use super::*;
use crate::Code;
use crate::netlink::NewBridge;
use crate::netlink::testing::{in_new_netns, pinned_netns};
use crate::network::alias;

const MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);

fn attachment(container: &str) -> Attachment {
    Attachment {
        network: "net".parse().unwrap(),
        container: container.parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
    }
}

fn bridge(socket: &mut RouteSocket) -> Link {
    socket.create_bridge(&NewBridge { name: "br0", mac: Mac([2; 6]), mtu: 1500 }).unwrap();
    socket.link_by_name("br0").unwrap().unwrap()
}

fn join(socket: &mut RouteSocket, bridge: &Link, attachment: &Attachment, netns: &Netns) -> Result<Link, Error> {
    let alias = alias::alias(attachment, &["10.0.0.2".parse().unwrap()], None);
    let host_mac = Mac([2, 0, 0, 0, 0, 1]);
    let (isolated, vlans) = (false, &Vlans::default());
    let (mtu, mac, hairpin, alias) = (1500, MAC, true, &alias);
    create(socket, &NewPort { attachment, netns, bridge, mtu, mac, host_mac, hairpin, isolated, vlans, alias })
}

#[test]
fn g6_a_port_is_up_marked_and_in_hairpin_mode() {
    in_new_netns(|| {
        let (mut socket, netns, c1) = (RouteSocket::open().unwrap(), pinned_netns(), attachment("c1"));
        let bridge = bridge(&mut socket);
        join(&mut socket, &bridge, &c1, &netns).unwrap();
        let port = socket.link_by_name(&c1.host_end()).unwrap().unwrap();
        assert!(port.up && port.hairpin == Some(true) && port.master == Some(bridge.index) && is_ours(&port));
        assert_eq!(port.alias.as_deref(), Some("osvc:net:10.0.0.2 eth0 c1"));
        assert!(delete(&mut socket, &c1).unwrap());
        assert!(!delete(&mut socket, &c1).unwrap());
    });
}

#[test]
fn ln2_an_interface_that_is_there_is_named_and_nothing_is_left() {
    in_new_netns(|| {
        let (mut socket, netns) = (RouteSocket::open().unwrap(), pinned_netns());
        let bridge = bridge(&mut socket);
        join(&mut socket, &bridge, &attachment("c1"), &netns).unwrap();
        let other = attachment("c2");
        let error = join(&mut socket, &bridge, &other, &netns).unwrap_err();
        let start = format!("container veth name (\"eth0\") peer provided ({:?}) already exists", other.host_end());
        assert!(error.to_string().starts_with(&start), "{error}");
        assert_eq!(error.code(), Code::InvalidEnvironment);
        assert_eq!(socket.link_by_name(&other.host_end()).unwrap(), None);
    });
}

#[test]
fn a_host_end_left_over_is_replaced_and_a_living_or_foreign_one_is_not() {
    in_new_netns(|| {
        let (mut socket, c1) = (RouteSocket::open().unwrap(), attachment("c1"));
        let bridge = bridge(&mut socket);
        for _ in 0..5 {
            let netns = pinned_netns();
            clear_leftover(&mut socket, &c1).unwrap();
            join(&mut socket, &bridge, &c1, &netns).unwrap();
            drop(netns);
        }
        clear_leftover(&mut socket, &c1).unwrap();
        let (first, second) = (pinned_netns(), pinned_netns());
        join(&mut socket, &bridge, &c1, &first).unwrap();
        for error in
            [clear_leftover(&mut socket, &c1).unwrap_err(), join(&mut socket, &bridge, &c1, &second).unwrap_err()]
        {
            assert!(matches!(error, Error::Attached { .. }), "{error}");
        }
        delete(&mut socket, &c1).unwrap();
        let foreign = c1.host_end();
        socket.create_bridge(&NewBridge { name: &foreign, mac: Mac([2; 6]), mtu: 1500 }).unwrap();
        assert!(matches!(clear_leftover(&mut socket, &c1), Err(Error::HostEndTaken { .. })));
        assert!(!delete(&mut socket, &c1).unwrap());
    });
}

#[test]
fn c100_a_sweep_keeps_what_lives_and_what_is_another_networks() {
    in_new_netns(|| {
        let (mut socket, netns) = (RouteSocket::open().unwrap(), pinned_netns());
        let bridge = bridge(&mut socket);
        let (alive, dead) = (attachment("alive"), attachment("dead"));
        join(&mut socket, &bridge, &alive, &netns).unwrap();
        let gone = pinned_netns();
        join(&mut socket, &bridge, &dead, &gone).unwrap();
        drop(gone);
        sweep(&mut socket, &dead.network, Some(&HashSet::new())).unwrap();
        assert_eq!(socket.link_by_name(&dead.host_end()).unwrap(), None);
        assert!(socket.link_by_name(&alive.host_end()).unwrap().is_some());
    });
}

#[test]
fn a_reference_veth_is_found_by_its_other_end_if_it_is_a_port_of_the_bridge() {
    in_new_netns(|| {
        let (mut socket, netns) = (RouteSocket::open().unwrap(), pinned_netns());
        let bridge = bridge(&mut socket);
        let mut inside = netns.enter(RouteSocket::open).unwrap();
        assert_eq!(reference_host_end(&mut socket, &mut inside, "eth0", bridge.index).unwrap(), None);
        let pair = NewPair {
            host: "veth0",
            host_mac: Mac([2, 0, 0, 0, 0, 9]),
            master: bridge.index,
            peer: "eth0",
            peer_mac: MAC,
            netns: &netns,
            mtu: 1500,
        };
        socket.create_pair(&pair).unwrap();
        let host = socket.link_by_name("veth0").unwrap().unwrap();
        assert_eq!(
            reference_host_end(&mut socket, &mut inside, "eth0", bridge.index).unwrap(),
            None,
            "ours is no reference veth"
        );
        let status = std::process::Command::new("ip").args(["link", "set", "veth0", "group", "0"]).status().unwrap();
        assert!(status.success());
        let found = reference_host_end(&mut socket, &mut inside, "eth0", bridge.index).unwrap();
        assert_eq!(found.map(|link| link.index), Some(host.index));
        assert_eq!(reference_host_end(&mut socket, &mut inside, "eth0", 4711).unwrap(), None);
    });
}
