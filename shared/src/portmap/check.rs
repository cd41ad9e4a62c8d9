//! CHECK: what of an attachment's ports is not there. Nothing is changed.

use super::Error;
use super::area::Pair;
use super::claims::{Claim, claimants};
use super::keys::{TABLE, family, map_of, slot_element, slot_key};
use super::localhost::Doors;
use super::place::Memory;
use super::record::Record;
use super::sets::{Difference, compare, read};
use super::settle;
use super::store::{self, Store};
use crate::firewall::family::Family;
use crate::firewall::nfnetlink::Nfnetlink;
use crate::ipam::liveness::Kernel;
use crate::{Attachment, Host};

/// Verifies that the ports are published as a record made from the call would say it: the record, each mapping, the
/// rules, masquerading, the list of clients, and 127.0.0.1.
///
/// # Errors
/// [`Error::Missing`]: the first that is not there.
pub fn check(host: &Host, attachment: &Attachment, wanted: &Record) -> Result<(), Error> {
    let none = || Some(Lack::Record("its host ports have no record"));
    let mut lacking = store::viewed(host, |store| look(host, store, wanted))?.unwrap_or_else(none);
    if lacking.is_some() {
        // Between a record and its elements, somebody's ADD or DEL may be on its way.
        lacking = match store::at_rest(host, |store| look(host, store, wanted)) {
            Err(Error::Lock(_)) => lacking,
            again => again?.unwrap_or_else(none),
        };
    }
    let attachment = attachment.to_string();
    match lacking {
        None => Ok(()),
        Some(Lack::Record(what)) => Err(Error::NoRecord { attachment, what }),
        Some(Lack::Kernel(what)) => Err(Error::Missing { attachment, what }),
    }
}

/// What is not there.
enum Lack {
    /// In the store: only the runtime can make it again.
    Record(&'static str),
    /// In the kernel.
    Kernel(String),
}

fn look(host: &Host, store: &Store<'_>, wanted: &Record) -> Result<Option<Lack>, Error> {
    let Some(record) = store.load(&wanted.tag())? else {
        return Ok(Some(Lack::Record("its host ports have no record")));
    };
    if record.boot != host.boot || !record.home.same(&wanted.home) {
        return Ok(Some(Lack::Record("the record of its host ports is of another boot or network namespace")));
    }
    if record.slots() != wanted.slots() {
        return Ok(Some(Lack::Record("the record of its host ports says something else than the configuration")));
    }
    let mut kernel = Nfnetlink::open()?;
    let families: Vec<Family> = wanted.targets.iter().map(|target| family(target.addr())).collect();
    let in_place = match Memory::load(host, &wanted.home) {
        Some(memory) => memory.holds(&mut kernel, &families)?,
        None => false,
    };
    if !in_place {
        return Ok(Some(Lack::Kernel(format!(
            "the rules of nftables table {TABLE} are missing or were changed by somebody else"
        ))));
    }
    for (slot, _) in wanted.slots().iter() {
        // The attachment of the same container that came first has the port; it leads to the same container.
        let holder = claimants(store, slot, &wanted.home, &host.boot)?.into_iter().next();
        let element = holder.map(|Claim { tag, target, .. }| slot_element(slot, target, &tag));
        let (of, map) = (family(slot.address), map_of(slot));
        if element.is_none() || kernel.element(of.number(), TABLE, map, &slot_key(slot))? != element {
            let port = format!("{}/{}", slot.port, slot.protocol);
            return Ok(Some(Lack::Kernel(format!("host port {port} is not in nftables map {of} {TABLE} {map}"))));
        }
    }
    for family in families {
        let mut judge = Kernel::new(host);
        let mut all = || Ok(settle::wanted(host, &wanted.home, &mut judge, store, &mut Vec::new())?.1);
        let Difference { stale, missing } = compare(read(&mut kernel, family)?, family, wanted, &mut all)?;
        let say = |pair: &Pair, what: &str| {
            format!("nftables set {family} {TABLE} {} {what} {} . {}", pair.set, pair.source, pair.target)
        };
        let lacking = missing.first().map(|pair| say(pair, "lacks"));
        if let Some(what) = lacking.or_else(|| stale.first().map(|pair| say(pair, "should not have"))) {
            return Ok(Some(Lack::Kernel(what)));
        }
    }
    let closed = Doors::default().closed(wanted)?;
    Ok(closed.map(|device| Lack::Kernel(format!("route_localnet of {device} is off: its ports are not on 127.0.0.1"))))
}
