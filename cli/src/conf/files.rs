//! The files of the folders in which the runtimes look.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::whose::{self, Whose};
use super::{Definition, parse};
use crate::error::Error;

/// Where the runtimes look: all of them, Nomad, OpenSVC's agent.
const FOLDERS: [&str; 3] = ["/etc/cni/net.d", "/opt/cni/config", "/var/lib/opensvc/cni/net.d"];

/// More than any configuration.
const LIMIT: u64 = 8 << 20;

/// True for a file in one of the folders that nerdctl has for each namespace, below the usual one; others have folders
/// there too.
pub fn is_below(file: &Path) -> bool {
    file.parent().and_then(Path::parent) == Some(Path::new(FOLDERS[0]))
}

/// The folders where the runtimes of this host look, as far as they are there. nerdctl has one for each namespace below
/// the usual one.
pub fn usual_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).filter(|folder| folder.is_dir()).collect();
    let below = fs::read_dir(FOLDERS[0]).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut below: Vec<PathBuf> = below.filter(|path| path.is_dir()).collect();
    below.sort();
    folders.extend(below);
    folders
}

/// A file that holds no network.
#[derive(Debug)]
pub struct Unreadable {
    /// What is wrong.
    pub error: Error,
    /// It is somebody else's: nothing of ours is in it.
    pub foreign: bool,
}

/// The networks of several folders. Of several definitions of one network that of the first folder counts.
///
/// # Errors
/// A folder cannot be read.
pub fn load_all(folders: &[PathBuf]) -> Result<(Vec<Definition>, Vec<Unreadable>), Error> {
    let (mut all, mut faults) = (Vec::<Definition>::new(), Vec::new());
    for folder in folders {
        let (definitions, wrong) = load(folder)?;
        faults.extend(wrong);
        for new in definitions {
            match all.iter_mut().find(|known| known.name == new.name) {
                Some(known) => known.elsewhere.push(new.file),
                None => all.push(new),
            }
        }
    }
    Ok((all, faults))
}

/// The networks of a folder, and what is wrong with the files that hold none. Of several files for one network the
/// first counts, as for the runtimes.
///
/// # Errors
/// The folder cannot be read.
pub fn load(folder: &Path) -> Result<(Vec<Definition>, Vec<Unreadable>), Error> {
    let fault = |source| Error::Read { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if path
            .extension()
            .is_some_and(|extension| ["conflist", "conf", "json"].iter().any(|known| extension == *known))
        {
            files.push(path);
        }
    }
    files.sort();
    let (mut definitions, mut faults) = (Vec::<Definition>::new(), Vec::new());
    for file in files {
        let text = match text(&file) {
            // It has gone meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(source) => {
                // Who keeps a folder or a pipe below is none of ours.
                let foreign = source.kind() == ErrorKind::InvalidData && is_below(&file);
                faults.push(Unreadable { error: Error::Read { path: file, source }, foreign });
                continue;
            }
            Ok(text) => text,
        };
        match parse(&file, &text) {
            Ok(new) => match definitions.iter_mut().find(|known| known.name == new.name) {
                Some(known) => known.shadowed.push(new.file),
                None => definitions.push(new),
            },
            Err(error) => match whose::of(&file, &text) {
                Whose::Ours => faults.push(Unreadable { error, foreign: false }),
                Whose::Foreign => faults.push(Unreadable { error, foreign: true }),
                Whose::NoNetwork => {}
            },
        }
    }
    Ok((definitions, faults))
}

/// The text of a file.
///
/// # Errors
/// It cannot be read, is no plain file, or is larger than any configuration.
pub fn text(file: &Path) -> io::Result<Vec<u8>> {
    let unfit = || io::Error::new(ErrorKind::InvalidData, "no file, or one of more than 8 MiB");
    // Nobody may ever write into a pipe.
    let opened = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(file)?;
    if !opened.metadata()?.is_file() {
        return Err(unfit());
    }
    let mut text = Vec::new();
    opened.take(LIMIT + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LIMIT { Err(unfit()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_good_and_bad_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("10-a.conflist", r#"{"name": "a", "plugins": [{"type": "osvc-bridge"}]}"#);
        write("20-a.conflist", r#"{"name": "a", "plugins": [{"type": "bridge"}]}"#);
        write("30-b.conf", r#"{"name": "b", "type": "bridge"}"#);
        write("40-bad.json", "{");
        write("README", "no configuration");
        fs::create_dir(folder.path().join("folder.conf")).unwrap();
        let (definitions, faults) = load(folder.path()).unwrap();
        let names: Vec<_> =
            definitions.iter().map(|network| (network.name.as_str(), &*network.plugins[0].kind)).collect();
        assert_eq!(names, [("a", "osvc-bridge"), ("b", "bridge")]);
        assert_eq!(definitions[0].shadowed, [folder.path().join("20-a.conflist")]);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults.iter().all(|fault| !fault.foreign), "{faults:?}");
        assert!(load(&folder.path().join("absent")).is_err());
    }

    #[test]
    fn what_is_no_plain_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.conf");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert_eq!(text(&pipe).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(text(folder.path()).unwrap_err().kind(), ErrorKind::InvalidData);
        let large = folder.path().join("large.conf");
        fs::File::create(&large).unwrap().set_len(LIMIT + 1).unwrap();
        assert_eq!(text(&large).unwrap_err().kind(), ErrorKind::InvalidData);
        fs::File::create(&large).unwrap().set_len(LIMIT).unwrap();
        assert_eq!(text(&large).unwrap().len() as u64, LIMIT);
    }
}
