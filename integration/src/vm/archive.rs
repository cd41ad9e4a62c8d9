//! The archive a kernel unpacks as its first file system (cpio, "newc": Documentation/driver-api/early-userspace/buffer-format.rst
//! in the kernel's sources).

use std::collections::BTreeSet;
use std::path::{Component, Path};

const FILE: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// An archive that is being written. Folders come by themselves; of two entries with one path the first one counts.
#[derive(Clone, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    paths: BTreeSet<String>,
}

impl Archive {
    /// A file that everybody may read and run.
    pub(super) fn file(&mut self, path: &Path, content: &[u8]) {
        self.entry(path, FILE | 0o755, content);
    }

    /// An empty folder.
    pub(super) fn folder(&mut self, path: &Path) {
        self.entry(path, FOLDER | 0o755, b"");
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, path: &Path, target: &str) {
        self.entry(path, LINK | 0o777, target.as_bytes());
    }

    /// True if the archive has such an entry.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.paths.contains(&name(path))
    }

    /// The whole archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.append("TRAILER!!!", 0, b"");
        self.bytes
    }

    fn entry(&mut self, path: &Path, mode: u32, content: &[u8]) {
        let name = name(path);
        if name.is_empty() || self.paths.contains(&name) {
            return;
        }
        if let Some(parent) = Path::new(&name).parent() {
            self.folder(parent);
        }
        self.append(&name, mode, content);
        self.paths.insert(name);
    }

    /// Header, name and content, each padded to four bytes.
    fn append(&mut self, name: &str, mode: u32, content: &[u8]) {
        let inode = self.paths.len() + 1;
        let (size, name_size) = (content.len(), name.len() + 1);
        let header = format!(
            "070701{inode:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}{size:08x}{:08x}{:08x}{:08x}{:08x}{name_size:08x}{:08x}",
            0, 0, 1, 0, 0, 0, 0, 0, 0
        );
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// A path as the archive has it: from the root, without a slash before it.
fn name(path: &Path) -> String {
    let words: Vec<_> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(word) => Some(word.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect();
    words.join("/")
}
