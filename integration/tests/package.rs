//! The Debian package: installed, used, upgraded, removed and purged. It is built by `make deb`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use integration::report;

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn folder(variable: &str, usual: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| workspace().join(usual), Into::into)
}

#[test]
fn the_package_is_installed_used_and_purged() {
    let built = folder("OSVC_DEB", "target/deb");
    let mut packages: Vec<PathBuf> = std::fs::read_dir(&built)
        .unwrap_or_else(|error| panic!("{}: {error}: run `make deb`", built.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .collect();
    let package = packages.pop().unwrap_or_else(|| panic!("no package in {}: run `make deb`", built.display()));
    let script = workspace().join("integration/package.sh");
    let run = Command::new(script).arg(package).arg(folder("OSVC_TOOLS", "target/tools").join("cnitool")).output();
    let run = run.unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{told}{}", String::from_utf8_lossy(&run.stderr));
    for word in
        ["installed:", "units verified:", "doctor: nothing found", "upgraded", "removed:", "purged: nothing is left"]
    {
        assert!(told.contains(word), "{word:?} is not in {told}");
    }
    report::ran("dpkg", "the package installed, used, upgraded, removed and purged; systemd-analyze verify");
}

/// What `make install` copies is what is in `bin/` by then; `make uninstall` leaves nothing of it.
#[test]
fn make_install_puts_all_of_it_below_destdir_and_uninstall_removes_it() {
    let folder = tempfile::tempdir().unwrap();
    let make = |target: &str| {
        // Built by now: tests are not where things are built.
        let mut run = Command::new("make");
        run.current_dir(workspace()).args(["-s", "-o", "manual", target]).args([
            format!("DESTDIR={}", folder.path().display()),
            "PREFIX=/usr".to_owned(),
            "CNIBIN=/usr/lib/cni".to_owned(),
            "SUDO=".to_owned(),
        ]);
        let run = run.output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    };
    let files = || {
        let found =
            Command::new("find").arg(folder.path()).args(["-type", "f", "-printf", "%m %P\n"]).output().unwrap();
        String::from_utf8_lossy(&found.stdout).into_owned()
    };
    make("install");
    let installed = files();
    for file in [
        "755 usr/lib/cni/osvc-ipam",
        "755 usr/lib/cni/osvc-bridge",
        "755 usr/lib/cni/osvc-routed",
        "755 usr/lib/cni/osvc-portmap",
        "755 usr/sbin/osvc-net",
        "644 usr/lib/systemd/system/osvc-net-setup.service",
        "644 usr/lib/systemd/system/osvc-net-setup.path",
        "644 usr/lib/systemd/system/osvc-net-repair.timer",
        "644 usr/lib/systemd/system/osvc-net-sweep.timer",
        "644 usr/lib/systemd/networkd.conf.d/osvc-cni.conf",
        "644 usr/share/man/man8/osvc-net-ip-explain.8",
        "644 usr/share/bash-completion/completions/osvc-net",
    ] {
        assert!(installed.lines().any(|line| line == file), "{file} is not in {installed}");
    }
    make("uninstall");
    assert_eq!(files(), "");
    report::ran("make", "install with DESTDIR and PREFIX, uninstall");
}
