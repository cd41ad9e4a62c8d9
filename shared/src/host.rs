//! The machine that we run on: where state lies, and which boot this is.

use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

/// Where the kernel tells its boot id (proc(5)).
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The folders and the identity of this machine, given to the core by its front end.
#[derive(Debug, Clone)]
pub struct Host {
    /// What outlives a reboot: `/var/lib/cni/osvc`, or `OSVC_STATE_DIR`.
    pub state: PathBuf,
    /// What need not: `/run/osvc-cni`, or `OSVC_RUN_DIR`.
    pub run: PathBuf,
    /// The kernel's boot id: records of another boot have no live holder.
    pub boot: String,
}

impl Host {
    /// The host with its state in the given folders.
    ///
    /// # Errors
    /// The kernel's boot id cannot be read: liveness could not be told.
    pub fn new(state: PathBuf, run: PathBuf) -> std::io::Result<Self> {
        let boot = std::fs::read_to_string(BOOT_ID)?.trim().to_owned();
        Ok(Self { state, run, boot })
    }
}

/// A folder that nothing could be written to.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to {}: {errno}: an ADD would fail", .path.display())]
pub struct NotWritable {
    /// The folder, or the nearest one above it that is there.
    pub path: PathBuf,
    /// The kernel's answer.
    pub errno: Errno,
}

/// Whether a file could be made in a folder, or the folder itself in the nearest one above it that is there: write
/// access, and room. Nothing is written.
///
/// # Errors
/// [`NotWritable`].
pub fn writable(folder: &Path) -> Result<(), NotWritable> {
    let fail = |path: &Path, errno| NotWritable { path: path.to_owned(), errno };
    for path in folder.ancestors() {
        match access(path, AccessFlags::W_OK | AccessFlags::X_OK) {
            Ok(()) => {
                let room = nix::sys::statvfs::statvfs(path).map_err(|errno| fail(path, errno))?;
                // Zero files in all: a file system that does not count them.
                let full = room.blocks_free() == 0 || (room.files() > 0 && room.files_free() == 0);
                return if full { Err(fail(path, Errno::ENOSPC)) } else { Ok(()) };
            }
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(fail(path, errno)),
        }
    }
    Ok(())
}
