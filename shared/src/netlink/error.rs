//! What can go wrong between us and the kernel.

use std::fmt;
use std::path::PathBuf;

use nix::errno::Errno;

/// A request that the kernel refused, or that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel's answer to a request, with its own words where it has some (NETLINK_EXT_ACK).
    #[error("cannot {request}: {}{}", .errno.desc(), Hint(.hint.as_deref()))]
    Refused {
        /// What was asked, with the names of the devices.
        request: String,
        /// The kernel's error.
        errno: Errno,
        /// The kernel's explanation.
        hint: Option<String>,
    },
    /// The kernel has not got that kind of device.
    #[error("cannot {request}: this kernel has no devices of kind {kind}: install or load its module {module}")]
    NoModule {
        /// What was asked, with the names of the devices.
        request: String,
        /// The kind of device, as `ip link` has it.
        kind: &'static str,
        /// The kernel module that is missing.
        module: &'static str,
    },
    /// No answer came in time.
    #[error("cannot {request}: the kernel did not answer within {seconds} s")]
    Timeout {
        /// What was asked.
        request: String,
        /// How long was waited.
        seconds: i64,
    },
    /// The list changed again and again while it was read (NLM_F_DUMP_INTR).
    #[error("cannot {request}: it changed during each of {tries} readings; try again")]
    Unsteady {
        /// What was asked.
        request: String,
        /// How often it was read.
        tries: u32,
    },
    /// The answer is not what rtnetlink(7) says.
    #[error("cannot {request}: the kernel's answer is malformed ({what})")]
    Malformed {
        /// What was asked.
        request: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A netlink socket could not be made or used.
    #[error("cannot {what} a netlink socket: {}", .errno.desc())]
    Socket {
        /// open, configure, …
        what: &'static str,
        /// The kernel's error.
        errno: Errno,
    },
    /// The path is no network namespace.
    #[error("{} is not a network namespace", .0.display())]
    NotANamespace(PathBuf),
    /// A network namespace could not be opened, entered or identified.
    #[error("cannot {what} network namespace {}: {}", .path.display(), .errno.desc())]
    Namespace {
        /// open, enter, identify.
        what: &'static str,
        /// Where it is.
        path: PathBuf,
        /// The kernel's error.
        errno: Errno,
    },
    /// A kernel parameter could not be read or written.
    #[error("cannot {what} /proc/sys/{name}: {}", .errno.desc())]
    Sysctl {
        /// read, set.
        what: &'static str,
        /// The parameter, as a path below /proc/sys.
        name: String,
        /// The kernel's error.
        errno: Errno,
    },
}

impl Error {
    /// The kernel's error number, when the kernel gave one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Refused { errno, .. }
            | Self::Socket { errno, .. }
            | Self::Namespace { errno, .. }
            | Self::Sysctl { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// True if the kernel said this.
    pub fn is(&self, wanted: Errno) -> bool {
        self.errno() == Some(wanted)
    }
}

/// The kernel's explanation in brackets, or nothing.
struct Hint<'a>(Option<&'a str>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(text) => write!(f, " (kernel: {text})"),
            None => Ok(()),
        }
    }
}

/// The error number of an I/O error; EIO if there is none.
pub(super) fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
