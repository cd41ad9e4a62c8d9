//! Refusals that come again: a runtime tries a container that gets no address every few seconds.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::FileExt;

use serde::Serialize;

use super::What;
use crate::ipam::key::Key;

/// So far back (bytes) a refusal is looked for: some hundred lines.
pub(super) const BACK: u64 = 1 << 16;
/// What the lines of refusals begin with, behind their time.
const REFUSED: &[u8] = b"\"what\":\"refused\",";

/// A refusal without its time: the beginning of an [`Entry`](super::Entry).
#[derive(Serialize)]
struct Refusal<'a> {
    what: What,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    key: &'a Key,
}

/// What lines of the same refusal have in common.
pub(super) fn of(address: Option<IpAddr>, key: &Key) -> Option<Vec<u8>> {
    let mut text = serde_json::to_vec(&Refusal { what: What::Refused, address, key }).ok()?;
    text.pop();
    text.push(b',');
    Some(text.split_off(1))
}

/// True if the last lines of a file are refusals, and this one is among them.
pub(super) fn is_told(file: &File, size: u64, refusal: &[u8]) -> io::Result<bool> {
    let start = size.saturating_sub(BACK);
    let mut text = vec![0; usize::try_from(size - start).unwrap_or_default()];
    file.read_exact_at(&mut text, start)?;
    for line in text.split(|byte| *byte == b'\n').rev().skip(1) {
        // The time has no comma in it.
        let Some(comma) = line.iter().position(|byte| *byte == b',') else { return Ok(false) };
        let rest = line.get(comma + 1..).unwrap_or_default();
        if rest.starts_with(refusal) {
            return Ok(true);
        }
        if !rest.starts_with(REFUSED) {
            return Ok(false);
        }
    }
    Ok(false)
}
