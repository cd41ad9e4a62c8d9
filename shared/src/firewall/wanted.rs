//! What the tables should hold, from the records of the networks.

use ipnet::IpNet;
use sha2::{Digest, Sha256};

use super::family::Family;
use super::mark::{OWN, is_device, mark};
use crate::attachment::hex;
use crate::network::record::{ForwardAccept, NetworkRecord};

/// The name of our tables. Not `osvc`, which OpenSVC's agent deletes and defines anew.
pub const TABLE: &str = "osvc-cni";

/// The set of destinations that are ours, or that must not be masqueraded whoever sends.
pub const INSIDE: &str = "inside";

/// Where a rule stands. The order is that of the document; drops come before the accepts, which end the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Source translation of what leaves: hook postrouting, priority 100 (srcnat).
    Masquerade,
    /// Hook forward, priority 0: what must not pass.
    Drop,
    /// Hook forward: what may pass whatever follows in this chain.
    Accept,
}

impl Place {
    /// The chain's name. (`masquerade` and the like are keywords of nft.)
    pub fn chain(self) -> &'static str {
        match self {
            Self::Masquerade => "postrouting",
            Self::Drop | Self::Accept => "forward",
        }
    }
}

/// One rule, without its comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Where it stands.
    pub place: Place,
    /// nft's text of it.
    pub text: String,
    /// Its comment.
    pub mark: String,
}

/// One element of the set [`INSIDE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// The destinations.
    pub subnet: IpNet,
    /// Its comment; none for what is nobody's.
    pub mark: Option<String>,
}

/// The part of one family's table that is some network's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Share {
    /// Elements of the set.
    pub elements: Vec<Element>,
    /// Rules.
    pub rules: Vec<Rule>,
}

impl Share {
    /// What one network needs in the table of one family; empty for a network without subnets there.
    ///
    /// What nft would refuse is left out, for it would refuse the rules of all networks.
    pub fn of(record: &NetworkRecord, family: Family) -> Self {
        let mark = mark(OWN, &record.name);
        // A /0 would make the whole world one of our networks, and end masquerading for everybody.
        let subnets: Vec<IpNet> =
            record.subnets.iter().filter(|s| family.holds(s) && s.prefix_len() > 0).map(IpNet::trunc).collect();
        let mut share = Self::default();
        if subnets.is_empty() {
            return share;
        }
        let mut rule = |place, text| share.rules.push(Rule { place, text, mark: mark.clone() });
        let masquerade = match family {
            Family::Ip => record.masquerade_v4,
            Family::Ip6 => record.masquerade_v6,
        };
        if is_device(&record.bridge) {
            for subnet in subnets.iter().filter(|_| masquerade) {
                let leaves = format!("{family} saddr {subnet} {family} daddr != @{INSIDE}");
                rule(Place::Masquerade, format!("{leaves} masquerade"));
                // The kernel translates no packet of a connection that it does not know: it would leave
                // with the container's own address.
                rule(Place::Drop, format!("{leaves} ct state invalid drop"));
            }
            rule(Place::Accept, format!("iifname \"{}\" accept", record.bridge));
            rule(Place::Accept, format!("oifname \"{}\" accept", record.bridge));
        }
        share.elements = subnets.into_iter().map(|subnet| Element { subnet, mark: Some(mark.clone()) }).collect();
        share
    }
}

/// Says in the log what [`Share::of`] leaves out.
pub fn report_faults(record: &NetworkRecord) {
    if !is_device(&record.bridge) {
        tracing::warn!(network = %record.name, device = ?record.bridge,
            "no nftables rules for this network: its device has a name that no device can have");
    }
    for subnet in record.subnets.iter().filter(|subnet| subnet.prefix_len() == 0) {
        tracing::warn!(network = %record.name, %subnet, "no nftables rules for this subnet: it holds every address");
    }
}

/// The families in which a foreign drop would hit the network. Frames between ports of a layer 2
/// network meet the forward hook of either family when br_netfilter is on.
pub fn forwards(record: &NetworkRecord) -> impl Iterator<Item = Family> + '_ {
    Family::ALL.into_iter().filter(|family| record.subnets.is_empty() || record.subnets.iter().any(|s| family.holds(s)))
}

/// True if foreign chains are to be opened for this network.
pub fn opens_foreign(record: &NetworkRecord) -> bool {
    record.forward_accept == ForwardAccept::Auto && is_device(&record.bridge)
}

/// A hash of everything that is derived from the record: two records with the same one need the same rules.
pub fn fingerprint(record: &NetworkRecord) -> String {
    let mut hash = Sha256::new();
    for family in Family::ALL {
        let share = Share::of(record, family);
        for rule in &share.rules {
            hash.update(rule.text.as_bytes());
            hash.update([0]);
        }
        for element in &share.elements {
            hash.update(element.subnet.to_string().as_bytes());
            hash.update([0]);
        }
    }
    if opens_foreign(record) {
        hash.update(record.bridge.as_bytes());
    }
    hex(&hash.finalize()[..16])
}

/// The table of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The family.
    pub family: Family,
    /// What is in it. Elements neither touch nor overlap in a way that nft refuses.
    pub share: Share,
}

/// The tables that are wanted. `kept` are shares of networks that have no record; a family for which
/// there is nothing has no table.
pub fn tables(records: &[NetworkRecord], kept: &dyn Fn(Family) -> Share) -> Vec<Table> {
    Family::ALL
        .into_iter()
        .filter_map(|family| {
            let mut whole = Share::default();
            for share in records.iter().map(|record| Share::of(record, family)).chain([kept(family)]) {
                whole.elements.extend(share.elements);
                whole.rules.extend(share.rules);
            }
            if whole == Share::default() {
                return None;
            }
            let nobodys = family.link_scope().iter().filter_map(|text| text.parse().ok());
            whole.elements.extend(nobodys.map(|subnet| Element { subnet, mark: None }));
            whole.elements = outermost(whole.elements);
            whole.rules.sort_by_key(|rule| rule.place);
            Some(Table { family, share: whole })
        })
        .collect()
}

/// The elements without those that lie inside another one, which nft refuses ("conflicting intervals").
/// Two subnets are disjoint, or one lies in the other.
fn outermost(mut elements: Vec<Element>) -> Vec<Element> {
    elements.sort_by_key(|element| (element.subnet.network(), element.subnet.prefix_len()));
    let mut out: Vec<Element> = Vec::with_capacity(elements.len());
    for element in elements {
        if !out.last().is_some_and(|last| last.subnet.contains(&element.subnet)) {
            out.push(element);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::record::tests::record;
    use proptest::prelude::*;

    fn texts(share: &Share) -> Vec<&str> {
        share.rules.iter().map(|rule| rule.text.as_str()).collect()
    }

    #[test]
    fn e51_each_family_masquerades_for_itself() {
        let mut both = record("a", &["10.1.0.0/16", "fd00:1::/64"]);
        both.masquerade_v6 = false;
        assert_eq!(
            texts(&Share::of(&both, Family::Ip)),
            [
                "ip saddr 10.1.0.0/16 ip daddr != @inside masquerade",
                "ip saddr 10.1.0.0/16 ip daddr != @inside ct state invalid drop",
                "iifname \"obr_a\" accept",
                "oifname \"obr_a\" accept"
            ]
        );
        assert_eq!(
            texts(&Share::of(&both, Family::Ip6)),
            ["iifname \"obr_a\" accept", "oifname \"obr_a\" accept"],
            "a public network is forwarded, and is one of ours for the others"
        );
        assert_eq!(Share::of(&both, Family::Ip6).elements.len(), 1);
    }

    #[test]
    fn layer_2_needs_no_rule_of_ours_but_foreign_accepts_in_both_families() {
        let layer2 = record("l2", &[]);
        assert!(tables(std::slice::from_ref(&layer2), &|_| Share::default()).is_empty());
        assert_eq!(forwards(&layer2).collect::<Vec<_>>(), Family::ALL);
        assert_eq!(forwards(&record("a", &["10.1.0.0/16"])).collect::<Vec<_>>(), [Family::Ip]);
    }

    #[test]
    fn an_invalid_network_costs_only_itself_its_rules() {
        let mut bad = record("bad", &["10.2.0.0/16", "0.0.0.0/0"]);
        bad.bridge = "obr_a_name_too_long".into();
        let tables = tables(&[record("a", &["10.1.0.0/16"]), bad], &|_| Share::default());
        assert_eq!(tables.len(), 1);
        let share = &tables[0].share;
        assert!(share.rules.iter().all(|rule| rule.mark == "osvc:a"), "{share:?}");
        let inside: Vec<_> = share.elements.iter().map(|element| element.subnet.to_string()).collect();
        assert_eq!(inside, ["10.1.0.0/16", "10.2.0.0/16", "224.0.0.0/4", "255.255.255.255/32"]);
    }

    #[test]
    fn the_fingerprint_follows_what_is_rendered() {
        let a = record("a", &["10.1.0.0/16"]);
        let change = |act: &dyn Fn(&mut NetworkRecord)| {
            let mut other = a.clone();
            act(&mut other);
            fingerprint(&other)
        };
        assert_eq!(fingerprint(&a), change(&|r| r.mtu = 9000));
        assert_ne!(fingerprint(&a), change(&|r| r.masquerade_v4 = false));
        assert_ne!(fingerprint(&a), change(&|r| r.forward_accept = ForwardAccept::Never));
        assert_ne!(fingerprint(&a), change(&|r| r.bridge = "other".into()));
        assert_ne!(fingerprint(&a), change(&|r| r.subnets.push("fd00::/64".parse().unwrap())));
    }

    proptest! {
        #[test]
        fn elements_are_disjoint_and_cover_what_was_given(given in prop::collection::vec((any::<u32>(), 1u8..=32), 0..40)) {
            let given: Vec<IpNet> = given
                .into_iter()
                .map(|(base, prefix)| IpNet::new(std::net::Ipv4Addr::from(base).into(), prefix).unwrap().trunc())
                .collect();
            let out = outermost(given.iter().map(|&subnet| Element { subnet, mark: None }).collect());
            for (i, a) in out.iter().enumerate() {
                for b in &out[i + 1..] {
                    prop_assert!(!a.subnet.contains(&b.subnet) && !b.subnet.contains(&a.subnet));
                }
            }
            for subnet in given {
                prop_assert!(out.iter().any(|element| element.subnet.contains(&subnet)));
            }
        }
    }
}
