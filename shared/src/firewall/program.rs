//! Running another program: input and output are files in memory, and its time is bounded.
//!
//! No pipes. Were we killed while writing into one, nft would take the half that it got for the whole, and that half may
//! be the deletion of the table; and a program that never ends must not keep an ADD for ever.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};

/// Where system programs lie. The core reads no environment, and a runtime's PATH often lacks sbin.
pub const FOLDERS: [&str; 5] = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin"];

/// What a program left behind.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

/// A program of that name in [`FOLDERS`].
pub fn find(name: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

/// Runs a program with that input, in the network namespace of this thread, for `patience` at most.
///
/// # Errors
/// It cannot be started, or it did not end in time and was killed ([`ErrorKind::TimedOut`]).
pub fn run(command: &mut Command, input: &str, patience: Duration) -> std::io::Result<Ended> {
    let memory = || Ok::<_, std::io::Error>(File::from(memfd_create(c"osvc-cni", MFdFlags::MFD_CLOEXEC)?));
    let (mut stdin, mut stdout, mut stderr) = (memory()?, memory()?, memory()?);
    stdin.write_all(input.as_bytes())?;
    stdin.rewind()?;
    let mut child = command.stdin(stdin).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).spawn()?;
    let status = wait(&mut child, patience)?;
    let text = |file: &mut File| {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Ended { status, stdout: text(&mut stdout)?, stderr: text(&mut stderr)? })
}

fn wait(child: &mut Child, patience: Duration) -> std::io::Result<ExitStatus> {
    let deadline = Instant::now() + patience;
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err(ErrorKind::TimedOut.into());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_and_comes_out() {
        let script = "cat; echo oh >&2; exit 3";
        let ended = run(Command::new("/bin/sh").args(["-c", script]), "in", Duration::from_secs(10)).unwrap();
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str(), ended.status.code()), ("in", "oh\n", Some(3)));
    }

    #[test]
    fn one_that_never_ends_is_ended() {
        let before = Instant::now();
        let error = run(Command::new("/bin/sleep").arg("60"), "", Duration::from_millis(50)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(before.elapsed() < Duration::from_secs(30));
    }
}
