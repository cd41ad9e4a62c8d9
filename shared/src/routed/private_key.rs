//! This node's WireGuard key in a network: `<state>/wireguard/<network>.key`, as `wg genkey` writes it, for root alone.
//!
//! It is made once and outlives the network: the peers have its other half in their configuration.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{fchown, geteuid};

use super::{Error, file};
use crate::lock::exclusively;
use crate::netlink::wireguard::PrivateKey;
use crate::netlink::wireguard::key::{from_text, to_text};
use crate::{Host, NetworkName};

/// Longer than a key and its line end, in bytes.
const LONGEST: usize = 64;

/// The file of a network's key.
pub fn path(host: &Host, network: &NetworkName) -> PathBuf {
    host.state.join("wireguard").join(format!("{network}.key"))
}

/// The key of a network, made if there is none.
///
/// # Errors
/// It cannot be read or made, or the file holds something else.
pub fn load_or_make(host: &Host, network: &NetworkName) -> Result<PrivateKey, Error> {
    if let Some(key) = load(host, network)? {
        return Ok(key);
    }
    let key = PrivateKey::generate().map_err(|error| Error::file("write", path(host, network), error))?;
    keep(host, network, &key)
}

/// Makes this the key of a network, unless there is one. Returned is the one that there is.
///
/// # Errors
/// It cannot be read or written, or the file holds something else.
pub fn keep(host: &Host, network: &NetworkName, key: &PrivateKey) -> Result<PrivateKey, Error> {
    let path = path(host, network);
    let failed = |error| Error::file("write", &path, error);
    let folder = path.parent().unwrap_or(Path::new("."));
    file::make_folder(folder).map_err(failed)?;
    // What a killed one has left is removed by the next one, and by nobody else's hand while it is being written.
    exclusively(&folder.join("lock"), || match make(&path, key) {
        // Somebody has put one there meanwhile, and that is the key.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(()),
    })?;
    let missing = || Error::file("read", &path, ErrorKind::NotFound.into());
    read(&path)?.ok_or_else(missing)
}

/// The key of a network; none if there is none.
///
/// # Errors
/// It cannot be read, or the file holds something else.
pub fn load(host: &Host, network: &NetworkName) -> Result<Option<PrivateKey>, Error> {
    read(&path(host, network))
}

fn read(path: &Path) -> Result<Option<PrivateKey>, Error> {
    let failed = |error| Error::file("read", path, error);
    let mut file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    protect(path, &file).map_err(|error| Error::file("protect", path, error))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(failed)?;
    // Never shown, whatever it is.
    let text = std::str::from_utf8(&text).ok().filter(|text| text.len() <= LONGEST);
    match text.and_then(|text| from_text(text.trim())) {
        Some(key) => Ok(Some(PrivateKey::new(key))),
        None => Err(Error::NoPrivateKey(path.to_owned())),
    }
}

/// Makes the file one of this user alone, if it is not.
fn protect(path: &Path, file: &File) -> io::Result<()> {
    let (meta, user) = (file.metadata()?, geteuid());
    if meta.uid() != user.as_raw() {
        tracing::warn!("{} was user {}'s, who may know the key: it is root's now", path.display(), meta.uid());
        fchown(file, Some(user), None)?;
    }
    if meta.mode() & 0o077 != 0 {
        tracing::warn!("{} could be read by others (mode {:o}): it is 600 now", path.display(), meta.mode() & 0o777);
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// There whole or not at all, and on the disk; one that is there already stays.
fn make(path: &Path, key: &PrivateKey) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(to_text(key.expose()).as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::hard_link(&fresh, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    let written = write();
    let _ = fs::remove_file(&fresh);
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::record::tests::host;

    #[test]
    fn it_is_made_once_and_is_for_root_alone() {
        let folder = tempfile::tempdir().unwrap();
        let host = host(&folder);
        let network = "prod".parse().unwrap();
        let key = load_or_make(&host, &network).unwrap();
        assert_eq!(load_or_make(&host, &network).unwrap(), key);
        assert_ne!(load_or_make(&host, &"other".parse().unwrap()).unwrap(), key);
        let path = path(&host, &network);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let left = || {
            let names = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
            crate::order::sort(&mut names);
            names
        };
        assert_eq!(left(), ["lock", "other.key", "prod.key"], "no temporary file is left");
        fs::write(path.with_file_name("third.new"), "what a killed one left").unwrap();
        load_or_make(&host, &"third".parse().unwrap()).unwrap();
        assert_eq!(left(), ["lock", "other.key", "prod.key", "third.key"], "nor by one that was killed");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        nix::unistd::chown(&path, Some(1000.into()), None).unwrap();
        assert_eq!(load_or_make(&host, &network).unwrap(), key);
        let meta = fs::metadata(&path).unwrap();
        assert_eq!((meta.mode() & 0o777, meta.uid()), (0o600, 0));
    }

    #[test]
    fn something_else_is_refused_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let host = host(&folder);
        let network = "prod".parse().unwrap();
        let path = path(&host, &network);
        file::make_folder(path.parent().unwrap()).unwrap();
        for text in ["", "secret", "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTm"] {
            fs::write(&path, text).unwrap();
            let error = load_or_make(&host, &network).unwrap_err().to_string();
            assert!(error.contains("prod.key") && (text.is_empty() || !error.contains(text)), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "it may be of use to somebody");
        }
    }
}
