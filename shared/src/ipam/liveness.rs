//! Whether the holder of a record still lives.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::record::{HostEnd, NetnsRef, Record};
use super::timestamp;
use crate::Host;
use crate::netlink::netns::{self, NetnsId, Probe};
use crate::netlink::{Error, RouteSocket};

pub use census::Census;

mod census;

/// A record this young may belong to an ADD that has not made its host end yet.
const YOUNG: Duration = Duration::from_secs(300);

/// The kernel takes a namespace down some tens of milliseconds after its last user has gone, and until then its pair
/// looks alive. Whoever asks waits so long for all of them together, so that a quick restart gets its address back.
const FAREWELL: Duration = Duration::from_millis(500);

/// What is known of an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// Its network namespace is there, and is the one that was recorded.
    Running,
    /// Its host end is there.
    Attached,
    /// It cannot be there any more.
    Dead,
    /// It cannot be told from here: taken for alive.
    Unknown,
}

/// What a record tells of its holder: where to look for it.
#[derive(Debug, Clone, Copy)]
pub struct Traces<'a> {
    /// Kernel boot id at ADD.
    pub boot: &'a str,
    /// The holder's network namespace.
    pub netns: Option<&'a NetnsRef>,
    /// The holder's host end.
    pub host: Option<&'a HostEnd>,
    /// Time of the ADD (RFC 3339).
    pub since: &'a str,
}

/// Who tells whether a record's holder lives: the kernel, or a test.
pub trait Witness {
    /// What is known of the record's holder.
    fn judge(&mut self, record: &Record) -> Liveness;
}

/// The kernel as a witness, asked as little as possible.
pub struct Kernel {
    boot: String,
    socket: Option<RouteSocket>,
    host: Option<NetnsId>,
    namespaces: (u64, u64),
    patience: Duration,
}

impl Kernel {
    /// A witness that judges from this process's namespaces.
    pub fn new(host: &Host) -> Self {
        let namespaces = namespaces();
        Self { boot: host.boot.clone(), socket: None, host: None, namespaces, patience: FAREWELL }
    }

    /// The same, who waits for nothing.
    pub fn in_a_hurry(self) -> Self {
        Self { patience: Duration::ZERO, ..self }
    }

    /// True if the host end is there; `None` from another network namespace, where it cannot be seen. One whose other
    /// end's namespace is on its way out counts as gone: it outlives it for tens of milliseconds.
    fn host_end(&mut self, end: &HostEnd) -> Result<Option<bool>, Error> {
        let host = match &self.host {
            Some(host) => host,
            None => self.host.insert(netns::host_id()?),
        };
        if !host.same(&end.netns) {
            return Ok(None);
        }
        let socket = match &mut self.socket {
            Some(socket) => socket,
            None => self.socket.insert(RouteSocket::open()?),
        };
        Ok(Some(match socket.link_by_name(&end.ifname)? {
            Some(link) => socket.peer_is_alive(&link)?,
            None => false,
        }))
    }

    /// As [`host_end`](Self::host_end); one whose namespace has lost its path is given time to go.
    fn look(&mut self, end: &HostEnd, going: bool) -> Result<Option<bool>, Error> {
        loop {
            match self.host_end(end)? {
                Some(true) if going && !self.patience.is_zero() => {
                    let pause = Duration::from_millis(5).min(self.patience);
                    self.patience -= pause;
                    std::thread::sleep(pause);
                }
                there => return Ok(there),
            }
        }
    }

    /// What is known of the holder that left these traces.
    pub fn judge_traces(&mut self, traces: &Traces<'_>) -> Liveness {
        conclude(self, traces)
    }
}

/// What a holder leaves behind where it may still be seen.
trait Eyes {
    /// Kernel boot id.
    fn boot(&self) -> &str;
    /// The mount and pid namespace of whoever looks.
    fn namespaces(&self) -> (u64, u64);
    /// What is at the path of a network namespace.
    fn probe(&mut self, path: &Path) -> Result<Probe, Error>;
    /// Whether a host end is there; `None`: it cannot be told. `going`: its namespace has lost its path.
    fn look(&mut self, end: &HostEnd, going: bool) -> Result<Option<bool>, Error>;
}

fn conclude(eyes: &mut dyn Eyes, traces: &Traces<'_>) -> Liveness {
    // First of all: cookies and inode numbers start anew with each boot.
    if traces.boot != eyes.boot() {
        return Liveness::Dead;
    }
    let mut netns_gone = false;
    if let Some(NetnsRef { path, id: Some(id), mntns, pidns }) = traces.netns
        && (*mntns, *pidns) == eyes.namespaces()
    {
        match eyes.probe(path) {
            Ok(Probe::Network(there)) if there.same(id) => return Liveness::Running,
            Ok(Probe::Network(_) | Probe::NotANamespace | Probe::Gone) => netns_gone = true,
            // One namespace that we may not look at must not keep everybody else from an address.
            Err(error) => tracing::debug!("{}: {error}", path.display()),
        }
    }
    let host_end = match traces.host.map(|end| eyes.look(end, netns_gone)) {
        None => None,
        Some(Ok(there)) => there,
        Some(Err(error)) => {
            let end = traces.host.map(|end| end.ifname.as_str()).unwrap_or_default();
            tracing::debug!("{end}: {error}");
            return Liveness::Unknown;
        }
    };
    match host_end {
        Some(true) => Liveness::Attached,
        _ if netns_gone => Liveness::Dead,
        Some(false) if is_old(traces.since) => Liveness::Dead,
        _ => Liveness::Unknown,
    }
}

impl Eyes for Kernel {
    fn boot(&self) -> &str {
        &self.boot
    }

    fn namespaces(&self) -> (u64, u64) {
        self.namespaces
    }

    fn probe(&mut self, path: &Path) -> Result<Probe, Error> {
        netns::probe(path)
    }

    fn look(&mut self, end: &HostEnd, going: bool) -> Result<Option<bool>, Error> {
        self.look(end, going)
    }
}

impl Witness for Kernel {
    fn judge(&mut self, record: &Record) -> Liveness {
        let Record { boot, netns, host, since, .. } = record;
        self.judge_traces(&Traces { boot, netns: netns.as_ref(), host: host.as_ref(), since })
    }
}

fn is_old(since: &str) -> bool {
    timestamp::parse(since)
        .and_then(|since| SystemTime::now().duration_since(since).ok())
        .is_some_and(|age| age > YOUNG)
}

/// The mount and pid namespace (inodes) of this process, the only ones where a recorded path means the same.
pub fn namespaces() -> (u64, u64) {
    let inode = |path| std::fs::metadata(path).map_or(0, |meta| meta.ino());
    (inode("/proc/self/ns/mnt"), inode("/proc/self/ns/pid"))
}
