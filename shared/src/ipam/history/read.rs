//! Reading what happened to addresses, for people.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use serde::Deserialize;

use super::{BUFFER, LIMIT, What, files};
use crate::ipam::key::Key;
use crate::ipam::{Error, folders};
use crate::{Host, NetworkName};

/// A change of a record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Line {
    /// When (RFC 3339).
    pub time: String,
    /// What.
    pub what: What,
    /// Of which address; none if a range was full.
    #[serde(default)]
    pub address: Option<IpAddr>,
    /// Whose it became, or had been.
    pub key: Key,
    /// Which of the key's simultaneous holders.
    pub instance: u32,
    /// CNI_CONTAINERID; empty for an operator's decision.
    pub container: String,
    /// CNI_IFNAME.
    pub ifname: String,
    /// An ADD that failed put back what was before.
    #[serde(default)]
    pub undone: bool,
}

/// What is remembered of a network.
#[derive(Debug, Default)]
pub struct Past {
    /// The changes, the oldest first.
    pub lines: Vec<Line>,
    /// Files that cannot be read.
    pub faults: Vec<Error>,
}

/// What is remembered of the addresses of a network, in every folder that it ever had. `configured`: the one of its
/// configuration. Nothing is locked: half a line, which somebody may be writing, is passed over.
///
/// # Errors
/// The folders cannot be listed.
pub fn read(host: &Host, network: &NetworkName, configured: Option<&Path>) -> Result<Past, Error> {
    let mut past = Past::default();
    for folder in folders::known(host, network, configured)? {
        for path in &files(&folder) {
            let mut text = Vec::new();
            let opened = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path);
            // What one writer wrote in one go may lie beyond the limit.
            let limit = LIMIT + 4 * BUFFER as u64 + (64 << 20);
            match opened.and_then(|file| file.take(limit).read_to_end(&mut text)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => past.faults.push(Error::io("read", path, error)),
            }
            past.lines.extend(text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
        }
    }
    // Several folders: one after the other otherwise.
    crate::order::sort_by(&mut past.lines, |a: &Line, b: &Line| a.time.cmp(&b.time));
    Ok(past)
}
