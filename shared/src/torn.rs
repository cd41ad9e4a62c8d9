//! Records that are torn: whoever changes something sets them aside, whoever looks leaves them where they are.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::OnceLock;

use crate::routed::file::make_folder;

/// Whom this process tells of torn records, if it only looks.
static TOLD: OnceLock<fn(&Path, &str)> = OnceLock::new();

/// From now on this process only looks: what is no record counts as none, as for those who set it aside, and stays.
/// `tell` is called with the file, and why it is no record, each time that one is met. No plugin calls this.
pub fn look_only(tell: fn(&Path, &str)) {
    // Who said so before, said the same.
    let _ = TOLD.set(tell);
}

/// Moves a file that is no record to `corrupt/`, so that it is reported once and lost never.
///
/// # Errors
/// It cannot be moved.
pub(crate) fn set_aside(path: &Path, why: &str) -> io::Result<()> {
    if let Some(tell) = TOLD.get() {
        tell(path, why);
        return Ok(());
    }
    let folder = path.with_file_name("corrupt");
    let place = folder.join(path.file_name().unwrap_or_default());
    tracing::error!("{} is no record ({why}): set aside as {}", path.display(), place.display());
    match make_folder(&folder).and_then(|()| fs::rename(path, &place)) {
        // Somebody else was faster.
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
