//! What the tables should hold, from the records of the networks.

use ipnet::IpNet;
use sha2::{Digest, Sha256};

use super::cluster::{self, Sources};
use super::family::Family;
use super::isolate::{self, Beside};
use super::mark::{OWN, is_device, mark};
use crate::attachment::hex;
use crate::netlink::GROUP;
use crate::network::record::{ForwardAccept, NetworkRecord};

/// The name of our tables. Not `osvc`, which OpenSVC's agent deletes and defines anew.
pub const TABLE: &str = "osvc-cni";

/// The set of destinations that are ours, or that must not be masqueraded whoever sends.
pub const INSIDE: &str = "inside";

/// The set of sources on this host that leave a network with another address. It is there if a routed network needs it.
pub const LOCAL: &str = "local";

/// Where a rule stands. The order is that of the document; drops come before the accepts, which end the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Hook prerouting, priority -300 (raw): what must not come in. The chain is there if a routed network needs it.
    Guard,
    /// Hook input, priority 0: what must not reach this host. The chain is there if an isolated network needs it.
    Input,
    /// Hook postrouting, priority 100 (srcnat): source translation towards other nodes.
    Translate,
    /// Hook postrouting: source translation of what leaves.
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
            Self::Guard => "prerouting",
            Self::Input => "input",
            Self::Translate | Self::Masquerade => "postrouting",
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

/// One element of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// The set: [`INSIDE`] or [`LOCAL`].
    pub set: &'static str,
    /// The addresses.
    pub subnet: IpNet,
    /// Its comment; none for what is nobody's.
    pub mark: Option<String>,
}

/// The part of one family's table that is some network's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Share {
    /// Elements of the sets.
    pub elements: Vec<Element>,
    /// Rules.
    pub rules: Vec<Rule>,
}

impl Share {
    /// True if nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty() && self.rules.is_empty()
    }

    /// What one network needs in the table of one family; empty for a network that has no part there.
    ///
    /// What nft would refuse is left out, for it would refuse the rules of all networks.
    pub fn of(record: &NetworkRecord, family: Family) -> Self {
        Self::among(record, family, &Sources::of([record]), &Beside::of([record]))
    }

    /// The same beside other networks, with which it may share tunnels, and from which it may be isolated: `sources` are
    /// those of all. As many elements, and other rules.
    pub fn among(record: &NetworkRecord, family: Family, sources: &Sources<'_>, beside: &Beside<'_>) -> Self {
        let mut share = Self::default();
        let of_isolation = isolate::rules(record, family, beside);
        let own = mark(OWN, &record.name);
        share.rules.extend(of_isolation.into_iter().map(|(place, text)| Rule { place, text, mark: own.clone() }));
        if record.guarded {
            // A bridge passes on what goes to the groups of its link (LLDP and the like, 01:80:c2:00:00:0e) unchecked, and
            // as the port's own. A port of ours has nothing to take for itself.
            let text = format!("meta iifgroup {GROUP} iifname \"ov*\" drop");
            share.rules.push(Rule { place: Place::Guard, text, mark: own.clone() });
        }
        share.bridge(record, family);
        if let Some(cluster) = &record.cluster {
            let rules = cluster::rules(record, cluster, family, sources);
            share.rules.extend(rules.into_iter().map(|(place, text)| Rule { place, text, mark: own.clone() }));
            share.add(INSIDE, &usable(&cluster.networks, family), &own);
        }
        share
    }

    /// What a network needs for its bridge.
    fn bridge(&mut self, record: &NetworkRecord, family: Family) {
        let mark = mark(OWN, &record.name);
        let subnets = usable(&record.subnets, family);
        if subnets.is_empty() {
            return;
        }
        let mut rule = |place, text| self.rules.push(Rule { place, text, mark: mark.clone() });
        let masquerade = match family {
            Family::Ip => record.masquerade_v4,
            Family::Ip6 => record.masquerade_v6,
        };
        if is_device(record.device()) {
            for subnet in subnets.iter().filter(|_| masquerade) {
                let leaves = format!("{family} saddr {subnet} {family} daddr != @{INSIDE}");
                rule(Place::Masquerade, format!("{leaves} masquerade"));
                // The kernel translates no packet of a connection that it does not know: it would leave
                // with the container's own address.
                rule(Place::Drop, format!("{leaves} ct state invalid drop"));
            }
            rule(Place::Accept, format!("iifname \"{}\" accept", record.device()));
            rule(Place::Accept, format!("oifname \"{}\" accept", record.device()));
        }
        if has_part(record) {
            self.add(INSIDE, &subnets, &mark);
        }
        if masquerade {
            self.add(LOCAL, &subnets, &mark);
        }
    }

    fn add(&mut self, set: &'static str, subnets: &[IpNet], mark: &str) {
        self.elements.extend(subnets.iter().map(|&subnet| Element { set, subnet, mark: Some(mark.to_owned()) }));
    }
}

/// True if this host has a part in the network's addresses: as their gateway, or on a bridge of its own. If not they are
/// those of a link where all the world may be, and masqueraded towards like any other.
pub(super) fn has_part(record: &NetworkRecord) -> bool {
    record.owned || !record.gateways.is_empty() || record.masquerade_v4 || record.masquerade_v6
}

/// The subnets of a family. A /0 would make the whole world one of our networks, and end masquerading for everybody.
pub(super) fn usable(subnets: &[IpNet], family: Family) -> Vec<IpNet> {
    subnets.iter().filter(|subnet| family.holds(subnet) && subnet.prefix_len() > 0).map(IpNet::trunc).collect()
}

/// Says in the log what [`Share::of`] leaves out.
pub fn report_faults(record: &NetworkRecord) {
    if !is_device(record.device()) {
        tracing::warn!(network = %record.name, device = ?record.device(),
            "no nftables rules for this network: its device has a name that no device can have");
    }
    if isolate::is_out_of_reach(record) {
        tracing::warn!(network = %record.name, bridge = ?record.bridge,
            "isolate does nothing here: the bridge is not ours, and this host is no gateway of the network");
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
    record.forward_accept == ForwardAccept::Auto && record.forwarding_devices().all(is_device)
}

/// A hash of everything that is derived from the record: two records with the same one need the same rules.
pub fn fingerprint(record: &NetworkRecord) -> String {
    let mut hash = Sha256::new();
    // Others that are isolated from it name its device.
    hash.update(format!("{} {}", record.device(), record.isolate));
    for family in Family::ALL {
        let share = Share::of(record, family);
        for rule in &share.rules {
            hash.update(rule.text.as_bytes());
            hash.update([0]);
        }
        for element in &share.elements {
            hash.update(element.set.as_bytes());
            hash.update(element.subnet.to_string().as_bytes());
            hash.update([0]);
        }
    }
    if opens_foreign(record) {
        record.forwarding_devices().for_each(|device| hash.update(device.as_bytes()));
        if let Some(cluster) = &record.cluster {
            hash.update(format!("{:?}", (&cluster.devices, &cluster.plain)));
        }
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
    let (sources, beside) = (Sources::of(records), Beside::of(records));
    Family::ALL
        .into_iter()
        .filter_map(|family| {
            let mut whole = Share::default();
            let shares = records.iter().map(|record| Share::among(record, family, &sources, &beside));
            for share in shares.chain([kept(family)]) {
                whole.elements.extend(share.elements);
                whole.rules.extend(share.rules);
            }
            if whole == Share::default() {
                return None;
            }
            let nobodys = family.link_scope().iter().filter_map(|text| text.parse().ok());
            whole.elements.extend(nobodys.map(|subnet| Element { set: INSIDE, subnet, mark: None }));
            let (inside, local) = whole.elements.into_iter().partition(|element| element.set == INSIDE);
            whole.elements = outermost(inside, |element: &Element| element.subnet);
            // A set that no rule asks for is none.
            let asked = whole.rules.iter().any(|rule| rule.text.contains(&format!("@{LOCAL} ")));
            if asked {
                whole.elements.extend(outermost(local, |element| element.subnet));
            }
            crate::order::sort_by_key(&mut whole.rules, |rule| rule.place);
            Some(Table { family, share: whole })
        })
        .collect()
}

/// What is left without networks that are the same as another one or lie in it: nft refuses these ("conflicting
/// intervals"). Two networks are disjoint, or one lies in the other.
pub(super) fn outermost<T>(mut all: Vec<T>, network: impl Fn(&T) -> IpNet) -> Vec<T> {
    crate::order::sort_by_key(&mut all, |it| (network(it).network(), network(it).prefix_len()));
    let mut out: Vec<T> = Vec::with_capacity(all.len());
    for it in all {
        if !out.last().is_some_and(|last| network(last).contains(&network(&it))) {
            out.push(it);
        }
    }
    out
}

#[cfg(test)]
#[path = "wanted_tests.rs"]
mod tests;
