//! Which peer file the hooks were told of last: `<network>.told` is another name of that file (link(2)), and as each
//! change is a new file, it says whether there is something to tell. So nothing is lost with a process that is killed
//! between a change and its hooks: the next ADD or setup sees it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::lock::{LockError, exclusively_within};

/// Longer than from the last look of whoever tells the hooks to his end.
const PATIENCE: Duration = Duration::from_millis(200);
/// How often it is told again at once, while it changes.
const TIMES: u32 = 16;

/// True if the hooks were told of the file as it is, or there is none.
pub(in crate::routed) fn is_told(file: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    match identity(file) {
        Ok(now) => identity(&file.with_extension("told")).is_ok_and(|told| told == now),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Tells (`act`) of a file, and again if it changes meanwhile; nothing if somebody else is about it. He looks again
/// before he ends.
pub(super) fn tell(file: &Path, act: impl Fn()) {
    let told = exclusively_within(PATIENCE, &file.with_extension("hooks"), || {
        for _ in 0..TIMES {
            if is_told(file) {
                break;
            }
            let noted = note(file);
            act();
            // Without the note it is told once more by the next ADD.
            if let Err(error) = noted.and_then(|()| fs::rename(telling(file), file.with_extension("told"))) {
                tracing::warn!("cannot note that hooks were told of {}: {error}", file.display());
                break;
            }
        }
        Ok::<_, LockError>(())
    });
    match told {
        Ok(()) | Err(LockError::Held { .. }) => {}
        Err(error) => tracing::error!("hooks are not told of {}: {error}", file.display()),
    }
}

/// Forgets that the hooks were told of a file that is gone.
pub(in crate::routed) fn forget(file: &Path) {
    for extension in ["told", "telling", "hooks"] {
        let _ = fs::remove_file(file.with_extension(extension));
    }
}

fn telling(file: &Path) -> std::path::PathBuf {
    file.with_extension("telling")
}

fn note(file: &Path) -> io::Result<()> {
    match fs::remove_file(telling(file)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::hard_link(file, telling(file))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc::channel;

    use super::*;

    /// As records are written: a new file in place of the old one.
    fn change(file: &Path, text: &str) {
        let fresh = file.with_extension("new");
        fs::write(&fresh, text).unwrap();
        fs::rename(&fresh, file).unwrap();
    }

    #[test]
    fn each_change_is_told_once_and_none_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("net.v2.json");
        assert!(is_told(&file), "nothing to tell");
        change(&file, "one");
        assert!(!is_told(&file));
        let times = Cell::new(0);
        let count = || times.set(times.get() + 1);
        tell(&file, count);
        tell(&file, count);
        assert!(is_told(&file) && times.get() == 1, "{}", times.get());
        change(&file, "one");
        assert!(!is_told(&file), "a change and back is two");
        // Killed before the end.
        note(&file).unwrap();
        tell(&file, || {
            count();
            if times.get() == 2 {
                change(&file, "two");
            }
        });
        assert!(is_told(&file) && times.get() == 3, "of what changed meanwhile, too: {}", times.get());
        assert_eq!(fs::read_to_string(file.with_extension("told")).unwrap(), "two");
        fs::remove_file(&file).unwrap();
        forget(&file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn of_two_at_once_one_tells_and_looks_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = &folder.path().join("net.json");
        change(file, "one");
        let (started, wait) = channel();
        let (go, gate) = channel::<()>();
        let times = &std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                tell(file, || {
                    times.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    started.send(()).unwrap();
                    let _ = gate.recv();
                });
            });
            wait.recv().unwrap();
            change(file, "two");
            tell(file, || panic!("somebody else is about it"));
            drop(go);
        });
        assert!(is_told(file));
        assert_eq!(times.load(std::sync::atomic::Ordering::SeqCst), 2);
    }
}
