//! Firewalls that cannot be opened by a rule of nftables: firewalld, which is asked, and iptables-legacy,
//! whose tables are invisible to nftables.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use ipnet::IpNet;

use super::mark::is_device;
use super::program;
use super::snapshot::Snapshot;
use super::state::Firewalld;
use super::wanted::opens_foreign;
use crate::network::record::NetworkRecord;

/// How long firewalld may take: it is Python, and is asked over D-Bus.
const PATIENCE: Duration = Duration::from_secs(10);

/// True if firewalld does not run, or was told to trust what the network needs since it started.
pub fn trusts(told: Option<&Firewalld>, snapshot: &Snapshot, record: &NetworkRecord) -> bool {
    let Some(table) = snapshot.firewalld else { return true };
    let wanted = Firewalld::of(table, [record]);
    let is_told = |told: &Firewalld| {
        told.table == table && told.devices.is_superset(&wanted.devices) && told.sources.is_superset(&wanted.sources)
    };
    (wanted.devices.is_empty() && wanted.sources.is_empty()) || told.is_some_and(is_told)
}

/// Has firewalld trust what these networks need, and no longer what it was told of before; unless `keep`: of some network
/// it is not known what it needs.
///
/// A firewalld that refuses is not asked again before it restarts: its answer is in the log.
pub fn settle_firewalld(
    told: Option<Firewalld>,
    snapshot: &Snapshot,
    records: &[NetworkRecord],
    keep: bool,
) -> Option<Firewalld> {
    let table = snapshot.firewalld?;
    let mut wanted = Firewalld::of(table, records);
    let told = told.filter(|told| told.table == table);
    for told in told.iter().filter(|_| keep) {
        wanted.devices.extend(told.devices.iter().cloned());
        wanted.sources.extend(&told.sources);
    }
    let changes = wanted.changes_from(told);
    if changes.is_empty() {
        return Some(wanted);
    }
    let Some(path) = program::find("firewall-cmd") else {
        tracing::warn!(
            ?changes,
            "firewalld's table is there and firewall-cmd is not: if firewalld drops what is \
            forwarded, change its zone trusted like this"
        );
        return Some(wanted);
    };
    for change in changes {
        let change: Vec<&str> = change.iter().map(String::as_str).collect();
        match program::run(Command::new(&path).arg("--zone=trusted").args(&change), "", PATIENCE) {
            Ok(ended) if ended.status.success() => tracing::info!(?change, "firewalld: zone trusted was changed"),
            Ok(ended) => tracing::warn!(?change, "firewalld did not change its zone trusted: {}", ended.stderr.trim()),
            Err(error) => tracing::warn!(?change, %error, "firewall-cmd cannot be run"),
        }
    }
    Some(wanted)
}

impl Firewalld {
    /// What these networks need to be trusted: their bridges, and what of other nodes comes in. By a tunnel of ours that
    /// is the device; without one, or by somebody else's, the segment.
    fn of<'a>(table: u64, records: impl IntoIterator<Item = &'a NetworkRecord>) -> Self {
        let mut wanted = Self { table, devices: BTreeSet::new(), sources: BTreeSet::new() };
        for record in records.into_iter().filter(|record| opens_foreign(record)) {
            wanted.devices.insert(record.device().to_owned());
            // Frames of a VLAN, with br_netfilter. Behind a bridge of somebody else may be the whole world.
            wanted
                .devices
                .extend(Some(&record.bridge).filter(|_| record.owned && record.vlan_device.is_some()).cloned());
            if let Some(cluster) = &record.cluster {
                wanted.devices.extend(cluster.devices.iter().filter(|device| is_device(device)).cloned());
                wanted.sources.extend(&cluster.plain);
            }
        }
        wanted
    }

    /// The arguments of firewall-cmd, call by call: options of one kind go together (firewall-cmd(1), "sequence").
    fn changes_from(&self, before: Option<Self>) -> Vec<Vec<String>> {
        let before = before.unwrap_or_default();
        let all =
            |option: &str, values: Vec<String>| values.iter().map(|value| format!("--{option}={value}")).collect();
        let texts = |a: &BTreeSet<IpNet>, b: &BTreeSet<IpNet>| a.difference(b).map(ToString::to_string).collect();
        let changes: [Vec<String>; 4] = [
            all("add-interface", self.devices.difference(&before.devices).cloned().collect()),
            all("add-source", texts(&self.sources, &before.sources)),
            all("remove-interface", before.devices.difference(&self.devices).cloned().collect()),
            all("remove-source", texts(&before.sources, &self.sources)),
        ];
        changes.into_iter().filter(|arguments| !arguments.is_empty()).collect()
    }
}

/// Says so when the old iptables drops what is forwarded: its tables can only be changed by its own
/// program, and that is left to the administrator.
pub fn report_legacy() {
    for (program_name, _) in legacy() {
        tracing::warn!(
            "{program_name} drops what is forwarded, and nftables cannot change that: \
            `{program_name} -I FORWARD -i BRIDGE -j ACCEPT`, and the same with -o, for each network"
        );
    }
}

/// The programs of the old iptables whose tables drop what is forwarded, each with its listing of FORWARD.
pub fn legacy() -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for (names, program_name) in [
        ("/proc/thread-self/net/ip_tables_names", "iptables-legacy"),
        ("/proc/thread-self/net/ip6_tables_names", "ip6tables-legacy"),
    ] {
        // Without a loaded table, the program would load one.
        let filters = fs::read_to_string(names).is_ok_and(|names| names.lines().any(|name| name == "filter"));
        let Some(path) = program::find(program_name).filter(|_| filters) else { continue };
        let listed = program::run(Command::new(&path).args(["-w", "5", "-S", "FORWARD"]), "", PATIENCE);
        found.extend(
            listed
                .ok()
                .filter(|ended| ended.stdout.starts_with("-P FORWARD DROP"))
                .map(|ended| (program_name, ended.stdout)),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::cluster::Cluster;
    use crate::network::record::ForwardAccept;
    use crate::network::record::tests::record;

    fn routed(devices: &[&str], plain: &[&str]) -> NetworkRecord {
        let mut record = record("r", &["10.11.0.0/22"]);
        let devices = devices.iter().map(|device| (*device).to_owned()).collect();
        let plain = plain.iter().map(|segment| segment.parse().unwrap()).collect();
        record.cluster = Some(Cluster { devices, plain, ..Cluster::default() });
        record
    }

    #[test]
    fn what_comes_from_other_nodes_is_trusted_as_the_bridge_is() {
        let a = record("a", &["10.1.0.0/16"]);
        let r = routed(&["ot1", "no device", "ot2"], &["10.11.8.0/22", "fd11:0:0:2::/64"]);
        let wanted = Firewalld::of(7, [&a, &r]);
        assert_eq!(
            wanted.changes_from(None),
            [
                vec!["--add-interface=obr_a", "--add-interface=obr_r", "--add-interface=ot1", "--add-interface=ot2"],
                vec!["--add-source=10.11.8.0/22", "--add-source=fd11:0:0:2::/64"],
            ]
        );
        assert!(wanted.changes_from(Some(wanted.clone())).is_empty());
        // The peer of 10.11.8.0/22 is reached by a tunnel from now on, that of ot2 by none.
        let later = Firewalld::of(7, [&a, &routed(&["ot1", "ot3"], &["10.11.4.0/22", "fd11:0:0:2::/64"])]);
        assert_eq!(
            later.changes_from(Some(wanted.clone())),
            [
                ["--add-interface=ot3"],
                ["--add-source=10.11.4.0/22"],
                ["--remove-interface=ot2"],
                ["--remove-source=10.11.8.0/22"]
            ]
        );
        // The network is gone, or is told to leave others' rulesets alone.
        let mut never = r.clone();
        never.forward_accept = ForwardAccept::Never;
        for records in [vec![&a], vec![&a, &never]] {
            assert_eq!(
                Firewalld::of(7, records).changes_from(Some(wanted.clone())),
                [
                    vec!["--remove-interface=obr_r", "--remove-interface=ot1", "--remove-interface=ot2"],
                    vec!["--remove-source=10.11.8.0/22", "--remove-source=fd11:0:0:2::/64"],
                ]
            );
        }
    }
}
