//! Whose addresses are meant, and what to say if nobody's are.

use std::net::IpAddr;

use osvc_cni::ipam::config::IpamConfig;
use osvc_cni::ipam::key::{Key, KeySource};
use osvc_cni::ipam::reserve::Which;
use osvc_cni::ipam::snapshot::{self, Snapshot};
use osvc_cni::{Host, NetworkName};

use crate::error::Error;
use crate::nearest::nearest;
use crate::networks::Network;

/// What is wrong with a question about addresses.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// The network has no addresses of ours.
    #[error(
        "network {0} gives no addresses by osvc-ipam, or has no configuration here: see `osvc-net ls`, and --conf-dir"
    )]
    NoAddresses(NetworkName),
    /// A word that is no source.
    #[error("no source {0:?}: there are osvc, k8s, podman, nomad, nerdctl, container, template")]
    Source(String),
    /// A key without a record.
    #[error("network {network} has no record of {what:?}{}", .nearest.as_deref().map(|nearest| format!(": did you mean {nearest:?}?")).unwrap_or_else(|| format!(": see `osvc-net ip ls -n {network}`")))]
    Unknown {
        /// The network.
        network: NetworkName,
        /// A key or an address, as given.
        what: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// A key or an address without a history.
    #[error("nothing is remembered of {what:?}{}", .nearest.as_deref().map(|nearest| format!(": did you mean {nearest:?}?")).unwrap_or_else(|| ": see `osvc-net ip history`".to_owned()))]
    Nowhere {
        /// As given.
        what: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// Two workloads of one name.
    #[error("network {network} has records of several keys {key:?} ({}): give {way}", .sources.join(", "))]
    Ambiguous {
        /// The network.
        network: NetworkName,
        /// As given.
        key: String,
        /// Where they come from.
        sources: Vec<&'static str>,
        /// How to tell which one is meant.
        way: &'static str,
    },
}

/// Why a source was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It was given.
    Given,
    /// The key has a record.
    Recorded,
    /// The network has `ipam.key`.
    Template,
    /// The key looks so.
    Form,
}

impl Why {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Given => "as given",
            Self::Recorded => "as recorded",
            Self::Template => "since the network has ipam.key",
            Self::Form => "by its form",
        }
    }
}

/// How a network gives addresses.
pub fn config(host: &Host, network: &Network) -> Result<IpamConfig, Error> {
    let shape = network.shape(host)?;
    let addresses = shape.and_then(|shape| shape.addresses);
    addresses.ok_or_else(|| Error::specific(SelectError::NoAddresses(network.name.clone())))
}

/// All records of a network. What cannot be read is an error each.
pub fn records(host: &Host, network: &Network) -> (Snapshot, Vec<Error>) {
    let fault =
        |error: osvc_cni::ipam::Error| Error::Network { network: network.name.clone(), source: Box::new(error.into()) };
    let folder = network.address_folders(host).map(|folders| folders.ours);
    let progress = crate::progress::Progress::new(format!("network {}: records", network.name), None);
    match snapshot::watched(host, &network.name, folder.as_deref(), &|more| progress.advance(more)) {
        Ok(mut snapshot) => {
            let faults = snapshot.faults.drain(..).map(fault).collect();
            (snapshot, faults)
        }
        Err(error) => (Snapshot::default(), vec![fault(error)]),
    }
}

/// The sources of all keys of this text.
fn sources(snapshot: &Snapshot, text: &str) -> Vec<KeySource> {
    let mut found: Vec<KeySource> = snapshot
        .records
        .iter()
        .filter(|(_, record)| record.key.text == text)
        .map(|(_, record)| record.key.source)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The key of a text that need not have a record, and why it is that one.
pub fn key(config: &IpamConfig, snapshot: &Snapshot, text: &str, source: Option<&str>) -> Result<(Key, Why), Error> {
    let key = |source| Key { source, text: text.to_owned() };
    if let Some(given) = source {
        let unknown = || Error::specific(SelectError::Source(given.to_owned()));
        return Ok((key(KeySource::from_name(given).ok_or_else(unknown)?), Why::Given));
    }
    Ok(match sources(snapshot, text).as_slice() {
        [one] => (key(*one), Why::Recorded),
        [] if config.key_template.is_some() => (key(KeySource::Template), Why::Template),
        [] => (key(by_form(text)), Why::Form),
        several => return Err(ambiguous(&config.network, text, several, "--source")),
    })
}

fn ambiguous(network: &NetworkName, key: &str, sources: &[KeySource], way: &'static str) -> Error {
    let sources = sources.iter().map(|source| source.name()).collect();
    Error::specific(SelectError::Ambiguous { network: network.clone(), key: key.to_owned(), sources, way })
}

fn by_form(text: &str) -> KeySource {
    let both = |mark| {
        text.rsplit_once(mark).is_some_and(|(before, after): (&str, &str)| !before.is_empty() && !after.is_empty())
    };
    match text {
        _ if both('!') => KeySource::Osvc,
        _ if both('/') => KeySource::K8s,
        _ => KeySource::Podman,
    }
}

/// The recorded key that looks most like a text.
pub fn near<'s>(snapshot: &'s Snapshot, text: &str) -> Option<&'s str> {
    // Long ones are compared at a cost of their length squared.
    let keys = snapshot.records.iter().map(|(_, record)| record.key.text.as_str()).filter(|key| key.len() < 256);
    let similar = keys.filter(|key| key.len().abs_diff(text.len()) <= (text.len() / 3).max(2));
    nearest(text, similar)
}

/// The records that a key or an address means.
pub fn which(network: &NetworkName, snapshot: &Snapshot, what: &str) -> Result<Which, Error> {
    let unknown = |nearest: Option<String>| {
        Error::specific(SelectError::Unknown { network: network.clone(), what: what.to_owned(), nearest })
    };
    let address = what.parse::<IpAddr>().ok().filter(|_| sources(snapshot, what).is_empty());
    if let Some(address) = address {
        let addresses = || snapshot.records.iter().map(|(address, _)| *address);
        return match addresses().any(|known| known == address) {
            true => Ok(Which::Address(address)),
            false => {
                let texts: Vec<String> = addresses().map(|address| address.to_string()).collect();
                Err(unknown(nearest(what, texts.iter().map(String::as_str)).map(str::to_owned)))
            }
        };
    }
    match sources(snapshot, what).as_slice() {
        [source] => Ok(Which::Key(Key { source: *source, text: what.to_owned() })),
        [] => Err(unknown(near(snapshot, what).map(str::to_owned))),
        several => Err(ambiguous(network, what, several, "the address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_key_tells_its_source() {
        let name = |text| by_form(text).name();
        assert_eq!([name("test/svc/web!ip#0"), name("prod/web"), name("web")], ["osvc", "k8s", "podman"]);
        assert_eq!([name("!web"), name("web/"), name("a!b/c")], ["podman", "podman", "osvc"]);
    }
}
