//! Which files of a folder are hooks: nobody but root may have a say in what root runs.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// As many symbolic links as a path may have, as the kernel has it (path_resolution(7)).
const LINKS: u32 = 40;
/// S_ISVTX (inode(7)).
const STICKY: u32 = 0o1000;
/// The mapping of the first user namespace: everybody is who he is.
const EVERYBODY: [&str; 3] = ["0", "0", "4294967295"];

/// The hooks of a folder, in the order of their names.
///
/// They are executable files of root, which nobody else can write to, and neither to the folder where they really are, nor
/// to any on the way there; names begin with a letter or digit, and end with no `~`. What looks like a hook and is none is told in the log. There
/// are none in a user namespace, where root is somebody else.
pub fn eligible(folder: &Path) -> Vec<PathBuf> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::error!("no hooks are run: cannot read {}: {error}", folder.display());
            return Vec::new();
        }
        Ok(entries) => entries,
    };
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_named(path)).collect();
    if paths.is_empty() || !is_everybody(&fs::read_to_string("/proc/self/uid_map").unwrap_or_default()) {
        return Vec::new();
    }
    if let Err(why) = walk(folder, LINKS).and_then(|real| roots(&fs::metadata(real)?)) {
        tracing::error!("no hooks are run: {}: {why}", folder.display());
        return Vec::new();
    }
    crate::order::sort(&mut paths);
    paths.retain(|path| match check(path) {
        Ok(is_hook) => is_hook,
        Err(why) => {
            tracing::error!("{} is not run: {why}", path.display());
            false
        }
    });
    paths
}

fn is_named(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && !name.ends_with('~')
}

fn is_everybody(map: &str) -> bool {
    map.split_whitespace().eq(EVERYBODY)
}

/// True for a hook; false for a file that is none, and meant to be none.
fn check(path: &Path) -> io::Result<bool> {
    let real = walk(path, LINKS)?;
    let meta = fs::metadata(&real)?;
    if !meta.is_file() || meta.mode() & 0o111 == 0 {
        return Ok(false);
    }
    roots(&meta)?;
    if let Some(folder) = real.parent() {
        roots(&fs::metadata(folder)?)?;
    }
    Ok(true)
}

/// Where a path really leads to. Whoever could put something else into a folder on the way could do so between this look
/// and the hook's start: each of them, those of symbolic links too, is root's alone, or as /tmp is (sticky), where what
/// is root's stays.
fn walk(path: &Path, links: u32) -> io::Result<PathBuf> {
    let mut at = PathBuf::from("/");
    for part in path.components() {
        let name = match part {
            Component::Normal(name) => name,
            Component::ParentDir => {
                at.pop();
                continue;
            }
            _ => continue,
        };
        let meta = fs::metadata(&at)?;
        if meta.uid() != 0 || meta.mode() & STICKY == 0 {
            roots(&meta).map_err(|why| io::Error::new(why.kind(), format!("{}: {why}", at.display())))?;
        }
        let next = at.join(name);
        at = match fs::symlink_metadata(&next)?.is_symlink() {
            false => next,
            true if links == 0 => return Err(io::Error::from_raw_os_error(nix::libc::ELOOP)),
            true => walk(&at.join(fs::read_link(&next)?), links - 1)?,
        };
    }
    Ok(at)
}

fn roots(meta: &Metadata) -> io::Result<()> {
    let refuse = |why: String| Err(io::Error::new(ErrorKind::PermissionDenied, why));
    let what = if meta.is_dir() { "its folder" } else { "it" };
    if meta.uid() != 0 {
        return refuse(format!("{what} is user {}'s: give it to root", meta.uid()));
    }
    if meta.mode() & 0o022 != 0 {
        return refuse(format!("others than root can write to {what}: chmod go-w"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_what_is_roots_alone_is_a_hook() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("hooks.d");
        assert_eq!(eligible(&folder), Vec::<PathBuf>::new(), "no folder, no hooks");
        fs::create_dir(&folder).unwrap();
        let file = |name: &str, mode: u32| {
            let path = folder.join(name);
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (b, a) = (file("20-b", 0o755), file("10-a", 0o500));
        for (name, mode) in [("README", 0o644), (".hidden", 0o755), ("a~", 0o755), ("group", 0o775), ("all", 0o757)] {
            file(name, mode);
        }
        nix::unistd::chown(&file("users", 0o755), Some(1000.into()), None).unwrap();
        fs::create_dir(folder.join("folder")).unwrap();
        symlink("/nonexistent", folder.join("dangling")).unwrap();
        let open = above.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::copy(&a, open.join("hook")).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        symlink(open.join("hook"), folder.join("elsewhere")).unwrap();
        let link = folder.join("30-link");
        symlink(&a, &link).unwrap();
        // A folder on the way is somebody else's: he could put another one in its place.
        let users = above.path().join("users");
        fs::create_dir_all(users.join("deep")).unwrap();
        fs::copy(&a, users.join("deep/hook")).unwrap();
        nix::unistd::chown(&users, Some(1000.into()), None).unwrap();
        symlink(users.join("deep/hook"), folder.join("40-deep")).unwrap();
        symlink(&a, users.join("link")).unwrap();
        symlink(users.join("link"), folder.join("50-by-a-link")).unwrap();
        symlink("60-loop", folder.join("60-loop")).unwrap();
        assert_eq!(eligible(&folder), [a, b, link]);
        symlink(&folder, users.join("hooks.d")).unwrap();
        assert_eq!(eligible(&users.join("hooks.d")), Vec::<PathBuf>::new(), "the folder, by way of a user's");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(eligible(&folder), Vec::<PathBuf>::new(), "anybody could put one there");
    }

    #[test]
    fn a_user_namespace_has_none() {
        assert!(is_everybody("         0          0 4294967295\n"));
        for map in ["0 1000 1\n", "0 0 65536\n", "", "0 0 4294967295\n1 1 1\n"] {
            assert!(!is_everybody(map), "{map}");
        }
    }
}
