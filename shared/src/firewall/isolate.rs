//! The rules of isolated networks: nothing passes between one of them and any other network of ours.
//!
//! Forwarded or meant for a gateway address of the other makes no difference, and a published port is forwarded to the
//! container's own address by the time that these rules see it. Both ends are told by their addresses; and where a device
//! is ours, and so only our networks are behind it, by the device too, so that a made-up source changes nothing. A bridge
//! that somebody else made may have an uplink: what comes by it is told by its addresses alone. Neighbour discovery,
//! multicast and broadcast stay what they are: they go to nobody else's address.

use std::collections::BTreeSet;

use ipnet::IpNet;

use super::cluster::one_of;
use super::family::Family;
use super::mark::is_device;
use super::wanted::{INSIDE, Place, has_part, usable};
use crate::network::record::NetworkRecord;

/// The networks that a network is beside: all of this host, itself included.
#[derive(Debug, Default)]
pub struct Beside<'a>(Vec<&'a NetworkRecord>);

impl<'a> Beside<'a> {
    /// These networks.
    pub fn of(records: impl IntoIterator<Item = &'a NetworkRecord>) -> Self {
        Self(records.into_iter().collect())
    }

    /// The addresses of the networks whose packets may come by a device: with br_netfilter, those of a VLAN also by the
    /// bridge.
    fn on(&self, device: &str, family: Family) -> Vec<IpNet> {
        let is_on = |record: &&&NetworkRecord| record.forwarding_devices().any(|it| it == device);
        self.0.iter().filter(is_on).flat_map(|record| own(record, family)).collect()
    }

    /// The devices behind which only other networks of ours are.
    fn devices_of_others(&self, record: &NetworkRecord) -> Vec<String> {
        let own: BTreeSet<&str> = record.forwarding_devices().collect();
        let others: BTreeSet<&str> = self.0.iter().filter_map(|other| device(other)).collect();
        others.difference(&own).map(|device| format!("\"{device}\"")).collect()
    }
}

/// The device of a network behind which nothing is but networks of ours.
fn device(record: &NetworkRecord) -> Option<&str> {
    let is_ours = record.owned || record.vlan_device.is_some();
    Some(record.device()).filter(|device| is_ours && is_device(device))
}

/// Everything that is a network's own, here and on other nodes. What the host has no part in is nobody's.
fn own(record: &NetworkRecord, family: Family) -> Vec<IpNet> {
    let mut own = if has_part(record) { usable(&record.subnets, family) } else { Vec::new() };
    own.extend(record.cluster.iter().flat_map(|cluster| usable(&cluster.networks, family)));
    own
}

/// True if nothing can be done to isolate a network: all that it has is on a link of somebody else.
pub fn is_out_of_reach(record: &NetworkRecord) -> bool {
    record.isolate && device(record).is_none() && Family::ALL.iter().all(|family| own(record, *family).is_empty())
}

/// The rules of a network in the table of a family; none if it is not isolated, or if no network has addresses there.
pub fn rules(record: &NetworkRecord, family: Family, beside: &Beside<'_>) -> Vec<(Place, String)> {
    if !record.isolate || beside.0.iter().all(|other| own(other, family).is_empty()) {
        return Vec::new();
    }
    let mut tests = Vec::new();
    let others = |end: &str, mut own: Vec<IpNet>| {
        if end == "daddr" {
            own.extend(family.link_scope().iter().filter_map(|text| text.parse::<IpNet>().ok()));
        }
        format!("{family} {end} @{INSIDE} {family} {end} != {}", one_of(&own).unwrap_or_default())
    };
    if let Some(device) = device(record) {
        tests.push(format!("iifname \"{device}\" {}", others("daddr", beside.on(device, family))));
    }
    if let Some(own_text) = one_of(&own(record, family)) {
        let devices = beside.devices_of_others(record);
        if !devices.is_empty() {
            tests.push(format!("iifname {{ {} }} {family} daddr {own_text}", devices.join(", ")));
        }
        // By a tunnel, from a peer without one, or by a bridge that both are on.
        tests.push(format!("{} {family} daddr {own_text}", others("saddr", own(record, family))));
        tests.push(format!("{family} saddr {own_text} {}", others("daddr", own(record, family))));
    }
    let rule = |place| move |test: &String| (place, format!("{test} drop"));
    tests.iter().map(rule(Place::Input)).chain(tests.iter().map(rule(Place::Drop))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::wanted::{Share, fingerprint, tables};
    use super::*;
    use crate::network::cluster::Cluster;
    use crate::network::record::tests::record;

    fn isolated(name: &str, subnets: &[&str]) -> NetworkRecord {
        NetworkRecord { isolate: true, ..record(name, subnets) }
    }

    /// The isolating rules of the forward hook; those of the input hook are the same.
    fn texts(record: &NetworkRecord, family: Family, all: &[&NetworkRecord]) -> Vec<String> {
        let rules = rules(record, family, &Beside::of(all.iter().copied()));
        let at = |place| rules.iter().filter(|(at, _)| *at == place).map(|(_, text)| text.clone()).collect::<Vec<_>>();
        assert_eq!(at(Place::Input), at(Place::Drop));
        at(Place::Drop)
    }

    #[test]
    fn between_two_bridges() {
        let (a, b) = (isolated("a", &["10.1.0.0/16"]), record("b", &["10.2.0.0/16", "fd02::/64"]));
        assert_eq!(
            texts(&a, Family::Ip, &[&a, &b]),
            [
                "iifname \"obr_a\" ip daddr @inside ip daddr != { 10.1.0.0/16, 224.0.0.0/4, 255.255.255.255/32 } drop",
                "iifname { \"obr_b\" } ip daddr 10.1.0.0/16 drop",
                "ip saddr @inside ip saddr != 10.1.0.0/16 ip daddr 10.1.0.0/16 drop",
                "ip saddr 10.1.0.0/16 ip daddr @inside ip daddr != { 10.1.0.0/16, 224.0.0.0/4, 255.255.255.255/32 } drop",
            ]
        );
        // It has no IPv6, and what it sends is forwarded all the same.
        assert_eq!(
            texts(&a, Family::Ip6, &[&a, &b]),
            ["iifname \"obr_a\" ip6 daddr @inside ip6 daddr != { fe80::/10, ff00::/8 } drop"]
        );
        assert!(texts(&a, Family::Ip6, &[&a]).is_empty(), "nobody has IPv6: no table is made for it");
        assert!(texts(&b, Family::Ip, &[&a, &b]).is_empty());
        assert_ne!(fingerprint(&a), fingerprint(&record("a", &["10.1.0.0/16"])));
    }

    #[test]
    fn on_one_bridge_only_addresses_tell_networks_apart() {
        let (mut a, mut b) = (isolated("a", &["10.1.0.0/16"]), record("b", &["10.2.0.0/16"]));
        (a.bridge, b.bridge) = ("br0".into(), "br0".into());
        assert_eq!(
            texts(&a, Family::Ip, &[&a, &b]),
            [
                "iifname \"br0\" ip daddr @inside ip daddr != \
                 { 10.1.0.0/16, 10.2.0.0/16, 224.0.0.0/4, 255.255.255.255/32 } drop",
                "ip saddr @inside ip saddr != 10.1.0.0/16 ip daddr 10.1.0.0/16 drop",
                "ip saddr 10.1.0.0/16 ip daddr @inside ip daddr != { 10.1.0.0/16, 224.0.0.0/4, 255.255.255.255/32 } drop",
            ]
        );
    }

    /// With br_netfilter, frames between the ports of a VLAN are forwarded packets of the bridge.
    #[test]
    fn a_bridge_is_no_other_device_than_that_of_a_vlan_on_it() {
        let (mut v, mut b) = (isolated("v", &["10.1.0.0/16"]), record("b", &["10.2.0.0/16"]));
        (v.bridge, v.vlan_device, b.bridge) = ("br0".into(), Some("br0.7".into()), "br0".into());
        let rules = texts(&v, Family::Ip, &[&v, &b]);
        assert!(rules.iter().all(|rule| !rule.contains("iifname { \"br0\" }")), "{rules:?}");
        (v.isolate, b.isolate) = (false, true);
        let rules = texts(&b, Family::Ip, &[&v, &b]);
        let of_bridge = rules.iter().find(|rule| rule.starts_with("iifname \"br0\" ")).unwrap();
        assert!(of_bridge.contains("10.1.0.0/16"), "what the bridge forwards between ports of the VLAN: {of_bridge}");
    }

    /// The host's uplink may be a port of a bridge that is not ours, and its network what is behind it.
    #[test]
    fn what_is_behind_a_foreign_bridge_is_not_cut_off() {
        let (b, mut l2) = (isolated("b", &["10.2.0.0/16"]), isolated("l2", &[]));
        (l2.bridge, l2.owned) = ("br0".into(), false);
        assert!(texts(&b, Family::Ip, &[&b, &l2]).iter().all(|rule| !rule.contains("br0")));
        assert!(texts(&l2, Family::Ip, &[&b, &l2]).is_empty());
        let subnets = vec!["192.168.1.0/24".parse().unwrap()];
        let lan = NetworkRecord { subnets, masquerade_v4: false, masquerade_v6: false, ..l2.clone() };
        let rules = texts(&b, Family::Ip, &[&b, &lan]);
        assert!(
            rules.len() == 3 && rules.iter().all(|rule| !rule.contains("192.168") && !rule.contains("br0")),
            "{rules:?}"
        );
        assert!(Share::of(&lan, Family::Ip).elements.is_empty(), "what is sent there is masqueraded");
        assert!(texts(&lan, Family::Ip, &[&b, &lan]).is_empty());
        // With a gateway on it the host is its router.
        let routed = NetworkRecord { gateways: vec!["192.168.1.2/24".parse().unwrap()], ..lan };
        assert_eq!(texts(&routed, Family::Ip, &[&b, &routed]).len(), 3, "by addresses, and by our own devices");
    }

    #[test]
    fn a_routed_network_keeps_its_other_nodes() {
        let mut r = isolated("r", &["10.11.4.0/22"]);
        r.cluster = Some(Cluster { networks: vec!["10.11.0.0/16".parse().unwrap()], ..Cluster::default() });
        let a = record("a", &["10.1.0.0/16"]);
        let rules = texts(&r, Family::Ip, &[&a, &r]);
        assert!(rules.iter().all(|rule| rule.contains("10.11.0.0/16") && !rule.contains("10.11.4.0/22")), "{rules:?}");
    }

    #[test]
    fn a_network_of_layer_2_reaches_no_other_one_by_way_of_this_host() {
        let (l, b) = (isolated("l", &[]), record("b", &["10.2.0.0/16"]));
        let only = ["iifname \"obr_l\" ip daddr @inside ip daddr != { 224.0.0.0/4, 255.255.255.255/32 } drop"];
        assert_eq!(texts(&l, Family::Ip, &[&l, &b]), only);
        assert!(Share::of(&l, Family::Ip).rules.is_empty());
    }

    #[test]
    fn isolation_comes_before_what_is_accepted() {
        let tables = tables(&[record("b", &["10.2.0.0/16"]), isolated("z", &["10.3.0.0/16"])], &|_| Share::default());
        let forward: Vec<_> =
            tables[0].share.rules.iter().filter(|rule| rule.place.chain() == "forward").map(|r| r.place).collect();
        assert!(forward.windows(2).all(|pair| pair[0] <= pair[1]), "{forward:?}");
        assert!(forward.starts_with(&[Place::Drop]) && forward.ends_with(&[Place::Accept]));
    }
}
