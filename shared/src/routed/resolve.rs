//! Names of nodes to addresses, by `getent ahosts`: /etc/hosts, DNS and whatever nsswitch.conf(5) says.
//!
//! A child for each name, all at the same time, for [`PATIENCE`] at most. Not by the C library in this process:
//! linked statically, it dies when nsswitch.conf names a module such as `myhostname`.

use std::fs::File;
use std::io::{Read, Seek};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::usable::is_usable;
use crate::firewall::program;

/// How long all lookups together may take: a setup is not slower than that when DNS is down.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// How many are looked up at a time, each with a file of its own: below the 1024 that a process may usually have open.
const AT_A_TIME: usize = 512;
/// As much of an answer as is read, in bytes: a thousand addresses.
const LONGEST: u64 = 64 * 1024;
/// RFC 1035, 2.3.4, in bytes.
const LONGEST_NAME: usize = 255;
/// getent's word for "nothing found" (getent(1)).
const NOT_FOUND: i32 = 2;

/// Why a name has no address.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// It cannot be looked up.
    #[error("{0:?} is no host name")]
    NotAName(String),
    /// There is no getent.
    #[error("cannot look up {0}: no getent in {folders} (Debian has it in libc-bin)", folders = program::FOLDERS.join(", "))]
    NoGetent(String),
    /// There is none such, or no name server answers.
    #[error("{0} is not found: correct the name, /etc/hosts or DNS, or give an address instead")]
    NotFound(String),
    /// All that was found is of no use to other nodes.
    #[error("{name} resolves to {} only, which no other node reaches: correct /etc/hosts or DNS, or give an address instead", List(.addresses))]
    Unusable {
        /// The name.
        name: String,
        /// What it resolves to.
        addresses: Vec<IpAddr>,
    },
    /// Name servers do not answer.
    #[error("no answer for {name} within {} ms: is DNS down?", .patience.as_millis())]
    TimedOut {
        /// The name.
        name: String,
        /// How long was waited.
        patience: Duration,
    },
    /// getent failed otherwise.
    #[error("cannot look up {name}: getent ended with {status}")]
    Failed {
        /// The name.
        name: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// getent could not be run.
    #[error("cannot look up {name}: {source}")]
    Io {
        /// The name.
        name: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

/// "10.0.0.1, 10.0.0.2"
struct List<'a>(&'a [IpAddr]);

impl std::fmt::Display for List<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
    }
}

/// What a lookup gave: usable addresses, at least one.
pub type Answer = Result<Vec<IpAddr>, LookupError>;

/// The getent program, and our patience with it.
#[derive(Debug, Clone)]
pub struct Getent {
    program: Option<PathBuf>,
    patience: Duration,
}

impl Default for Getent {
    fn default() -> Self {
        Self { program: program::find("getent"), patience: PATIENCE }
    }
}

/// A lookup on its way.
struct Running {
    place: usize,
    child: Child,
    output: File,
}

impl Getent {
    /// The addresses of each name, in the order of the names.
    pub fn lookup(&self, names: &[&str]) -> Vec<Answer> {
        let mut answers: Vec<Option<Answer>> = names.iter().map(|_| None).collect();
        let mut waiting = names.iter().enumerate();
        let mut running: Vec<Running> = Vec::new();
        let mut pause = Duration::from_micros(200);
        let deadline = Instant::now() + self.patience;
        loop {
            while running.len() < AT_A_TIME
                && let Some((place, name)) = waiting.next()
            {
                match self.start(place, name, deadline) {
                    Ok(one) => running.push(one),
                    Err(error) => answers[place] = Some(Err(error)),
                }
            }
            if running.is_empty() {
                break;
            }
            let before = running.len();
            running.retain_mut(|one| {
                let answer = self.poll(one, names[one.place], deadline);
                let ended = answer.is_some();
                answers[one.place] = answer;
                !ended
            });
            if running.len() == before {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
        }
        // All have one by now.
        let none = |name: &str| Err(LookupError::NotFound(name.to_owned()));
        answers.into_iter().zip(names).map(|(answer, name)| answer.unwrap_or_else(|| none(name))).collect()
    }

    fn start(&self, place: usize, name: &str, deadline: Instant) -> Result<Running, LookupError> {
        if !is_name(name) {
            return Err(LookupError::NotAName(name.to_owned()));
        }
        if Instant::now() >= deadline {
            return Err(LookupError::TimedOut { name: name.to_owned(), patience: self.patience });
        }
        let program = self.program.as_deref().ok_or_else(|| LookupError::NoGetent(name.to_owned()))?;
        let (child, output) =
            spawn(program, name).map_err(|source| LookupError::Io { name: name.to_owned(), source })?;
        Ok(Running { place, child, output })
    }

    /// The answer, once it is there or too late.
    fn poll(&self, one: &mut Running, name: &str, deadline: Instant) -> Option<Answer> {
        let name = || name.to_owned();
        let io = |source| LookupError::Io { name: name(), source };
        match one.child.try_wait() {
            Ok(None) if Instant::now() < deadline => None,
            Ok(None) => {
                let _ = one.child.kill();
                let _ = one.child.wait();
                Some(Err(LookupError::TimedOut { name: name(), patience: self.patience }))
            }
            Ok(Some(status)) if status.success() => {
                let mut text = String::new();
                let read = one.output.rewind().and_then(|()| (&one.output).take(LONGEST).read_to_string(&mut text));
                Some(read.map_err(io).and_then(|_| usable(name(), &text)))
            }
            Ok(Some(status)) if status.code() == Some(NOT_FOUND) => Some(Err(LookupError::NotFound(name()))),
            Ok(Some(status)) => Some(Err(LookupError::Failed { name: name(), status })),
            Err(error) => Some(Err(io(error))),
        }
    }
}

fn spawn(program: &Path, name: &str) -> std::io::Result<(Child, File)> {
    let output = File::from(memfd_create(c"osvc-cni", MFdFlags::MFD_CLOEXEC)?);
    let mut command = Command::new(program);
    command.args(["ahosts", "--", name]).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
    Ok((command.stdout(output.try_clone()?).spawn()?, output))
}

/// True for what may be a host name, and is no option, path or address.
fn is_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
        // "10.1" would be 10.0.0.1 (inet_aton(3)).
        && name.bytes().any(|b| b.is_ascii_alphabetic())
}

/// The addresses of `getent ahosts`, each once, that can be another node's.
fn usable(name: String, text: &str) -> Answer {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for word in text.lines().filter_map(|line| line.split_whitespace().next()) {
        // "fe80::1%2" is link-local, and no other node's in any case.
        if let Ok(address) = word.parse()
            && !addresses.contains(&address)
        {
            addresses.push(address);
        }
    }
    let good: Vec<_> = addresses.iter().copied().filter(|&address| is_usable(address)).collect();
    match (good.is_empty(), addresses.is_empty()) {
        (false, _) => Ok(good),
        (true, false) => Err(LookupError::Unusable { name, addresses }),
        (true, true) => Err(LookupError::NotFound(name)),
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
