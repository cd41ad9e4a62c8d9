//! One writer at a time: flock(2) on a file, with a bounded wait.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fd_lock::RwLock;

/// How long to wait for a lock: below CRI-O's minute for a DEL, so that the runtime hears the reason.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A lock that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it for too long.
    #[error("{} is held by process {holder} for more than {} s: end that process, or wait for it", .path.display(), PATIENCE.as_secs())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Who wrote its pid there last.
        holder: String,
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

/// Runs `act` while holding the lock file at `path`, which is made if it is not there.
///
/// # Errors
/// [`LockError`] as the caller's error, or whatever `act` returns.
pub fn exclusively<T, E: From<LockError>>(path: &Path, act: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let io = |source| LockError::Io { path: path.to_owned(), source };
    let deadline = Instant::now() + PATIENCE;
    let mut act = Some(act);
    let mut pause = Duration::from_micros(200);
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
            Ok(mut guard) => {
                // The folder may have been deleted and made again while we waited: this file is then nobody's lock.
                if guard.metadata().map_err(io)?.nlink() > 0
                    && let Some(act) = act.take()
                {
                    // For the message of whoever waits too long; a lock works without it (disk full).
                    let line = format!("{:<10}\n", std::process::id());
                    let _ = guard.seek(SeekFrom::Start(0)).and_then(|_| guard.write_all(line.as_bytes()));
                    return act();
                }
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Err(()),
            Err(error) => return Err(io(error).into()),
        };
        if outcome.is_err() {
            if Instant::now() > deadline {
                let mut holder = String::new();
                let _ = std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut holder));
                return Err(LockError::Held { path: path.to_owned(), holder: holder.trim().to_owned() }.into());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
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
        assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), std::process::id().to_string());
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = exclusively::<(), LockError>(Path::new("/nonexistent/lock"), || Ok(())).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/lock"), "{error}");
    }
}
