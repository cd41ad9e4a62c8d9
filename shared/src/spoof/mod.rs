//! Source checks: a port of a bridge takes frames from its container's MAC address only (`macspoofchk`), and packets from
//! its container's addresses only (`spoofcheck`).
//!
//! One table of nftables, `bridge osvc-cni`, whose rules look up what a port may send in sets: an attachment is some
//! elements, by netlink, however many there are. What is in the sets is told by a record for each attachment; from these
//! all of it is made again when somebody has flushed the ruleset. The record is written before the elements, and these are
//! in before the port is made: a container never sends unchecked. DEL takes the elements out before the record.
//!
//! Who does not use it pays one look for the folder of the records, which goes with the last of them, as the table does.

mod check;
mod document;
mod error;
pub mod fsck;
mod mend;
pub mod record;
mod store;
mod table;

use std::collections::HashSet;

pub use check::check;
pub use error::{Error, Missing};
pub use mend::{Mended, mend};
pub use record::{Checks, Record};

use crate::firewall::nfnetlink::Nfnetlink;
use crate::ipam::liveness::{Kernel, Liveness};
use crate::lock::LockError;
use crate::netlink::netns::{NetnsId, host_id};
use crate::{Attachment, Host, NetworkName};
use mend::{carried, change, is_here, remake, restore, strays, take_out, tidy};
use store::Found;
use table::Memory;

/// Has the sources of an attachment checked from now on, as the record says and no longer as an earlier one of the same
/// attachment said. Before its port is made.
///
/// # Errors
/// The record cannot be written, no nft, or the kernel refuses: call [`remove`].
pub fn admit(host: &Host, record: &Record) -> Result<(), Error> {
    let act = || {
        let (tag, mut kernel) = (record.tag(), Nfnetlink::open()?);
        let home = &record.host.netns;
        let before = store::read(host, &record.network, &tag)?;
        store::write(host, record)?;
        let old = match before {
            Found::Record(old) if is_here(&old, host, home) => old.entries(),
            Found::Record(_) | Found::Nothing => carried(host, home, &mut kernel, &record.host.ifname)?,
            Found::Torn => return remake(host, home, &mut kernel),
        };
        change(host, home, &mut kernel, &old, &record.entries())
    };
    // The folder goes with the last record of somebody else.
    loop {
        store::prepare(host)?;
        if let Some(()) = store::locked(host, act)? {
            return Ok(());
        }
    }
}

/// For an attachment that is not checked: what an earlier one of the same name left goes, and all others' checks come back
/// if somebody has flushed them. No reason for an ADD to fail or to wait, unless it was checked.
///
/// # Errors
/// As [`remove`].
pub fn pass(host: &Host, attachment: &Attachment) -> Result<(), Error> {
    if !store::folder(host).exists() {
        return Ok(());
    }
    match restore(host) {
        Err(Error::Lock(LockError::Held { .. })) => tracing::debug!("somebody else is at the source checks"),
        Err(error) => tracing::warn!("source checks were not looked after: {error}"),
        Ok(_) => {}
    }
    remove(host, attachment)
}

/// Checks the sources of an attachment no longer, after its port is gone. What is not there is no error.
///
/// # Errors
/// The record cannot be removed, or the kernel refuses: come again.
pub fn remove(host: &Host, attachment: &Attachment) -> Result<(), Error> {
    let (network, tag, port) = (&attachment.network, attachment.tag(), attachment.host_end());
    if !store::folder(host).exists() {
        return Ok(());
    }
    let home = host_id()?;
    if !store::has(host, network, &tag) {
        let Some(memory) = Memory::read(host, &home) else { return Ok(()) };
        if !memory.has_carried() || carried(host, &home, &mut Nfnetlink::open()?, &port)?.is_empty() {
            return Ok(());
        }
    }
    let act = || {
        let mut kernel = Nfnetlink::open()?;
        withdraw(host, &home, &mut kernel, store::read(host, network, &tag)?, &port)?;
        store::remove(host, network, &tag)?;
        tidy(host, &mut kernel);
        Ok(())
    };
    store::locked(host, act).map(drop)
}

/// Takes out of the sets what a record put in.
fn withdraw(host: &Host, home: &NetnsId, kernel: &mut Nfnetlink, found: Found, port: &str) -> Result<(), Error> {
    let old = match found {
        Found::Nothing => carried(host, home, kernel, port)?,
        Found::Record(old) if !is_here(&old, host, home) => return Ok(()),
        Found::Record(old) => old.entries(),
        // Nobody knows what it put in: what all others did is known.
        Found::Torn => return remake(host, home, kernel),
    };
    take_out(host, home, kernel, &old)
}

/// Ends the checks of a network's attachments that are not among the `valid` ones (host ends), if there is a list, and are
/// gone. Without a list, of those that are provably gone. Returns whose they were, or with `dry_run` would be.
///
/// # Errors
/// A record cannot be read or removed, or the kernel refuses.
pub fn sweep(
    host: &Host,
    network: &NetworkName,
    valid: Option<&HashSet<String>>,
    dry_run: bool,
) -> Result<Vec<Record>, Error> {
    if !store::folder(host).exists() {
        return Ok(Vec::new());
    }
    let gone = || {
        let mut judge = Kernel::new(host);
        let mut swept = store::all(host, Some(network))?;
        swept.retain(|record| match (judge.judge_traces(&record.traces()), valid) {
            (Liveness::Dead, _) => true,
            (Liveness::Unknown, Some(valid)) => !valid.contains(&record.host.ifname),
            _ => false,
        });
        Ok(swept)
    };
    if dry_run {
        return gone();
    }
    let act = || {
        let (home, swept) = (host_id()?, gone()?);
        let mut kernel = Nfnetlink::open()?;
        for record in &swept {
            withdraw(host, &home, &mut kernel, Found::Record(Box::new(record.clone())), &record.host.ifname)?;
            store::remove(host, network, &record.tag())?;
        }
        if Memory::read(host, &home).is_some_and(|memory| memory.has_carried()) {
            let gone = strays(host, &home, &mut kernel)?.gone;
            take_out(host, &home, &mut kernel, &gone)?;
        }
        tidy(host, &mut kernel);
        Ok(swept)
    };
    Ok(store::locked(host, act)?.unwrap_or_default())
}
