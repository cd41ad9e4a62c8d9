//! What differs between the kernel and the store, as one batch.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Site, families, wanted};
use crate::NetworkName;
use crate::firewall::batch::Batch;
use crate::firewall::family::Family;
use crate::firewall::mark::{OWN, mark};
use crate::portmap::area::{SHARED, pairs};
use crate::portmap::keys::{TABLE, family, map_of, owner, slot_element, slot_key};
use crate::portmap::ruleset::Holders;
use crate::portmap::sets::{Difference, compare, read};
use crate::portmap::{Error, Record, Slot, Store};

impl Site<'_> {
    /// One batch of what differs.
    pub(super) fn batch(
        &mut self,
        store: &Store<'_>,
        touched: &BTreeSet<Slot>,
        holders: &Holders,
        arriving: Option<&Record>,
        leaving: &[Rc<Record>],
    ) -> Result<Batch, Error> {
        let mut gone = BTreeMap::<(Family, &str), Vec<_>>::new();
        let mut new = BTreeMap::<(Family, &str), Vec<_>>::new();
        for slot in touched {
            let place = (family(slot.address), map_of(slot));
            let found = self.kernel.element(place.0.number(), TABLE, place.1, &slot_key(slot))?;
            let wanted = holders.get(slot).map(|(target, tag)| slot_element(slot, *target, tag));
            let is_later = || found.as_ref().and_then(owner).is_some_and(|tag| store.is_later(tag));
            if found != wanted && !(wanted.is_none() && is_later()) {
                gone.entry(place).or_default().extend(found);
                new.entry(place).or_default().extend(wanted);
            }
        }
        for (family, Difference { stale, missing }) in self.differences(store, arriving, leaving)? {
            for pair in stale {
                gone.entry((family, pair.set)).or_default().push(pair.element());
            }
            for pair in missing {
                new.entry((family, pair.set)).or_default().push(pair.element());
            }
        }
        let mut batch = Batch::default();
        for ((family, set), elements) in gone {
            batch.delete(family.number(), TABLE, set, elements);
        }
        for ((family, set), elements) in new {
            batch.add(family.number(), TABLE, set, elements);
        }
        Ok(batch)
    }

    /// What is leaving, and nothing in its place.
    pub(super) fn withdrawal(&mut self, touched: &BTreeSet<Slot>, leaving: &[Rc<Record>]) -> Result<Batch, Error> {
        let tags: BTreeSet<String> = leaving.iter().map(|record| record.tag()).collect();
        let mut batch = Batch::default();
        for slot in touched {
            let (family, map) = (family(slot.address).number(), map_of(slot));
            // A map of another shape has no such key.
            let found = self.kernel.element(family, TABLE, map, &slot_key(slot)).unwrap_or_default();
            if let Some(element) = found.filter(|element| owner(element).is_some_and(|tag| tags.contains(tag))) {
                batch.delete(family, TABLE, map, vec![element]);
            }
        }
        Ok(batch)
    }

    /// What changes in the sets of pairs: the arriving record's network has its say, and one that nobody is left of has
    /// none any more.
    fn differences(
        &mut self,
        store: &Store<'_>,
        arriving: Option<&Record>,
        leaving: &[Rc<Record>],
    ) -> Result<Vec<(Family, Difference)>, Error> {
        let closing = self.closing(store, arriving, leaving)?;
        if closing.is_empty() && arriving.is_none() && !self.thorough {
            return Ok(Vec::new());
        }
        let mut known = Vec::new();
        let mut shared = self.thorough;
        for family in Family::ALL {
            let found = read(self.kernel, family)?;
            shared |= !closing.is_empty() && found.iter().any(|pair| pair.mark == SHARED);
            known.push((family, found));
        }
        let mut leaving = leaving.to_vec();
        let mut all = || Ok(wanted(self.host, self.home, self.judge, store, &mut leaving)?.1);
        let mut differences = Vec::new();
        if shared {
            let areas = all()?;
            differences.extend(
                known.into_iter().map(|(family, found)| (family, Difference::new(found, &pairs(&areas, family)))),
            );
        } else {
            for (family, found) in known {
                let mut difference = match arriving.filter(|record| families(record).contains(&family)) {
                    Some(record) => compare(found.clone(), family, record, &mut all)?,
                    None => Difference::default(),
                };
                let gone = found.into_iter().filter(|pair| closing.contains(&pair.mark));
                difference.stale.extend(gone.collect::<Vec<_>>());
                crate::order::sort(&mut difference.stale);
                difference.stale.dedup();
                differences.push((family, difference));
            }
        }
        self.reworded |= differences.iter().any(|(_, found)| *found != Difference::default());
        Ok(differences)
    }

    /// The marks of networks of which nobody is left.
    fn closing(
        &self,
        store: &Store<'_>,
        arriving: Option<&Record>,
        leaving: &[Rc<Record>],
    ) -> Result<BTreeSet<String>, Error> {
        let tags: BTreeSet<String> = leaving.iter().map(|record| record.tag()).collect();
        let networks: BTreeSet<&NetworkName> = leaving.iter().map(|record| &record.network).collect();
        let mut closing = BTreeSet::new();
        for network in networks.into_iter().filter(|network| arriving.is_none_or(|record| record.network != **network))
        {
            let stays = |record: &Record| self.is_here(record) && !tags.contains(&record.tag());
            if !store.has_member(network, stays)? {
                closing.insert(mark(OWN, network));
            }
        }
        Ok(closing)
    }
}
