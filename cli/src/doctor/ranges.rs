//! Ranges that are nearly full, and records that cannot be read.

use osvc_cni::Host;
use osvc_cni::ipam::record::State;
use osvc_cni::ipam::{Error, snapshot};

use super::{Report, Subject};

/// From here on there is something to be done, in percent.
const NEARLY: u128 = 90;

/// What of each network's addresses is in use, and what of its store nobody can read.
pub fn look(report: &mut Report, host: &Host, subjects: &[Subject<'_>]) {
    for subject in subjects {
        let Some(shape) = &subject.shape else { continue };
        let name = &subject.network.name;
        let folder = shape.addresses.as_ref().map(|config| config.folder.as_path());
        let snapshot = match snapshot::take(host, name, folder) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                report.cannot_tell(Some(name), "who has its addresses", &error);
                continue;
            }
        };
        for fault in &snapshot.faults {
            let why = "the address is given to nobody, and whoever has it may lose it";
            match fault {
                Error::NewerFormat { .. } => report.add(
                    "newer-record",
                    Some(name),
                    fault.to_string(),
                    why,
                    "install the osvc-cni version that wrote it, or a later one",
                ),
                Error::Torn(_) => {
                    report.add("torn-record", Some(name), fault.to_string(), why, format!("osvc-net fsck {name}"))
                }
                fault => report.cannot_tell(Some(name), "who has an address", fault),
            }
        }
        for set in shape.addresses.iter().flat_map(|config| &config.sets) {
            let used = snapshot.records.iter().filter(|(address, record)| {
                record.state != State::Released && set.0.iter().any(|range| range.allocatable(*address))
            });
            let (used, size) = (used.count() as u128, set.size());
            if used == 0 || used * 100 < size.saturating_mul(NEARLY) {
                continue;
            }
            let widen = match shape.segments.is_empty() {
                true => "write a larger subnet, which holds the present one, or one more range in the conflist",
                false => "add a network with larger segments: those of this one cannot grow",
            };
            report.add(
                "range-nearly-full",
                Some(name),
                format!("{used} of {size} addresses of {set} are in use"),
                "when all are, no further container starts",
                format!(
                    "osvc-net gc {name}   # gives back what the dead have; else {widen}, then osvc-net setup {name}"
                ),
            );
        }
    }
}
