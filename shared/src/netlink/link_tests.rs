use super::*;
use crate::netlink::testing::{in_new_netns, pinned_netns};
use crate::netlink::{GROUP, Mac, Netns, NewBridge, NewPair};

const MAC: Mac = Mac([0x0a, 0x58, 10, 22, 0, 1]);

fn bridge(socket: &mut RouteSocket, name: &str) -> Link {
    socket.create_bridge(&NewBridge { name, mac: MAC, mtu: 1400 }).unwrap();
    socket.link_by_name(name).unwrap().unwrap()
}

fn pair<'a>(host: &'a str, master: u32, netns: &'a Netns) -> NewPair<'a> {
    NewPair {
        host,
        host_mac: Mac([2, 0, 0, 0, 0, 1]),
        master,
        peer: "eth0",
        peer_mac: Mac([2, 0, 0, 0, 0, 2]),
        netns,
        mtu: 1400,
    }
}

#[test]
fn br4_a_bridge_is_made_with_mac_mtu_and_group() {
    in_new_netns(|| {
        let mut socket = RouteSocket::open().unwrap();
        let made = bridge(&mut socket, "br0");
        assert!(made.is_a("bridge"));
        assert_eq!((made.mac, made.mtu, made.group, made.up), (Some(MAC.0), 1400, GROUP, false));
        socket.set_up(&made, true).unwrap();
        socket.set_alias(&made, "osvc:net").unwrap();
        let long = "obr_a-name-that-does-not-fit-in-fifteen-bytes";
        socket.add_altname(&made, long).unwrap();
        let found = socket.link_by_name(long).unwrap().unwrap();
        assert_eq!((found.index, found.up, found.alias.as_deref()), (made.index, true, Some("osvc:net")));
        assert_eq!(found.altnames, [long]);
        let again = socket.create_bridge(&NewBridge { name: "br0", mac: MAC, mtu: 1400 }).unwrap_err();
        assert!(again.is(Errno::EEXIST), "{again}");
        assert!(again.to_string().starts_with("cannot create bridge br0: File exists"), "{again}");
        assert_eq!(socket.link_by_name("nothing").unwrap(), None);
        assert_eq!(socket.link_by_name(&"n".repeat(40)).unwrap(), None);
        assert_eq!(socket.link_by_index(4711).unwrap(), None);
    });
}

#[test]
fn ln1_both_ends_of_a_pair_are_where_they_belong() {
    in_new_netns(|| {
        let netns = pinned_netns();
        let mut socket = RouteSocket::open().unwrap();
        let master = bridge(&mut socket, "br0");
        socket.create_pair(&pair("ov0", master.index, &netns)).unwrap();
        let mut inside = netns.enter(RouteSocket::open).unwrap();
        let peer = inside.link_by_name("eth0").unwrap().unwrap();
        let host = socket.link_by_name("ov0").unwrap().unwrap();
        assert_eq!(host.peer, Some(peer.index));
        assert_eq!((host.master, host.group, host.up, host.mtu), (Some(master.index), GROUP, true, 1400));
        assert_eq!((peer.mac, peer.mtu, peer.up), (Some([2, 0, 0, 0, 0, 2]), 1400, false));
        assert_eq!(host.hairpin, Some(false));
        socket.set_hairpin(&host, true).unwrap();
        let ports = socket.links_with_master(master.index).unwrap();
        assert_eq!(ports.len(), 1);
        assert_eq!((ports[0].index, ports[0].hairpin), (host.index, Some(true)));
        assert!(socket.peer_is_alive(&host).unwrap());
        assert!(inside.peer_is_alive(&peer).unwrap());
        let again = socket.create_pair(&pair("ov1", master.index, &netns)).unwrap_err();
        assert!(again.is(Errno::EEXIST), "{again}");
        assert_eq!(socket.link_by_name("ov1").unwrap(), None);
        socket.delete_link(&host).unwrap();
        socket.delete_link(&host).unwrap();
        assert_eq!(inside.link_by_name("eth0").unwrap(), None, "LN7: both ends are gone");
    });
}

#[test]
fn an_end_whose_other_ends_netns_is_gone_is_told() {
    in_new_netns(|| {
        let mut socket = RouteSocket::open().unwrap();
        let master = bridge(&mut socket, "br0");
        for _ in 0..5 {
            let netns = pinned_netns();
            socket.create_pair(&pair("ov0", master.index, &netns)).unwrap();
            let host = socket.link_by_name("ov0").unwrap().unwrap();
            assert!(socket.peer_is_alive(&host).unwrap());
            drop(netns);
            // It can be there or not, but alive it is not.
            if let Some(host) = socket.link_by_name("ov0").unwrap() {
                assert!(!socket.peer_is_alive(&host).unwrap());
                socket.delete_link(&host).unwrap();
            }
        }
    });
}
