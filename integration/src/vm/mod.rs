//! A machine with a kernel of its own: Debian's, in qemu without hardware support, up in seconds. For what the running
//! kernel does not have (SCTP, tunnels, VLAN filtering…) and for what an older kernel does otherwise.
//!
//! All of the VM is in memory: its file system is an archive made anew for each, of the programs of this host. Nodes
//! are network namespaces or [`crate::Sandbox`]es inside it. It is gone when a test ends, panics or is killed.

mod archive;
mod system;

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::command::Output;
use crate::report;
use crate::sandbox::{plugin_folder, quoted};
use system::Kernel;

/// From the start of qemu to the start of the script.
const BOOT: Duration = Duration::from_secs(60);
/// From there to its end, when nothing else is said.
const LIMIT: Duration = Duration::from_secs(120);
/// Set inside a VM.
const INSIDE: &str = "OSVC_VM_INSIDE";

/// A VM that is not running yet.
#[derive(Debug, Clone)]
pub struct Vm {
    programs: Vec<PathBuf>,
    files: Vec<(PathBuf, String)>,
    limit: Duration,
}

impl Default for Vm {
    fn default() -> Self {
        Self::new()
    }
}

impl Vm {
    /// A VM with the plugins under test in /opt/cni/bin, and bash, busybox, ip, bridge, nft, wg and ping.
    pub fn new() -> Self {
        Self { programs: Vec::new(), files: Vec::new(), limit: LIMIT }
    }

    /// One more program, with its libraries. It has the path that it has here, so that what `env!` says of the
    /// programs of this package is true inside; a script finds it by its name as well.
    #[must_use]
    pub fn program(mut self, path: &str) -> Self {
        self.programs.push(PathBuf::from(path));
        self
    }

    /// One more file, with the folders to it.
    #[must_use]
    pub fn file(mut self, path: &str, content: &str) -> Self {
        self.files.push((PathBuf::from(path), content.to_owned()));
        self
    }

    /// How long the script or test may take; the boot is not counted.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The kernel's release.
    pub fn release() -> String {
        Kernel::find().release
    }

    /// Boots it and runs a script of bash as root, in `/`, with lo down as the kernel makes it. Standard error is `>&2`;
    /// /dev/stderr cannot be opened a second time. Modules are loaded as they are needed, br_netfilter by `modprobe`.
    ///
    /// # Panics
    /// The VM does not come up, the script takes longer than it may, or the kernel goes down under it.
    #[track_caller]
    pub fn run(&self, script: &str) -> Output {
        let kernel = Kernel::find();
        let [initrd, console, status, stdout, stderr] = [(); 5].map(|()| Unnamed::new());
        initrd.write(&self.archive(&kernel, script));
        let mut command = Command::new("setpriv");
        // Dies with the thread that waits for it, and so with the test process, however that may end.
        command.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
        command.args("-nodefaults -no-user-config -no-reboot -display none -machine q35 -cpu max".split(' '));
        // The fastest that works everywhere: /dev/kvm may be there and hang.
        command.args("-accel tcg -smp 1 -m 512".split(' '));
        command.arg("-kernel").arg(kernel.image()).args(["-initrd", &initrd.path()]);
        command.args(["-append", "console=ttyS0 quiet panic=-1"]);
        command.args(["-serial", &format!("file:{}", console.path()), "-device", "virtio-serial-pci"]);
        let report = report::path().display().to_string().replace(',', ",,");
        let ports = [stdout.path(), stderr.path(), status.path(), format!("{report},append=on")];
        for (number, path) in (1..).zip(ports) {
            command.args(["-chardev", &format!("file,id=port{number},path={path}")]);
            command.args(["-device", &format!("virtserialport,chardev=port{number},nr={number}")]);
        }
        let start = Instant::now();
        let end = self.wait(command, &status);
        let output = Output {
            what: format!("VM with kernel {}: {script}", kernel.release),
            rc: status.text().lines().nth(1).and_then(|rc| rc.parse().ok()).unwrap_or(-1),
            stdout: stdout.text(),
            stderr: stderr.text(),
            elapsed: start.elapsed(),
        };
        if let Err(error) = end {
            panic!("{output} {error}\nconsole: {}", console.text());
        }
        assert!(output.rc >= 0, "{output} the VM ended before the script did\nconsole: {}", console.text());
        output
    }

    /// Runs the test that calls this in a VM: the whole body goes in the closure, which is run there and not here.
    ///
    /// ```text
    /// #[test]
    /// fn something_works() {
    ///     Vm::new().test(|| { let sandbox = Sandbox::new(); … });
    /// }
    /// ```
    ///
    /// # Panics
    /// As [`Self::run`] does, and when the test fails there.
    #[track_caller]
    pub fn test<T: FnOnce()>(&self, body: T) {
        if std::env::var_os(INSIDE).is_some() {
            return body();
        }
        // A closure's type is named `binary::module::test::{{closure}}`.
        let name = std::any::type_name::<T>().trim_end_matches("::{{closure}}");
        let (_, name) = name.split_once("::").expect("a test is a function of a test binary");
        let program = std::env::current_exe().expect("the kernel knows what runs").display().to_string();
        let script = format!("{INSIDE}=1 exec {} --exact {name} --include-ignored --nocapture", quoted(&program));
        let output = self.clone().program(&program).run(&script);
        assert!(output.rc == 0, "{output} failed");
        assert!(output.stdout.contains("1 passed"), "{output} ran no test: is `{name}` one?");
    }

    fn archive(&self, kernel: &Kernel, script: &str) -> Vec<u8> {
        let mut archive = system::base(kernel);
        system::add_programs(&mut archive, &self.programs);
        for program in &self.programs {
            let name = program.file_name().unwrap_or_default();
            archive.link(&Path::new("usr/local/bin").join(name), &program.display().to_string());
        }
        // Manual pages lie beside the programs, in a folder.
        let built = plugin_folder().read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let built: Vec<PathBuf> = built.filter(|path| path.is_file()).collect();
        // Those that are not built for release are dynamic.
        system::add_programs(&mut archive, &system::libraries(&built));
        for plugin in built {
            let name = plugin.file_name().unwrap_or_default();
            archive.file(&Path::new("opt/cni/bin").join(name), &system::read(&plugin));
        }
        for (path, content) in &self.files {
            archive.file(path, content.as_bytes());
        }
        archive.file(Path::new("script"), script.as_bytes());
        system::add_busybox(&mut archive);
        archive.finish()
    }

    /// Waits for the VM's end, and makes it if need be.
    fn wait(&self, mut command: Command, status: &Unnamed) -> Result<(), String> {
        let log = Unnamed::new();
        command.stdin(Stdio::null()).stdout(log.stdio()).stderr(log.stdio());
        let mut qemu: Child = command.spawn().expect("setpriv, of util-linux, can be started");
        let mut phase = Instant::now();
        let mut up = false;
        loop {
            if let Some(end) = qemu.try_wait().expect("a child can be waited for") {
                return if end.success() { Ok(()) } else { Err(format!("qemu: {end}: {}", log.text())) };
            }
            if !up && !status.text().is_empty() {
                (up, phase) = (true, Instant::now());
            }
            let limit = if up { self.limit } else { BOOT };
            if phase.elapsed() > limit {
                qemu.kill().and_then(|()| qemu.wait()).expect("a child can be killed");
                return Err(format!("did not {} within {limit:?}", if up { "end" } else { "boot" }));
            }
            sleep(Duration::from_millis(20));
        }
    }
}

/// A file without a name, which another process opens through this one: nothing has to be removed.
struct Unnamed(File);

impl Unnamed {
    fn new() -> Self {
        Self(tempfile::tempfile().expect("temporary files can be made"))
    }

    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    fn stdio(&self) -> Stdio {
        self.0.try_clone().expect("files can be duplicated").into()
    }

    fn write(&self, bytes: &[u8]) {
        (&self.0).write_all(bytes).expect("there is room for temporary files");
    }

    fn text(&self) -> String {
        let mut bytes = Vec::new();
        let mut file = &self.0;
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("temporary files can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
