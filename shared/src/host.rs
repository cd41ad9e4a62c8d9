//! The machine that we run on: where state lies, and which boot this is.

use std::path::PathBuf;

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
