//! What holds for all containers of a subnet: whose connections are masqueraded, and who may connect.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::keys::{ALLOWED, HAIRPIN, RESTRICTED, SENTINEL, pair_key, read_pair, unspecified};
use super::record::Record;
use crate::firewall::element::Element;
use crate::firewall::family::Family;
use crate::firewall::mark::{OWN, mark};

/// The mark of a subnet that several areas share: only the records tell what each of them wants. No network has such a
/// name.
pub const SHARED: &str = "osvc:several networks";

/// Which translated connections are masqueraded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Masquerade {
    /// None: `snat` is false.
    Nothing,
    /// Those that come from the target's own subnet or from this host's 127.0.0.1, which cannot be answered otherwise.
    Own,
    /// All.
    All,
}

/// A subnet that has containers with host ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// The subnet.
    pub subnet: IpNet,
    /// What is masqueraded.
    pub masquerade: Masquerade,
    /// Who may connect besides the host and the subnet itself; `None`: everybody.
    pub allow: Option<Vec<IpNet>>,
    /// The comment that names the network.
    pub mark: String,
}

/// One element of one of our three sets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// The set.
    pub set: &'static str,
    /// The clients.
    pub source: IpNet,
    /// The containers.
    pub target: IpNet,
    /// The comment that names the network.
    pub mark: String,
}

impl Pair {
    /// The element as the kernel has it.
    pub fn element(&self) -> Element {
        let (key, last) = pair_key(&self.source, &self.target);
        let comment = Some(self.mark.clone()).filter(|mark| !mark.is_empty());
        Element { key, key_end: Some(last), comment, ..Element::default() }
    }

    /// The pair that an element of a set is. What somebody else made has another mark, or none; `None` if it is no pair of
    /// subnets at all.
    pub fn of(set: &'static str, element: &Element) -> Option<Self> {
        if element.comment.as_deref() == Some(SENTINEL) {
            return None;
        }
        let (source, target) = read_pair(element)?;
        Some(Self { set, source, target, mark: element.comment.clone().unwrap_or_default() })
    }
}

/// The areas of a record: one for each of its addresses.
pub fn of_record(record: &Record) -> Vec<Area> {
    let masquerade = match (record.snat, record.masq_all) {
        (false, _) => Masquerade::Nothing,
        (true, false) => Masquerade::Own,
        (true, true) => Masquerade::All,
    };
    let mark = mark(OWN, &record.network);
    let allow = (!record.allow_from.is_empty()).then(|| record.allow_from.clone());
    let area = |target: &IpNet| Area { subnet: target.trunc(), masquerade, allow: allow.clone(), mark: mark.clone() };
    record.targets.iter().map(area).collect()
}

/// The areas that the kernel's sets of one family stand for.
pub fn of_pairs(pairs: &[Pair]) -> Vec<Area> {
    let mut areas = BTreeMap::<(IpNet, &str), Area>::new();
    for pair in pairs {
        let is_all = pair.source.prefix_len() == 0;
        let area = areas.entry((pair.target, &pair.mark)).or_insert_with(|| Area {
            subnet: pair.target,
            masquerade: Masquerade::Nothing,
            allow: None,
            mark: pair.mark.clone(),
        });
        match pair.set {
            HAIRPIN => {
                area.masquerade = area.masquerade.max(if is_all { Masquerade::All } else { Masquerade::Own });
            }
            ALLOWED => area.allow.get_or_insert_default().push(pair.source),
            _ => drop(area.allow.get_or_insert_default()),
        }
    }
    areas.into_values().collect()
}

/// The areas after some were added: a network's newer word on a subnet replaces its older one.
pub fn merged(mut areas: Vec<Area>, newer: Vec<Area>) -> Vec<Area> {
    for area in newer {
        areas.retain(|old| (old.subnet, &old.mark) != (area.subnet, &area.mark));
        areas.push(area);
    }
    areas
}

/// What the sets of a family should hold for these areas.
///
/// The kernel takes no overlapping elements: what lies inside of a wider subnet, as two networks that somebody
/// else's plugins made may, counts as part of it. Then only clients of both lists may connect, and more is
/// masqueraded.
pub fn pairs(areas: &[Area], family: Family) -> Vec<Pair> {
    let mut areas: Vec<Area> = areas.iter().filter(|area| family.holds(&area.subnet)).cloned().collect();
    crate::order::sort_by(&mut areas, |a, b| {
        (a.subnet.prefix_len(), a.subnet, &a.mark).cmp(&(b.subnet.prefix_len(), b.subnet, &b.mark))
    });
    let mut apart: Vec<Area> = Vec::new();
    for area in areas {
        match apart.iter_mut().find(|wider| wider.subnet.contains(&area.subnet)) {
            Some(wider) => {
                SHARED.clone_into(&mut wider.mark);
                wider.masquerade = wider.masquerade.max(area.masquerade);
                wider.allow = match (wider.allow.take(), area.allow) {
                    (Some(these), Some(those)) => Some(common(&these, &those)),
                    (these, those) => these.or(those),
                };
            }
            None => apart.push(area),
        }
    }
    let all = IpNet::new_assert(unspecified(family), 0);
    let mut pairs = Vec::new();
    for area in apart {
        let mut add = |set, source: IpNet| {
            pairs.push(Pair { set, source, target: area.subnet, mark: area.mark.clone() });
        };
        match area.masquerade {
            Masquerade::Nothing => {}
            Masquerade::Own => {
                add(HAIRPIN, area.subnet);
                if family == Family::Ip {
                    add(HAIRPIN, IpNet::new_assert([127, 0, 0, 0].into(), 8));
                }
            }
            Masquerade::All => add(HAIRPIN, all),
        }
        if let Some(allow) = &area.allow {
            add(RESTRICTED, all);
            let clients = allow.iter().filter(|client| family.holds(client)).chain([&area.subnet]);
            let clients: Vec<IpNet> = clients.copied().collect();
            IpNet::aggregate(&clients).into_iter().for_each(|client| add(ALLOWED, client));
        }
    }
    crate::order::sort(&mut pairs);
    pairs
}

/// The clients that are in both lists.
fn common(these: &[IpNet], those: &[IpNet]) -> Vec<IpNet> {
    let narrower = |(a, b): (&IpNet, &IpNet)| match () {
        () if a.contains(b) => Some(*b),
        () if b.contains(a) => Some(*a),
        () => None,
    };
    these.iter().flat_map(|a| those.iter().filter_map(move |b| narrower((a, b)))).collect()
}

#[cfg(test)]
mod tests;
