//! Telling other programs that the peers of a network have changed: each executable of `/etc/osvc-cni/hooks.d` is run
//! with `NetworkPeersUpdated` and the [peer file](super::peer_file) of the network, in the order of their names.
//!
//! What a hook does costs the ADD nothing. A change is noted while locks are held ([`announce`]); when the result is
//! printed, a child is started and not waited for ([`launch`]; osvc-net waits, [`launch_and_wait`]): this program once
//! more, which runs the hooks ([`supervise`]), each in a session of its own, without our descriptors, environment and
//! stdio, for [`PATIENCE`] at most. What has not been told for whatever reason is told after the next ADD or setup
//! ([`told`]).
//!
//! Hooks are root's: see [`eligible`]. Failures are in the system's log.

mod eligible;
mod run;
pub(super) mod told;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub use eligible::eligible;
use run::run;

use crate::protocol;

/// Where hooks lie.
pub const FOLDER: &str = "/etc/osvc-cni/hooks.d";
/// What happened, as a hook is told.
pub const EVENT: &str = "NetworkPeersUpdated";
/// How long a hook may take before it is killed.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// What makes this program the one that runs hooks; files follow. No plugin has arguments.
const RUN: &str = "--run-hooks";
/// What makes it become a hook; the hook and a file follow.
const BECOME: &str = "--become-hook";
/// This program, also after its file was replaced.
const SELF: &str = "/proc/self/exe";

/// The files of which hooks are to be told.
static CHANGED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Notes that a peer file has changed. Nothing is run yet.
pub fn announce(file: PathBuf) {
    CHANGED.lock().unwrap_or_else(PoisonError::into_inner).insert(file);
}

/// Has the hooks run for what was noted, if there are any, and does not wait for them. The last thing that a plugin
/// does.
pub fn launch() {
    drop(start());
}

/// As [`launch`], and waits for them. For a command: systemd kills what the main process of a unit leaves behind.
pub fn launch_and_wait() {
    if let Some(Err(error)) = start().map(|mut child| child.wait()) {
        tracing::error!("hooks of {FOLDER}: {error}");
    }
}

fn start() -> Option<Child> {
    let files = std::mem::take(&mut *CHANGED.lock().unwrap_or_else(PoisonError::into_inner));
    let any = |folder: &str| std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if files.is_empty() || !any(FOLDER) {
        return None;
    }
    let started = clean(Command::new(SELF).arg(RUN).args(files)).spawn();
    started.inspect_err(|error| tracing::error!("cannot run the hooks of {FOLDER}: {error}")).ok()
}

/// Runs the hooks, or becomes one, if that is what this process was started for. The first thing that a program does
/// which calls [`launch`]: there are no threads and no files of ours yet.
pub fn supervise() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let task = arguments.next()?;
    if task != RUN && task != BECOME {
        return None;
    }
    close_inherited();
    // Not if it has been started by hand, as the leader of a group.
    let _ = nix::unistd::setsid();
    // For the log only.
    let _ = protocol::operator("osvc-hooks");
    let arguments: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    match &arguments[..] {
        [hook, file] if task == BECOME => {
            let error = Command::new(hook).arg(EVENT).arg(file).exec();
            tracing::error!("hook {}: it cannot be run: {error}", hook.display());
            return Some(ExitCode::FAILURE);
        }
        files => files.iter().for_each(|file| told::tell(file, || run_all(file))),
    }
    Some(ExitCode::SUCCESS)
}

/// Runs all hooks, one after the other, with a file.
fn run_all(file: &Path) {
    for hook in eligible(Path::new(FOLDER)) {
        match run(clean(Command::new(SELF).arg(BECOME).arg(&hook).arg(file)), PATIENCE) {
            Ok(()) => tracing::info!("hook {} was told of {}", hook.display(), file.display()),
            Err(error) => tracing::error!("hook {} on {}: {error}", hook.display(), file.display()),
        }
    }
}

/// Without anything of the caller's: no stdio, no environment, no folder.
fn clean(command: &mut Command) -> &mut Command {
    command
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
}

/// Closes what a runtime has left open, which may be its listening sockets. What this program opens is closed by exec.
fn close_inherited() {
    let open = std::fs::read_dir("/proc/self/fd").map(|entries| {
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect::<Vec<i32>>()
    });
    for descriptor in open.unwrap_or_default().into_iter().filter(|descriptor| *descriptor > 2) {
        // That of the list itself is closed already.
        let _ = nix::unistd::close(descriptor);
    }
}
