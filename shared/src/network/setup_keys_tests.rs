//! Promiscuous mode, isolated ports and VLANs. This kernel may lack VLAN filtering: what needs it is tested in the VM.

use super::tests::{device, on_a_host, pair, wanted};
use super::*;
use crate::Code;
use crate::netlink::testing::pinned_netns;
use crate::netlink::{Mac, NewLocalPair};
use crate::network::Vlans;
use crate::network::names::BridgeName;
use crate::network::record::tests::record;
use crate::teardown::{How, Outcome, teardown};

fn ip(words: &str) {
    let done = std::process::Command::new("ip").args(words.split(' ')).status().unwrap();
    assert!(done.success(), "ip {words}");
}

fn on(bridge: &str, wanted: Wanted) -> Wanted {
    Wanted { bridge: BridgeName { name: bridge.to_owned(), altname: None }, ..wanted }
}

#[test]
fn br15_promiscuous_mode_is_set_kept_and_taken_back() {
    on_a_host(|_, site| {
        let is_promiscuous =
            |site: &mut Site<'_>, name: &str| site.socket.link_by_name(name).unwrap().unwrap().promiscuous;
        let plain = wanted("net", &["10.22.0.1/16"]);
        let all = Wanted { promiscuous: true, ..plain.clone() };
        let made = site.establish(&all).unwrap();
        assert!(made.bridge.promiscuous && is_promiscuous(site, "obr_net"));
        ip("link set obr_net promisc off");
        assert!(site.in_place(&all).unwrap().is_none(), "somebody switched it off");
        site.establish(&all).unwrap();
        assert!(is_promiscuous(site, "obr_net") && site.in_place(&all).unwrap().is_some());
        // Another network on the bridge wants it, until it does not.
        let other = on("obr_net", Wanted { promiscuous: true, ..wanted("other", &["10.23.0.1/16"]) });
        site.establish(&other).unwrap();
        site.establish(&plain).unwrap();
        assert!(is_promiscuous(site, "obr_net"));
        let taken = site.establish(&Wanted { promiscuous: false, ..other }).unwrap();
        assert!(!is_promiscuous(site, "obr_net"));
        assert_eq!(site.undo(taken).unwrap(), Undone::Restored);
        assert!(is_promiscuous(site, "obr_net"), "an ADD that fails leaves it as it was");

        device(site, "br7", &[]);
        ip("link set br7 group 0 promisc on");
        site.establish(&on("br7", wanted("foreign", &["10.24.0.1/16"]))).unwrap();
        assert!(is_promiscuous(site, "br7"), "a foreign bridge keeps what it had");
    });
}

fn is_promiscuous(site: &mut Site<'_>, bridge: &str) -> bool {
    site.socket.link_by_name(bridge).unwrap().unwrap().promiscuous
}

#[test]
fn promiscuous_mode_ends_with_the_last_network_that_wants_it_on_whosever_bridge() {
    on_a_host(|host, site| {
        let gone = |network: &str, dry_run: bool| match teardown(
            host,
            &network.parse().unwrap(),
            None,
            How { dry_run, force: false },
        ) {
            Ok(Outcome::Gone(changes)) => changes.join("\n"),
            other => panic!("{other:?}"),
        };
        device(site, "br7", &[]);
        ip("link set br7 group 0");
        for bridge in ["br7", "shared"] {
            let net = |name: &str, gateway: &str| {
                let wanted = wanted(name, &[gateway]);
                (on(bridge, Wanted { promiscuous: true, ..wanted.clone() }), on(bridge, wanted))
            };
            let ((a, plain_a), (b, _), (_, c)) =
                (net("a", "10.22.0.1/24"), net("b", "10.22.1.1/24"), net("c", "10.22.2.1/24"));
            site.establish(&c).unwrap();
            site.establish(&a).unwrap();
            // An edit.
            site.establish(&plain_a).unwrap();
            assert!(!is_promiscuous(site, bridge), "{bridge}");
            // The last one that wants it; the one that set it goes first.
            site.establish(&a).unwrap();
            site.establish(&b).unwrap();
            gone("a", false);
            assert!(is_promiscuous(site, bridge), "{bridge}");
            assert!(gone("b", true).contains("would switch promiscuous mode"));
            assert!(is_promiscuous(site, bridge), "{bridge}");
            assert!(gone("b", false).contains(&format!("switched promiscuous mode of bridge {bridge} off")));
            assert!(!is_promiscuous(site, bridge), "{bridge}");
            // One that found it on, when the one that set it goes.
            ip(&format!("link set {bridge} promisc on"));
            site.establish(&b).unwrap();
            ip(&format!("link set {bridge} promisc off"));
            site.establish(&a).unwrap();
            gone("a", false);
            assert!(is_promiscuous(site, bridge), "{bridge}");
            gone("b", false);
            assert!(!is_promiscuous(site, bridge), "{bridge}");
            // Another bridge, once the old one has let go of the gateway.
            site.establish(&a).unwrap();
            ip(&format!("addr flush dev {bridge}"));
            site.establish(&Wanted { bridge: BridgeName { name: "br_a".to_owned(), altname: None }, ..a.clone() })
                .unwrap();
            assert!(!is_promiscuous(site, bridge) && is_promiscuous(site, "br_a"), "{bridge}");
            gone("a", false);
            gone("c", false);
            if bridge == "br7" {
                // A bridge of somebody else keeps the gateways.
                ip("addr flush dev br7");
            }
        }
    });
}

#[test]
fn promiscuous_mode_that_an_administrator_has_set_stays() {
    on_a_host(|host, site| {
        let all = Wanted { promiscuous: true, ..wanted("net", &["10.22.0.1/16"]) };
        site.establish(&wanted("net", &["10.22.0.1/16"])).unwrap();
        ip("link set obr_net promisc on");
        site.establish(&wanted("net", &["10.22.0.1/16", "10.24.0.1/16"])).unwrap();
        assert!(is_promiscuous(site, "obr_net"));
        let made = site.establish(&all).unwrap();
        assert!(!made.record.promiscuous_by_us);
        site.establish(&wanted("net", &["10.22.0.1/16"])).unwrap();
        assert!(is_promiscuous(site, "obr_net"), "it was on before");
        assert!(!NetworkRecord::load(host, &all.name).unwrap().unwrap().promiscuous_by_us);
    });
}

#[test]
fn a_failed_add_takes_no_mode_from_a_network_that_has_joined_meanwhile() {
    on_a_host(|host, site| {
        let a = on("br7", Wanted { promiscuous: true, ..wanted("a", &["10.22.0.1/24"]) });
        let b = on("br7", Wanted { promiscuous: true, ..wanted("b", &["10.22.1.1/24"]) });
        let first = site.establish(&a).unwrap();
        let second = site.establish(&b).unwrap();
        assert_eq!(site.undo(first).unwrap(), Undone::Gone);
        assert!(is_promiscuous(site, "br7"));
        assert_eq!(site.undo(second).unwrap(), Undone::Gone);
        // Not every kernel can filter: that it would try is enough.
        let (name, vlans) = ("c".parse().unwrap(), Vlans { access: Some(100), ..Vlans::default() });
        let gone = Link { name: "br7".to_owned(), index: 99_999, ..Link::default() };
        let filtered = || [Step::Filtered(gone.clone())];
        assert_eq!(site.undo_steps(&name, filtered()).len(), 1);
        NetworkRecord { vlans, ..second_record(host, site, &b) }.save(host).unwrap();
        assert_eq!(site.undo_steps(&name, filtered()).len(), 0);
    });
}

fn second_record(host: &Host, site: &mut Site<'_>, wanted: &Wanted) -> NetworkRecord {
    site.establish(wanted).unwrap();
    NetworkRecord::load(host, &wanted.name).unwrap().unwrap()
}

/// An edit of `vlan` whose ADD was killed before the end leaves the old device to whoever comes next.
#[test]
fn a_pair_of_a_vlan_that_no_network_is_in_goes_with_the_next_setup() {
    on_a_host(|host, site| {
        let made = site.establish(&wanted("net", &["10.22.0.1/16"])).unwrap();
        let names = [100, 200].map(|vlan| VlanNames::of("obr_net", vlan));
        for (names, last) in names.iter().zip([1, 3]) {
            let mac = |last| Mac([2, 0, 0, 0, 1, last]);
            let master = made.bridge.index;
            let (port, device, port_mac, device_mac) = (&names.port, &names.device, mac(last), mac(last + 1));
            site.socket
                .create_local_pair(&NewLocalPair { port, port_mac, master, device, device_mac, mtu: 1500 })
                .unwrap();
        }
        let other = NetworkRecord {
            bridge: "obr_net".to_owned(),
            vlan_device: Some(names[1].device.clone()),
            boot: host.boot.clone(),
            netns: site.netns.clone(),
            ..record("other", &["10.33.0.0/16"])
        };
        other.save(host).unwrap();
        site.establish(&wanted("net", &["10.22.0.1/16", "10.24.0.1/16"])).unwrap();
        let is_there = |site: &mut Site<'_>, name: &str| site.socket.link_by_name(name).unwrap().is_some();
        assert!(!is_there(site, &names[0].device) && !is_there(site, &names[0].port));
        assert!(is_there(site, &names[1].device), "another network is in it");
    });
}

#[test]
fn br23_ports_are_isolated_as_the_configuration_is_now() {
    on_a_host(|host, site| {
        let plain = wanted("net", &["10.22.0.1/16"]);
        let isolated = Wanted { port_isolation: true, ..plain.clone() };
        let made = site.establish(&plain).unwrap();
        let container = pinned_netns();
        site.socket.create_pair(&pair(&container, made.bridge.index)).unwrap();
        let port = site.socket.link_by_name("ov1").unwrap().unwrap();
        site.socket.set_alias(&port, "osvc:net:10.22.0.2 eth0 c1").unwrap();
        let is_isolated = |site: &mut Site<'_>| site.socket.link_by_name("ov1").unwrap().unwrap().isolated;
        assert_eq!((site.rejoin(&plain, &made.bridge).unwrap(), is_isolated(site)), (0, Some(false)));
        assert_eq!((site.rejoin(&isolated, &made.bridge).unwrap(), is_isolated(site)), (1, Some(true)));
        assert_eq!(site.rejoin(&isolated, &made.bridge).unwrap(), 0);
        ip("link set ov1 nomaster");
        assert_eq!((site.rejoin(&isolated, &made.bridge).unwrap(), is_isolated(site)), (1, Some(true)));
        assert!(site.socket.link_by_name("ov1").unwrap().unwrap().up);
        assert_eq!((site.rejoin(&plain, &made.bridge).unwrap(), is_isolated(site)), (1, Some(false)));
        // An edit, found by whatever is set up next.
        assert!(site.in_place(&isolated).unwrap().is_none());
        site.establish(&isolated).unwrap();
        assert_eq!(is_isolated(site), Some(true));
        site.establish(&plain).unwrap();
        assert_eq!(is_isolated(site), Some(false));
        let record = NetworkRecord::load(host, &plain.name).unwrap().unwrap();
        let vlans = Vlans { access: Some(100), ..Vlans::default() };
        NetworkRecord { vlans, ..record }.save(host).unwrap();
        assert!(site.in_place(&plain).unwrap().is_none());
    });
}

#[test]
fn a_bridge_that_cannot_filter_is_refused_and_nothing_is_left() {
    on_a_host(|host, site| {
        let vlans = Vlans { access: Some(100), ..Vlans::default() };
        let net = Wanted { vlan: Some(100), vlans, ..wanted("net", &["10.22.0.1/16"]) };
        device(site, "br7", &[]);
        ip("link set br7 group 0");
        let foreign = on("br7", net.clone());
        let error = site.refuse(&foreign).unwrap_err();
        let text = error.to_string();
        assert!(site.establish(&foreign).is_err());
        let kernel = site.socket.link_by_name("br7").unwrap().unwrap().vlans;
        if kernel.is_some() {
            assert_eq!(error.code(), Code::InvalidConfig);
            assert!(text.contains("`ip link set br7 type bridge vlan_filtering 1`"), "{text}");
            return;
        }
        assert_eq!(error.code(), Code::NotAvailable);
        assert!(text.contains("br7") && text.contains("CONFIG_BRIDGE_VLAN_FILTERING"), "{text}");
        let error = site.establish(&net).unwrap_err();
        assert_eq!(error.code(), Code::NotAvailable, "{error}");
        assert_eq!(site.socket.link_by_name("obr_net").unwrap(), None);
        assert_eq!(NetworkRecord::load(host, &net.name).unwrap(), None);
    });
}
