//! The nft program: one document, one transaction.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::Error;
use super::family::Family;
use super::wanted::TABLE;

/// Where system programs lie. The core reads no environment, and a runtime's PATH often lacks sbin.
pub const FOLDERS: [&str; 5] = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin"];

/// A program of that name in [`FOLDERS`].
pub fn program(name: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

/// The nft program.
///
/// # Errors
/// It is not installed.
pub fn nft() -> Result<PathBuf, Error> {
    program("nft").ok_or(Error::NoNft)
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
    let output = run(&["list", "table", family.name(), TABLE], "", "list its table")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs nft in the network namespace of this thread.
///
/// It gets its input as a file and not by a pipe: were we killed while writing, it would take the half
/// that it got for the whole, and that half may be the deletion of the table.
pub(super) fn run(arguments: &[&str], input: &str, what: &str) -> Result<Output, Error> {
    let path = nft()?;
    let failed = |source| Error::Nft { path: path.clone(), source };
    let document = memfd_create(c"osvc-cni.nft", MFdFlags::MFD_CLOEXEC).map_err(|errno| failed(errno.into()))?;
    let mut document = File::from(document);
    document.write_all(input.as_bytes()).and_then(|()| document.rewind()).map_err(failed)?;
    let output = Command::new(&path).args(arguments).env_clear().stdin(document).output().map_err(failed)?;
    if output.status.success() {
        return Ok(output);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    // It repeats the faulty line and points at it: the first lines are enough.
    let words: Vec<_> = words.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
    let stderr = if words.is_empty() { output.status.to_string() } else { words.join(" ") };
    Err(Error::Refused { what: what.to_owned(), stderr })
}
