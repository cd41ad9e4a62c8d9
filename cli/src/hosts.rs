//! `osvc-net hosts`: a hosts file (hosts(5)) with the names of all containers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use osvc_cni::ipam::key::Key;
use osvc_cni::ipam::liveness::{Census, Liveness, Witness};
use osvc_cni::{Host, NetworkName};

use crate::args::Hosts;
use crate::error::Error;
use crate::ip::select;
use crate::networks::Networks;
use crate::{document, interrupt, output};
use names::{NAME, host_name, label, meaning};

mod names;

/// The first line of what we write.
const OURS: &str = "# Written by osvc-net hosts: changes are lost.";

/// Why no hosts file is written.
#[derive(Debug, thiserror::Error)]
enum HostsError {
    /// It has lines of somebody else.
    #[error(
        "{} is not written by osvc-net: its own lines would be lost; write another file, and name it to dnsmasq (addn-hosts=FILE) or \
         podman (containers.conf, base_hosts_file)",
        .0.display()
    )]
    NotOurs(PathBuf),
    /// A search domain.
    #[error("{0:?} is no domain: labels of letters, digits and hyphens, with dots between them, are")]
    Domain(String),
    /// Two workloads of one name: no reason to fail.
    #[error("{name} is the name of several keys ({}): it leads to the addresses of all", .keys.join(", "))]
    Shared { name: String, keys: Vec<String> },
    /// A name that means something else everywhere: no reason to fail.
    #[error("{name}, of key {key}, is left out: it means {means} wherever it is looked up")]
    Left { name: String, key: String, means: &'static str },
}

/// An address of a container, and whose it is.
struct Entry<'a> {
    address: IpAddr,
    key: Key,
    network: &'a NetworkName,
}

/// Prints or writes the file.
pub fn run(host: &Host, networks: Networks, arguments: &Hosts) -> Result<(), Vec<Error>> {
    let search: Vec<String> =
        arguments.search.iter().map(|domain| check(domain)).collect::<Result<_, _>>().map_err(|error| vec![error])?;
    let (chosen, mut errors) = networks.choose(&arguments.network);
    let mut witness = Census::new(host);
    let mut entries = Vec::new();
    for network in &chosen {
        let (snapshot, faults) = select::records(host, network);
        errors.extend(faults);
        for (address, record) in snapshot.records {
            // What is reserved answers nobody, and what is dead no more.
            if record.is_held() && witness.judge(&record) != Liveness::Dead {
                entries.push(Entry { address, key: record.key, network: &network.name });
            }
        }
    }
    let (text, notes) = render(entries, &search);
    notes.iter().for_each(|note| output::complain(note));
    let ended = match &arguments.file {
        None => output::print(&text),
        // Half of the names is worse than those of before.
        Some(_) if !errors.is_empty() => Ok(()),
        Some(file) => save(file, &text, arguments.dry_run),
    };
    errors.extend(ended.err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Writes the file if it changes.
fn save(file: &Path, text: &str, dry_run: bool) -> Result<(), Error> {
    let before = match std::fs::read(file) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(source) => return Err(Error::Read { path: file.to_owned(), source }),
    };
    let ours = |before: &[u8]| before.is_empty() || before.starts_with(OURS.as_bytes());
    let hosts = std::fs::canonicalize(file).is_ok_and(|file| file == Path::new("/etc/hosts"));
    if before.as_ref().is_some_and(|before| !ours(before)) || (hosts && before.as_ref().is_some_and(Vec::is_empty)) {
        return Err(Error::specific(HostsError::NotOurs(file.to_owned())));
    }
    if before.as_deref() == Some(text.as_bytes()) {
        return output::print(&format!("{}: nothing to do\n", file.display()));
    }
    interrupt::check()?;
    let names = text.lines().filter(|line| !line.starts_with('#')).count();
    if dry_run {
        output::print(text)?;
        return output::print(&format!("# {}: would be written: {names} addresses\n", file.display()));
    }
    document::write(file, text)?;
    output::print(&format!("{}: written: {names} addresses\n", file.display()))
}

/// The file, the same for the same entries, and what there is to say of its names.
fn render(entries: Vec<Entry<'_>>, search: &[String]) -> (String, Vec<HostsError>) {
    let mut lines: BTreeMap<(IpAddr, String), Vec<String>> = BTreeMap::new();
    let mut keys: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut left: BTreeMap<(String, String), &'static str> = BTreeMap::new();
    for Entry { address, key, network } in entries {
        let Some(name) = host_name(&key) else { continue };
        let whose = format!("{} ({})", key.text.escape_debug(), key.source.name());
        let long = format!("{name}.{}", label(network.as_str()).unwrap_or_default());
        let mut names = vec![name.clone(), long];
        for domain in search {
            names.extend([format!("{}.{domain}", names[0]), format!("{}.{domain}", names[1])]);
        }
        names.retain(|name| match meaning(name) {
            Some(means) => {
                left.insert((name.clone(), whose.clone()), means);
                false
            }
            None => name.len() <= NAME,
        });
        if names.is_empty() {
            continue;
        }
        keys.entry(name.clone()).or_default().insert(whose);
        let known = lines.entry((address, name)).or_default();
        names.retain(|name| !known.contains(name));
        known.extend(names);
    }
    let mut text = format!("{OURS}\n");
    for ((address, _), names) in &lines {
        text += &format!("{address}\t{}\n", names.join(" "));
    }
    let shared = keys.into_iter().filter(|(_, keys)| keys.len() > 1);
    let shared = shared.map(|(name, keys)| HostsError::Shared { name, keys: keys.into_iter().collect() });
    let left = left.into_iter().map(|((name, key), means)| HostsError::Left { name, key, means });
    (text, left.chain(shared).collect())
}

/// A domain without dots at its ends.
fn check(domain: &str) -> Result<String, Error> {
    let text = domain.trim_matches('.');
    let sound = !text.is_empty() && text.split('.').all(|part| label(part).as_deref() == Some(&part.to_lowercase()));
    if sound { Ok(text.to_lowercase()) } else { Err(Error::specific(HostsError::Domain(domain.to_owned()))) }
}

#[cfg(test)]
mod tests {
    use osvc_cni::ipam::key::KeySource;

    use super::*;

    fn key(source: &str, text: &str) -> Key {
        Key { source: KeySource::from_name(source).unwrap(), text: text.to_owned() }
    }

    #[test]
    fn the_file_is_sorted_and_each_name_is_with_network_and_domains() {
        let (net1, net2) = ("net1".parse().unwrap(), "net_2".parse().unwrap());
        let entry = |address: &str, source: &str, text: &str, network| Entry {
            address: address.parse().unwrap(),
            key: key(source, text),
            network,
        };
        let entries = || {
            vec![
                entry("fd00::7", "podman", "web", &net1),
                entry("10.22.0.9", "podman", "web", &net1),
                entry("10.23.0.2", "nomad", "web", &net2),
            ]
        };
        let (text, shared) = render(entries(), &["lan".to_owned()]);
        assert_eq!(
            text,
            format!(
                "{OURS}\n10.22.0.9\tweb web.net1 web.lan web.net1.lan\n10.23.0.2\tweb web.net-2 web.lan web.net-2.lan\n\
                 fd00::7\tweb web.net1 web.lan web.net1.lan\n"
            )
        );
        assert_eq!(shared.len(), 1);
        assert!(shared[0].to_string().contains("web (nomad), web (podman)"), "{}", shared[0]);
        let mut back = entries();
        back.reverse();
        assert_eq!(render(back, &["lan".to_owned()]).0, text);
    }

    #[test]
    fn what_means_something_else_is_left_out_and_told() {
        let net1 = "net1".parse().unwrap();
        let entry = |address: &str, source: &str, text: &str| Entry {
            address: address.parse().unwrap(),
            key: key(source, text),
            network: &net1,
        };
        let entries = vec![
            entry("10.22.0.2", "podman", "localhost"),
            entry("10.22.0.3", "k8s", "localhost/web"),
            entry("10.22.0.4", "podman", "10.0.0.1"),
            entry("10.22.0.5", "podman", "0x7f.1"),
            entry("10.22.0.6", "podman", "7up"),
        ];
        let (text, notes) = render(entries, &[]);
        assert_eq!(
            text,
            format!(
                "{OURS}\n10.22.0.2\tlocalhost.net1\n10.22.0.3\tweb.localhost.net1\n10.22.0.4\t10.0.0.1.net1\n\
                 10.22.0.5\t0x7f.1.net1\n10.22.0.6\t7up 7up.net1\n"
            )
        );
        let told: Vec<String> = notes.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        for name in ["localhost, of key localhost (podman)", "web.localhost,", "10.0.0.1,", "0x7f.1,"] {
            assert!(told.iter().any(|told| told.starts_with(name)), "{name}: {told:?}");
        }
    }

    #[test]
    fn domains_are_checked() {
        assert_eq!(check(".Example.org.").unwrap(), "example.org");
        for bad in ["", ".", "a b", "a..b", "-a.b", "a\nb"] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}
