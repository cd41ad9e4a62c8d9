//! Running one hook.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How long to wait between two looks at a hook.
const PAUSE: Duration = Duration::from_millis(10);

/// Why a hook did not do it.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// It cannot be run.
    #[error("it cannot be run: {0}")]
    Io(#[from] io::Error),
    /// It failed.
    #[error("it ended with {0}")]
    Failed(ExitStatus),
    /// It took too long.
    #[error("it took more than {} s and was killed", .0.as_secs())]
    Killed(Duration),
}

/// Runs a hook, which becomes the leader of a process group, all of which is killed when it takes longer than
/// `patience`. What it has left in the background when it ends in time goes on.
pub(super) fn run(hook: &mut Command, patience: Duration) -> Result<(), HookError> {
    let mut child = hook.spawn()?;
    match wait(&mut child, patience)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(HookError::Failed(status)),
        None => {
            let group = i32::try_from(child.id()).map(Pid::from_raw);
            if group.map_or(true, |group| killpg(group, Signal::SIGKILL).is_err()) {
                child.kill()?;
            }
            child.wait()?;
            Err(HookError::Killed(patience))
        }
    }
}

fn wait(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + patience;
    loop {
        match child.try_wait()? {
            None if Instant::now() < deadline => std::thread::sleep(PAUSE),
            ended => return Ok(ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::path::Path;

    use super::super::{EVENT, clean};
    use super::*;

    /// Runs a script as a hook, with a second's patience.
    fn hook(script: &str) -> (Result<(), HookError>, String) {
        let folder = tempfile::tempdir().unwrap();
        let (hook, out) = (folder.path().join("hook"), folder.path().join("out"));
        fs::write(&hook, format!("#!/bin/sh\n{}\n", script.replace("OUT", &out.to_string_lossy()))).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        let file = "/run/osvc-cni/peers/prod.json";
        let outcome = run(clean(Command::new(hook).args([EVENT, file])).process_group(0), Duration::from_secs(1));
        (outcome, fs::read_to_string(out).unwrap_or_default())
    }

    #[test]
    fn a_hook_is_told_what_and_where_and_gets_nothing_else() {
        let script = "echo \"$@\" > OUT; env | sort | cut -d= -f1 | tr '\\n' ' ' >> OUT; echo noise";
        let (outcome, out) = hook(script);
        outcome.unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], "NetworkPeersUpdated /run/osvc-cni/peers/prod.json");
        assert!(
            lines[1].split_whitespace().all(|name| ["PATH", "PWD", "_", "OLDPWD", "SHLVL"].contains(&name)),
            "{out}"
        );
    }

    #[test]
    fn a_hook_that_fails_or_hangs_is_told_and_leaves_nothing_running() {
        assert!(matches!(hook("exit 3").0, Err(HookError::Failed(status)) if status.code() == Some(3)));
        let before = Instant::now();
        let (outcome, pid) = hook("sleep 60 & echo $! > OUT; wait");
        assert!(matches!(outcome, Err(HookError::Killed(_))), "{outcome:?}");
        assert!(before.elapsed() < Duration::from_secs(30));
        let gone = || !Path::new("/proc").join(pid.trim()).join("exe").exists();
        while !gone() && before.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(PAUSE);
        }
        assert!(gone(), "what it had started is killed with it");
    }

    #[test]
    fn a_hook_that_goes_to_the_background_has_done_it() {
        let before = Instant::now();
        hook("setsid sleep 3 < /dev/null > /dev/null 2>&1 &").0.unwrap();
        assert!(before.elapsed() < Duration::from_secs(3));
    }

    #[test]
    fn what_is_no_program_is_told() {
        assert!(matches!(run(&mut Command::new("/etc"), PAUSE), Err(HookError::Io(_))));
    }
}
