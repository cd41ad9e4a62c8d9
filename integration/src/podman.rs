//! podman 4 with its CNI backend, in a machine of its own.

use crate::command::Output;
use crate::{Sandbox, report};

/// The folder that podman's CNI backend reads.
pub const CONF: &str = "/etc/cni/net.d";

/// Writes podman's configuration and imports the image `bb` (busybox). The image and the containers are on the
/// machine's disk: they outlive a reboot.
#[track_caller]
pub fn install(sandbox: &mut Sandbox) {
    let cgroup = sandbox.cgroup();
    sandbox.write(
        "/opt/disk/containers.conf",
        &format!(
            r#"[network]
network_backend = "cni"
cni_plugin_dirs = ["/opt/cni/bin"]
network_config_dir = "{CONF}"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
# {cgroup}
"#
        ),
    );
    sandbox.write(
        "/opt/disk/storage.conf",
        "[storage]\ndriver = \"overlay\"\ngraphroot = \"/opt/disk/root\"\nrunroot = \"/run/r\"\n",
    );
    sandbox
        .sh("set -e; mkdir -p /opt/disk/bb/bin /opt/disk/bb/tmp /opt/disk/bb/etc; cd /opt/disk/bb
            cp /bin/busybox bin/; for a in $(bin/busybox --list); do [ $a = busybox ] || ln -s busybox bin/$a; done
            tar c . > ../bb.tar")
        .ok();
    podman(sandbox, &["import", "/opt/disk/bb.tar", "bb"]).ok();
    report::ran(&version(sandbox), &format!("on {}", report::kernel()));
}

/// `podman` with these words.
pub fn podman(sandbox: &Sandbox, words: &[&str]) -> Output {
    podman_with(sandbox, &[], words)
}

/// `podman` with these words and variables.
pub fn podman_with(sandbox: &Sandbox, env: &[(&str, &str)], words: &[&str]) -> Output {
    let globals = ["--root", "/opt/disk/root", "--runroot", "/run/r", "--tmpdir", "/run/l", "--log-level", "error"];
    let argv: Vec<&str> = ["podman"].into_iter().chain(globals).chain(words.iter().copied()).collect();
    let mut command = sandbox.command(&argv);
    command.env("CONTAINERS_CONF", "/opt/disk/containers.conf");
    command.env("CONTAINERS_STORAGE_CONF", "/opt/disk/storage.conf").env("TMPDIR", "/run");
    command.envs(env.iter().copied());
    sandbox.finish(command, b"")
}

/// Starts a container that sleeps: `podman run -d --name NAME --network NETWORK …`.
#[track_caller]
pub fn run(sandbox: &Sandbox, name: &str, network: &str, more: &[&str]) -> String {
    let parent = format!("/{}", sandbox.id);
    let mut words = vec!["run", "-d", "--name", name, "--network", network, "--cgroup-parent", &parent];
    words.extend(more);
    words.extend(["bb", "sleep", "1000"]);
    podman(sandbox, &words).ok().trim().to_owned()
}

/// The addresses and the MAC of a container's eth0, asked inside it: `10.22.1.2/16 …`, `0a:58:…`.
#[track_caller]
pub fn identity(sandbox: &Sandbox, name: &str) -> (Vec<String>, String) {
    let text = podman(sandbox, &["exec", name, "ip", "addr", "show", "dev", "eth0"]).ok();
    let words: Vec<&str> = text.split_whitespace().collect();
    let after =
        |key: &str| words.windows(2).filter(|pair| pair[0] == key).map(|pair| pair[1].to_owned()).collect::<Vec<_>>();
    let mut addresses = after("inet");
    addresses.extend(after("inet6").into_iter().filter(|address| !address.starts_with("fe80:")));
    (addresses, after("link/ether").concat())
}

/// The first address without its prefix length.
#[track_caller]
pub fn address(sandbox: &Sandbox, name: &str) -> String {
    let (addresses, _) = identity(sandbox, name);
    let first = addresses.first().unwrap_or_else(|| panic!("{name} has no address"));
    first.split('/').next().unwrap_or_default().to_owned()
}

/// `podman 4.3.1`.
#[track_caller]
pub fn version(sandbox: &Sandbox) -> String {
    podman(sandbox, &["--version"]).ok().trim().replace("version ", "")
}
