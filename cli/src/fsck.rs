//! `osvc-net fsck`: the stores against themselves, their indexes and the kernel.
//!
//! Nothing is changed by looking. Containers come and go meanwhile, so that one look may see half of an ADD or DEL: what is
//! told was seen by several.

use std::collections::BTreeSet;
use std::time::Duration;

use osvc_cni::{Host, NetworkName};
use serde_json::Value;

use crate::args::{Format, Fsck};
use crate::error::Error;
use crate::networks::{Network, Networks};
use crate::progress::Progress;
use crate::{interrupt, output};
use finding::{Finding, Help, Known};

mod addresses;
mod finding;
mod kernel;
mod others;
mod repair;
mod site;

/// Between looks: an ADD or DEL that somebody else is at has gone on by then.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(750)];

/// Something is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{}", told(*.found, *.mendable))]
pub struct Wrong {
    /// How much.
    found: usize,
    /// How much of it `--repair` puts right.
    mendable: usize,
}

fn told(found: usize, mendable: usize) -> String {
    let things = if found == 1 { "1 thing is wrong".to_owned() } else { format!("{found} things are wrong") };
    match mendable {
        0 => format!("{things}: see above for what helps"),
        1 if found == 1 => format!("{things}: `osvc-net fsck --repair` puts it right"),
        all if all == found => format!("{things}: `osvc-net fsck --repair` puts them right"),
        some => format!("{things}, {some} of which `osvc-net fsck --repair` puts right"),
    }
}

/// Tells what is wrong with the named networks, or with all; puts right what can be, if asked to.
pub fn run(host: &Host, networks: Networks, arguments: &Fsck) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(&arguments.networks);
    // What cannot be told whose it is, is told when all are asked for.
    let all = arguments.networks.is_empty();
    let found = match steady(host, &chosen, all) {
        Ok((found, more)) => {
            errors.extend(more);
            found
        }
        Err(stopped) => return Err(vec![stopped]),
    };
    let acts = arguments.repair && !arguments.dry_run;
    let mut left = found.clone();
    if acts && found.iter().any(Finding::is_mendable) {
        errors.extend(repair::all(host, &chosen, &found));
        // Of what was there. What has come meanwhile is the next one's.
        match steady(host, &chosen, all) {
            Ok((again, _)) => {
                let again = Known::of(&again);
                left.retain(|finding| again.has(finding));
            }
            Err(stopped) => errors.push(stopped),
        }
    }
    let known = Known::of(&left);
    let is_repaired = |finding: &Finding| acts && finding.is_mendable() && !known.has(finding);
    let found: Vec<Finding> = match acts {
        // What only followed from something else went with it.
        true => found.into_iter().filter(|finding| finding.is_mendable() || known.has(finding)).collect(),
        false => found,
    };
    let text = match arguments.output {
        Format::Table => found.iter().map(|finding| finding.line(arguments.repair, is_repaired(finding))).collect(),
        Format::Json => {
            format!("{:#}\n", Value::from(found.iter().map(|f| f.json(is_repaired(f))).collect::<Vec<_>>()))
        }
    };
    errors.extend(output::print(&text).err());
    if arguments.repair && found.is_empty() && errors.is_empty() && arguments.output == Format::Table {
        errors.extend(output::print("nothing to repair\n").err());
    }
    if !left.is_empty() {
        let mendable = left.iter().filter(|finding| finding.is_mendable()).count();
        errors.push(Error::specific(Wrong { found: left.len(), mendable }));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// What is wrong at each of several looks, and what kept some of it from being seen at the last one.
fn steady(host: &Host, networks: &[Network], all: bool) -> Result<(Vec<Finding>, Vec<Error>), Error> {
    let (mut found, errors) = look(host, networks, all)?;
    for pause in PAUSES {
        if found.iter().all(|finding| finding.certain) {
            break;
        }
        interrupt::check()?;
        std::thread::sleep(pause);
        interrupt::check()?;
        let concerned: BTreeSet<&NetworkName> = found.iter().filter_map(Finding::network).collect();
        let of = |network: &&Network| concerned.contains(&network.name);
        let again: Vec<&Network> = networks.iter().filter(of).collect();
        let (second, _) = look(host, &again, all)?;
        let second = Known::of(&second);
        found.retain(|finding| finding.certain || second.has(finding));
    }
    found.dedup();
    Ok((found, errors))
}

/// One look at all of it.
fn look<N: std::borrow::Borrow<Network>>(
    host: &Host,
    networks: &[N],
    all: bool,
) -> Result<(Vec<Finding>, Vec<Error>), Error> {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    // Before the records: an ADD writes the record first, a DEL removes it last.
    let links = kernel::links()?;
    let mut sites = Vec::new();
    let mut progress = Progress::new("networks looked at", Some(networks.len() as u64));
    for network in networks {
        interrupt::check()?;
        match site::Site::new(host, network.borrow(), &|more| progress.records(more)) {
            Ok((site, more)) => {
                errors.extend(more);
                sites.push(site);
            }
            Err(error) => errors.push(error),
        }
        progress.step();
    }
    for site in &mut sites {
        found.append(&mut site.faults);
    }
    for site in &sites {
        interrupt::check()?;
        found.extend(addresses::look(site));
        let kernel = kernel::look(site, &links);
        match kernel {
            Ok(more) => found.extend(more),
            Err(error) => errors.push(error),
        }
        match others::source_checks(site) {
            Ok(more) => found.extend(more),
            Err(error) => errors.push(error),
        }
    }
    // Their ports and checks say what their records will say again.
    let lost: BTreeSet<String> = found.iter().filter_map(Finding::lost).collect();
    found.retain(|finding| !finding.follows(&lost));
    match others::host_ports(host, &sites, all) {
        Ok(more) => found.extend(more.into_iter().filter(|finding| !finding.follows(&lost))),
        Err(error) => errors.push(error),
    }
    Ok((found, errors))
}
