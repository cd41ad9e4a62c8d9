//! Files of configurations: those that cannot be read, that hide others, that a runtime cannot read, and that are gone.

use std::path::{Path, PathBuf};

use osvc_cni::network::NetworkRecord;
use osvc_cni::{Host, teardown};
use serde_json::Value;

use super::Report;
use super::runtimes::{Runtime, version_for};
use crate::conf::{self, Plugin};
use crate::error::Error;
use crate::networks::{Fault, Network, Source};

/// Files that hold no network, whosever they are.
pub fn unreadable(report: &mut Report, faults: &[Fault]) {
    for fault in faults.iter().filter(|fault| matches!(fault.of, Source::Conflist | Source::Foreign)) {
        let place = match &fault.error {
            Error::Json { place, .. } | Error::Name { place, .. } => place.file.as_path(),
            Error::Read { path, .. } => path.as_path(),
            _ => Path::new(""),
        };
        report.add(
            "unreadable-conflist",
            None,
            fault.error.to_string(),
            "runtimes do not see the network in it: its containers do not start",
            format!("osvc-net conf lint {}", place.display()),
        );
    }
}

/// Several files for one network, with a plugin of ours in one of them.
pub fn doubled(report: &mut Report, networks: &[Network]) {
    for network in networks {
        let Some(definition) = &network.definition else { continue };
        let file = definition.file.display();
        let is_ours = definition.plugins.iter().any(Plugin::is_ours);
        let matters = |other: &&PathBuf| is_ours || names_ours(other);
        for other in definition.shadowed.iter().filter(matters) {
            report.add(
                "two-conflists",
                Some(&network.name),
                format!("{} is for this network too, after {file} in the same folder", other.display()),
                "runtimes take the first one: what the other says has no effect",
                format!("rm {}   # or give its network another name", other.display()),
            );
        }
        for other in definition.elsewhere.iter().filter(matters).filter(|other| differs(&definition.file, other)) {
            let help = match [&definition.file, other].into_iter().find(|file| is_nerdctls(file)) {
                // nerdctl knows its networks by what it has written there.
                Some(kept) => format!(
                    "give the network another name in one of the two   # {} is kept by nerdctl: nerdctl network rm {}",
                    kept.display(),
                    network.name
                ),
                None => format!("cp {file} {}", other.display()),
            };
            report.add(
                "two-conflists",
                Some(&network.name),
                format!("{} is for this network too, and says otherwise than {file}", other.display()),
                "two runtimes see two networks in the same addresses, bridges and records",
                help,
            );
        }
    }
}

/// True if a plugin of ours is in a file.
fn names_ours(file: &Path) -> bool {
    let definition = conf::text(file).ok().and_then(|text| conf::parse(file, &text).ok());
    definition.is_some_and(|definition| definition.plugins.iter().any(Plugin::is_ours))
}

/// What nerdctl writes into its files.
const NERDCTL: [&str; 2] = ["nerdctlID", "nerdctlLabels"];

fn value(file: &Path) -> Option<Value> {
    serde_json::from_slice(&conf::text(file).ok()?).ok()
}

fn is_nerdctls(file: &Path) -> bool {
    conf::is_below(file) || value(file).is_some_and(|value| NERDCTL.iter().any(|key| value.get(key).is_some()))
}

/// True unless the two say the same: white space, the order of keys, and what nerdctl notes for itself, make no
/// difference.
fn differs(one: &Path, other: &Path) -> bool {
    let said = |file: &Path| {
        let mut value = value(file);
        if let Some(object) = value.as_mut().and_then(Value::as_object_mut) {
            NERDCTL.iter().for_each(|key| drop(object.remove(*key)));
        }
        value
    };
    said(one) != said(other)
}

/// Networks that are set up, and that no file is for any more.
pub fn gone(report: &mut Report, host: &Host, networks: &[Network]) {
    for network in networks.iter().filter(|network| network.definition.is_none()) {
        let name = &network.name;
        // What was set up before this host was started is gone. A record that cannot be read is a finding of its own.
        if !teardown::is_set_up(host, name).unwrap_or(false) {
            continue;
        }
        let bridge = NetworkRecord::load(host, name).ok().flatten().map(|record| record.bridge);
        let what = match bridge {
            Some(bridge) => format!("it is set up, with bridge {bridge}, and no conflist is for it any more"),
            None => "it is set up, and no conflist is for it any more".to_owned(),
        };
        report.add(
            "conflist-gone",
            Some(name),
            what,
            "its containers cannot be started again, and nothing repairs what they have",
            format!("osvc-net teardown {name}   # or put its conflist back into /etc/cni/net.d"),
        );
    }
}

/// Versions of the specification that a runtime here does not know.
pub fn versions(report: &mut Report, runtimes: &[Runtime], networks: &[Network]) {
    for network in networks {
        let Some(definition) = &network.definition else { continue };
        let ours = definition.plugins.iter().any(Plugin::is_ours);
        let Some(version) = version_for(&definition.file).filter(|_| ours) else { continue };
        for runtime in runtimes.iter().filter(|runtime| runtime.reads(&definition.file) && version > runtime.newest) {
            report.add(
                "cni-version",
                Some(&network.name),
                format!(
                    "{}: cniVersion {} is newer than {} {} can read: {} at most",
                    definition.file.display(),
                    version.as_str(),
                    runtime.name,
                    runtime.version,
                    runtime.newest.as_str()
                ),
                format!("{} does not see the network, or cannot start containers in it", runtime.name),
                format!("write \"cniVersion\": \"{}\" in {}", runtime.newest.as_str(), definition.file.display()),
            );
        }
    }
}
