//! The kernel's sets of pairs: what they hold, and what they should.

use super::Error;
use super::area::{Area, Pair, merged, of_pairs, of_record, pairs};
use super::keys::{SETS, TABLE};
use super::record::Record;
use crate::firewall::family::Family;
use crate::firewall::nfnetlink::Nfnetlink;

/// The pairs that a family's sets should not have, and those that they lack.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Too many, or of an older configuration.
    pub stale: Vec<Pair>,
    /// Not there.
    pub missing: Vec<Pair>,
}

impl Difference {
    /// Compares what is there with what should be, which is sorted.
    pub fn new(mut found: Vec<Pair>, wanted: &[Pair]) -> Self {
        crate::order::sort(&mut found);
        let missing = wanted.iter().filter(|pair| found.binary_search(pair).is_err()).cloned().collect();
        found.retain(|pair| wanted.binary_search(pair).is_err());
        Self { stale: found, missing }
    }
}

/// What the sets of a family hold.
///
/// # Errors
/// The kernel cannot be asked.
pub fn read(kernel: &mut Nfnetlink, family: Family) -> Result<Vec<Pair>, Error> {
    let mut found = Vec::new();
    for set in SETS {
        let elements = kernel.set_elements(family.number(), TABLE, set)?;
        found.extend(elements.iter().filter_map(|element| Pair::of(set, element)));
    }
    Ok(found)
}

/// Compares what the sets of a family hold with what they should once a record's word holds for its subnets. Other
/// subnets stay as they are. When one of them overlaps the record's, as that of a network that was there before may,
/// only the records tell whether it still counts: `all` is the areas of all that live.
///
/// # Errors
/// Those of `all`.
pub fn compare(
    found: Vec<Pair>,
    family: Family,
    record: &Record,
    all: &mut dyn FnMut() -> Result<Vec<Area>, Error>,
) -> Result<Difference, Error> {
    let newer = of_record(record);
    let areas = of_pairs(&found);
    let is_same = |a: &Area, b: &Area| (a.subnet, &a.mark) == (b.subnet, &b.mark);
    let overlap = |a: &Area, b: &Area| a.subnet.contains(&b.subnet) || b.subnet.contains(&a.subnet);
    let is_alone = areas.iter().all(|there| newer.iter().all(|new| is_same(there, new) || !overlap(there, new)));
    let areas = if is_alone { merged(areas, newer) } else { all()? };
    Ok(Difference::new(found, &pairs(&areas, family)))
}
