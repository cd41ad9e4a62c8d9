//! Room for records, and leave to write them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::statvfs::statvfs;
use osvc_cni::Host;
use osvc_cni::host::{NotWritable, writable};

use super::{Report, Subject};

/// Less is used up by a day's containers and logs: in bytes, and in files.
const LEAST: (u64, u64) = (4 << 20, 256);

const WHY: &str = "an address is given only with its record on the disk: no container can start";

/// The folders of the host's state, and those of addresses that are elsewhere.
pub fn folders(report: &mut Report, host: &Host, subjects: &[Subject<'_>]) {
    let addresses =
        subjects.iter().filter_map(|subject| Some(subject.shape.as_ref()?.addresses.as_ref()?.folder.clone()));
    let mut folders: BTreeSet<PathBuf> = addresses.filter(|folder| !folder.starts_with(&host.state)).collect();
    folders.extend([host.state.clone(), host.run.clone()]);
    for folder in folders {
        look(report, &folder);
    }
}

fn look(report: &mut Report, folder: &Path) {
    match writable(folder) {
        Ok(()) => {}
        Err(NotWritable { path, errno: Errno::ENOSPC }) => return full(report, &path, 0, 0),
        Err(NotWritable { path, errno: Errno::EROFS }) => {
            let what = format!("{} is on a file system that is mounted read-only", path.display());
            return report.add(
                "not-writable",
                None,
                what,
                WHY,
                format!("mount -o remount,rw $(df --output=target {} | tail -1)", path.display()),
            );
        }
        Err(error @ NotWritable { errno: Errno::EACCES | Errno::EPERM, .. })
            if !nix::unistd::Uid::effective().is_root() =>
        {
            return report.cannot_tell(
                None,
                &format!("whether plugins can write to {}", folder.display()),
                &error.errno,
            );
        }
        Err(NotWritable { path, errno }) => {
            let what = format!("cannot write to {}: {errno}", path.display());
            return report.add("not-writable", None, what, WHY, format!("namei -l {}", folder.display()));
        }
    }
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(folder);
    match statvfs(there) {
        Ok(room) => {
            let bytes = room.blocks_available().saturating_mul(room.fragment_size());
            // Zero files in all: a file system that does not count them.
            let files = if room.files() == 0 { u64::MAX } else { room.files_available() };
            if bytes < LEAST.0 || files < LEAST.1 {
                full(report, there, bytes, files);
            }
        }
        Err(error) => report.cannot_tell(None, &format!("the room in {}", there.display()), &error),
    }
}

fn full(report: &mut Report, path: &Path, bytes: u64, files: u64) {
    let left = match files {
        _ if bytes < LEAST.0 => format!("{} kB are left", bytes >> 10),
        files => format!("{files} files (inodes) are left"),
    };
    let what = format!("the file system of {} is full, or nearly: {left}", path.display());
    report.add(
        "disk-full",
        None,
        what,
        WHY,
        format!("df -h {0}; df -i {0}   # and delete what is not needed", path.display()),
    );
}
