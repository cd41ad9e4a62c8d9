//! podman that does not look at CNI at all.

use std::fs;
use std::path::{Path, PathBuf};

use super::runtimes::Runtime;
use super::{Report, Subject};

/// Where containers.conf(5) is read, the last word counting.
const FILES: [&str; 2] = ["/usr/share/containers/containers.conf", "/etc/containers/containers.conf"];

/// What podman remembers of its first start.
const REMEMBERED: &str = "/var/lib/containers/storage/defaultNetworkBackend";

/// Networks that are for all runtimes but podman.
pub fn unread(report: &mut Report, runtimes: &[Runtime], subjects: &[Subject<'_>]) {
    let Some(podman) = runtimes.iter().find(|runtime| runtime.name == "podman") else { return };
    let (why_not, help) = match backend() {
        Some((backend, by)) if backend != "cni" => {
            let help = format!("set network_backend = \"cni\" in {}, then podman system reset", by.display());
            (format!("its network backend is {backend} by {}", by.display()), help)
        }
        // An explicit word of somebody who built it so.
        Some(_) => return,
        None if podman.major >= 5 => {
            let help =
                "use podman 4, or one built with CNI and network_backend = \"cni\" in /etc/containers/containers.conf";
            ("from version 5 on it has netavark alone".to_owned(), help.to_owned())
        }
        None => return,
    };
    let names: Vec<&str> = subjects
        .iter()
        .filter(|subject| subject.network.definition.as_ref().is_some_and(|it| podman.reads(&it.file)))
        .map(|subject| subject.network.name.as_str())
        .filter(|name| !Path::new("/etc/containers/networks").join(format!("{name}.json")).exists())
        .collect();
    if names.is_empty() {
        return;
    }
    report.add(
        "podman-without-cni",
        None,
        format!("podman {} does not read CNI networks: {why_not}", podman.version),
        format!("`podman run --network` does not know {}; other runtimes do", names.join(", ")),
        help,
    );
}

/// The configured backend, or else the one that podman chose once, and where that is said.
fn backend() -> Option<(String, PathBuf)> {
    let mut files: Vec<PathBuf> = FILES.iter().map(PathBuf::from).collect();
    let drop_ins = fs::read_dir("/etc/containers/containers.conf.d").into_iter().flatten();
    let mut drop_ins: Vec<PathBuf> = drop_ins.filter_map(|entry| Some(entry.ok()?.path())).collect();
    drop_ins.sort();
    files.extend(drop_ins.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "conf")));
    files.extend(std::env::var_os("CONTAINERS_CONF").map(PathBuf::from));
    let said = files.into_iter().rev().find_map(|path| Some((key(&fs::read_to_string(&path).ok()?)?, path)));
    said.or_else(|| {
        let remembered = fs::read_to_string(REMEMBERED).ok()?.trim().to_owned();
        (!remembered.is_empty()).then(|| (remembered, REMEMBERED.into()))
    })
}

/// `network_backend = "cni"`, of TOML.
fn key(text: &str) -> Option<String> {
    let value = text.lines().rev().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "network_backend").then(|| value.split('#').next().unwrap_or_default().trim())
    })?;
    Some(value.trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn the_key_of_containers_conf() {
        assert_eq!(
            key("[network]\n# network_backend = \"x\"\n network_backend=\"cni\" # ours\n").as_deref(),
            Some("cni")
        );
        assert_eq!(key("network_backend = ''"), None);
        assert_eq!(key("[network]\n"), None);
    }
}
