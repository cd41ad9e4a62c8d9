//! Network namespaces: entering one, and telling one from another.
//!
//! # Safety
//! Two calls have no safe wrapper in `nix`: the ioctl that tells the kind of a namespace, and the
//! socket option that reads a namespace's cookie. Both only read, through descriptors that are
//! borrowed for the time of the call and into memory of the size that the kernel is told.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::{Mode, fstat};
use nix::sys::statfs::{NSFS_MAGIC, statfs};
use serde::{Deserialize, Serialize};

use super::Error;

/// The namespace of the calling thread; that of the process is another one in a thread that moved.
const OWN: &str = "/proc/thread-self/ns/net";
/// `_IO(0xb7, 0x3)` (ioctl_ns(2)).
const NS_GET_NSTYPE: libc::Ioctl = 0xb703;

/// Identity of a network namespace: cookie (SO_NETNS_COOKIE, since 5.14) where there is one, else
/// device, inode and change time of the nsfs file.
///
/// Cookies are never used twice in one boot. Inode numbers are, at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetnsId {
    /// The kernel's cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<u64>,
    /// Device of the nsfs file.
    pub dev: u64,
    /// Inode of the nsfs file.
    pub ino: u64,
    /// Change time of the nsfs file, in nanoseconds since the epoch. Only without a cookie, and only
    /// of a bind mount: the file behind a link in /proc is made anew when nobody has it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ctime: Option<i64>,
}

impl NetnsId {
    /// True if both are the same namespace: by cookie when both have one.
    pub fn same(&self, other: &Self) -> bool {
        match (self.cookie, other.cookie) {
            (Some(a), Some(b)) => a == b,
            _ => {
                self.dev == other.dev
                    && self.ino == other.ino
                    && self.ctime.zip(other.ctime).is_none_or(|(a, b)| a == b)
            }
        }
    }
}

/// An open network namespace. The descriptor is closed when another program is started.
#[derive(Debug)]
pub struct Netns {
    fd: OwnedFd,
    path: PathBuf,
    /// Opened through a bind mount, which keeps its file.
    mounted: bool,
}

impl Netns {
    /// Opens the namespace at a path: a bind mount, or a link in /proc.
    ///
    /// # Errors
    /// [`Error::NotANamespace`] for a file of another kind, and for namespaces of another kind;
    /// [`Error::Namespace`] when there is nothing, or it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |errno| Error::Namespace { what: "open", path: path.to_owned(), errno };
        // Looked at first: opening a pipe or a device has effects.
        if statfs(path).map_err(failed)?.filesystem_type() != NSFS_MAGIC {
            return Err(Error::NotANamespace(path.to_owned()));
        }
        let fd = open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).map_err(failed)?;
        // SAFETY: NS_GET_NSTYPE takes no argument and writes nothing; the descriptor is open.
        let kind = unsafe { libc::ioctl(fd.as_raw_fd(), NS_GET_NSTYPE) };
        if kind != libc::CLONE_NEWNET {
            return Err(Error::NotANamespace(path.to_owned()));
        }
        let mounted = std::fs::symlink_metadata(path).is_ok_and(|file| !file.is_symlink());
        Ok(Self { fd, path: path.to_owned(), mounted })
    }

    /// The namespace of this thread.
    ///
    /// # Errors
    /// As [`open`](Self::open); /proc is not mounted.
    pub fn current() -> Result<Self, Error> {
        Self::open(Path::new(OWN))
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor's number, for the attributes IFLA_NET_NS_FD.
    pub fn raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// The identity of this namespace. Reading the cookie enters the namespace for a moment.
    ///
    /// # Errors
    /// The namespace cannot be entered (CAP_SYS_ADMIN), or left again.
    pub fn id(&self) -> Result<NetnsId, Error> {
        let cookie = self.enter(own_cookie)?;
        self.id_with(cookie)
    }

    /// The identity of this namespace, which is that of the thread: read without entering it.
    ///
    /// # Errors
    /// The descriptor cannot be read.
    pub fn id_of_thread(&self) -> Result<NetnsId, Error> {
        self.id_with(own_cookie()?)
    }

    /// Opens something in this namespace, and tells its identity by the way: one entry for both.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub fn enter_and_identify<T>(
        &self,
        home: &Self,
        act: impl FnOnce() -> Result<T, Error>,
    ) -> Result<(T, NetnsId), Error> {
        let (value, cookie) = self.enter_from(home, || Ok((act()?, own_cookie()?)))?;
        Ok((value, self.id_with(cookie)?))
    }

    fn id_with(&self, cookie: Option<u64>) -> Result<NetnsId, Error> {
        let file = fstat(&self.fd).map_err(|errno| self.failed("identify", errno))?;
        let ctime = file.st_ctime * 1_000_000_000 + file.st_ctime_nsec;
        let ctime = (cookie.is_none() && self.mounted).then_some(ctime);
        Ok(NetnsId { cookie, dev: file.st_dev, ino: file.st_ino, ctime })
    }

    /// True if both descriptors are of one namespace. Both are open: no inode is used twice.
    pub fn is_same_as(&self, other: &Self) -> bool {
        match (fstat(&self.fd), fstat(&other.fd)) {
            (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
            _ => false,
        }
    }

    /// Does something in this namespace, and comes back whatever happens.
    ///
    /// # Errors
    /// The namespace cannot be entered; what `act` reports; the thread cannot come back.
    pub fn enter<T>(&self, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.enter_from(&Self::current()?, act)
    }

    /// As [`enter`](Self::enter), when the thread's own namespace is open already.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub fn enter_from<T>(&self, home: &Self, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        setns(&self.fd, CloneFlags::CLONE_NEWNET).map_err(|errno| self.failed("enter", errno))?;
        let back = Return(home);
        let result = act();
        std::mem::forget(back);
        setns(&home.fd, CloneFlags::CLONE_NEWNET).map_err(|errno| home.failed("return to", errno))?;
        result
    }

    fn failed(&self, what: &'static str, errno: Errno) -> Error {
        Error::Namespace { what, path: self.path.clone(), errno }
    }
}

/// Comes back when what was done inside panics.
struct Return<'a>(&'a Netns);

impl Drop for Return<'_> {
    fn drop(&mut self) {
        let _ = setns(&self.0.fd, CloneFlags::CLONE_NEWNET);
    }
}

/// Runs `act` in a new network namespace, which is there for that long.
///
/// # Errors
/// There can be no thread or namespace (CAP_SYS_ADMIN); what `act` reports.
pub fn in_new<T: Send>(act: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    let refused = |errno| Error::Namespace { what: "make", path: OWN.into(), errno };
    // The thread takes the namespace along when it ends.
    thread::scope(|scope| {
        let work = || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(refused)?;
            act()
        };
        let started = thread::Builder::new().spawn_scoped(scope, work).map_err(|_| refused(Errno::EAGAIN))?;
        started.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The identity of this thread's own network namespace.
///
/// # Errors
/// /proc is not mounted.
pub fn host_id() -> Result<NetnsId, Error> {
    Netns::current()?.id_of_thread()
}

/// The cookie of this thread's network namespace; `None` before kernel 5.14.
fn own_cookie() -> Result<Option<u64>, Error> {
    // The cheapest socket there is: each belongs to a network namespace.
    let socket = socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|errno| Error::Namespace { what: "identify", path: OWN.into(), errno })?;
    let mut cookie = 0_u64;
    let mut size = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `cookie`, which has that size, and the
    // length to `size`; both outlive the call, and the descriptor is open.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, (&raw mut cookie).cast(), &raw mut size)
    };
    Ok((result == 0 && cookie != 0).then_some(cookie))
}

/// asm-generic/socket.h; `libc` has it for some targets only.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// What is at the path of a namespace that was there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// A network namespace.
    Network(NetnsId),
    /// A file of another kind: what a removed bind mount leaves behind.
    NotANamespace,
    /// Nothing.
    Gone,
}

/// Looks at the path of a namespace, for the liveness of its container.
///
/// # Errors
/// It cannot be told: no access, no CAP_SYS_ADMIN.
pub fn probe(path: &Path) -> Result<Probe, Error> {
    match Netns::open(path) {
        Ok(netns) => Ok(Probe::Network(netns.id()?)),
        Err(Error::NotANamespace(_)) => Ok(Probe::NotANamespace),
        // ESRCH, ENOTDIR: a link of a process that has ended meanwhile.
        Err(Error::Namespace { errno: Errno::ENOENT | Errno::ENOTDIR | Errno::ESRCH, .. }) => Ok(Probe::Gone),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{in_new_netns, pinned_netns};
    use super::*;

    #[test]
    fn identity_of_namespaces() {
        in_new_netns(|| {
            let own = host_id().unwrap();
            let other = pinned_netns();
            assert_eq!(Netns::current().unwrap().id().unwrap(), own);
            assert!(!own.same(&other.id().unwrap()));
            assert!(other.id().unwrap().same(&other.enter(host_id).unwrap()));
            assert!(host_id().unwrap().same(&own), "enter comes back");
            assert!(!other.is_same_as(&Netns::current().unwrap()));
            assert!(other.is_same_as(&other));
        });
    }

    #[test]
    fn without_a_cookie_device_inode_and_time_tell() {
        let id = |cookie, ino, ctime| NetnsId { cookie, dev: 4, ino, ctime };
        assert!(id(Some(1), 5, None).same(&id(Some(1), 6, None)));
        assert!(!id(Some(1), 5, None).same(&id(Some(2), 5, None)));
        assert!(id(None, 5, Some(1)).same(&id(None, 5, Some(1))));
        assert!(!id(None, 5, Some(1)).same(&id(None, 5, Some(2))));
        assert!(id(None, 5, None).same(&id(None, 5, Some(2))));
        assert!(id(Some(1), 5, None).same(&id(None, 5, None)));
    }

    #[test]
    fn c74_a_plain_file_and_other_namespaces_are_told_by_path() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gone");
        assert_eq!(probe(&file).unwrap(), Probe::Gone);
        assert_eq!(probe(Path::new("/proc/999999999/ns/net")).unwrap(), Probe::Gone);
        std::fs::write(&file, "").unwrap();
        assert_eq!(probe(&file).unwrap(), Probe::NotANamespace);
        assert_eq!(probe(&file.join("x")).unwrap(), Probe::Gone);
        let other = Path::new("/proc/self/ns/mnt");
        assert_eq!(probe(other).unwrap(), Probe::NotANamespace);
        let text = Netns::open(other).unwrap_err().to_string();
        assert_eq!(text, "/proc/self/ns/mnt is not a network namespace");
    }

    #[test]
    fn enter_returns_after_an_error_and_a_panic() {
        in_new_netns(|| {
            let own = host_id().unwrap();
            let other = pinned_netns();
            let result: Result<(), _> = other.enter(|| Err(Error::NotANamespace("x".into())));
            assert!(matches!(result, Err(Error::NotANamespace(_))));
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _: Result<(), Error> = other.enter(|| panic!("inside"));
            }));
            assert!(panicked.is_err());
            assert!(host_id().unwrap().same(&own));
        });
    }
}
