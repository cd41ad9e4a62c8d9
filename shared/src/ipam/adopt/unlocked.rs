//! What an attachment holds, for a DEL that must not wait for a lock twice: what `osvc-net adopt` may have left or done.
//!
//! A record is there whole or not at all, and its entry in the index is there before it. Only while the index is made
//! again nothing may be found.

use std::net::IpAddr;
use std::path::Path;

use super::super::record::{FORMAT, HostEnd, Record};
use super::super::store::{Location, file};
use super::super::{Error, folders};
use crate::index::Index;
use crate::{Attachment, Host, NetworkName};

/// The host end that is recorded for an attachment in a folder, while it holds an address there.
///
/// # Errors
/// The index or a record cannot be read.
pub fn host_end_of(host: &Host, folder: &Path, attachment: &Attachment) -> Result<Option<HostEnd>, Error> {
    // Device names start anew with each boot.
    Ok(held(folder, attachment)?.into_iter().find_map(|record| record.host.filter(|_| record.boot == host.boot)))
}

/// False if an attachment holds nothing in any folder that the network ever had.
///
/// # Errors
/// An index or a record cannot be read.
pub fn may_hold(host: &Host, network: &NetworkName, configured: &Path, attachment: &Attachment) -> Result<bool, Error> {
    for folder in folders::known(host, network, Some(configured))? {
        if !(Location { host, network, folder: &folder }).is_sealed() || !held(&folder, attachment)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn held(folder: &Path, attachment: &Attachment) -> Result<Vec<Record>, Error> {
    let mut found = Vec::new();
    for address in Index::<IpAddr>::new(folder.join("by-attachment")).get(&attachment.tag())? {
        let path = folder.join(address.to_string());
        let Some(text) = file::read(&path).map_err(|error| Error::io("read", &path, error))? else { continue };
        let Ok(record) = serde_json::from_slice::<Record>(&text) else { continue };
        if record.v == FORMAT && record.is_held() && record.is_of(attachment) {
            found.push(record);
        }
    }
    Ok(found)
}
