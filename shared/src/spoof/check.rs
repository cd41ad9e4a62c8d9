//! CHECK: whether an attachment's sources are checked as its configuration asks for.

use super::document::{ADDRESS_CHECKED, MAC_CHECKED, TABLE};
use super::mend::is_here;
use super::record::{Checks, Entry};
use super::store::{self, Found};
use super::table::{BRIDGE, Memory};
use super::{Error, Missing};
use crate::firewall::nfnetlink::Nfnetlink;
use crate::netlink::netns::host_id;
use crate::{Attachment, Host};

/// CHECK: says what of an attachment's checks is missing, and changes nothing.
///
/// # Errors
/// [`Error::Missing`], or the kernel cannot be asked.
pub fn check(host: &Host, attachment: &Attachment, wanted: Checks) -> Result<(), Error> {
    if wanted.is_empty() {
        return Ok(());
    }
    let act = || lacking(host, attachment, wanted);
    let found = match store::of_network(host, &attachment.network).exists() {
        true => store::locked(host, act)?,
        false => None,
    };
    let found = match found {
        Some(found) => found,
        None => unrecorded(host, attachment, wanted)?,
    };
    if found.is_empty() { Ok(()) } else { Err(Error::Missing { port: attachment.host_end(), missing: found }) }
}

/// The keys that are wanted and were not heeded.
fn unset(wanted: Checks, have: Checks) -> Vec<Missing> {
    let keys =
        [(wanted.mac && !have.mac, "macspoofchk"), (wanted.addresses && !have.addresses, "spoofcheck")].into_iter();
    keys.filter(|(is_unset, _)| *is_unset).map(|(_, key)| Missing::Check(key)).collect()
}

fn lacking(host: &Host, attachment: &Attachment, wanted: Checks) -> Result<Vec<Missing>, Error> {
    let home = host_id()?;
    let record = match store::read(host, &attachment.network, &attachment.tag())? {
        Found::Record(record) if is_here(&record, host, &home) => record,
        _ => return unrecorded(host, attachment, wanted),
    };
    let mut missing = unset(wanted, record.checks);
    let mut kernel = Nfnetlink::open()?;
    match Memory::of_table(host, &home, &mut kernel)? {
        None => missing.push(Missing::Table),
        Some(memory) => {
            let lacking = memory.lacking(&mut kernel, record.entries())?;
            missing.extend(lacking.into_iter().map(|Entry { set, address, .. }| Missing::Element { set, address }));
        }
    }
    Ok(missing)
}

/// The same without a record: what was set is what the kernel has.
fn unrecorded(host: &Host, attachment: &Attachment, wanted: Checks) -> Result<Vec<Missing>, Error> {
    let (home, mut kernel) = (host_id()?, Nfnetlink::open()?);
    let port = attachment.host_end();
    let mut is_in = |set| {
        let entry = Entry::new(set, port.as_bytes(), &[]);
        Ok::<_, Error>(kernel.element(BRIDGE, TABLE, set, &entry.key)?.is_some())
    };
    let have = Checks { mac: is_in(MAC_CHECKED)?, addresses: is_in(ADDRESS_CHECKED)? };
    let mut missing = unset(wanted, have);
    // Without a memory of it the table is that of who lost the memory too.
    if Memory::read(host, &home).is_some() && Memory::of_table(host, &home, &mut kernel)?.is_none() && !have.is_empty()
    {
        missing.push(Missing::Table);
    }
    Ok(missing)
}
