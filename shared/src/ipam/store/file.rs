//! Files that others may have put where a record should be.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc::{ELOOP, ENXIO, O_NOFOLLOW, O_NONBLOCK};

/// More than any record: a key is at most what stdin may hold, and six times as long in JSON at worst.
const LIMIT: u64 = 64 << 20;

/// The content of a record's file; `None` if there is none. A link, a pipe, a socket, a folder is no record: its content
/// is empty. Nothing is waited for.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if matches!(error.raw_os_error(), Some(ELOOP | ENXIO)) => return Ok(Some(Vec::new())),
        Err(error) => return Err(error),
    };
    let mut text = Vec::with_capacity(1024);
    match file.take(LIMIT).read_to_end(&mut text) {
        Err(error) if !matches!(error.kind(), ErrorKind::IsADirectory | ErrorKind::WouldBlock) => Err(error),
        _ => Ok(Some(text)),
    }
}

/// Opens what should be a regular file, without waiting for the other end of a pipe.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)
}

/// True for the errors of a path at which nothing is and, while it is spelt so, nothing can be.
pub fn is_absence(error: &io::Error) -> bool {
    let kinds = [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::InvalidFilename, ErrorKind::InvalidInput];
    kinds.contains(&error.kind()) || error.raw_os_error() == Some(ELOOP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_empty_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("10.0.0.5");
        assert_eq!(read(&path).unwrap(), None);
        std::fs::create_dir(&path).unwrap();
        assert_eq!(read(&path).unwrap(), Some(Vec::new()), "a folder");
        std::fs::remove_dir(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read(&path).unwrap(), Some(Vec::new()), "a pipe");
        std::fs::remove_file(&path).unwrap();
        let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        assert_eq!(read(&path).unwrap(), Some(Vec::new()), "a socket");
        drop(socket);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert_eq!(read(&path).unwrap(), Some(Vec::new()), "a link");
        std::fs::remove_file(&path).unwrap();
        let long = vec![b'x'; 3 << 20];
        std::fs::write(&path, &long).unwrap();
        assert_eq!(read(&path).unwrap(), Some(long), "a record with a long key");
    }

    #[test]
    fn absent_is_what_cannot_be_there() {
        let long = format!("/{}", "x".repeat(300));
        for path in ["/nonexistent", "/etc/passwd/x", "/a\0b", &long] {
            assert!(is_absence(&File::open(path).unwrap_err()), "{path:?}");
        }
        assert!(is_absence(&io::Error::from_raw_os_error(ELOOP)));
        assert!(!is_absence(&io::Error::from_raw_os_error(nix::libc::EIO)));
    }
}
