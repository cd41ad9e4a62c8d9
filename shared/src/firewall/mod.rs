//! nftables: masquerading and forwarding of all networks of this host.
//!
//! Two tables, `ip osvc-cni` and `ip6 osvc-cni`. What they should hold is rendered from the records of
//! the networks ([`wanted`], [`render`]) and swapped for what is there in one transaction, under one
//! lock ([`apply`]). What was done is remembered together with what the kernel says of it, so that an
//! ADD on a network that is in place asks the kernel some questions and starts no program
//! ([`in_place`]). Where somebody else's ruleset drops what is forwarded, marked accepts are put into it
//! ([`foreign`]).
//!
//! All functions work in the network namespace of the calling thread. Devices are named, never
//! numbered: a bridge that is not there yet, or made anew, is no fault in the rules.

mod apply;
pub mod batch;
mod carry;
mod cluster;
mod conntrack;
pub mod element;
pub mod error;
pub mod family;
mod fingerprint;
pub mod foreign;
mod isolate;
pub mod kernel;
pub mod mark;
mod neighbours;
pub mod nfnetlink;
pub mod nft;
pub mod program;
pub mod render;
pub mod snapshot;
mod state;
mod verify;
pub mod wanted;

pub use error::{Error, Missing};

use crate::network::record::NetworkRecord;
use crate::{Host, NetworkName};

/// True if nothing needs to be done for this network: its rules were made as its record asks for, our
/// tables are as they were made to the last handle, and no foreign chain drops its packets.
///
/// Reads by netlink only. False means that [`apply`] has something to do.
///
/// # Errors
/// The kernel cannot be asked: no nf_tables, no CAP_NET_ADMIN.
pub fn in_place(host: &Host, record: &NetworkRecord) -> Result<bool, Error> {
    verify::in_place(host, record)
}

/// Makes the ruleset what the records of this boot and network namespace ask for. Does nothing if it is.
///
/// The rules of a network without a record are kept. A table of our name is ours, whoever made it. A
/// foreign chain that cannot be opened is told in the log and is no error: the network works but for
/// what that chain drops.
///
/// # Errors
/// No nft, no nf_tables, or nft refused: then the ruleset is as it was.
pub fn apply(host: &Host) -> Result<(), Error> {
    apply::locked(host, || apply::settle(host, None))
}

/// CHECK: says what of this network is missing in the ruleset, and changes nothing.
///
/// # Errors
/// [`Error::Missing`], or the kernel cannot be asked.
pub fn check(host: &Host, record: &NetworkRecord) -> Result<(), Error> {
    let mut missing = verify::missing(host, record)?;
    if !missing.is_empty() {
        // Between a swap and its memory, somebody's ADD may be on its way.
        missing = match apply::locked(host, || verify::missing(host, record)) {
            Err(Error::Lock(_)) => missing,
            again => again?,
        };
    }
    if missing.is_empty() { Ok(()) } else { Err(Error::Missing { network: record.name.clone(), missing }) }
}

/// STATUS: true if rules could be made here.
///
/// # Errors
/// [`Error::NoNft`] or [`Error::NoNftables`], or the kernel's refusal.
pub fn available() -> Result<(), Error> {
    nft::nft()?;
    nfnetlink::Nfnetlink::open()?.generation().map(drop)
}

/// Removes everything of a network from the ruleset, the accepts in foreign chains included. Its record
/// need not be there any more; what is not there is no error.
///
/// # Errors
/// As [`apply`]; what could be removed was.
pub fn forget(host: &Host, name: &NetworkName) -> Result<(), Error> {
    apply::locked(host, || apply::settle(host, Some(name)))
}

#[cfg(test)]
mod tests;
