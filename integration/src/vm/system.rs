//! What is in every VM: the kernel with its modules for networks, and the programs that scripts and [`crate::Sandbox`] use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::archive::Archive;
use crate::sandbox::workspace;

/// What runs as the VM's first process.
const INIT: &str = include_str!("../../vm/init");

/// Programs of this host that go along, with their libraries; busybox has the others.
const PROGRAMS: [&str; 8] = ["bash", "bridge", "ip", "nft", "nsenter", "ping", "unshare", "wg"];

/// Folders of `kernel/` in /lib/modules, and single modules; what they depend on comes too. They are loaded when they
/// are asked for, as on any host.
const MODULES: [&str; 23] = [
    "net/8021q/",
    "net/802/",
    "net/bridge/",
    "net/core/",
    "net/ipv4/",
    "net/ipv6/",
    "net/llc/",
    "net/netfilter/",
    "net/sched/",
    "net/sctp/",
    "net/xfrm/",
    "drivers/char/virtio_console.ko",
    "drivers/net/dummy.ko",
    "drivers/net/geneve.ko",
    "drivers/net/ipvlan/",
    "drivers/net/macvlan.ko",
    "drivers/net/tun.ko",
    "drivers/net/veth.ko",
    "drivers/net/vrf.ko",
    "drivers/net/vxlan/",
    "drivers/net/wireguard/",
    "drivers/virtio/virtio_pci.ko",
    "fs/overlayfs/",
];

/// The kernel of the VMs, as `make kernel` unpacks it.
pub(super) struct Kernel {
    /// Its release, as `uname -r` has it.
    pub(super) release: String,
    folder: PathBuf,
}

impl Kernel {
    /// Finds it: OSVC_VM, else target/vm of the workspace.
    ///
    /// # Panics
    /// It is not there.
    pub(super) fn find() -> Self {
        let folder = std::env::var_os("OSVC_VM").map_or_else(|| workspace().join("target/vm"), PathBuf::from);
        let release = fs::read_dir(folder.join("lib/modules")).into_iter().flatten().flatten().next();
        let Some(release) = release else { panic!("no kernel in {}: run `make kernel`", folder.display()) };
        Self { release: release.file_name().to_string_lossy().into_owned(), folder }
    }

    /// What is booted.
    pub(super) fn image(&self) -> PathBuf {
        self.folder.join(format!("boot/vmlinuz-{}", self.release))
    }

    fn add_modules(&self, archive: &mut Archive) {
        let inside = Path::new("lib/modules").join(&self.release);
        let outside = self.folder.join(&inside);
        let list = read(&outside.join("modules.dep"));
        // `kernel/net/sctp/sctp.ko: kernel/net/ipv4/udp_tunnel.ko kernel/lib/libcrc32c.ko`
        for line in String::from_utf8_lossy(&list).lines() {
            let Some((module, needs)) = line.split_once(':') else { continue };
            let place = module.trim_start_matches("kernel/");
            if MODULES.iter().any(|wanted| place.starts_with(wanted)) {
                for module in needs.split_whitespace().chain([module]) {
                    archive.file(&inside.join(module), &read(&outside.join(module)));
                }
            }
        }
        for index in ["modules.dep", "modules.alias", "modules.symbols", "modules.builtin"] {
            archive.file(&inside.join(index), &read(&outside.join(index)));
        }
    }
}

/// The files that all VMs of this process have in common.
pub(super) fn base(kernel: &Kernel) -> Archive {
    static BASE: OnceLock<Archive> = OnceLock::new();
    BASE.get_or_init(|| build(kernel)).clone()
}

fn build(kernel: &Kernel) -> Archive {
    let mut archive = Archive::default();
    for name in ["bin", "sbin", "lib", "lib64"] {
        archive.folder(&Path::new("usr").join(name));
        archive.link(Path::new(name), &format!("usr/{name}"));
    }
    for name in ["dev", "proc", "sys", "run", "tmp", "root", "var/lib", "opt/cni/bin", "etc"] {
        archive.folder(Path::new(name));
    }
    archive.file(Path::new("init"), INIT.as_bytes());
    add_programs(&mut archive, &PROGRAMS.map(find));
    // Here the kernel looks for it when it wants a module.
    archive.link(Path::new("usr/sbin/modprobe"), "../bin/busybox");
    kernel.add_modules(&mut archive);
    archive
}

/// Puts busybox in, for all that has no program of its own yet.
pub(super) fn add_busybox(archive: &mut Archive) {
    let busybox = Path::new("/bin/busybox");
    archive.file(Path::new("usr/bin/busybox"), &read(busybox));
    for applet in words(Command::new(busybox).arg("--list")) {
        if !archive.has(&Path::new("usr/sbin").join(&applet)) {
            archive.link(&Path::new("usr/bin").join(applet), "busybox");
        }
    }
}

/// Puts programs where they are on this host, their libraries as well.
pub(super) fn add_programs(archive: &mut Archive, programs: &[PathBuf]) {
    for path in programs.iter().cloned().chain(libraries(programs)) {
        // The folder may be a link (/lib is usr/lib), the file's name is what it is asked for by.
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        let folder = folder.unwrap_or_else(|| panic!("{} lies in no folder", path.display()));
        archive.file(&folder.join(path.file_name().unwrap_or_default()), &read(&path));
    }
}

/// The libraries of programs.
pub(super) fn libraries(programs: &[PathBuf]) -> Vec<PathBuf> {
    // For a static program ldd fails and names no library.
    let words = words(Command::new("ldd").args(programs));
    words.iter().filter(|word| word.starts_with('/') && !word.ends_with(':')).map(PathBuf::from).collect()
}

/// Where a program is.
///
/// # Panics
/// It is nowhere.
fn find(name: &str) -> PathBuf {
    let folders = ["/usr/sbin", "/usr/bin"].map(Path::new);
    let path = folders.iter().map(|folder| folder.join(name)).find(|path| path.exists());
    path.unwrap_or_else(|| panic!("{name} is missing: run `make deps`"))
}

pub(super) fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{} does not go into the VM: {error}", path.display()))
}

fn words(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} could not be run: {error}"));
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}
