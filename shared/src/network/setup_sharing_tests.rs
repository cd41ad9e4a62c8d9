//! What becomes of a bridge that is not only ours, or not only one network's, or that is made anew.

use super::super::alias::alias;
use super::tests::{addresses, device, on_a_host, wanted};
use super::*;
use crate::Attachment;
use crate::netlink::testing::pinned_netns;
use crate::netlink::{Mac, Netns, NewPair};
use crate::network::names::BridgeName;

/// A port as an ADD makes it.
fn port(site: &mut Site<'_>, bridge: &Link, network: &str, host: &str, netns: &Netns, host_mac: [u8; 6]) -> Link {
    let peer_mac = Mac([2, 0, 0, 0, 0, 2]);
    let pair =
        NewPair { host, host_mac: Mac(host_mac), master: bridge.index, peer: host, peer_mac, netns, mtu: bridge.mtu };
    site.socket.create_pair(&pair).unwrap();
    let link = site.socket.link_by_name(host).unwrap().unwrap();
    let attachment = Attachment {
        network: network.parse().unwrap(),
        container: "c1".parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
    };
    site.socket.set_alias(&link, &alias(&attachment, &[], None)).unwrap();
    link
}

fn foreign(site: &mut Site<'_>, name: &str) -> Link {
    let made = std::process::Command::new("ip").args(["link", "add", name, "type", "bridge"]).status().unwrap();
    assert!(made.success());
    site.socket.link_by_name(name).unwrap().unwrap()
}

fn on(bridge: &str, name: &str, gateways: &[&str]) -> Wanted {
    Wanted { bridge: BridgeName { name: bridge.to_owned(), altname: None }, ..wanted(name, gateways) }
}

#[test]
fn e46_a_foreign_bridge_keeps_its_mac_whatever_port_comes_and_goes() {
    on_a_host(|_, site| {
        let before = foreign(site, "br7");
        let made = site.establish(&on("br7", "net", &["10.22.0.1/16"])).unwrap();
        let netns = pinned_netns();
        let port = port(site, &made.bridge, "net", "ov1", &netns, [2, 0, 0, 0, 0, 1]);
        assert_eq!(site.socket.link_by_name("br7").unwrap().unwrap().mac, before.mac);
        site.socket.delete_link(&port).unwrap();
        assert_eq!(site.socket.link_by_name("br7").unwrap().unwrap().mac, before.mac);
    });
}

#[test]
fn an_alternative_name_is_refused_with_the_name_to_use() {
    on_a_host(|_, site| {
        let bridge = foreign(site, "br7");
        site.socket.add_altname(&bridge, "office").unwrap();
        let wanted = on("office", "net", &["10.22.0.1/16"]);
        for error in [site.refuse(&wanted).unwrap_err(), site.establish(&wanted).unwrap_err()] {
            assert_eq!(error.code(), crate::Code::InvalidConfig);
            assert_eq!(error.to_string(), "\"office\" is an alternative name of the bridge br7: set `bridge` to br7");
        }
    });
}

#[test]
fn a_bridge_made_anew_has_the_mtu_of_now_and_the_ports_of_before() {
    on_a_host(|_, site| {
        let mut net = wanted("net", &["10.22.0.1/16"]);
        net.mtu = Some(1400);
        let made = site.establish(&net).unwrap();
        let netns = pinned_netns();
        let mac = [0xfe, 0, 0, 0, 0, 1];
        port(site, &made.bridge, "net", "ov1", &netns, mac);
        let other = port(site, &made.bridge, "other", "ov2", &netns, mac);
        site.socket.delete_link(&made.bridge).unwrap();
        net.mtu = Some(1300);
        let again = site.establish(&net).unwrap();
        assert_eq!((again.bridge.mtu, again.record.mtu), (1300, 1300));
        let back = site.socket.link_by_name("ov1").unwrap().unwrap();
        assert_eq!((back.master, back.hairpin), (Some(again.bridge.index), Some(true)));
        assert_eq!(site.socket.link_by_index(other.index).unwrap().unwrap().master, None, "it is another network's");
        assert_eq!(site.rejoin(&net, &again.bridge).unwrap(), 0);
    });
}

#[test]
fn a_failed_network_leaves_the_bridge_that_it_shares_as_it_was() {
    on_a_host(|host, site| {
        let first = site.establish(&on("br7", "a", &["10.22.0.1/24"])).unwrap();
        let second = site.establish(&on("br7", "b", &["10.22.1.1/24"])).unwrap();
        let netns = pinned_netns();
        // Made by the first, which fails when the second is set up, without a port yet.
        let bridge = second.bridge.clone();
        assert_eq!(site.undo(first).unwrap(), Undone::Gone);
        assert_eq!(addresses(site, &bridge), ["10.22.1.1/24"]);
        // The second has a port when the third one fails.
        port(site, &bridge, "b", "ov1", &netns, [0xfe, 0, 0, 0, 0, 1]);
        let third = site.establish(&on("br7", "c", &["10.22.2.1/24"])).unwrap();
        assert_eq!(site.undo(third).unwrap(), Undone::Gone);
        assert_eq!(addresses(site, &bridge), ["10.22.1.1/24"]);
        assert_eq!(NetworkRecord::load(host, &"c".parse().unwrap()).unwrap(), None);
    });
}

#[test]
fn a_failed_change_of_configuration_brings_the_old_record_back() {
    on_a_host(|host, site| {
        let before = site.establish(&wanted("net", &["10.22.0.1/16"])).unwrap().record;
        let changed = Wanted { masquerade_v4: false, ..wanted("net", &["10.22.0.1/16"]) };
        let setup = site.establish(&changed).unwrap();
        assert!(setup.is_new() && site.is_recorded(&changed).unwrap());
        assert_eq!(site.undo(setup).unwrap(), Undone::Restored);
        assert_eq!(NetworkRecord::load(host, &before.name).unwrap(), Some(before));
        assert!(!site.is_recorded(&changed).unwrap());
    });
}

#[test]
fn ipv6_on_a_bridge_that_is_too_small_is_refused_by_its_mtu() {
    on_a_host(|_, site| {
        let bridge = device(site, "br7", &[]);
        site.socket.set_mtu(&bridge, 1000).unwrap();
        let text = site.establish(&on("br7", "net", &["fd77::1/64"])).unwrap_err().to_string();
        assert!(text.starts_with("bridge br7 has MTU 1000, and IPv6 needs 1280 or more"), "{text}");
    });
}
