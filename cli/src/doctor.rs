//! `osvc-net doctor`: what keeps containers of this host from their networks, or will.
//!
//! Nothing is changed. Each topic has a file; a topic that cannot find something out says so, as a finding.

use osvc_cni::Host;

use crate::args::{Chosen, Format};
use crate::error::Error;
use crate::networks::{Choice, Fault, Network, Networks};
use crate::waiting::Waiting;
use crate::{output, torn};

mod configured;
mod finding;
mod foreign;
mod forwarding;
mod in_place;
mod networkd;
mod overlaps;
mod paths;
mod podman;
mod probe;
mod ranges;
mod records;
mod room;
mod rp_filter;
pub mod runtimes;
mod shared_ranges;
mod subject;

use finding::Report;
use subject::Subject;

/// Prints what is found; nothing if all is well. A finding is a reason for a non-zero status.
pub fn run(host: &Host, networks: Networks, arguments: &Chosen) -> Result<(), Vec<Error>> {
    let Choice { networks, faults, unknown: mut errors } = networks.look(&arguments.networks);
    let waiting = Waiting::new("doctor");
    let report = examine(host, &networks, &faults, &waiting);
    drop(waiting);
    let text = match arguments.output {
        Format::Table => report.text(),
        Format::Json => format!("{:#}\n", serde_json::json!(report.findings)),
    };
    errors.extend(output::print(&text).err());
    // What is wrong was printed: the status says that there is something.
    if errors.is_empty() && report.findings.is_empty() { Ok(()) } else { Err(errors) }
}

fn examine(host: &Host, chosen: &[Network], faults: &[Fault], waiting: &Waiting) -> Report {
    let mut report = Report::default();
    waiting.at("what is configured and set up");
    configured::unreadable(&mut report, faults);
    configured::doubled(&mut report, chosen);
    records::unreadable(&mut report, chosen, faults);
    of_networks(&mut report, host, chosen, waiting);
    // Those that were met on the way.
    records::torn(&mut report, chosen, torn::take());
    report
}

fn of_networks(report: &mut Report, host: &Host, chosen: &[Network], waiting: &Waiting) {
    let subjects: Vec<Subject<'_>> = chosen.iter().filter_map(|network| Subject::of(report, host, network)).collect();
    configured::gone(report, host, chosen);
    if subjects.is_empty() {
        return;
    }
    let runtimes = runtimes::found();
    configured::versions(report, &runtimes, chosen);
    podman::unread(report, &runtimes, &subjects);
    room::folders(report, host, &subjects);
    forwarding::look(report, &subjects);
    foreign::look(report, host, &subjects);
    overlaps::look(report, &subjects);
    rp_filter::look(report, &subjects);
    networkd::look(report, &subjects);
    ranges::look(report, host, &subjects);
    shared_ranges::look(report, chosen, &subjects);
    in_place::look(report, host, &subjects);
    in_place::containers(report, host, &subjects);
    waiting.at("ways to the peers");
    paths::look(report, &subjects);
    // Last: it is told only where nothing else explains it.
    in_place::status(report, host, &subjects);
}
