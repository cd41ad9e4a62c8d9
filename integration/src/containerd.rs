//! containerd and `ctr run --cni`, in a machine of its own.

use crate::command::Output;
use crate::{Sandbox, podman, report};

/// Starts containerd and imports the image that [`podman::install`] made.
#[track_caller]
pub fn start(sandbox: &mut Sandbox) {
    sandbox.write(
        "/opt/disk/containerd.toml",
        "version = 2\nroot = \"/opt/disk/containerd\"\nstate = \"/run/containerd\"\n\
         disabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.internal.v1.opt\", \
         \"io.containerd.snapshotter.v1.btrfs\", \"io.containerd.snapshotter.v1.zfs\", \
         \"io.containerd.snapshotter.v1.devmapper\", \"io.containerd.snapshotter.v1.aufs\"]\n\
         [grpc]\naddress = \"/run/containerd.sock\"\n",
    );
    sandbox.background("exec containerd -c /opt/disk/containerd.toml", "/run/containerd.log");
    sandbox.wait_for("containerd answers", "ctr -a /run/containerd.sock version");
    if !sandbox.exists("/opt/disk/bb-oci.tar") {
        podman::podman(sandbox, &["save", "--format", "oci-archive", "-o", "/opt/disk/bb-oci.tar", "bb"]).ok();
    }
    ctr(sandbox, &["images", "import", "/opt/disk/bb-oci.tar"]).ok();
    let version = sandbox.run(&["containerd", "--version"]).ok();
    let version = version.split_whitespace().nth(2).unwrap_or_default().to_owned();
    report::ran(&format!("containerd {version}"), &format!("ctr run --cni on {}", report::kernel()));
}

/// `ctr` with these words.
pub fn ctr(sandbox: &Sandbox, words: &[&str]) -> Output {
    let argv: Vec<&str> = ["ctr", "-a", "/run/containerd.sock"].into_iter().chain(words.iter().copied()).collect();
    sandbox.run(&argv)
}

/// The name of the imported image.
#[track_caller]
pub fn image(sandbox: &Sandbox) -> String {
    ctr(sandbox, &["images", "ls", "-q"]).ok().lines().next().unwrap_or_else(|| panic!("no image")).to_owned()
}

/// Starts a container that goes on: `ctr run -d --cni IMAGE NAME sleep 1000`. ctr never calls DEL for it.
#[track_caller]
pub fn run(sandbox: &Sandbox, name: &str) {
    let cgroup = format!("/{}/{name}", sandbox.id);
    ctr(sandbox, &["run", "-d", "--cni", "--cgroup", &cgroup, &image(sandbox), name, "sleep", "1000"]).ok();
}

/// Runs a command in a container of its own to its end, ADD and DEL included: what it printed.
#[track_caller]
pub fn run_to_the_end(sandbox: &Sandbox, name: &str, command: &[&str]) -> String {
    let cgroup = format!("/{}/{name}", sandbox.id);
    let image = image(sandbox);
    let mut words = vec!["run", "--rm", "--cni", "--cgroup", &cgroup, &image, name];
    words.extend(command);
    ctr(sandbox, &words).ok()
}

/// Runs a command in a running container.
#[track_caller]
pub fn exec(sandbox: &Sandbox, name: &str, command: &[&str]) -> Output {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let id = format!("x{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let mut words = vec!["task", "exec", "--exec-id", &id, name];
    words.extend(command);
    ctr(sandbox, &words)
}

/// The first IPv4 address of a running container, without prefix length.
#[track_caller]
pub fn address(sandbox: &Sandbox, name: &str) -> String {
    let text = exec(sandbox, name, &["ip", "-4", "addr", "show", "dev", "eth0"]).ok();
    inet(&text)
}

/// The first IPv4 address in what `ip addr` printed.
#[track_caller]
pub fn inet(text: &str) -> String {
    let word = text.split_whitespace().skip_while(|&word| word != "inet").nth(1);
    word.and_then(|word| word.split('/').next()).unwrap_or_else(|| panic!("no address in {text}")).to_owned()
}
