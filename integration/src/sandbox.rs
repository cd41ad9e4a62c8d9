//! A machine made of namespaces, with a disk that outlives its reboots.
//!
//! Two processes hold it. The *disk*: a mount namespace with tmpfs over /opt, /var/lib and /tmp and an overlay over
//! /etc. The *boot*: network, mount, pid and UTS namespaces below the disk's, with /run and /dev/shm fresh and a boot
//! id of its own. Both wait for the end of their standard input, which is a pipe from this process: when this process
//! ends, however that may be, they end, and the end of a pid namespace's first process kills all others.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::command::{self, Output};

/// Nothing that a test starts takes longer.
const LIMIT: Duration = Duration::from_secs(120);

/// Where programs are looked for inside; no variable of the developer's gets in.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/tools";

/// `$1`: folder of the plugins under test, `$2`: folder of tools to take along, `$3…`: more programs. Few programs are
/// run: in a VM each costs as much as many system calls.
const DISK: &str = r#"
set -e
shopt -s nullglob
plugins=("$1"/osvc-*) tools=("$2"/* "${@:3}") reference=(/usr/lib/cni/*)
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/opt
mount -t tmpfs -o mode=755 tmpfs /run/opt
cd /run/opt
mkdir -p cni/bin tools disk/etc disk/work
[ ${#plugins[@]} = 0 ] || cp "${plugins[@]}" cni/bin/
[ ${#reference[@]} = 0 ] || ln -s "${reference[@]}" cni/bin/
[ ${#tools[@]} = 0 ] || cp "${tools[@]}" tools/
cd /
mount --move /run/opt /opt
mount -t overlay overlay -o lowerdir=/etc,upperdir=/opt/disk/etc,workdir=/opt/disk/work /etc
mkdir -p /etc/cni
mount -t tmpfs -o mode=755 tmpfs /etc/cni
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=1777 tmpfs /tmp
mkdir -p /etc/cni/net.d /var/lib/cni
read -r pid _ < /proc/self/stat
echo "$pid"
read -r _ || true
"#;

/// `$1`: boot id.
const BOOT: &str = r#"
set -e
read -r pid _ < /proc/self/stat
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/lock /run/netns
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
echo "$1" > /run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
ip link set lo up
echo "$pid"
read -r _ || true
"#;

/// A process that keeps namespaces alive until its standard input ends.
struct Holder {
    child: Child,
    /// Dropped first: the holder ends, and its namespaces with it.
    stdin: Option<ChildStdin>,
    /// The process whose namespaces they are.
    pid: String,
}

impl Holder {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("unshare could not be started: {error}"));
        let stdin = child.stdin.take();
        let mut pid = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut pid).expect("the holder says its pid");
        let pid = pid.trim().to_owned();
        assert!(!pid.is_empty(), "namespaces could not be made (is this root, with util-linux and iproute2?)");
        Self { child, stdin, pid }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// A network namespace with a name, inside a [`Sandbox`].
#[derive(Debug, Clone)]
pub struct Netns {
    /// As `ip netns` knows it.
    pub name: String,
    /// What a runtime passes as CNI_NETNS.
    pub path: String,
}

/// A machine of its own for one test.
pub struct Sandbox {
    // Fields drop in this order: the boot before the disk it stands on.
    boot: Option<Holder>,
    disk: Holder,
    /// Unique on this host, for what namespaces do not separate (cgroups).
    pub id: String,
    cgroups: bool,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// A machine, up, with nothing configured.
    pub fn new() -> Self {
        Self::with_tools(&[])
    }

    /// A machine that has these programs in its path.
    pub fn with_tools(tools: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("osvc-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new("unshare");
        command.args(["-m", "--propagation", "private", "bash", "-c", DISK, "disk"]);
        command.args([plugin_folder(), tool_folder()]).args(tools).env("PATH", PATH);
        let mut sandbox = Self { boot: None, disk: Holder::start(command), id, cgroups: false };
        sandbox.power_on();
        sandbox
    }

    /// Kills everything without a word, wipes /run and /dev/shm, and starts again under another boot id, in another
    /// network namespace. What is in /etc, /opt and /var/lib stays.
    pub fn reboot(&mut self) {
        self.power_off();
        self.power_on();
    }

    /// Kills everything.
    pub fn power_off(&mut self) {
        self.boot = None;
        self.remove_cgroups();
    }

    /// Starts again after [`Self::power_off`].
    pub fn power_on(&mut self) {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("the kernel makes a uuid");
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.disk.pid, "-m", "unshare", "-m", "-n", "-p", "-u", "-f", "--kill-child=SIGKILL"]);
        command.args(["--propagation", "private", "bash", "-c", BOOT, "boot", boot_id.trim()]).env("PATH", PATH);
        self.boot = Some(Holder::start(command));
    }

    /// The process whose namespaces the machine is, as this process numbers it.
    pub(crate) fn pid(&self) -> &str {
        &self.boot().pid
    }

    fn boot(&self) -> &Holder {
        self.boot.as_ref().expect("the machine is on")
    }

    /// A command to be run inside: no variables but PATH, HOME and TERM.
    pub(crate) fn command(&self, argv: &[&str]) -> Command {
        self.entering("-n", argv)
    }

    /// The same with nsenter's word for the network namespace.
    fn entering(&self, net: &str, argv: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.boot().pid, "-m", net, "-p", "-u", "--wd=/", "--"]).args(argv);
        command.env_clear().env("PATH", PATH).env("HOME", "/root").env("TERM", "dumb");
        command
    }

    /// Runs a prepared command. If it takes too long everything in the machine is killed.
    pub(crate) fn finish(&self, command: Command, stdin: &[u8]) -> Output {
        command::run(command, stdin, LIMIT, || {
            let _ = nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(self.boot().pid.parse().expect("a pid is a number")),
                nix::sys::signal::Signal::SIGKILL,
            );
        })
    }

    /// Runs a program in a namespace of the machine to its end.
    pub fn run_in(&self, netns: &Netns, argv: &[&str]) -> Output {
        let net = format!("--net={}", self.path(&netns.path).display());
        self.finish(self.entering(&net, argv), b"")
    }

    /// Runs a program inside to its end.
    pub fn run(&self, argv: &[&str]) -> Output {
        self.finish(self.command(argv), b"")
    }

    /// Runs a line of shell inside to its end.
    pub fn sh(&self, script: &str) -> Output {
        self.run(&["bash", "-c", script])
    }

    /// Runs `ip` with these words; it must succeed.
    #[track_caller]
    pub fn ip(&self, words: &str) -> String {
        let argv: Vec<_> = std::iter::once("ip").chain(words.split_whitespace()).collect();
        self.run(&argv).ok()
    }

    /// Runs `ip -j` with these words and reads what it prints.
    #[track_caller]
    pub fn ip_json(&self, words: &str) -> Vec<Value> {
        let text = self.ip(&format!("-j {words}"));
        if text.trim().is_empty() {
            return Vec::new();
        }
        match serde_json::from_str(&text) {
            // iproute2 prints `[{},{…}]` where it filtered something out.
            Ok(Value::Array(list)) => {
                list.into_iter().filter(|item| item.as_object().is_none_or(|map| !map.is_empty())).collect()
            }
            other => panic!("`ip -j {words}` printed no list: {other:?}: {text}"),
        }
    }

    /// Puts a ruleset in (`nft -f -`).
    #[track_caller]
    pub fn nft(&self, ruleset: &str) {
        self.finish(self.command(&["nft", "-f", "-"]), ruleset.as_bytes()).ok();
    }

    /// The ruleset without handles and counters, as text.
    #[track_caller]
    pub fn ruleset(&self) -> String {
        self.run(&["nft", "-s", "list", "ruleset"]).ok()
    }

    /// A new network namespace, as a runtime makes one: with lo up.
    #[track_caller]
    pub fn netns(&self, name: &str) -> Netns {
        self.sh(&format!("ip netns add {name} && ip -n {name} link set lo up")).ok();
        Netns { name: name.to_owned(), path: format!("/run/netns/{name}") }
    }

    /// Takes a network namespace away.
    #[track_caller]
    pub fn delete_netns(&self, netns: &Netns) {
        self.ip(&format!("netns del {}", netns.name));
    }

    /// Joins a namespace that plays the rest of the world to this machine: `outside` has 192.0.2.1/24 and 2001:db8:ffff::1/64
    /// (this machine .2 and ::2) and no route back to anything else. It answers on 198.51.100.1 and 169.254.169.254 as well.
    #[track_caller]
    pub fn outside(&self) -> Netns {
        let outside = self.netns("outside");
        self.sh("set -e
            ip link add up0 type veth peer name eth0 netns outside
            ip addr add 192.0.2.2/24 dev up0
            ip addr add 2001:db8:ffff::2/64 dev up0 nodad
            ip link set up0 up
            ip -n outside addr add 192.0.2.1/24 dev eth0
            ip -n outside addr add 198.51.100.1/32 dev lo
            ip -n outside addr add 169.254.169.254/32 dev lo
            ip -n outside addr add 2001:db8:ffff::1/64 dev eth0 nodad
            ip -n outside link set eth0 up
            ip route add default via 192.0.2.1
            ip route add 169.254.169.254 via 192.0.2.1
            ip -6 route add default via 2001:db8:ffff::1")
            .ok();
        outside
    }

    /// The operator's command, which is built and put there with the plugins.
    pub fn osvc_net(&self, words: &[&str]) -> Output {
        self.run(&[&["/opt/cni/bin/osvc-net"], words].concat())
    }

    /// One echo request from a namespace.
    pub fn ping(&self, from: &Netns, to: &str) -> bool {
        self.run_in(from, &["ping", "-n", "-c", "1", "-W", "2", to]).rc == 0
    }

    /// Waits until an HTTP server answers a namespace with a page that has this word in it. (busybox-static's wget dies in
    /// getaddrinfo, as static glibc programs do.)
    #[track_caller]
    pub fn wait_for_page(&self, from: &Netns, host: &str, port: u16, word: &str) {
        let get = format!("exec 3<>/dev/tcp/{host}/{port} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3");
        self.wait_for(
            &format!("{} gets a page from {host}:{port}", from.name),
            &format!("ip netns exec {} timeout 2 bash -c {} | grep -q {word}", from.name, quoted(&get)),
        );
    }

    /// The path of a file of the machine as this process can open it.
    pub fn path(&self, inside: &str) -> PathBuf {
        Path::new("/proc").join(&self.boot().pid).join("root").join(inside.trim_start_matches('/'))
    }

    /// A file of the machine.
    #[track_caller]
    pub fn read(&self, inside: &str) -> String {
        let text = fs::read(self.path(inside)).unwrap_or_else(|error| panic!("{inside}: {error}"));
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Writes a file of the machine, its folder first.
    #[track_caller]
    pub fn write(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().expect("files lie in folders"))
            .and_then(|()| fs::write(&path, text))
            .unwrap_or_else(|error| panic!("{inside}: {error}"));
    }

    /// True if the machine has such a file or folder.
    pub fn exists(&self, inside: &str) -> bool {
        self.path(inside).exists()
    }

    /// The names in a folder, sorted; none if there is no such folder.
    pub fn list(&self, inside: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(inside)) else { return Vec::new() };
        let mut names: Vec<_> = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Starts a program inside that goes on; it ends with the machine. Its output goes to the file `log`.
    pub fn background(&self, script: &str, log: &str) {
        self.sh(&format!("setsid bash -c {} >{log} 2>&1 </dev/null &", quoted(script))).ok();
    }

    /// Waits until a line of shell succeeds.
    #[track_caller]
    pub fn wait_for(&self, what: &str, script: &str) {
        for _ in 0..200 {
            if self.sh(script).rc == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("waited 10 s in vain until {what}: `{script}`");
    }

    /// The control group below which a runtime puts this machine's containers: namespaces do not contain it, so it is
    /// removed with the machine, and what a killed test process left is removed by the next one.
    pub fn cgroup(&mut self) -> String {
        if !self.cgroups {
            self.cgroups = true;
            remove_stale_cgroups();
        }
        format!("/{}", self.id)
    }

    fn remove_cgroups(&self) {
        if self.cgroups {
            remove_cgroups_of(&self.id);
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.boot = None;
        self.remove_cgroups();
    }
}

/// A word for the shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The repository's root.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("integration/ lies in the workspace")
}

/// Where the plugins under test are: OSVC_BIN, else bin/ of the workspace.
pub(crate) fn plugin_folder() -> PathBuf {
    std::env::var_os("OSVC_BIN").map_or_else(|| workspace().join("bin"), PathBuf::from)
}

fn tool_folder() -> PathBuf {
    std::env::var_os("OSVC_TOOLS").map_or_else(|| workspace().join("target/tools"), PathBuf::from)
}

fn remove_cgroups_of(id: &str) {
    // A killed process leaves its control group some milliseconds after its death.
    let script = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10; do
            left=$(find /sys/fs/cgroup -depth -type d -path '*/{id}*' 2>/dev/null); [ -n \"$left\" ] || exit 0
            rmdir $left 2>/dev/null; sleep 0.05; done"
    );
    let _ = Command::new("sh").args(["-c", &script]).status();
}

fn remove_stale_cgroups() {
    let script = "find /sys/fs/cgroup -maxdepth 2 -type d -name 'osvc-test-*' 2>/dev/null";
    let Ok(found) = Command::new("sh").args(["-c", script]).output() else { return };
    for path in String::from_utf8_lossy(&found.stdout).lines() {
        let Some(id) = path.rsplit('/').next() else { continue };
        let pid = id.trim_start_matches("osvc-test-").split('-').next().unwrap_or_default();
        if !pid.is_empty() && !Path::new("/proc").join(pid).exists() {
            remove_cgroups_of(id);
        }
    }
}
