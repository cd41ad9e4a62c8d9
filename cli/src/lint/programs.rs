//! Plugins that are in none of the folders where runtimes look.

use std::fs;

use super::{Severity, Sheet};
use crate::conf::{BRIDGE, Definition, PORTMAP};
use crate::nearest::nearest;
use crate::nodes::ROUTED;

/// Those of podman, of containerd and Nomad, and of OpenSVC's agent.
const FOLDERS: [&str; 7] = [
    "/opt/cni/bin",
    "/usr/lib/cni",
    "/usr/libexec/cni",
    "/usr/local/libexec/cni",
    "/usr/local/lib/cni",
    "/usr/lib/opensvc/cni",
    "/var/lib/opensvc/cni/bin",
];

/// What may be meant although it is not installed.
const OURS: [&str; 4] = [BRIDGE, ROUTED, PORTMAP, "osvc-ipam"];

/// The programs that a network needs.
pub fn look(sheet: &mut Sheet<'_>, definition: &Definition) {
    let installed = installed();
    for (index, plugin) in definition.plugins.iter().enumerate() {
        // osvc-bridge and osvc-routed give addresses themselves.
        let ipam = plugin.ipam().filter(|ipam| *ipam != "osvc-ipam" || !plugin.kind.starts_with("osvc-"));
        for (name, key) in [(Some(plugin.kind.as_str()), &["type"][..]), (ipam, &["ipam", "type"])] {
            let Some(name) = name.filter(|name| !installed.iter().any(|known| known == name)) else {
                continue;
            };
            let path = super::values::path_of(sheet, index, key);
            let at = sheet.places.key(&path).unwrap_or_default();
            let known = installed.iter().map(String::as_str).chain(OURS);
            // One of ours is named rightly, and not installed.
            let meant = if OURS.contains(&name) { None } else { nearest(name, known) };
            let meant = meant.map(|meant| format!(": did you mean {meant:?}?")).unwrap_or_default();
            sheet.add(Severity::Warning, at, format!("there is no plugin {name:?} in {}{meant}", FOLDERS.join(", ")));
        }
    }
}

/// The names of all files in the folders.
fn installed() -> Vec<String> {
    let entries = FOLDERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}
