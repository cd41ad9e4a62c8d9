//! The container runtimes of this host, and what of CNI they know.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use osvc_cni::firewall::program;
use osvc_cni::protocol::SpecVersion;
use serde_json::Value;

use crate::conf;

/// A program that only says its version takes no longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A runtime's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// The program.
    pub name: &'static str,
    /// Its version, as it says.
    pub version: String,
    /// The first number of that.
    pub major: u32,
    /// The newest CNI version that it can read.
    pub newest: SpecVersion,
}

impl Runtime {
    /// A runtime of a version, by the libcni that it was built with: 0.8 reads up to 0.4.0, 1.0 and 1.1 up to 1.0.0,
    /// 1.2 and later up to 1.1.0.
    fn new(name: &'static str, version: String) -> Option<Self> {
        let mut numbers = version.split(['.', '~', '+', '-']).map(|word| word.parse::<u32>().ok());
        let (major, minor) = (numbers.next()??, numbers.next().flatten().unwrap_or(0));
        let (first_1_0, first_1_1) = match name {
            "podman" => ((4, 0), (5, 0)),
            "containerd" => ((1, 6), (2, 0)),
            _ => ((1, 23), (1, 31)),
        };
        let newest = match (major, minor) {
            found if found >= first_1_1 => SpecVersion::LATEST,
            found if found >= first_1_0 => SpecVersion::V100,
            _ => SpecVersion::V040,
        };
        Some(Self { name, version, major, newest })
    }

    /// True if it would look at a file: podman at conflists only, and none of the two into folders that are Nomad's,
    /// OpenSVC's or nerdctl's alone.
    pub fn reads(&self, file: &Path) -> bool {
        let folder = file.parent().unwrap_or(Path::new(""));
        let others = ["/opt/cni", "/var/lib/opensvc"].iter().any(|other| folder.starts_with(other))
            || folder.parent() == Some(Path::new("/etc/cni/net.d"));
        !others && (self.name != "podman" || file.extension().is_some_and(|extension| extension == "conflist"))
    }
}

/// The runtimes whose programs are found, asked all at once.
pub fn found() -> Vec<Runtime> {
    thread::scope(|scope| {
        let asked: Vec<_> = ["podman", "containerd", "crio"].map(|name| scope.spawn(move || ask(name))).into();
        asked.into_iter().filter_map(|runtime| runtime.join().ok().flatten()).collect()
    })
}

fn ask(name: &'static str) -> Option<Runtime> {
    let said = said(name, &["--version"])?;
    // "podman version 4.3.1", "containerd github.com/containerd/containerd v1.7.2 <commit>".
    let begins =
        |word: &&str| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    let version = said.split_whitespace().find(begins)?.trim_start_matches('v');
    Runtime::new(name, version.to_owned())
}

/// What a program prints, if there is one and it ends well.
pub fn said(name: &str, arguments: &[&str]) -> Option<String> {
    let ended = program::run(Command::new(find(name)?).args(arguments), "", PATIENCE).ok()?;
    ended.status.success().then_some(ended.stdout)
}

/// What a program prints, however it ends: systemctl says much by its status alone.
pub fn answer(name: &str, arguments: &[&str]) -> Option<String> {
    Some(program::run(Command::new(find(name)?).args(arguments), "", PATIENCE).ok()?.stdout)
}

/// A program in the path, or where system programs are.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let in_path = env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    in_path.or_else(|| program::find(name))
}

/// The `cniVersion` of a file: runtimes of before 1.1.0 know no `cniVersions`, and read this key alone.
pub fn version_for(file: &Path) -> Option<SpecVersion> {
    version_of(&conf::text(file).ok()?)
}

/// The same of a text.
pub fn version_of(text: &[u8]) -> Option<SpecVersion> {
    let value: Value = serde_json::from_slice(text).ok()?;
    value.get("cniVersion")?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_version_reads() {
        let newest = |name, version: &str| Runtime::new(name, version.to_owned()).map(|runtime| runtime.newest);
        for (name, version, reads) in [
            ("podman", "3.4.4", SpecVersion::V040),
            ("podman", "4.3.1", SpecVersion::V100),
            ("podman", "5.0.0-rc1", SpecVersion::LATEST),
            ("containerd", "1.5.9", SpecVersion::V040),
            ("containerd", "1.6.20~ds1", SpecVersion::V100),
            ("containerd", "1.7.2", SpecVersion::V100),
            ("containerd", "2.1.0", SpecVersion::LATEST),
            ("crio", "1.30.0", SpecVersion::V100),
        ] {
            assert_eq!(newest(name, version), Some(reads), "{name} {version}");
        }
        assert_eq!(newest("podman", "unknown"), None);
    }

    #[test]
    fn whose_folders_and_files() {
        let podman = Runtime::new("podman", "4.3.1".into()).unwrap();
        let containerd = Runtime::new("containerd", "1.6.20".into()).unwrap();
        let reads = |file: &str| (podman.reads(Path::new(file)), containerd.reads(Path::new(file)));
        assert_eq!(reads("/etc/cni/net.d/a.conflist"), (true, true));
        assert_eq!(reads("/etc/cni/net.d/a.conf"), (false, true));
        assert_eq!(reads("/opt/cni/config/a.conflist"), (false, false));
        assert_eq!(reads("/etc/cni/net.d/default/a.conflist"), (false, false));
    }
}
