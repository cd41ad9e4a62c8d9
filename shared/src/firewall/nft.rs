//! The nft program: one document, one transaction.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::Error;
use super::family::Family;
use super::program::{self, Ended};
use super::wanted::TABLE;

/// As long as for a lock: below any runtime's own patience.
const PATIENCE: Duration = Duration::from_secs(30);

/// The nft program.
///
/// # Errors
/// It is not installed.
pub fn nft() -> Result<PathBuf, Error> {
    program::find("nft").ok_or(Error::NoNft)
}

/// Has nft commit a document. `what` follows "could not".
///
/// # Errors
/// nft refused it: then nothing of it was done.
pub fn commit(document: &str, what: &str) -> Result<(), Error> {
    run(&["-f", "-"], document, what).map(drop)
}

/// nft's listing of our table of a family.
pub fn listing(family: Family) -> Result<String, Error> {
    Ok(run(&["list", "table", family.name(), TABLE], "", "list its table")?.stdout)
}

/// Runs nft in the network namespace of this thread.
pub(crate) fn run(arguments: &[&str], input: &str, what: &str) -> Result<Ended, Error> {
    let path = nft()?;
    let ended = program::run(Command::new(&path).args(arguments).env_clear(), input, PATIENCE)
        .map_err(|source| Error::Nft { path, source })?;
    if ended.status.success() {
        return Ok(ended);
    }
    // It repeats the faulty line and points at it: the first lines are enough.
    let words: Vec<_> = ended.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
    let stderr = if words.is_empty() { ended.status.to_string() } else { words.join(" ") };
    Err(Error::Refused { what: what.to_owned(), stderr })
}
