//! A look at the store without its lock, for the way of every ADD on every network.

use std::fs;
use std::net::IpAddr;

use super::folder;
use super::seal::Seal;
use crate::Host;
use crate::index::Index;
use crate::ipam::store::file::is_absence;

/// True if there is a record of an attachment.
pub fn has_record(host: &Host, tag: &str) -> bool {
    folder(host).join("attachments").join(tag).exists()
}

/// False if no host port leads to any of these addresses: there is no store, or its links are complete and none is of
/// them. True if one may: the locked store tells.
pub fn may_point_at(host: &Host, addresses: &[IpAddr]) -> bool {
    let folder = folder(host);
    if let Err(error) = fs::symlink_metadata(folder.join("attachments")) {
        return !is_absence(&error);
    }
    // The seal first: what a writer did before we looked at it is seen in the links, what comes after is later than us.
    let sealed = Seal::new(folder.clone(), &host.boot).fits();
    let by_address = Index::<String>::new(folder.join("by-address"));
    !sealed || !addresses.iter().all(|address| by_address.is_empty(&address.to_string()))
}
