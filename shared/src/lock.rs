//! One writer at a time: flock(2) on a file, with a bounded wait.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fd_lock::RwLock;

use crate::Code;

/// How long to wait for a lock: below CRI-O's minute for a DEL, so that the runtime hears the reason.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The lock file for which somebody in this process waits.
static WAITED_FOR: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Who holds the lock for which this process waits right now; none if it waits for none. For another thread, to tell it.
pub fn waited_for() -> Option<String> {
    let path = WAITED_FOR.lock().ok()?.clone()?;
    Some(holder(&path))
}

/// While it is there, [`waited_for`] tells of the lock.
struct Wait;

impl Wait {
    fn begin(path: &Path) -> Self {
        Self::set(Some(path.to_owned()));
        Self
    }

    fn set(path: Option<PathBuf>) {
        if let Ok(mut waited_for) = WAITED_FOR.lock() {
            *waited_for = path;
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        Self::set(None);
    }
}

/// A lock that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it for too long.
    #[error("{} is held by {holder} for more than {} s: end it, or wait for it", .path.display(), .patience.as_secs())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Who that is.
        holder: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The lock file cannot be made or locked.
    #[error("cannot lock {}: {source}", .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

impl LockError {
    /// The code printed to the runtime.
    pub fn code(&self) -> Code {
        match self {
            Self::Held { .. } => Code::TryAgainLater,
            Self::Io { .. } => Code::Io,
        }
    }
}

/// Runs `act` while holding the lock file at `path`, which is made if it is not there.
///
/// # Errors
/// [`LockError`] as the caller's error, or whatever `act` returns.
pub fn exclusively<T, E: From<LockError>>(path: &Path, act: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    exclusively_within(PATIENCE, path, act)
}

/// As [`exclusively`], waiting no longer than `patience`.
///
/// # Errors
/// As [`exclusively`].
pub fn exclusively_within<T, E: From<LockError>>(
    patience: Duration,
    path: &Path,
    act: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let io = |source| LockError::Io { path: path.to_owned(), source };
    let deadline = Instant::now() + patience;
    let mut act = Some(act);
    let mut pause = Duration::from_micros(200);
    let mut wait = None;
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(io)?;
        let mut lock = RwLock::new(file);
        let outcome = match lock.try_write() {
            Ok(guard) => {
                // The folder may have been deleted and made again while we waited: this file is then nobody's lock.
                if guard.metadata().map_err(io)?.nlink() > 0
                    && let Some(act) = act.take()
                {
                    drop(wait);
                    return act();
                }
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Err(()),
            Err(error) => return Err(io(error).into()),
        };
        if outcome.is_err() {
            if Instant::now() > deadline {
                return Err(LockError::Held { path: path.to_owned(), holder: holder(path), patience }.into());
            }
            wait.get_or_insert_with(|| Wait::begin(path));
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

/// Who holds the lock, as far as /proc/locks (proc(5)) tells: a process of another pid namespace has no number here.
fn holder(path: &Path) -> String {
    let unknown = || "another process".to_owned();
    let (Ok(locks), Ok(file)) = (std::fs::read_to_string("/proc/locks"), std::fs::metadata(path)) else {
        return unknown();
    };
    // 1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF; a waiting one has `->` behind its number. The inode only: the
    // device is that of the file system below an overlay.
    let inode = format!(":{}", file.ino());
    let pid = locks.lines().filter(|line| line.contains(" FLOCK ") && !line.contains("->")).find_map(|line| {
        let mut words = line.split_whitespace().skip(4);
        let pid = words.next()?;
        words.next()?.ends_with(&inode).then_some(pid)
    });
    match pid {
        Some(pid) if pid != "0" && !pid.starts_with('-') => format!("process {pid}"),
        _ => unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let inside = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    exclusively::<_, LockError>(&path, || {
                        use std::sync::atomic::Ordering::SeqCst;
                        assert_eq!(inside.fetch_add(1, SeqCst), 0, "nobody else is inside");
                        std::thread::sleep(Duration::from_millis(2));
                        inside.fetch_sub(1, SeqCst);
                        Ok(())
                    })
                    .unwrap();
                });
            }
        });
    }

    #[test]
    fn the_holder_is_named_by_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert_eq!(holder(&path), "another process");
        exclusively::<_, LockError>(&path, || {
            assert_eq!(holder(&path), format!("process {}", std::process::id()));
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = exclusively::<(), LockError>(Path::new("/nonexistent/lock"), || Ok(())).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/lock"), "{error}");
    }
}
