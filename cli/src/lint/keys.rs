//! Keys that mean nothing, and keys that are there twice.

use osvc_cni::Dns;
use osvc_cni::ipam::config::low as ipam;
use osvc_cni::network::config as bridge;
use osvc_cni::portmap::config::low as portmap;
use osvc_cni::protocol::json::fields::fields;
use osvc_cni::routed::config as routed;

use super::places::Step;
use super::values::path_of;
use super::{Severity, Sheet};
use crate::conf::{BRIDGE, PORTMAP};
use crate::nearest::nearest;
use crate::nodes::ROUTED;

/// Of a list (CNI spec 1.1.0, "Configuration format"), and what podman and nerdctl keep there.
const LIST: [&str; 10] = [
    "cniVersion",
    "cniVersions",
    "name",
    "plugins",
    "disableCheck",
    "disableGC",
    "loadOnlyInlinedPlugins",
    "args",
    "nerdctlID",
    "nerdctlLabels",
];

/// Of every plugin.
const PLUGIN: [&str; 10] =
    ["type", "capabilities", "runtimeConfig", "args", "prevResult", "dns", "ipam", "ipMasq", "name", "cniVersion"];

type Keys = Vec<&'static str>;

/// What is known of the objects of a document.
pub fn look(sheet: &mut Sheet<'_>) {
    twice(sheet);
    let list = sheet.places.key(&["plugins".into()]).is_some();
    if list {
        object(sheet, &[], "a list of plugins", &LIST);
    }
    for index in 0.. {
        let path = path_of(sheet, index, &[]);
        if sheet.places.key(&path).is_none() || (!list && index > 0) {
            break;
        }
        plugin(sheet, &path, list);
    }
}

/// A string below a path.
fn text(sheet: &Sheet<'_>, path: &[Step], keys: &[&str]) -> Option<String> {
    let path = join(path, keys.iter().map(|key| Step::from(*key)));
    let spot = sheet.places.0.iter().rfind(|spot| spot.path == path)?;
    serde_json::from_str(&spot.text).ok()
}

fn join(path: &[Step], more: impl IntoIterator<Item = Step>) -> Vec<Step> {
    path.iter().cloned().chain(more).collect()
}

fn plugin(sheet: &mut Sheet<'_>, path: &[Step], in_list: bool) {
    let Some(kind) = text(sheet, path, &["type"]) else { return };
    let mut known: Keys = match kind.as_str() {
        BRIDGE => fields::<bridge::Low>().to_vec(),
        ROUTED => [fields::<bridge::Low>(), fields::<routed::Low>()].concat(),
        PORTMAP => fields::<portmap::Options>().to_vec(),
        _ => Vec::new(),
    };
    let ours = !known.is_empty();
    if ours {
        known.extend(PLUGIN);
        known.extend(LIST.iter().filter(|_| !in_list));
        object(sheet, path, &kind, &known);
        let below = |key: &str| join(path, [Step::from(key)]);
        object(sheet, &below("dns"), "dns", fields::<Dns>());
        object(sheet, &below("ipMasq"), "ipMasq", fields::<bridge::LowFamilies>());
        objects(sheet, &below("vlanTrunk"), 1, "vlanTrunk", fields::<bridge::LowTrunk>());
    }
    let gives = text(sheet, path, &["ipam", "type"]);
    let by_itself = gives.is_none() && (kind == BRIDGE || kind == ROUTED);
    if by_itself || gives.as_deref() == Some("osvc-ipam") {
        let path = join(path, ["ipam".into()]);
        object(sheet, &path, "ipam", fields::<ipam::Ipam>());
        objects(sheet, &join(&path, ["ranges".into()]), 2, "ipam.ranges", fields::<ipam::Range>());
        objects(sheet, &join(&path, ["routes".into()]), 1, "ipam.routes", fields::<ipam::Route>());
    }
}

/// The objects in a list, or in lists of a list.
fn objects(sheet: &mut Sheet<'_>, list: &[Step], depth: usize, of: &str, known: &[&str]) {
    let found: Vec<Vec<Step>> = sheet
        .places
        .below(list)
        .filter(|spot| spot.path.len() == list.len() + depth && spot.text.starts_with('{'))
        .map(|spot| spot.path.clone())
        .collect();
    found.iter().for_each(|path| object(sheet, path, of, known));
}

/// The keys of an object.
fn object(sheet: &mut Sheet<'_>, path: &[Step], of: &str, known: &[&str]) {
    let unknown = |key: &str| {
        // Words of others, by the conventions of their tools.
        let foreign = key.starts_with(['_', '$']) || key.contains(['.', '/', ':']);
        !foreign && !known.iter().any(|known| known.eq_ignore_ascii_case(key))
    };
    let found: Vec<(usize, String)> = sheet
        .places
        .below(path)
        .filter(|spot| spot.path.len() == path.len() + 1)
        .filter_map(|spot| match spot.path.last() {
            Some(Step::Key(key)) if unknown(key) => Some((spot.at, key.clone())),
            _ => None,
        })
        .collect();
    for (at, key) in found {
        match nearest(&key, known.iter().copied()) {
            // It was meant to have an effect, and has none.
            Some(meant) => {
                sheet.add(Severity::Error, at, format!("{of} has no key {key:?}: did you mean {meant:?}?"));
            }
            None => sheet.add(Severity::Warning, at, format!("{of} has no key {key:?}: it has no effect")),
        }
    }
}

/// A key that is there again: the last one counts.
fn twice(sheet: &mut Sheet<'_>) {
    let mut paths: Vec<(&Vec<Step>, usize)> = sheet.places.0.iter().map(|spot| (&spot.path, spot.at)).collect();
    paths.sort_by(|one, other| format!("{:?}", one.0).cmp(&format!("{:?}", other.0)).then(one.1.cmp(&other.1)));
    let again =
        paths.windows(2).filter(|pair| pair[0].0 == pair[1].0 && matches!(pair[0].0.last(), Some(Step::Key(_))));
    let again: Vec<(&Vec<Step>, usize)> = again.map(|pair| pair[0]).collect();
    // What is in an object that is there twice is there twice.
    let outermost = |path: &[Step]| !again.iter().any(|(other, _)| other.len() < path.len() && path.starts_with(other));
    let again: Vec<(usize, String)> = again
        .iter()
        .filter(|(path, _)| outermost(path))
        .filter_map(|(path, at)| match path.last() {
            Some(Step::Key(key)) => Some((*at, key.clone())),
            _ => None,
        })
        .collect();
    for (at, key) in again {
        sheet.add(Severity::Error, at, format!("key {key:?} is there again below: this one has no effect"));
    }
}
