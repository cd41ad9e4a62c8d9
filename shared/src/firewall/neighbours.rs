//! Firewalls that cannot be opened by a rule of nftables: firewalld, which is asked, and iptables-legacy,
//! whose tables are invisible to nftables.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::program;
use super::snapshot::Snapshot;
use super::state::Firewalld;
use super::wanted::opens_foreign;
use crate::network::record::NetworkRecord;

/// How long firewalld may take: it is Python, and is asked over D-Bus.
const PATIENCE: Duration = Duration::from_secs(10);

/// True if firewalld does not run, or was told to trust the network's bridge since it started.
pub fn trusts(told: Option<&Firewalld>, snapshot: &Snapshot, record: &NetworkRecord) -> bool {
    match snapshot.firewalld {
        Some(table) if opens_foreign(record) => {
            told.is_some_and(|told| told.table == table && told.devices.contains(&record.bridge))
        }
        _ => true,
    }
}

/// Has firewalld trust the bridges of these networks, and no longer those that it was told of before.
///
/// A firewalld that refuses is not asked again before it restarts: its answer is in the log.
pub fn settle_firewalld(told: Option<Firewalld>, snapshot: &Snapshot, records: &[NetworkRecord]) -> Option<Firewalld> {
    let table = snapshot.firewalld?;
    let wanted: BTreeSet<String> =
        records.iter().filter(|record| opens_foreign(record)).map(|record| record.bridge.clone()).collect();
    let before = told.filter(|told| told.table == table).map(|told| told.devices).unwrap_or_default();
    if before == wanted {
        return Some(Firewalld { table, devices: wanted });
    }
    let Some(path) = program::find("firewall-cmd") else {
        tracing::warn!(devices = ?wanted, "firewalld's table is there and firewall-cmd is not: if firewalld drops what \
            is forwarded, put these devices into its zone trusted");
        return Some(Firewalld { table, devices: wanted });
    };
    for device in wanted.difference(&before) {
        ask(&path, "add", device);
    }
    for device in before.difference(&wanted) {
        ask(&path, "remove", device);
    }
    Some(Firewalld { table, devices: wanted })
}

fn ask(path: &Path, verb: &str, device: &str) {
    let argument = format!("--{verb}-interface={device}");
    match program::run(Command::new(path).args(["--zone=trusted", &argument]), "", PATIENCE) {
        Ok(ended) if ended.status.success() => tracing::info!(device, verb, "firewalld: zone trusted was changed"),
        Ok(ended) => tracing::warn!(device, verb, "firewalld did not change its zone trusted: {}", ended.stderr.trim()),
        Err(error) => tracing::warn!(device, verb, %error, "firewall-cmd cannot be run"),
    }
}

/// Says so when the old iptables drops what is forwarded: its tables can only be changed by its own
/// program, and that is left to the administrator.
pub fn report_legacy() {
    for (names, program_name) in [
        ("/proc/thread-self/net/ip_tables_names", "iptables-legacy"),
        ("/proc/thread-self/net/ip6_tables_names", "ip6tables-legacy"),
    ] {
        // Without a loaded table, the program would load one.
        let filters = fs::read_to_string(names).is_ok_and(|names| names.lines().any(|name| name == "filter"));
        let Some(path) = program::find(program_name).filter(|_| filters) else { continue };
        let listed = program::run(Command::new(&path).args(["-w", "5", "-S", "FORWARD"]), "", PATIENCE);
        if listed.is_ok_and(|ended| ended.stdout.starts_with("-P FORWARD DROP")) {
            tracing::warn!(
                "{program_name} drops what is forwarded, and nftables cannot change that: \
                `{program_name} -I FORWARD -i BRIDGE -j ACCEPT`, and the same with -o, for each network"
            );
        }
    }
}
