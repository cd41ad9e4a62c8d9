//! systemd-networkd that removes routes which it has not made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Report, Subject, runtimes};

/// Where systemd looks, the first one counting (networkd.conf(5)).
const FOLDERS: [&str; 4] = ["/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"];

/// What the package ships.
const DROP_IN: &str = "/etc/systemd/networkd.conf.d/osvc-cni.conf";

/// A networkd that is enabled or runs, on a host where networks have routes.
pub fn look(report: &mut Report, subjects: &[Subject<'_>]) {
    let Some(routed) = subjects.iter().find_map(|subject| subject.routed.as_ref()) else { return };
    if !is_used() {
        return;
    }
    let said = match setting(&FOLDERS.map(Path::new), "ManageForeignRoutes") {
        Ok(said) => said,
        Err((path, error)) => {
            let what = format!("what systemd-networkd does with routes ({})", path.display());
            return report.cannot_tell(None, &what, &error);
        }
    };
    let by = match said {
        Some((false, _)) => return,
        Some((true, path)) => format!("is on by {}", path.display()),
        None => "is on, as by default".to_owned(),
    };
    report.add(
        "networkd-foreign-routes",
        None,
        format!("systemd-networkd is used here, and its ManageForeignRoutes {by}"),
        format!("when it is restarted it removes the routes to other nodes' containers (network {})", routed.name),
        format!(
            "mkdir -p /etc/systemd/networkd.conf.d\nprintf '[Network]\\nManageForeignRoutes=no\\n\
             ManageForeignRoutingPolicyRules=no\\n' > {DROP_IN}\nsystemctl restart systemd-networkd"
        ),
    );
}

/// True if networkd is enabled, or runs. Without systemctl there is no systemd that would start it.
fn is_used() -> bool {
    let says = |verb: &str, words: &[&str]| {
        runtimes::answer("systemctl", &[verb, "systemd-networkd.service"])
            .is_some_and(|said| words.contains(&said.trim()))
    };
    says("is-active", &["active", "activating", "reloading"]) || says("is-enabled", &["enabled", "enabled-runtime"])
}

/// A switch of networkd.conf and its drop-ins, and where it is set.
fn setting(folders: &[&Path], key: &str) -> Result<Option<(bool, PathBuf)>, (PathBuf, std::io::Error)> {
    let main = folders.iter().map(|folder| folder.join("networkd.conf")).find(|path| path.exists());
    // By name over all folders; of one name that of the first folder, also where it is empty (/dev/null).
    let mut drop_ins = BTreeMap::new();
    for folder in folders.iter().rev() {
        let entries = fs::read_dir(folder.join("networkd.conf.d")).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path());
        let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "conf"));
        drop_ins.extend(files.filter_map(|path| Some((path.file_name()?.to_owned(), path))));
    }
    let mut said = None;
    for path in main.into_iter().chain(drop_ins.into_values()) {
        let text = match fs::read(&path) {
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) => return Err((path, error)),
        };
        if let Some(value) = last(&text, key) {
            said = Some((value, path));
        }
    }
    Ok(said)
}

/// The last value of a switch in the section [Network] of a text.
fn last(text: &str, key: &str) -> Option<bool> {
    let (mut inside, mut said) = (false, None);
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[Network]";
        } else if let Some((name, value)) = line.split_once('=').filter(|_| inside)
            && name.trim() == key
        {
            let value = value.trim().to_lowercase();
            match value.as_str() {
                "no" | "false" | "0" | "off" | "n" | "f" => said = Some(false),
                "yes" | "true" | "1" | "on" | "y" | "t" => said = Some(true),
                _ => {}
            }
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts_in_systemds_order() {
        let root = tempfile::tempdir().unwrap();
        let folders = ["etc", "run", "usr"].map(|name| root.path().join(name));
        let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let said = || setting(&folders, "ManageForeignRoutes").unwrap().map(|(value, _)| value);
        assert_eq!(said(), None);
        write("usr/networkd.conf.d/osvc-cni.conf", "[Network]\nManageForeignRoutes = no\n");
        assert_eq!(said(), Some(false));
        write("etc/networkd.conf", "[Network]\nManageForeignRoutes=yes\n");
        assert_eq!(said(), Some(false), "drop-ins come after the file, wherever they are");
        write("run/networkd.conf.d/zz.conf", "[DHCP]\nManageForeignRoutes=no\n[Network]\nManageForeignRoutes=1\n");
        assert_eq!(said(), Some(true));
        write("etc/networkd.conf.d/zz.conf", "");
        assert_eq!(said(), Some(false), "a file of the same name in /etc hides it");
        write("etc/networkd.conf.d/osvc-cni.conf", "# nothing");
        assert_eq!(said(), Some(true));
    }
}
