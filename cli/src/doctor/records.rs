//! Records of what was set up that cannot be read.

use osvc_cni::NetworkName;

use super::Report;
use super::subject::told;
use crate::networks::{Fault, Network, Source};
use crate::torn::Torn;

/// Why it matters.
pub const WHY: &str = "what was set up is not known: containers may not start, and a teardown may leave something";

/// Those that were met when the networks were listed.
pub fn unreadable(report: &mut Report, chosen: &[Network], faults: &[Fault]) {
    for fault in faults {
        let Some(name) = &fault.network else { continue };
        let what = told(&fault.error, name);
        match fault.of {
            Source::Newer => newer(report, name, what),
            Source::Record => report.add("unreadable-record", Some(name), what, WHY, format!("osvc-net fsck {name}")),
            Source::Torn => add_torn(report, chosen, Some(name), what),
            Source::Conflist | Source::Foreign => {}
        }
    }
}

/// Torn ones, which stay where they are.
pub fn torn(report: &mut Report, chosen: &[Network], all: Vec<Torn>) {
    for torn in all {
        add_torn(report, chosen, torn.network().as_ref(), torn.to_string());
    }
}

/// One that a later version has written.
pub fn newer(report: &mut Report, name: &NetworkName, what: String) {
    let help = "install the osvc-cni version that wrote it, or a later one";
    report.add("newer-record", Some(name), what, WHY, help);
}

fn add_torn(report: &mut Report, chosen: &[Network], name: Option<&NetworkName>, what: String) {
    let configured = chosen.iter().find(|network| network.definition.is_some() && name == Some(&network.name));
    let help = match configured {
        Some(network) => format!("osvc-net setup {}", network.name),
        None => "osvc-net setup".to_owned(),
    };
    report.add("torn-record", name, what, WHY, help);
}
