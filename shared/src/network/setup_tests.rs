use super::super::record::tests::host;
use super::*;
use crate::Code;
use crate::netlink::netns::host_id;
use crate::netlink::testing::{in_new_netns, pinned_netns};
use crate::netlink::{Mac, Netns, NewBridge, NewPair, RouteFilter};
use crate::network::Vlans;
use crate::network::mac::Machine;
use crate::network::names::BridgeName;
use crate::network::record::ForwardAccept;
use crate::network::sysctl::Sysctl;

/// A host in a new network namespace.
pub(super) fn on_a_host(test: impl FnOnce(&Host, &mut Site<'_>) + Send) {
    in_new_netns(|| {
        let folder = tempfile::tempdir().unwrap();
        let host = host(&folder);
        let netns = host_id().unwrap();
        let mut socket = RouteSocket::open().unwrap();
        test(&host, &mut Site { host: &host, netns: &netns, socket: &mut socket });
    });
}

pub(super) fn wanted(name: &str, gateways: &[&str]) -> Wanted {
    let gateways: Vec<IpNet> = gateways.iter().map(|text| text.parse().unwrap()).collect();
    let name: NetworkName = name.parse().unwrap();
    Wanted {
        bridge: BridgeName::of(&name),
        name,
        subnets: gateways.iter().map(IpNet::trunc).collect(),
        gateways,
        masquerade_v4: true,
        masquerade_v6: true,
        forward_accept: ForwardAccept::Auto,
        vlan: None,
        vlans: Vlans::default(),
        promiscuous: false,
        port_isolation: false,
        isolate: false,
        guarded: false,
        mtu: None,
        force_address: false,
        detect_duplicates: false,
        hairpin: true,
        ipam: None,
        masquerade_backend: None,
        routed: false,
    }
}

pub(super) fn addresses(site: &mut Site<'_>, bridge: &Link) -> Vec<String> {
    site.socket.addresses(bridge).unwrap().iter().filter(|a| a.scope == 0).map(|a| a.address.to_string()).collect()
}

pub(super) fn device(site: &mut Site<'_>, name: &str, addresses: &[&str]) -> Link {
    site.socket.create_bridge(&NewBridge { name, mac: Mac([2; 6]), mtu: 1450 }).unwrap();
    let link = site.socket.link_by_name(name).unwrap().unwrap();
    for address in addresses {
        site.socket.add_address(&link, address.parse().unwrap(), false).unwrap();
    }
    link
}

#[test]
fn a_network_is_set_up_once_and_found_after_that() {
    on_a_host(|host, site| {
        let wanted = wanted("net", &["10.22.0.1/16", "fd77::1/64"]);
        assert!(site.in_place(&wanted).unwrap().is_none());
        site.refuse(&wanted).unwrap();
        let made = site.establish(&wanted).unwrap();
        assert_eq!(made.bridge.mac, Some([0x0a, 0x58, 10, 22, 0, 1]));
        assert_eq!(addresses(site, &made.bridge), ["10.22.0.1/16", "fd77::1/64"]);
        assert!(made.record.owned && made.record.mtu == 1500);
        assert_eq!(NetworkRecord::load(host, &wanted.name).unwrap(), Some(made.record.clone()));
        for key in ["accept_dad", "accept_ra"] {
            assert_eq!(Sysctl::V6("obr_net", key).get().unwrap().as_deref(), Some("0"));
        }
        assert!(forwarding::is_on(false).unwrap() && forwarding::is_on(true).unwrap());
        let found = site.in_place(&wanted).unwrap().unwrap();
        assert_eq!((found.bridge.index, found.steps.len()), (made.bridge.index, 0));
        assert!(site.establish(&wanted).unwrap().steps.is_empty());
    });
}

#[test]
fn what_is_missing_is_put_back() {
    on_a_host(|_, site| {
        let wanted = wanted("net", &["10.22.0.1/16", "fd77::1/64"]);
        let bridge = site.establish(&wanted).unwrap().bridge;
        site.socket.remove_address(&bridge, wanted.gateways[0]).unwrap();
        assert!(site.in_place(&wanted).unwrap().is_none());
        site.establish(&wanted).unwrap();
        site.socket.set_up(&bridge, false).unwrap();
        assert!(site.in_place(&wanted).unwrap().is_none());
        site.establish(&wanted).unwrap();
        Sysctl::ForwardV6.set("0").unwrap();
        assert!(site.in_place(&wanted).unwrap().is_none());
        site.establish(&wanted).unwrap();
        site.socket.delete_link(&bridge).unwrap();
        assert!(site.in_place(&wanted).unwrap().is_none());
        site.establish(&wanted).unwrap();
        assert!(site.in_place(&wanted).unwrap().is_some());
    });
}

#[test]
fn another_boot_or_namespace_is_another_setup() {
    on_a_host(|host, site| {
        let wanted = wanted("net", &["10.22.0.1/16"]);
        site.establish(&wanted).unwrap();
        let rebooted = Host { boot: "other".to_owned(), ..host.clone() };
        let mut after = Site { host: &rebooted, netns: site.netns, socket: &mut *site.socket };
        assert!(after.in_place(&wanted).unwrap().is_none());
        let other = pinned_netns();
        other
            .enter(|| {
                let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
                let mut there = Site { host, netns: &netns, socket: &mut socket };
                assert!(there.in_place(&wanted).unwrap().is_none());
                Ok(())
            })
            .unwrap();
    });
}

#[test]
fn a_failed_or_undone_setup_leaves_nothing() {
    on_a_host(|host, site| {
        let net = wanted("net", &["10.22.0.1/16"]);
        let made = site.establish(&net).unwrap();
        assert_eq!(site.undo(made).unwrap(), Undone::Gone);
        assert_eq!(site.socket.link_by_name("obr_net").unwrap(), None);
        assert_eq!(NetworkRecord::load(host, &net.name).unwrap(), None);
        // The record cannot be written.
        std::fs::remove_dir(NetworkRecord::folder(host)).unwrap();
        std::fs::write(NetworkRecord::folder(host), "").unwrap();
        assert_eq!(site.establish(&net).unwrap_err().code(), Code::Io);
        assert_eq!(site.socket.link_by_name("obr_net").unwrap(), None);
        std::fs::remove_file(NetworkRecord::folder(host)).unwrap();
        // A foreign bridge keeps what it had.
        let foreign = device(site, "br7", &["10.22.9.1/24"]);
        let unmarked = std::process::Command::new("ip").args(["link", "set", "br7", "group", "0"]).status().unwrap();
        assert!(unmarked.success());
        let mut forced = Wanted { force_address: true, ..wanted("net", &["10.22.0.1/16"]) };
        forced.bridge = BridgeName { name: "br7".to_owned(), altname: None };
        let made = site.establish(&forced).unwrap();
        assert!(!made.record.owned);
        assert_eq!(made.record.mtu, 1450);
        assert_eq!(addresses(site, &foreign), ["10.22.0.1/16"]);
        assert_eq!(site.undo(made).unwrap(), Undone::Gone);
        assert_eq!(addresses(site, &foreign), ["10.22.9.1/24"]);
    });
}

/// A container's pair, as a port of a bridge.
pub(super) fn pair(netns: &Netns, master: u32) -> NewPair<'_> {
    let mac = |last| Mac([2, 0, 0, 0, 0, last]);
    NewPair { host: "ov1", host_mac: mac(1), master, peer: "eth0", peer_mac: mac(2), netns, mtu: 1500 }
}

#[test]
fn a_setup_that_others_have_joined_is_not_undone() {
    on_a_host(|host, site| {
        let net = wanted("net", &["10.22.0.1/16"]);
        let made = site.establish(&net).unwrap();
        let container = pinned_netns();
        site.socket.create_pair(&pair(&container, made.bridge.index)).unwrap();
        assert_eq!(site.undo(made).unwrap(), Undone::Nothing);
        assert!(site.in_place(&net).unwrap().is_some());
        assert!(NetworkRecord::load(host, &net.name).unwrap().is_some());
    });
}

#[test]
fn b4_1_another_kind_of_device_is_refused_by_kind() {
    on_a_host(|_, site| {
        let mut odd = wanted("net", &["10.22.0.1/16"]);
        odd.bridge.name = "lo".to_owned();
        for error in [site.refuse(&odd).unwrap_err(), site.establish(&odd).unwrap_err()] {
            assert_eq!(error.code(), Code::InvalidConfig);
            assert!(
                error.to_string().contains("\"lo\" already exists but is not a bridge, it is a hardware device"),
                "{error}"
            );
        }
    });
}

#[test]
fn br14_an_address_that_clashes_is_named_and_replaced_with_force() {
    on_a_host(|_, site| {
        let bridge = device(site, "obr_net", &["10.22.9.1/24", "10.50.0.1/24", "fd77::9/64", "fd99::1/64"]);
        let mut net = wanted("net", &["10.22.0.1/16", "fd77::1/64"]);
        let text = site.refuse(&net).unwrap_err().to_string();
        assert!(
            text.contains("\"obr_net\" already has an IP address different from 10.22.0.1/16: 10.22.9.1/24"),
            "{text}"
        );
        net.force_address = true;
        site.refuse(&net).unwrap();
        site.establish(&net).unwrap();
        let mut have = addresses(site, &bridge);
        have.sort();
        assert_eq!(have, ["10.22.0.1/16", "10.50.0.1/24", "fd77::1/64", "fd99::1/64"], "disjoint ones stay");
    });
}

#[test]
fn two_networks_share_a_bridge_with_disjoint_subnets_only() {
    on_a_host(|_, site| {
        let shared = |name: &str, gateway: &str| Wanted {
            bridge: BridgeName { name: "br7".to_owned(), altname: None },
            ..wanted(name, &[gateway])
        };
        let first = site.establish(&shared("a", "10.22.0.1/24")).unwrap();
        site.establish(&shared("b", "10.22.1.1/24")).unwrap();
        assert_eq!(addresses(site, &first.bridge), ["10.22.0.1/24", "10.22.1.1/24"]);
        let text = site.establish(&shared("c", "10.22.1.9/24")).unwrap_err().to_string();
        assert!(text.contains("10.22.1.0/24 overlaps 10.22.1.0/24 of network b"), "{text}");
        assert!(site.in_place(&shared("a", "10.22.0.1/24")).unwrap().is_some());
    });
}

#[test]
fn an_edited_subnet_keeps_the_old_one_working() {
    on_a_host(|_, site| {
        site.establish(&wanted("net", &["10.22.0.1/24"])).unwrap();
        let moved = site.establish(&wanted("net", &["10.33.0.1/24"])).unwrap();
        assert_eq!(addresses(site, &moved.bridge), ["10.22.0.1/24", "10.33.0.1/24"]);
        assert_eq!(moved.record.subnets.len(), 2);
        // One that overlaps takes the old one's place: it is our own.
        let wider = site.establish(&wanted("net", &["10.22.0.1/16"])).unwrap();
        assert_eq!(addresses(site, &wider.bridge), ["10.33.0.1/24", "10.22.0.1/16"]);
    });
}

#[test]
fn a_bridge_made_again_has_every_gateway_of_its_record() {
    on_a_host(|_, site| {
        let old = site.establish(&wanted("net", &["10.22.0.1/16"])).unwrap();
        site.socket.delete_link(&old.bridge).unwrap();
        let edited = wanted("net", &["10.23.0.1/16"]);
        let new = site.establish(&edited).unwrap();
        let mut there = addresses(site, &new.bridge);
        there.sort();
        assert_eq!(there, ["10.22.0.1/16", "10.23.0.1/16"]);
        assert!(site.in_place(&edited).unwrap().is_some());
    });
}

#[test]
fn br16_a_layer_2_bridge_has_a_mac_of_its_own_and_no_address() {
    on_a_host(|_, site| {
        let made = site.establish(&wanted("a-long-network-name", &[])).unwrap();
        assert_eq!(made.bridge.mac, Some(Machine::read().bridge(&made.record.name).0));
        let found = site.socket.link_by_name("obr_a-long-network-name").unwrap().unwrap();
        assert_eq!((found.index, found.name), (made.bridge.index, made.record.bridge.clone()));
        assert_eq!(addresses(site, &made.bridge), [""; 0]);
        assert!(site.in_place(&wanted("a-long-network-name", &[])).unwrap().is_some());
    });
}

#[test]
fn a_router_advertised_default_route_survives_forwarding() {
    on_a_host(|_, site| {
        Sysctl::ForwardV6.set("0").unwrap();
        let uplink = device(site, "up0", &["fd01::2/64"]);
        site.socket.set_up(&uplink, true).unwrap();
        // As the kernel would have made it from an advertisement; `ip` can say so.
        let added = std::process::Command::new("ip")
            .args(["-6", "route", "add", "default", "via", "fd01::1", "dev", "up0", "proto", "ra"])
            .status()
            .unwrap();
        assert!(added.success());
        site.establish(&wanted("net", &["fd77::1/64"])).unwrap();
        assert_eq!(Sysctl::V6("up0", "accept_ra").get().unwrap().as_deref(), Some("2"));
        assert!(forwarding::is_on(true).unwrap());
        let filter = RouteFilter { v6: Some(true), ..RouteFilter::default() };
        assert!(site.socket.routes(&filter).unwrap().iter().any(|route| route.is_default() && route.is_unicast()));
    });
}

#[test]
fn the_mtu_is_changed_by_an_operator() {
    on_a_host(|host, site| {
        let mut wanted = wanted("net", &["10.22.0.1/16"]);
        let mut setup = site.establish(&wanted).unwrap();
        assert_eq!(site.other_mtu(&wanted, &setup).unwrap(), None);
        wanted.mtu = Some(1400);
        let found = site.in_place(&wanted).unwrap().unwrap();
        assert_eq!(site.other_mtu(&wanted, &found).unwrap(), Some(1400));
        site.change_mtu(&mut setup, 1400).unwrap();
        assert_eq!(site.socket.link_by_name("obr_net").unwrap().unwrap().mtu, 1400);
        assert_eq!(NetworkRecord::load(host, &wanted.name).unwrap().unwrap().mtu, 1400);
        let found = site.in_place(&wanted).unwrap().unwrap();
        assert_eq!(site.other_mtu(&wanted, &found).unwrap(), None);
        setup.record.owned = false;
        wanted.mtu = Some(1300);
        assert_eq!(site.other_mtu(&wanted, &setup).unwrap(), None, "a foreign bridge keeps its own");
    });
}
